"""How commands end."""

import re
import warnings

import click
import pytest
from click.testing import CliRunner

from likewise.cli.console import Output, command
from likewise.cli.main import main
from shell import LOANS, run


def ends(action):
    @click.command()
    @command
    def act(echo):
        action(echo)

    return CliRunner().invoke(act, [])


def raises(error):
    def act(echo):
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ValueError("age must be\n positive"), 2, "Error: age must be positive\n"),
        (OSError("no disk"), 2, "Error: no disk\n"),
        (KeyboardInterrupt(), 130, "Stopped. No file was left incomplete.\n"),
        (KeyboardInterrupt("7 are done."), 130, "Stopped. No file was left incomplete. 7 are done.\n"),
        (RuntimeError("cannot\ncache"), 3, "Internal error: RuntimeError: cannot cache Set LIKEWISE_DEBUG=1"),
        (TypeError("unsupported operand"), 3, "Internal error: TypeError: unsupported operand"),
        (MemoryError(), 3, "Internal error: MemoryError"),
    ],
)
def test_each_end_has_its_code_and_one_line(error, code, words, monkeypatch):
    monkeypatch.setattr("signal.signal", lambda *of: None)
    monkeypatch.delenv("LIKEWISE_DEBUG", raising=False)
    done = ends(raises(error))
    assert done.exit_code == code
    assert done.stderr.startswith(words)
    assert done.stderr.count("\n") == 1


def test_a_second_control_c_does_not_swallow_what_was_said(monkeypatch):
    monkeypatch.setattr("signal.signal", lambda *of: None)

    def twice(echo):
        try:
            raise KeyboardInterrupt("7 are done.")
        finally:
            raises(KeyboardInterrupt())(echo)

    assert ends(twice).stderr == "Stopped. No file was left incomplete. 7 are done.\n"


def test_debug_shows_where(monkeypatch):
    monkeypatch.setenv("LIKEWISE_DEBUG", "1")
    done = ends(raises(RuntimeError("deep")))
    assert isinstance(done.exception, RuntimeError)


def test_warnings_are_notes_of_one_line():
    def warn(echo):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("something\n  odd", UserWarning, stacklevel=1)
            echo.note("something odd")  # each once

    done = ends(warn)
    assert done.exit_code == 0
    assert done.stderr == "Note: something odd\n"


# -- help -------------------------------------------------------------------------------------------------------


def help_of(name):
    return CliRunner().invoke(main, [name, "--help"]).output


def example(name):
    found = re.search(r"Example: likewise (.*(?:\n  \S.*)*)", help_of(name))
    return " ".join(found[1].split())


def test_help_is_short_and_every_command_has_an_example():
    text = CliRunner().invoke(main, ["--help"]).output
    assert "Check:" in text
    assert "3 a crash" in " ".join(text.split())
    for name in main.commands:
        assert example(name).split()[0] == name
        assert "--json" in help_of(name)


def test_commands_that_read_a_table_take_any_dialect():
    for name in ("metric", "compare", "enforce", "tradeoff", "score", "audit", "attack", "effect", "report"):
        for option in ("--delimiter", "--encoding", "--decimal", "--force"):
            assert option in help_of(name)


def test_the_examples_run(tmp_path, monkeypatch):
    LOANS.assign(score=0.5).to_csv(tmp_path / "loans.csv", index=False)
    names = ["metric", "compare", "enforce", "tradeoff", "score", "audit", "report"]
    for name in names:
        done = run(tmp_path, example(name))
        assert done.exit_code == 0, (name, done.output)
    called = []  # long: has tests of its own
    monkeypatch.setattr(main.commands["demo"], "callback", lambda **given: called.append(given))
    assert run(tmp_path, example("demo")).exit_code == 0
    assert called
    assert {*names, "demo"} <= set(main.commands)


@pytest.mark.parametrize("width", [80, 120])
def test_sentences_break_at_words_where_the_width_is_known_and_commands_never(width, monkeypatch, capsys):
    sentence = "Chances of approval differ by at most the distance between any two applications. " * 3
    table, command = "column  weight  " * 12, "likewise audit people.csv --metric metric.toml " * 4
    for known in (True, False):
        monkeypatch.setenv("COLUMNS", str(width)) if known else monkeypatch.delenv("COLUMNS", raising=False)
        Output(as_json=False)(f"{sentence}\n{table}\n  {command}")
        Output(as_json=False).note(sentence)
        out, note = capsys.readouterr()
        assert f"\n{table}\n  {command}\n" in out
        lines = [*out.partition(f"\n{table}")[0].splitlines(), *note.splitlines()]
        assert (max(map(len, lines)) <= width) == known
        assert " ".join(lines).split() == f"{sentence} Note: {sentence}".split()
