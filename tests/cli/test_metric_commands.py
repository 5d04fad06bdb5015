"""Commands on a metric file leave what a committee wrote as it is."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from likewise import load_model
from likewise.metric_edits import read_comments
from likewise.metric_file import format_metric, read_metric, read_metric_file, today, write_metric
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
        ("2.05e-6   # 1 point = $4,878, says the bank", '"1 point = $5,000"   # says the bank'),
        ("0.0318 # one more card = 3.18 points", '"one more card = 3 points"'),
        ("0.614", '"mismatch = 60 points"'),
        ('work" = 0.02', 'work" = "1 point = 0.5"'),
        ("income = 0.5", 'income = "50 points"'),
    ):
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert (place / "round.toml").read_bytes().decode() == expected
    before, after = (read_metric(place / f"{name}.toml") for name in ("committee", "round"))
    assert after == before.rounded()


SIGNED = """p = 1

[numeric]
pay = "1 point = $376"
tenure = "1 point = 2.5 years"
cards = "one more card = 3 points"
debts = "2 points = 1,000"
share = 0.01 # 1 point = 1

[categorical]
region = "12 points"
race = 0

[missing]
pay = "25 points"

[units]
cards = "1 card"
"""


def test_weights_in_words_are_the_values_and_are_read_and_written_by_every_command(tmp_path):
    (tmp_path / "signed.toml").write_text(SIGNED, encoding="utf-8")
    metric = read_metric(tmp_path / "signed.toml")
    assert metric.numeric == {"pay": 0.01 / 376, "tenure": 0.004, "cards": 0.03, "debts": 2e-5, "share": 0.01}
    assert (metric.categorical["region"], metric.missing["pay"]) == (0.12, 0.25)
    assert (metric.units["pay"], metric.units["tenure"]) == ("$", "years")  # as they were said
    for command in ("show signed.toml", "check signed.toml", "diff signed.toml signed.toml"):
        assert run(tmp_path, f"metric {command}").exit_code == 0
    shown = run(tmp_path, "metric show signed.toml").stdout
    assert "$376" in shown
    assert "2.5 years" in shown
    run(tmp_path, "metric scale signed.toml --by 2 --out twice.toml")
    text = (tmp_path / "twice.toml").read_text(encoding="utf-8")
    for line in ('pay = "1 point = $188"', 'tenure = "1 point = 1.25 years"', 'cards = "one more card = 6 points"'):
        assert line in text
    assert read_metric(tmp_path / "twice.toml") == metric.scaled(2)
    numbers = metric.with_params(units={"cards": "1 card"})
    plain = {name: repr(weight) for name, weight in numbers.numeric.items()}
    old = SIGNED.replace('"1 point = $376"', plain["pay"]).replace('"12 points"', "0.12")  # as files of before have it
    (tmp_path / "old.toml").write_text(old, encoding="utf-8")
    assert read_metric(tmp_path / "old.toml").by_column == metric.by_column


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('"1 point = 376 €"', "an amount in the unit of the column"),
        ('"1 point = $3,76"', "an amount in the unit of the column"),
        ('"1 point = $0"', "points must be worth a positive amount"),
        ('"a point is $376"', "a weight must be a number, or odds such as"),
        ('"one point = $376"', "a weight must be a number, or odds such as"),
        ('"1 point = 5 percentage points"', "in the unit of the column"),
    ],
)
def test_words_that_cannot_be_weights_are_refused_with_their_line(tmp_path, value, words):
    unit = "" if "percentage" in value else 'pay = "$"\n'
    (tmp_path / "wrong.toml").write_text(SIGNED.replace('"1 point = $376"', value) + unit, encoding="utf-8")
    done = run(tmp_path, "metric show wrong.toml")
    assert (done.exit_code, words in done.stderr, "line 4" in done.stderr) == (2, True, True), done.stderr


def test_a_comment_that_contradicts_its_weight_is_refused_by_check_and_corrected_by_what_writes(tmp_path):
    for weight, comment, wrong in (
        ("2e-5", "1 point = $500, as agreed", False),
        ("2e-5", "1 point = $376", True),
        ("2e-5", "must not matter", True),
        ("0", "1 point = $376", True),
        ("0", "must not matter", False),
        ("2e-5", "the chair's own words: $376", False),
    ):
        file = f'p = 1\n[numeric]\npay = {weight} # {comment}\nage = 0.01\n[units]\npay = "$"\n'
        (tmp_path / "m.toml").write_text(file, encoding="utf-8")
        done = run(tmp_path, "metric check m.toml")
        assert (done.exit_code, "m.toml, line 3: the comment says" in done.stderr) == (2 * wrong, wrong), comment
    (tmp_path / "m.toml").write_text(file.replace("the chair's own words: $376", "1 point = $376"), encoding="utf-8")
    run(tmp_path, "metric scale m.toml --by 0.5 --out half.toml")
    assert 'pay = "1 point = $1,000"\n' in (tmp_path / "half.toml").read_text(encoding="utf-8")


LENDERS = """# Agreed on 3 May, after  two  meetings.
p = 1

[numeric]
# Of the last tax return.
income = 2.05e-5   # 1 point = $488, says the bank
years = 0.02

[categorical]
race = 0 # must not matter; by law
region = 0.314

[units]
income = "$"

[origin]
source = "by hand"
date = 2026-05-03
protected = ["race"] # the law

# Signed: the chair
"""
ANSWERS = "judge,kind,a,b,points\nAnn,at_least,1,2,3\nAnn,at_most,1,2,90\nBob,at_most,3,4,80\n"


@pytest.mark.parametrize(
    ("command", "source"),
    [
        ("metric loans.csv --target approved --drop id --out m.toml", "revealed"),
        ("metric loans.csv --judgements answers.csv --drop id --drop approved --out m.toml", "judged"),
        ("design loans.csv --target approved --drop id --points 2 --folds 2 --loose --out m.toml", "designed"),
    ],
)
def test_a_file_says_where_its_weights_came_from_and_when(tmp_path, command, source):
    LOANS.drop(columns=["constant"]).to_csv(tmp_path / "loans.csv", index=False)
    (tmp_path / "answers.csv").write_text(ANSWERS)
    assert run(tmp_path, command).exit_code == 0
    file = read_metric_file(tmp_path / "m.toml")
    assert (file.source, file.date) == (source, today())
    path = tmp_path / "m.toml"
    assert format_metric(file, words=read_comments(path)).encode() == path.read_bytes()
    assert f"Source: {source}, {today()}." in run(tmp_path, "metric show m.toml").stdout
    text = re.sub(r"^years = .*$", "years = 1", path.read_text(), flags=re.MULTILINE)
    assert text != path.read_text()
    path.write_text(text)
    assert f"Source: {source}, {today()}, edited by hand since." in run(tmp_path, "metric show m.toml").stdout


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('source = "by hand"', 'source = "guessed"', "source must be one of revealed, designed, judged, by hand"),
        ("date = 2026-05-03", 'date = "May"', "date must be a day such as 2026-03-01; got 'May'"),
        ("date = 2026-05-03", "date = 5", "date must be a day such as 2026-03-01; got 5"),
        ("income = 2.05e-5 ", 'income = "-5% of odds per $1,000" ', "odds must not be below 0"),
    ],
)
def test_a_wrong_origin_is_refused_with_its_line(tmp_path, old, new, words):
    text = LENDERS.replace(old, new)
    assert text != LENDERS
    (tmp_path / "m.toml").write_text(text)
    done = run(tmp_path, "metric show m.toml")
    assert done.exit_code == 2
    line = next(i for i, each in enumerate(text.splitlines(), start=1) if new in each)
    assert f"m.toml, line {line}:" in done.stderr
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_show_says_from_how_many_people_the_weights_are(tmp_path):
    LOANS.to_csv(tmp_path / "loans.csv", index=False)
    assert run(tmp_path, "metric loans.csv --target approved --id id --out metric.toml").exit_code == 0
    file = replace(read_metric_file(tmp_path / "metric.toml"), kept_apart=0.2)
    write_metric(file, tmp_path / "metric.toml")
    said = run(tmp_path, "metric show metric.toml").output
    assert f"Made from the rows of {file.people:,} people; 20% of the table were kept apart from them." in said
    assert "Source: revealed, " in said
    told = json.loads(run(tmp_path, "metric show metric.toml --json").stdout)
    assert (told["people"], told["kept_apart"], told["rows"]) == (file.people, 0.2, file.rows)


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


CODED = """p = 1
[numeric]
score = 0.001
[missing]
score = 0.2
[special]
score = {-99 = "30 points", "-98" = 0.1} # no file, frozen
"""


def test_special_codes_of_a_file_are_scaled_shown_and_compared(tmp_path):
    (tmp_path / "coded.toml").write_text(CODED)
    assert run(tmp_path, "metric scale coded.toml --by 4 --out wide.toml").exit_code == 0
    assert dict(read_metric(tmp_path / "wide.toml").special["score"]) == {-99: 1.0, -98: 0.4}
    assert "# no file, frozen" in (tmp_path / "wide.toml").read_text()
    assert "special code of score: -99 30 points, -98 10 points" in run(tmp_path, "metric show coded.toml").stdout
    assert "score -98 0.100 0.400" in " ".join(run(tmp_path, "metric diff coded.toml wide.toml").stdout.split())
    for wrong in ('{"no file" = 0.3}', "{-99 = 2}", "{-99 = 0}", "-99"):
        (tmp_path / "wrong.toml").write_text(CODED.replace('{-99 = "30 points", "-98" = 0.1}', wrong))
        found = run(tmp_path, "metric check wrong.toml")
        assert (found.exit_code, "line 7" in found.stderr) == (2, True), found.stderr


@pytest.mark.parametrize("command", ["metric", "design"])
def test_codes_are_learned_from_as_blanks_and_written_with_their_weight(tmp_path, command):
    rng = np.random.default_rng(0)
    score = rng.integers(300, 850, 300)
    codes = rng.choice([0, -99, -98], 300, p=[0.8, 0.1, 0.1])
    approved = np.where(codes == 0, score > rng.normal(600, 60, 300), rng.random(300) < 0.2)
    table = pd.DataFrame({"score": np.where(codes == 0, score, codes), "approved": np.where(approved, "yes", "no")})
    table.to_csv(tmp_path / "people.csv", index=False)
    made = run(
        tmp_path, f"{command} people.csv --target approved --special score=-99,-98 --out m.toml --favourable yes"
    )
    assert made.exit_code == 0, made.stderr
    metric = read_metric(tmp_path / "m.toml")
    assert dict(metric.special["score"]) == {-99: metric.missing["score"], -98: metric.missing["score"]}
    enforced = "enforce people.csv --target approved --metric m.toml --method additive --out m.skops"
    found = run(tmp_path, enforced)
    assert found.exit_code == 0, found.stderr
    assert "report" not in found.stdout.split("Next:")[1]  # which takes no codes
    card = load_model(tmp_path / "m.skops").scorecard()
    assert {"missing", "-99", "-98"} <= set(card["range"])
