"""The commands in the README do what they say; its Python block is run by the collector in conftest.py."""

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from likewise.cli.main import main
from likewise.datasets import load_mortgages

README = Path(__file__).parent.parent / "README.md"


def test_the_command_line_example_runs(tmp_path, monkeypatch):
    people = load_mortgages()
    table = people.data[["income", "obligations", "consumer_credit", "race"]].assign(approved=people.target)
    table = table.dropna()[:200].assign(id=range(200))
    table[:150].to_csv(tmp_path / "loans.csv", index=False)
    table[150:].drop(columns="approved").to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "secret.key").write_bytes(bytes(32))
    monkeypatch.chdir(tmp_path)
    commands = [
        line
        for block in re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
        for line in block.splitlines()
        if line.startswith("likewise ")
    ]
    assert len(commands) == 8
    for command in commands:
        done = CliRunner().invoke(main, shlex.split(command, comments=True)[1:])
        assert done.exit_code == 0, f"{command}\n{done.output}"
    assert (tmp_path / "report.html").exists()


def test_only_two_set_up_commands_and_every_link_leads_somewhere():
    text = README.read_text(encoding="utf-8")
    assert re.findall(r"^make \w+", text, re.MULTILINE) == ["make demo", "make test"]
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (README.parent / target).exists(), target
