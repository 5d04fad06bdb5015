"""The commands in the README do what they say; its Python block is run by the collector in conftest.py."""

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from likewise.cli.main import main

README = Path(__file__).parent.parent / "README.md"


def test_the_command_line_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)
    loans = (tmp_path / "loans.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "loans.csv").write_text("".join(loans[:700]), encoding="utf-8")  # the same commands, in less time
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


def test_the_first_commands_are_two_and_every_link_leads_somewhere():
    text = README.read_text(encoding="utf-8")
    assert re.findall(r"^make \w+", text, re.MULTILINE) == ["make demo", "make test", "make wheel"]
    assert not re.search(r"pip install '?likewise", text)  # it is not on an index yet
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (README.parent / target).exists(), target
