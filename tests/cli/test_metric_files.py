"""A metric file is people's own: what they write into it survives."""

import json

import numpy as np
import pytest

from likewise import TableMetric, audit
from likewise import metric_file as metric_files
from likewise.exceptions import FileError
from likewise.io import load_model
from likewise.metric_edits import read_comments
from likewise.metric_file import MetricFile, format_metric, read_metric, read_metric_file, write_metric
from shell import LOANS, run

METRIC = TableMetric(
    {"income": 0.01 / 4300, "age": 0.004, "zip": 0}, {"race": 0}, units={"income": "$", "age": "years"}
)


def test_a_file_that_nobody_edited_has_no_words_but_its_units(tmp_path):
    written = MetricFile(
        METRIC,
        (0.0, 10.0),
        "Revealed exactly.",
        0.5,
        ("race",),
        not_used=("zip",),
        not_forced=("age",),
        as_written=True,
    )
    write_metric(written, tmp_path / "m.toml")
    assert read_metric_file(tmp_path / "m.toml") == written
    words = read_comments(tmp_path / "m.toml")
    assert words.n_comments == 0
    assert words.units == {"income": "$", "age": "years"}


def test_comments_stay_where_they_are(tmp_path):
    path = tmp_path / "m.toml"
    text = format_metric(METRIC)
    text = text.replace("p = 1", "# Agreed in May 2024.\np = 1  # taxi")
    text = text.replace("[categorical]", "# By law:\n[categorical]")
    text = text.replace("race = 0 # must not matter", "# Article 21\nrace = 0 # must not matter; never")
    text = text.replace('"1 point = $4,300"', "2.325581395348837e-06 # 1 point = $4,300, says the bank")
    path.write_text(text + "\n# The end.\n")
    stricter = METRIC.scaled(2)
    again = format_metric(stricter, words=read_comments(path))
    for line in (
        "# Agreed in May 2024.\np = 1 # taxi",
        "# By law:",
        "# Article 21\nrace = 0 # must not matter; never",
        'income = "1 point = $2,150" # says the bank',
        "# The end.",
    ):
        assert line in again
    assert "4,300" not in again
    path.write_text(again)
    assert read_metric(path) == stricter
    assert format_metric(stricter, words=read_comments(path)).count("says the bank") == 1


def test_a_column_that_stands_twice_is_one_clear_error(tmp_path):
    path = tmp_path / "m.toml"
    path.write_text("p = 1\n[numeric]\nage = 1\nage = 2\n")
    with pytest.raises(FileError, match=r"m.toml, line 4: not valid TOML \(Cannot overwrite a value\)"):
        read_metric(path)


def test_comments_on_a_column_that_is_gone_are_not_lost(tmp_path):
    path = tmp_path / "m.toml"
    path.write_text(
        format_metric(METRIC).replace("age =", "# ask Ada\nage =").replace('years"\n', 'years" # disputed\n', 1)
    )
    text = format_metric(TableMetric({"income": 1e-6}), words=read_comments(path))
    assert "# ask Ada" in text
    assert "# age: disputed" in text


@pytest.fixture
def loans(tmp_path):
    LOANS.to_csv(tmp_path / "loans.csv", index=False)
    return tmp_path


COMMAND = "metric loans.csv --target approved --drop id --out m.toml"


def test_metric_again_keeps_zeros_units_and_comments_and_says_so(loans):
    assert run(loans, f"{COMMAND} --zero race").exit_code == 0
    path = loans / "m.toml"
    path.write_text(path.read_text().replace("race = 0", "# By law.\nrace = 0") + '\n[units]\nincome = "$"\n')
    assert "exists already" in run(loans, COMMAND).stderr
    done = run(loans, f"{COMMAND} --force --model boosting")
    assert done.exit_code == 0, done.output
    assert "Kept of the old m.toml: race at 0, the units of income and 1 comment." in done.stdout
    assert "# By law.\nrace = 0 # must not matter" in path.read_text()
    assert read_metric(path).units == {"income": "$"}
    assert read_metric_file(path).protected == ("race",)
    assert "$" in done.stdout
    path.write_text("p = nonsense")  # no metric
    assert run(loans, f"{COMMAND} --force").exit_code == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("years = ", "years = 1"),
        lambda text: text.replace("race = 0 # must not matter", "race = 0.2").replace('protected = ["race"]', ""),
        lambda text: text.replace("region = 0.", "region = 0 # agreed 0."),
        lambda text: text.replace("p = 1", "p = 2"),
        lambda text: text.replace("[numeric]", "[numeric]\nnonsense"),
    ],
    ids=["weight", "protected", "zero", "p", "damaged"],
)
def test_weights_that_people_have_written_are_replaced_with_a_copy_and_a_diff_only(loans, change):
    assert run(loans, f"{COMMAND} --zero race").exit_code == 0
    path = loans / "m.toml"
    text = change(path.read_text())
    assert text != path.read_text()
    write_metric(METRIC, loans / "mine.toml")
    for command in (COMMAND, "metric scale mine.toml --by 0.5 --out m.toml"):
        path.write_text(text)
        assert run(loans, command).exit_code == 2  # not without --force
        assert path.read_text() == text
        done = run(loans, f"{command} --force")
        assert done.exit_code == 0, done.output
        copies = list(loans.glob("m.toml*bak"))
        assert text in [copy.read_text() for copy in copies]
        assert "The old m.toml is kept as m.toml" in done.stdout
        assert "--- m.toml" in done.stdout
        for copy in copies:
            copy.unlink()


COMMITTEE = """# Agreed on 3 May.
p = 1

[numeric]
income = 0.0002 # 1 point = $50, says the bank
years = 0.02 # 1 point = 0.5
zip = 0 # set to 0 by the committee
"a b" = 0.4

[categorical]
race = 0 # must not matter; set to 0 by the committee
region = 0.6   # mismatch = 60 points
# Owners and tenants:
home = 0.3 # disputed

[missing]
income = 0.5
zip = 0.7

[units]
income = "$"

[output]
range = [0, 300]

[origin]
protected = ["race"]
"""


def test_scaling_a_file_changes_weights_and_what_they_are_worth_and_nothing_else(tmp_path):
    (tmp_path / "committee.toml").write_text(COMMITTEE)
    done = run(tmp_path, "metric scale committee.toml --by 0.5 --out stricter.toml")
    assert done.exit_code == 0, done.output
    expected = COMMITTEE
    for old, new in (
        ("0.0002 # 1 point = $50, says the bank", '"1 point = $100" # says the bank'),
        ("years = 0.02 # 1 point = 0.5", 'years = "1 point = 1"'),
        ('"a b" = 0.4', '"a b" = "1 point = 0.05"'),
        ("region = 0.6   # mismatch = 60 points", 'region = "mismatch = 30 points"'),
        ("home = 0.3", 'home = "mismatch = 15 points"'),
        ("income = 0.5", 'income = "25 points"'),
        ("zip = 0.7", 'zip = "35 points"'),
        ('["race"]\n', '["race"]\nscaled_by = 0.5 # all distances, since then\n'),
    ):
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert (tmp_path / "stricter.toml").read_text() == expected
    file = read_metric_file(tmp_path / "stricter.toml")
    assert file.protected == ("race", "zip")
    assert file.output_range == (0.0, 300.0)
    assert (tmp_path / "committee.toml").read_text() == COMMITTEE
    for command, words in (
        ("metric scale committee.toml --by 0.5 --out stricter.toml", "exists already"),
        ("metric scale committee.toml --by 0.5 --out committee.toml --force", "is an input of this command"),
        ("metric scale committee.toml --by -1 --out other.toml", "--by must be a positive number"),
        ("metric scale nothing.toml --by 0.5 --out other.toml", "no file nothing.toml"),
    ):
        done = run(tmp_path, command)
        assert done.exit_code == 2
        assert words in done.stderr


def test_a_protected_column_with_a_weight_is_refused_with_its_line(tmp_path):
    path = tmp_path / "m.toml"
    path.write_text(COMMITTEE.replace("race = 0 ", "race = 0.1 "))
    with pytest.raises(FileError, match=r"m.toml, line 27: 'race' is protected, and its weight is 0.1. Set the weight"):
        read_metric(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("range = [0, 300]", "range = [300, 0]", "line 24: range must be two numbers, the lowest first"),
        ("range = [0, 300]", "width = 3", "line 24: unknown entry 'width'; use range"),
        ('["race"]', '"race"', "line 27: protected must be a list of columns"),
        ('protected = ["race"]', "safe = 1", "line 27: unknown entry 'safe'"),
        ('protected = ["race"]', "scaled_by = 0", "line 27: scaled_by must be a positive number"),
        ('"a b" = 0.4', '"a b" = -0.4', "line 8: weights must be non-negative"),
        ("[units]", "[units]\nage = 3", "line 21: 'age' has no weight"),
    ],
)
def test_other_bad_edits_are_refused_with_their_line(tmp_path, old, new, message):
    path = tmp_path / "m.toml"
    path.write_text(COMMITTEE.replace(old, new, 1))
    with pytest.raises(FileError, match=message):
        read_metric(path)


def test_whose_decision_a_zero_is_stands_in_the_file(tmp_path):
    people = LOANS.drop(columns=["id", "constant"]).assign(same="a")
    people.to_csv(tmp_path / "loans.csv", index=False)
    assert run(tmp_path, "metric loans.csv --target approved --zero race --out exact.toml").exit_code == 0
    exact = read_metric_file(tmp_path / "exact.toml")
    assert (exact.protected, exact.not_used, exact.not_forced) == (("race",), (), ("same",))
    done = run(tmp_path, "metric loans.csv --target approved --model forest --zero race --out forest.toml")
    forest = read_metric_file(tmp_path / "forest.toml")
    assert forest.protected == ("race",)
    assert forest.not_used == ()
    assert "same" in forest.not_forced
    assert "not used by this model" not in done.output + (tmp_path / "forest.toml").read_text()
    assert "same = 0 # not forced by these people" in (tmp_path / "forest.toml").read_text()


def test_a_weight_that_is_raised_by_hand_has_a_weight_for_blanks(tmp_path):
    """Control: where nobody has said what a blank weighs, people with one are refused, with the cure."""
    holes = LOANS.assign(income=LOANS.income.where(LOANS.index % 9 > 0))
    holes.to_csv(tmp_path / "loans.csv", index=False)
    command = "metric loans.csv --target approved --drop id --drop race --zero income --out m.toml"
    assert run(tmp_path, command).exit_code == 0
    path = tmp_path / "m.toml"
    raised = path.read_text().replace("income = 0 ", "income = 0.0001 ").replace('protected = ["income"]', "")
    path.write_text(raised)
    metric = read_metric(path)
    assert metric.numeric["income"] == 0.0001
    assert metric.missing["income"] > 0
    enforce = "enforce loans.csv --target approved --metric m.toml --method additive --holdout 0 --force"
    assert run(tmp_path, enforce).exit_code == 0
    write_metric(TableMetric({"income": 0, "years": 0.01}), path)
    path.write_text(path.read_text().replace("income = 0 ", "income = 0.0001 "))
    done = run(tmp_path, enforce)
    assert done.exit_code == 2
    assert "[missing] income = 1" in done.stderr


def test_reading_looks_for_lines_only_where_there_is_an_error(tmp_path, monkeypatch):
    """What made reading quadratic in the columns."""
    path = tmp_path / "m.toml"
    write_metric(TableMetric({f"column {i}": 0.1 for i in range(50)}), path)
    made = []
    monkeypatch.setattr(metric_files, "TableMetric", lambda **given: made.append(given) or TableMetric(**given))
    monkeypatch.setattr(metric_files, "_line", lambda *place: pytest.fail("no line is wanted"))
    read_metric(path)
    assert len(made) == 1


def numbers(place):
    """A regression, twice: the second table has a narrower range of outcomes."""
    wide = LOANS.drop(columns=["id", "approved", "constant"]).assign(
        rate=(LOANS.income / 100 + 3 * LOANS.years).round(1)
    )
    wide.to_csv(place / "wide.csv", index=False)
    narrow = wide[wide.rate.between(30, 90)]
    narrow.to_csv(place / "narrow.csv", index=False)
    return wide, narrow


def test_a_regressions_metric_has_the_output_range_and_every_command_reads_it(tmp_path):
    wide, narrow = numbers(tmp_path)
    done = run(tmp_path, "metric wide.csv --target rate --out m.toml")
    assert done.exit_code == 0, done.output
    low, high = read_metric_file(tmp_path / "m.toml").output_range
    assert low <= wide.rate.min()
    assert high >= wide.rate.max()
    assert (high - low) < 1.2 * np.ptp(wide.rate)
    for table in ("wide", "narrow"):
        command = f"enforce {table}.csv --target rate --metric m.toml --method additive --holdout 0 --out {table}.skops"
        done = run(tmp_path, command)
        assert done.exit_code == 0, done.output
        model = load_model(tmp_path / f"{table}.skops")
        assert model.guarantee_.output_range == (low, high)
    done = run(tmp_path, "compare narrow.csv --target rate --metric m.toml --method additive --folds 2 --json")
    assert done.exit_code == 0, done.output
    done = run(tmp_path, "tradeoff narrow.csv --target rate --metric m.toml --scale 1 --folds 2 --range 30 90")
    assert done.exit_code == 2
    assert (
        f"--range 30 to 90 contradicts m.toml, whose weights are shares of the range {low:g} to {high:g}" in done.stderr
    )
    for command in ("compare", "tradeoff", "enforce"):
        done = run(tmp_path, f"{command} narrow.csv --target rate --metric m.toml --range 30 90")
        assert "contradicts m.toml" in done.stderr
    done = run(tmp_path, "audit narrow.csv --metric m.toml --scores rate --json")
    width = json.loads(done.stdout)["max_excess"]
    metric = read_metric(tmp_path / "m.toml")
    worst = audit(None, narrow.drop(columns="rate"), metric, predictions=narrow.rate, output_range=(low, high))
    assert width == pytest.approx(worst.max_excess)
    assert "contradicts" in run(tmp_path, "audit narrow.csv --metric m.toml --scores rate --range 0 1").stderr


def test_ranges_can_be_given_and_old_files_say_that_they_have_none(tmp_path):
    numbers(tmp_path)
    done = run(tmp_path, "metric wide.csv --target rate --range -100 400 --out m.toml")
    assert "A point is a hundredth of the output range, -100 to 400." in done.stdout
    assert read_metric_file(tmp_path / "m.toml").output_range == (-100.0, 400.0)
    write_metric(read_metric(tmp_path / "m.toml"), tmp_path / "old.toml")
    enforce = "enforce narrow.csv --target rate --metric old.toml --method additive --holdout 0 --force"
    done = run(tmp_path, enforce)
    assert "old.toml has no output range, so its weights are taken as shares of the range in this table" in done.stderr
    done = run(tmp_path, f"{enforce} --range -100 400")
    assert "no output range" not in done.stderr
    assert load_model(tmp_path / "model.skops").guarantee_.output_range == (-100.0, 400.0)
    assert "the lowest first; got 4 1" in run(tmp_path, "metric wide.csv --target rate --range 4 1 --out n.toml").stderr
    LOANS.to_csv(tmp_path / "loans.csv", index=False)
    done = run(tmp_path, "metric loans.csv --target approved --drop id --range 0 1 --out n.toml")
    assert "--range is for a regression" in done.stderr
    done = run(tmp_path, "enforce wide.csv --target rate --metric m.toml --method additive --out one.skops")
    done = run(
        tmp_path, "enforce wide.csv --target rate --metric old.toml --method additive --range 0 250 --out two.skops"
    )
    assert done.exit_code == 0, done.output
    done = run(tmp_path, "audit narrow.csv --metric m.toml --model two.skops")
    assert done.exit_code == 2
    assert "a point differs between them" in done.stderr
    assert run(tmp_path, "audit narrow.csv --metric m.toml --model one.skops").exit_code == 0
