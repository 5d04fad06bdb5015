"""A metric is designed on the command line: its file says how, for whom, and which columns are protected."""

import json
import re
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from likewise.cli import console
from likewise.metric_file import read_metric_file
from shell import LOANS, run

FEW = "--points 3 --folds 2 --loose"


@pytest.fixture
def place(tmp_path):
    LOANS.to_csv(tmp_path / "loans.csv", index=False)
    return tmp_path


def design(place, words="", **given):
    return run(place, f"design loans.csv --target approved --id id {FEW} {words}", **given)


def test_the_file_says_that_it_was_designed_when_and_with_which_protected_columns(place):
    done = design(place, "--protected race,region --out m.toml")
    assert done.exit_code == 0, done.output
    file = read_metric_file(place / "m.toml")
    assert file.as_written
    assert file.protected == ("race", "region")
    assert file.metric.categorical == {"race": 0, "region": 0}
    assert file.not_used == ("constant",)
    assert (file.source, file.date) == ("designed", datetime.now(UTC).date())
    assert file.how.startswith("Designed together with a scorecard, from 150 people")
    assert file.how.endswith("Named as protected: race, region.")


def test_the_frontier_is_shown_beside_what_it_is_compared_with(place):
    lines = design(place, "--protected race").output.splitlines()
    start = lines.index("mean distance  Brier score, held out    pairs bound  skill kept")
    points, beside = lines[start + 1 : start + 5], lines[start + 5 : start + 9]
    assert all("±" in line for line in points + beside)
    (chosen,) = [line for line in points if line.endswith(" chosen")]
    assert re.search(r" 95% ± \d+  chosen", chosen)  # of the skill
    for line, title in zip(
        beside, ("constant", "logistic regression, no", "linear model's own", "boosting"), strict=True
    ):
        assert title in line


def test_a_metric_that_binds_next_to_nothing_is_not_written_unless_asked_for(place):
    words = "design loans.csv --target approved --id id --points 3 --folds 2"
    done = run(place, words)
    assert done.exit_code == 2
    assert not (place / "metric.toml").exists()
    said = re.search(r"binds ([\d.]+)% of the pairs .* One that binds (\d+)% keeps (\d+)% ± \d+ of", done.output)
    assert float(said[1]) < 10
    assert run(place, f"{words} --loose").exit_code == 0
    done = run(place, f"{words} --bind 0.{said[2]} --force")
    assert done.exit_code == 0, done.output
    assert f" {said[3]}% ± " in next(line for line in done.output.splitlines() if line.endswith("chosen"))
    assert "the loosest that binds 50% of the pairs" in read_metric_file(place / "metric.toml").how
    assert run(place, f"{words} --keep 0.4 --force").exit_code == 0  # which keeps less, and binds more


def test_outcomes_that_no_column_tells_are_refused_with_the_figures(place):
    chance = np.random.default_rng(0).choice(["yes", "no"], 150)
    LOANS.assign(approved=chance).to_csv(place / "chance.csv", index=False)
    done = run(place, "design chance.csv --target approved --id id --points 3 --folds 2 --protected race")
    assert done.exit_code == 2
    assert "No metric is better than a constant on held-out people: the best gains" in done.output
    assert "pairs bound" in done.output
    assert not (place / "metric.toml").exists()


def test_json_has_the_same_frontier(place):
    done = run(place, f"design loans.csv --target approved --id id {FEW} --protected race --json")
    said = json.loads(done.stdout)
    assert [point["chosen"] for point in said["frontier"]].count(True) == 1
    assert said["references"][0]["title"] == "constant"
    assert said["protected"] == ["race"]


def test_a_mean_distance_that_is_asked_for_is_chosen(place):
    first = json.loads(design(place, "--protected race --json --out a.toml").stdout)["frontier"]
    between = (first[0]["mean_distance"] + first[1]["mean_distance"]) / 2
    done = design(place, f"--protected race --mean-distance {between!r} --json --out b.toml")
    (chosen,) = [point for point in json.loads(done.stdout)["frontier"] if point["chosen"]]
    assert chosen["mean_distance"] == pytest.approx(between)
    assert "the mean distance was given" in read_metric_file(place / "b.toml").how


def test_a_person_at_a_terminal_is_asked_once_which_columns_are_protected(place, monkeypatch):
    monkeypatch.setattr(console, "is_terminal", lambda: True)
    done = design(place, given="race\n")
    assert done.exit_code == 0, done.output
    assert "protected by law, and must not matter (candidates by their names: race)?" in done.output
    file = read_metric_file(place / "metric.toml")
    assert file.protected == ("race",)
    assert file.how.endswith("Asked which columns are protected by law, a person named: race.")
    again = design(place, "--force")
    assert "protected by law, and must" not in again.output
    assert read_metric_file(place / "metric.toml").protected == ("race",)


def test_an_empty_answer_is_recorded_too(place, monkeypatch):
    monkeypatch.setattr(console, "is_terminal", lambda: True)
    assert design(place, given="\n").exit_code == 0
    assert read_metric_file(place / "metric.toml").how.endswith("a person named: none.")


def test_without_a_terminal_nobody_is_asked_and_the_file_says_so(place):
    done = design(place)
    assert done.exit_code == 0, done.output
    assert "No column is protected, since --protected was not given. Candidates by their names: race." in done.output
    file = read_metric_file(place / "metric.toml")
    assert file.protected == ()
    assert file.how.endswith("Nobody was asked which columns are protected by law; none is.")


def test_a_regression_has_its_range_in_the_file(place):
    LOANS.assign(premium=LOANS.income / 10 + np.arange(150) / 7).to_csv(place / "premiums.csv", index=False)
    words = f"design premiums.csv --target premium --id id --drop approved --protected race --range 0 2000 {FEW}"
    done = run(place, words)
    assert done.exit_code == 0, done.output
    assert "squared error, held out" in done.output
    assert read_metric_file(place / "metric.toml").output_range == (0, 2000)


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("design loans.csv --target approved --protected race,sex", "--protected must name columns of the table"),
        ("design loans.csv --target approved --protected id,income,years,region,race,constant", "leave a column"),
        ("design loans.csv --target nothing", "has no column 'nothing'"),
        ("design loans.csv --target constant", "nothing to learn"),
        ("design loans.csv --target approved --range 0 1", "--range is for a regression"),
        (f"design loans.csv --target approved --mean-distance 900 {FEW}", "mean_distance must be between"),
        ("metric loans.csv --judgements answers.csv --order race=a,b", "--order is for a metric revealed"),
    ],
)
def test_bad_input_is_said_in_one_line(place, command, complaint):
    done = run(place, command)
    assert done.exit_code == 2
    (line,) = [line for line in done.output.splitlines() if line.startswith("Error")]
    assert complaint in line
    assert done.output.splitlines()[-1] == line
    assert not (place / "metric.toml").exists()


def test_a_report_on_the_scorecard_stands_beside_the_metric(place):
    done = design(place, "--protected race --report")
    assert done.exit_code == 0, done.output
    assert "the designed scorecard" in (place / "metric.html").read_text()


def test_weights_are_round_numbers_with_what_they_cost_unless_exact_ones_are_asked_for(place):
    said = json.loads(design(place, "--protected race --json --out round.toml").stdout)
    assert abs(said["rounding_cost"]) < 0.01
    design(place, "--protected race --exact --out exact.toml")
    assert read_metric_file(place / "round.toml").as_written
    rounded, exact = (read_metric_file(place / f"{name}.toml").metric for name in ("round", "exact"))
    assert rounded == exact.rounded()  # never looser, and at most 10% stricter
    assert rounded != exact
    words = [line for line in (place / "round.toml").read_text(encoding="utf-8").splitlines() if "point" in line]
    amounts = [re.search(r"= ([\d,.]+)|([\d,.]+) points", line.split('"')[1]) for line in words if '"' in line]
    assert amounts
    assert all(len(re.sub(r"\D", "", found[0]).strip("0")) <= 2 for found in amounts)


def test_weights_of_people_count_and_five_times_as_many_change_nothing(place):
    counts = np.random.default_rng(0).uniform(0.2, 3, 150).round(2)
    LOANS.assign(counts=counts, five=5 * counts).to_csv(place / "weighted.csv", index=False)
    files = {}
    for name, other in (("counts", "five"), ("five", "counts")):
        words = f"--target approved --id id --drop {other} --weights {name}"
        done = run(place, f"design weighted.csv {words} {FEW} --protected race --exact --out {name}.toml")
        assert done.exit_code == 0, done.output
        files[name] = read_metric_file(place / f"{name}.toml").metric
        on_table = "weighted.csv --target approved --id id --metric"
        done = run(place, f"enforce {on_table} {name}.toml --weights {name} --method additive --out {name}.skops")
        assert done.exit_code == 0, done.output
        assert "scores take everybody alike" in done.output
    alike = run(place, f"design weighted.csv --target approved --id id --drop counts --drop five {FEW} --exact")
    assert alike.exit_code == 0, alike.output
    assert files["counts"].numeric == pytest.approx(dict(files["five"].numeric), rel=1e-3)
    assert "counts" not in files["counts"].columns
    assert read_metric_file(place / "metric.toml").metric.numeric != pytest.approx(
        dict(files["five"].numeric), rel=1e-3
    )
    done = run(place, f"compare {on_table} counts.toml --method additive --folds 2")
    assert "People counted by their weights, so it is not made again" in " ".join(done.output.split())
    done = run(place, f"enforce {on_table} five.toml --weights five --method projection --out p.skops")
    assert done.exit_code == 2


def test_the_command_without_a_leak_repeats_flags_orders_and_codes(place):
    rng = np.random.default_rng(0)
    score = np.where(rng.random(150) < 0.2, -9, LOANS.income)
    table = LOANS.assign(
        score=score, grade=rng.choice(["low", "high"], 150), told=pd.factorize(LOANS.approved)[0] + 1.5
    )
    table.to_csv(place / "loans.csv", index=False)
    done = design(place, "--protected race --order grade=low,high --special score=-9 --exact")
    assert done.exit_code == 0, done.output
    (again,) = [line for line in done.output.splitlines() if line.startswith("The same without told: ")]
    for words in (" --loose ", " --exact ", " --order grade=low,high ", " --special score=-9 ", " --drop told "):
        assert words in again
    assert "True" not in again
    assert run(place, again.partition(": likewise ")[2]).exit_code == 0


def test_ordered_categories_have_a_weight_per_step_and_are_made_again(place):
    rng = np.random.default_rng(0)
    grades = rng.choice(["low", "mid", "high"], 300)
    chance = pd.Series(grades).map({"low": 0.2, "mid": 0.5, "high": 0.8})
    table = pd.DataFrame({"grade": grades, "income": rng.normal(size=300), "paid": rng.random(300) < chance})
    table.to_csv(place / "grades.csv", index=False)
    words = "design grades.csv --target paid --favourable True --points 3 --folds 2 --order grade=low,mid,high"
    done = run(place, f"{words} --rises grade")
    assert done.exit_code == 0, done.output
    metric = read_metric_file(place / "metric.toml").metric
    assert list(metric.order["grade"]) == ["low", "mid", "high"]
    assert metric.numeric["grade"] > 0.05  # per step
    done = run(place, "compare grades.csv --target paid --metric metric.toml --method additive --folds 3")
    assert done.exit_code == 0, done.output
    assert "In each fold the metric was made again" in " ".join(done.output.split())
    assert run(place, f"{words},top --force").exit_code == 0  # nobody has it
    assert run(place, words.replace(",high", "") + " --force").exit_code == 2


def test_counts_speak_in_steps(place):
    rng = np.random.default_rng(0)
    cards = rng.integers(0, 8, 150)
    LOANS.assign(cards=cards, approved=(rng.random(150) < 0.1 + 0.1 * cards).astype(int)).to_csv(
        place / "loans.csv", index=False
    )
    done = design(place, "--protected race --out m.toml")
    assert "one step = " in next(line for line in done.output.splitlines() if line.split()[:1] == ["cards"])
    assert read_metric_file(place / "m.toml").metric.units["cards"] == "step"
