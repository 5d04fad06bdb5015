"""The commands on tables that are not plain."""

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, load_model, write_metric
from likewise.cli.dataset import Dataset, drop_names
from likewise.cli.training import inner_model
from likewise.metric_file import read_metric
from shell import LOANS, run

RNG = np.random.default_rng(0)
N = len(LOANS)
ODD = LOANS.assign(
    balance=[f"{value:,.0f}" for value in RNG.uniform(10, 9000, N)],
    since=(pd.Timestamp("2001-01-01") + pd.to_timedelta(RNG.integers(0, 5000, N), unit="D")).strftime("%Y-%m-%d"),
    year=RNG.integers(1990, 2005, N),
    empty=np.nan,
    same="a",
    wage=LOANS.income * 2 + RNG.normal(0, 100, N),
)
ODD["income"] = ODD["income"].where(RNG.random(N) > 0.3)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    place = tmp_path_factory.mktemp("work")
    ODD.to_csv(place / "odd.csv", index=False)
    ODD.to_csv(place / "semi.csv", index=False, sep=";", decimal=",", encoding="latin-1")
    return place


@pytest.fixture(scope="module")
def revealed(work):
    return run(work, "metric odd.csv --target approved --drop id --drop wage --zero race --out odd.toml")


@pytest.fixture(scope="module")
def smoothed(work, revealed):
    return run(
        work,
        "enforce odd.csv --method smoothing --target approved --metric odd.toml --draws 50 --seed 0 --out odd.skops",
    )


def test_metric_has_a_line_for_each_surprise(work, revealed):
    assert revealed.exit_code == 0, revealed.output
    for line in (
        "Note: Column 'balance' has numbers written like",
        "Note: Column 'since' holds dates: read as days since 1970-01-01.",
        "Note: Column 'empty' is entirely empty and left out.",
        "Note: Column 'same' is the same for everyone",
    ):
        assert revealed.stderr.count(line) == 1
    metric = read_metric(work / "odd.toml")
    assert {"balance", "since"} <= set(metric.numeric)
    assert "empty" not in metric.columns
    assert metric.categorical["same"] == metric.numeric["constant"] == 0
    assert metric.units == {"since": "days", "year": "step"}
    text = (work / "odd.toml").read_text()
    assert "same = 0 # not forced by these people" in text  # of whom nobody has another value
    assert "race = 0 # must not matter" in text


def test_metric_uses_people_with_blanks(work, revealed):
    done = run(work, "metric odd.csv --target approved --drop id --drop wage --out all.toml")
    assert "Revealed exactly from a logistic model: no smaller distance fits it." in done.output
    assert 0 < read_metric(work / "all.toml").missing["income"] <= 1
    done = run(work, "metric odd.csv --target approved --drop id --drop wage --model forest --out forest.toml")
    assert f"fits all pairs of {N} distinct people" in done.output
    metric = read_metric(work / "forest.toml")
    assert metric.missing["income"] >= min(1, metric.numeric["income"] * np.ptp(ODD["income"].dropna()) / 2) > 0


def test_an_edited_metric_is_not_called_the_smallest(work, revealed):
    assert "no smaller distance" not in revealed.output
    assert "no smaller distance" not in (work / "odd.toml").read_text()
    plain = run(work, "metric odd.csv --target approved --drop id --drop wage --drop income --out plain.toml")
    assert "no smaller distance fits it" in plain.output
    done = run(work, "metric odd.csv --target approved --drop id --drop wage --out plain.toml --force --normalize")
    new = [line for line in done.output.splitlines() if not line.startswith("-")]  # the diff shows what went
    assert "no smaller distance" not in "\n".join(new)
    assert "Scaled by" in done.output


def test_what_the_model_gave_to_a_column_is_shown_before_it_is_zero(revealed):
    assert "race: set to 0. In the model: mismatch = " in revealed.stdout
    assert "must not matter" in revealed.stdout


def test_columns_that_people_do_not_force_are_called_neither_forbidden_nor_unused(work):
    small = LOANS[:40].drop(columns="id")
    small.to_csv(work / "small.csv", index=False)
    done = run(work, "metric small.csv --target approved --model boosting --out small.toml")
    assert "not forced by these people" in done.stdout
    assert "not used by this model" not in done.stdout
    assert "must not matter" not in done.stdout


def test_how_much_a_metric_binds_is_said(work, revealed):
    assert "of the pairs of these people (D < 1). A typical person's nearest neighbour is at D = " in revealed.stdout
    assert run(work, "metric scale odd.toml --by 1000 --out loose.toml").exit_code == 0
    done = run(
        work,
        "enforce odd.csv --method smoothing --target approved --metric loose.toml --draws 9 --holdout 0 --out l.skops",
    )
    assert "of the pairs, where D >= 1. Smaller weights constrain more" in done.stderr
    assert "where D >= 1. Smaller" not in revealed.stderr


def test_smooth_score_and_audit_read_the_same_people(work, smoothed):
    assert smoothed.exit_code == 0, smoothed.output
    assert "Left out, since the metric does not name them: id, empty, wage." in smoothed.stderr
    done = run(work, "score odd.skops odd.csv --id id --out odd_scores.csv")
    assert done.exit_code == 0, done.output
    assert pd.read_csv(work / "odd_scores.csv").columns.tolist() == ["id", "p_no", "p_yes"]
    done = run(work, "audit odd.csv --model odd.skops --max-excess 50")
    assert done.exit_code == 0, done.output
    assert "Above D + 50 points, the gate: 0 pairs. The gate passed." in done.output


def test_an_empty_column_of_the_metric_is_left_out_of_the_model(work, revealed):
    ODD.assign(year=np.nan).to_csv(work / "yearless.csv", index=False)
    done = run(
        work,
        "enforce yearless.csv --method smoothing --target approved --metric odd.toml --draws 9 --out y.skops",
    )
    assert done.exit_code == 0, done.output
    assert "Column 'year' is entirely empty and left out." in done.stderr
    assert run(work, "audit odd.csv --model y.skops --metric odd.toml").exit_code == 0


def test_noise_stands_beside_the_people_and_years_read_as_years(work, smoothed):
    rows = {line.split()[0]: line for line in smoothed.stdout.splitlines() if "±" in line}
    assert "1990 to 2004" in rows["year"]
    wide = run(work, "metric scale odd.toml --by 0.01 --out wide.toml")
    assert wide.exit_code == 0
    done = run(
        work,
        "enforce odd.csv --method smoothing --target approved --metric wide.toml --draws 9 --holdout 0 --out w.skops",
    )
    line = next(line for line in done.stderr.splitlines() if "wider than the range of the data" in line)
    assert "years" in line


def test_scores_are_of_people_held_out_beside_a_constant(work, smoothed):
    assert "Measured on 30 held-out people, by a model trained on the other 120." in smoothed.stdout
    for name in ("with the guarantee", "the unconstrained model", "a constant"):
        assert name in smoothed.stdout
    assert "likewise report odd.skops odd.csv --target approved" in smoothed.stdout  # it holds people out itself


def test_a_model_that_is_no_better_than_a_constant_is_not_written(work):
    rng = np.random.default_rng(1)
    pd.DataFrame({"a": rng.random(200), "y": rng.integers(0, 2, 200)}).to_csv(work / "noise.csv", index=False)
    (work / "noise.toml").write_text("p = 1\n[numeric]\na = 50\n")
    done = run(work, "enforce noise.csv --method smoothing --target y --metric noise.toml --draws 20 --out noise.skops")
    assert done.exit_code == 2
    assert "the model with the guarantee is no better than a constant. Nothing was written." in done.stderr
    assert not (work / "noise.skops").exists()


def test_a_numeric_target_is_a_regression(work):
    done = run(work, "metric odd.csv --target wage --drop id --drop approved --out wage.toml --json")
    assert done.exit_code == 0, done.output
    assert '"task": "regression"' in done.stdout
    done = run(
        work, "enforce odd.csv --method smoothing --target wage --metric wage.toml --draws 50 --seed 0 --out wage.skops"
    )
    assert done.exit_code == 0, done.output
    assert "times " in done.stdout.split("the width of the output range")[0]
    assert "RMSE" in done.stdout
    assert run(work, "score wage.skops odd.csv --id id --out wages.csv").exit_code == 0
    wages = pd.read_csv(work / "wages.csv")
    assert wages.columns.tolist() == ["id", "prediction"]
    assert wages.prediction.between(ODD.wage.min(), ODD.wage.max()).all()
    assert run(work, "audit odd.csv --model wage.skops --max-excess 10").exit_code == 0
    done = run(work, "report wage.skops odd.csv --target wage --out r.html --folds 2")
    assert done.exit_code == 0, done.output
    assert "predictions of" in (work / "r.html").read_text(encoding="utf-8")
    done = run(work, "report wage.skops odd.csv --target wage --outcome yes --out s.html")
    assert "--outcome is for a classification" in done.stderr


@pytest.mark.parametrize("kind", ["logistic", "forest", "boosting", "network"])
def test_every_model_has_a_twin_for_numbers(kind):
    X = LOANS[["income", "years", "region"]]
    y = 3.0 * LOANS.income + 100 * LOANS.years
    model = inner_model(Dataset(X, y, "regression", {}), kind).fit(X, y)
    assert model.score(X, y) > 0.8


def test_whole_numbers_need_a_word(work):
    command = "metric odd.csv --target years --drop id --drop wage --drop approved --out years.toml"
    assert "Say --task classification or --task regression" in run(work, command).stderr
    assert run(work, f"{command} --task regression").exit_code == 0


@pytest.mark.filterwarnings("always::likewise.IneffectiveWeightWarning")
def test_a_metric_file_that_forbids_a_column_is_noted_once(work):
    blank = LOANS.astype({"income": float})
    blank.loc[::40, "income"] = np.nan
    blank.to_csv(work / "blank.csv", index=False)
    weights = "[numeric]\nincome = 0.0001\nyears = 0.02\n[missing]\nincome = {}\n"
    for missing, said in ((0.0, 1), (0.5, 0)):
        (work / "forbids.toml").write_text(weights.format(missing))
        done = run(
            work,
            "enforce blank.csv --method additive --target approved --metric forbids.toml --out forbids.skops --force",
        )
        assert done.exit_code == 0, done.output
        assert done.stderr.count("Note: The metric gives 'income' the weight 0.0001, but a missing") == said
        assert done.stderr.count("no model within the metric can use the column") == said


def names_table(work, n=300):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 70, n), "name": [f"person {i}" for i in range(n)]})
    table.assign(town=rng.choice([f"t{i}" for i in range(12)], n), repaid=table["age"] > 40).to_csv(
        work / "names.csv", index=False
    )
    metric = TableMetric({"age": 0.01}, {"name": 0.3, "town": 0.1})
    write_metric(metric, work / "names.toml")


def test_a_column_that_names_people_is_left_out_and_said(work):
    names_table(work)
    enforce = "enforce names.csv --target repaid --metric names.toml --method additive --force --out names.skops"
    done = run(work, enforce)
    assert done.exit_code == 0, done.output
    assert "Column 'name' is left out: it has 300 categories for 300 people." in done.stderr
    assert "'town'" not in done.stderr  # 12 categories of 25 people
    model = load_model(work / "names.skops")
    assert set(model.feature_names_in_) == {"age", "town"}
    # The metric without the column is nowhere larger, so the guarantee holds under the whole metric.
    assert run(work, "audit names.csv --model names.skops --metric names.toml --max-excess 0").exit_code == 0
    kept = run(work, f"{enforce} --keep name")
    assert kept.exit_code == 0, kept.output
    assert "left out" not in kept.stderr
    assert "name" in set(load_model(work / "names.skops").feature_names_in_)


@pytest.mark.parametrize("command", ["metric", "design"])
def test_a_new_metric_leaves_out_columns_that_name_people(work, command):
    names_table(work)
    out = work / f"{command}-names.toml"
    new = f"{command} names.csv --target repaid --out {out.name} --force"
    done = run(work, new)
    assert done.exit_code == 0, done.output
    assert "Column 'name' is left out: it has 300 categories for 300 people. --categorical name learns" in done.stderr
    assert set(read_metric(out).columns) == {"age", "town"}
    kept = run(work, f"{new} --{'zero' if command == 'metric' else 'protected'} name")  # weight 0: nothing to learn
    assert kept.exit_code == 0, kept.output
    assert read_metric(out).categorical["name"] == 0
    kept = run(work, new)  # what a file protects stays in it
    assert read_metric(out).categorical["name"] == 0


@pytest.mark.parametrize(("n_categories", "n_people", "left_out"), [
    (50, 60, False), (51, 1019, True), (51, 1020, False), (300, 6000, False), (301, 10_000, True),
])  # fmt: skip
def test_which_columns_are_left_out(n_categories, n_people, left_out):
    table = pd.DataFrame({"town": [f"t{i % n_categories}" for i in range(n_people)], "age": np.arange(n_people)})
    said = []
    kept = drop_names(table, ["town"], (), said.append, option="--keep")
    assert ("town" not in kept, len(said)) == (left_out, int(left_out))
    assert "town" in drop_names(table, ["town"], ["town"], said.append, option="--keep")


def test_keep_must_name_a_categorical_column(work):
    names_table(work)
    done = run(work, "compare names.csv --target repaid --metric names.toml --keep age")
    assert done.exit_code == 2
    assert "--keep must name categorical columns of the metric, ['name', 'town']; got 'age'." in done.stderr
