"""Commands on a metric file leave what a committee wrote as it is."""

import json

import pandas as pd
import pytest

from likewise.metric_edits import read_comments
from likewise.metric_file import format_metric, read_metric, read_metric_file
from shell import LOANS, run

COMMITTEE = """# Agreed on 3 May, after  two  meetings.

p = 1

[numeric]
income = 2.05e-6   # 1 point = $4,878, says the bank
"years at  work" = 0.02
zip = 0 # set to 0 by the committee
cards = 0.0318 # one more card = 3.18 points

[categorical]
'race' = 0 # must not matter; by law
region = 0.614

[missing]
income = 0.5

[units]
income = "$"
cards = "1 card"

[origin]
protected = ["race"] # the law

# Signed: the chair
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "committee.toml").write_bytes(COMMITTEE.encode())
    people = {"income": [4e4, 5e4, None], "years at  work": [1, 2, 9], "zip": [1, 2, 3], "cards": [0, 1, 2]}
    table = pd.DataFrame(people).assign(race=["x", "y", "x"], region=["n", "s", "n"])
    table.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "show committee.toml",
        "check committee.toml",
        "check committee.toml people.csv",
        "diff committee.toml committee.toml",
        "scale committee.toml --by 0.5 --out other.toml",
        "round committee.toml --out other.toml",
        "scale committee.toml --by 0.5 --out committee.toml --force",
        "round committee.toml --out committee.toml --force",
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_the_committees_file_is_left_as_it_is(place, command, ends):
    given = COMMITTEE.replace("\n", ends).encode()
    (place / "committee.toml").write_bytes(given)
    done = run(place, f"metric {command}")
    assert done.exit_code == (2 if "--force" in command else 0), done.output
    assert (place / "committee.toml").read_bytes() == given


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_change_that_changes_nothing_gives_the_same_bytes(place, ends):
    given = COMMITTEE.replace("\n", ends).encode()
    (place / "committee.toml").write_bytes(given)
    assert run(place, "metric scale committee.toml --by 1 --out same.toml").exit_code == 0
    assert (place / "same.toml").read_bytes() == given
    assert run(place, "metric round committee.toml --out once.toml").exit_code == 0
    assert run(place, "metric round once.toml --out twice.toml").exit_code == 0
    assert (place / "twice.toml").read_bytes() == (place / "once.toml").read_bytes() != given


def test_rounding_changes_weights_and_what_they_are_worth_and_nothing_else(place):
    done = run(place, "metric round committee.toml --out round.toml")
    assert done.exit_code == 0, done.output
    expected = COMMITTEE
    for old, new in (
        ("2.05e-6   # 1 point = $4,878, says the bank", "2e-06   # 1 point = $5,000; says the bank"),
        ("0.0318 # one more card = 3.18 points", "0.03 # one more card = 3 points"),
        ("0.614", "0.6"),
    ):
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert (place / "round.toml").read_bytes().decode() == expected
    before, after = (read_metric(place / f"{name}.toml") for name in ("committee", "round"))
    assert after == before.rounded()


def test_a_written_file_is_read_and_written_to_the_same_bytes(tmp_path):
    LOANS.to_csv(tmp_path / "loans.csv", index=False)
    done = run(tmp_path, "metric loans.csv --target approved --drop id --zero race --out m.toml")
    assert done.exit_code == 0, done.output
    path = tmp_path / "m.toml"
    assert format_metric(read_metric_file(path), words=read_comments(path)).encode() == path.read_bytes()


def test_what_is_replaced_is_kept_and_the_changes_are_printed(tmp_path):
    LOANS.to_csv(tmp_path / "loans.csv", index=False)
    make = "metric loans.csv --target approved --drop id --out m.toml"
    assert run(tmp_path, make).exit_code == 0
    first = (tmp_path / "m.toml").read_bytes()
    done = run(tmp_path, f"{make} --zero race --force")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "m.toml.bak").read_bytes() == first
    assert "m.toml is kept as" in done.stdout
    assert "+race = 0" in done.stdout
    second = (tmp_path / "m.toml").read_bytes()
    (tmp_path / "other.toml").write_bytes(first)
    done = run(tmp_path, "metric scale other.toml --by 0.5 --out m.toml --force")
    assert done.exit_code == 0, done.output
    assert sorted(path.read_bytes() for path in tmp_path.glob("m.toml*bak")) != []
    assert second in [path.read_bytes() for path in tmp_path.iterdir()]
    assert "-race = 0" in done.stdout


def test_diff_says_which_weights_changed(place):
    assert run(place, "metric scale committee.toml --by 0.5 --out half.toml").exit_code == 0
    facts = json.loads(run(place, "metric diff committee.toml half.toml --json").stdout)
    changed = {(row["section"], row["column"]): row["ratio"] for row in facts["weights"]}
    assert changed[("numeric", "income")] == changed[("missing", "income")] == 0.5
    assert ("numeric", "zip") not in changed
    assert "The weights are the same." in run(place, "metric diff half.toml half.toml").stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("show nothing.toml", "no file nothing.toml"),
        ("check committee.toml nothing.csv", "nothing.csv"),
        ("round committee.toml --out committee.toml", "is an input of this command"),
    ],
)
def test_wrong_input_is_one_line(place, command, words):
    done = run(place, f"metric {command}")
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_metric_that_allows_a_constant_only_fails_the_check(tmp_path):
    (tmp_path / "m.toml").write_text("[numeric]\nage = 0\n")
    done = run(tmp_path, "metric check m.toml")
    assert done.exit_code == 2
    assert "only a constant is within it" in done.stderr


def test_help_shows_how_to_reveal_and_the_commands_on_files(tmp_path):
    text = run(tmp_path, "metric --help").stdout
    assert "--target" in text
    assert all(name in text for name in ("show", "scale", "round", "diff", "check"))
