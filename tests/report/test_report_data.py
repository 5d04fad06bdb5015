"""The data of a report: a realistic example that the other tests share, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, WeightedLp
from likewise.kernel.bounds import Bound
from likewise.report import Cost, GroupFigures, GroupScores, PeopleCost, ReportData
from likewise.report.pairs import differences
from likewise.scorecard.display import Panel
from likewise.selection.compare import Comparison
from likewise.selection.cross_validation import CVResult, Fold
from likewise.selection.tradeoff import Tradeoff
from promised import promise as promised_guarantee

HISTORIES = ["no late payments", "one or two late payments", "more late payments"]
METRIC = TableMetric(
    {
        "income": 1.2e-05,
        "loan amount": 6e-07,
        "monthly payments / income": 0.009,
        "loan / price of the home": 0.004,
        "years in current job": 0.005,
    },
    {"credit history": 0.18, "public record of default": 0.22, "self-employed": 0.03, "race": 0.0, "sex": 0.0},
    missing={"income": 0.05},
    units={
        "income": "$ a month",
        "loan amount": "$",
        "monthly payments / income": "percent",
        "loan / price of the home": "percent",
        "years in current job": "years",
    },
)


def _row(rng):
    return (
        None if rng.random() < 0.02 else round(float(np.clip(rng.lognormal(8.4, 0.45), 900, 8000)), -1),
        1000 * round(float(rng.lognormal(4.8, 0.4))),
        round(float(np.clip(rng.normal(33, 8), 5, 70)), 1),
        round(float(np.clip(rng.normal(76, 16), 15, 110)), 1),
        int(rng.poisson(6)),
        str(rng.choice(HISTORIES, p=[0.7, 0.2, 0.1])),
        str(rng.choice(["no", "yes"], p=[0.93, 0.07])),
        str(rng.choice(["no", "yes"], p=[0.88, 0.12])),
        str(rng.choice(["black", "hispanic", "white"], p=[0.12, 0.1, 0.78])),
        str(rng.choice(["female", "male"], p=[0.3, 0.7])),
    )


def _scores(row):
    """A steep score that looks at race, and one whose slopes are below the weights of the metric."""
    income, loan, burden, ratio, years, history, default, own, race, _ = row
    merit = (
        0.0005 * ((income or 4500) - 4500)
        - 0.000004 * (loan - 125_000)
        - 0.09 * (burden - 33)
        - 0.02 * (ratio - 76)
        + 0.05 * (years - 6)
        - 1.1 * HISTORIES.index(history)
        - 2.0 * (default == "yes")
        - 0.3 * (own == "yes")
    )
    before = 1 / (1 + math.exp(-(1.9 * merit + 2.2 - 0.9 * (race != "white"))))
    gentle = (
        1.1e-5 * ((income or 4500) - 4500)
        - 5e-7 * (loan - 125_000)
        - 0.008 * (burden - 33)
        - 0.003 * (ratio - 76)
        + 0.003 * (years - 6)
        - 0.17 * (history != "no late payments")
        - 0.2 * (default == "yes")
        - 0.02 * (own == "yes")
    )
    after = min(0.98, max(0.02, 0.87 + gentle))
    return round(before, 4), round(after, 4)


def promise(metric=METRIC, level="deterministic", basis="By shifts of a grid.", **numbers):
    return promised_guarantee(metric, Bound(), level, basis, **numbers)


def rows_of(metric, rows, names=None):
    return metric.encode_rows(pd.DataFrame(rows, columns=metric.columns, index=names))


FOLDS = tuple(Fold(np.flatnonzero(np.arange(90) % 3 != k), np.arange(k, 90, 3), np.arange(30)) for k in range(3))


def showing(title, brier, *, promise=True, violations=0, tilt=0.01, **figures):
    """What a model showed: a Brier score that differs between folds by `tilt`, and whatever else is given."""
    losses = brier * (1 + tilt * (np.arange(90) % 3 - 1))
    row = {"title": title, "brier": brier, "brier_se": 0.001, "auc": 0.8, "accuracy": 0.88, "log_loss": 0.3}
    row |= {"confidence": 0.82, "confidence_se": 0.002, "people": 90, "violations": violations, "pairs": 1305}
    row |= {"guarantee": promise, "level": "exact" if promise else "none", "epsilon": 0.0 if promise else math.nan}
    row |= {"evaluations": 1, "microseconds": 10.0, "fit_seconds": 0.1, "note": ""}
    return CVResult(row | figures, losses, np.full((90, 2), 0.5), promise and not violations)


def costs(own=0.088, metric=METRIC, title="additive"):
    """Figures of four models, and of one of them under five metrics."""
    results = {
        "constant": showing("constant (base rate)", 0.107, auc=0.5, accuracy=0.877, confidence=0.785),
        "additive": showing(title, own, tilt=-0.01),  # good where the others are bad, so differences have errors
        "unconstrained": showing("unconstrained model", 0.09, promise=False, violations=40),
        "boosting": showing("boosting", 0.098, promise=False, violations=300, confidence=0.845),
    }
    scales = {s: showing(title, own + 0.003 / s, confidence=0.83 - 0.01 / s) for s in (0.25, 0.5, 1.0, 2.0, 4.0)}
    tradeoff = Tradeoff(title, scales, results["constant"], results["unconstrained"], FOLDS, "classification", metric)
    people = PeopleCost(
        0.034, {"constant": 0.223, "additive": 0.12, "unconstrained": 0.1, "boosting": 0.11}, 0.006, 0.87
    )
    return Cost(Comparison(results, {}, FOLDS, "classification", metric), "additive", False, tradeoff, people)


PANELS = (
    Panel(
        "income",
        np.array([900.0, 4500.0, 8000.0]),
        np.array([-0.5, 0.0, 0.2]),
        np.array([-0.5, 0.0, -0.4]),
        np.array([0.5, 0.0, 0.4]),
        np.array([True, False]),
        (),
        [("missing", -0.3)],
    ),
    Panel(
        "credit history",
        None,
        np.array([-0.7, 0.1]),
        np.array([-0.7, -0.7]),
        np.array([0.1, 0.1]),
        np.array([True, True]),
        ("more late payments", "no late payments"),
        [],
    ),
)


def mortgage(n_people=200):
    """A report on mortgage applications, with every section."""
    rng = np.random.default_rng(7)
    rows = [_row(rng) for _ in range(200)]
    rows[1] = (*rows[0][:-2], "black" if rows[0][-2] == "white" else "white", rows[0][-1])
    everybody = rows_of(METRIC, rows, [f"Applicant {i}" for i in range(1, 201)])
    people = everybody.take(slice(n_people))
    before, after = np.array([_scores(row) for row in rows[:n_people]]).reshape(-1, 2).T
    return ReportData(
        title="Mortgage applications",
        model_name="model.skops",
        source="applications in Boston",
        date="1990",
        kind="additive",
        outcome="loan approved",
        metric=METRIC,
        people=people,
        guarantee=promise(n_draws=1000),
        before=before,
        after=after,
        cost=costs(),
        groups=tuple(
            GroupScores(column, group, n, actual, GroupFigures(*before), GroupFigures(*after))
            for column, group, n, actual, before, after in (
                ("race", "black", 61, 0.67, (0.702, 0.75, 0.197), (0.768, 0.81, 0.18)),
                ("race", "white", 481, 0.9, (0.902, 0.96, 0.083), (0.868, 0.9, 0.102)),
                ("sex", "female", 179, 0.86, (0.861, 0.93, 0.112), (0.846, 0.92, 0.123)),
                ("sex", "male", 418, 0.88, (0.866, 0.95, 0.1), (0.851, 0.93, 0.115)),
            )
        ),
        groups_of="597 people, each held out once",
        panels=PANELS,
        reasons=tuple((f"income is ${i + 1}: -0.30 log-odds",) for i in range(n_people)),
        n_population=597,
    )


def test_the_page_shows_at_most_200_people_spread_over_all():
    people = rows_of(TableMetric({"age": 0.01}), np.arange(1000.0)[:, None])
    data = ReportData("Ages", "yes", TableMetric({"age": 0.01}), people)
    assert len(data.sample) == 200
    assert data.sample[[0, -1]].tolist() == [0, 999]
    assert np.diff(data.sample).max() <= 6  # 999 / 199 is 5.02
    scored = replace(data, after=np.where(np.arange(1000) == 502, 0.9, 0.5))
    assert set(scored.sample) == {*data.sample, *scored.story.pair}  # the two of whom the page tells are among them
    assert not set(scored.story.pair) <= set(data.sample)


def test_people_are_named_by_the_index_of_their_table():
    assert mortgage(2).name(1) == "Applicant 2"
    people = rows_of(TableMetric({"age": 0.01}), [[30], [40]], [7, 12])
    assert ReportData("Ages", "yes", TableMetric({"age": 0.01}), people).name(1) == "row 12"


def test_a_metric_of_arrays_is_refused_with_the_cure():
    metric = WeightedLp([0.1])
    with pytest.raises(TypeError, match=r"needs a metric that takes tables.*Use TableMetric"):
        ReportData("Numbers", "yes", metric, metric.encode_rows([[1.0], [2.0]]))


def test_objects_that_do_not_belong_together_are_refused():
    data, other = mortgage(5), METRIC.scaled(2)
    for change, message in (
        ({"guarantee": promise(other)}, "guarantee must be about the report's metric"),
        ({"before": data.before[:3]}, "before must hold one probability for each"),
        ({"output_range": (0.0, 0.1)}, "before must hold one number within"),
        ({"reasons": data.reasons[:2]}, "reasons must be of each of the 5 people"),
        ({"after": 2 * data.after}, "after must hold one probability for each"),
        ({"after": np.full(5, np.nan)}, "after must hold one probability for each"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(data, **change)


def test_people_whom_the_metric_refuses_or_the_coding_does_not_know_are_refused():
    metric = TableMetric({"age": 0.01}, {"region": 0.1})
    people = rows_of(metric, [[30, "north"], [40, "south"]])
    with pytest.raises(ValueError, match="'age' has missing numbers"):
        ReportData("", "", metric, replace(people, rows=np.array([[np.nan, 0.0]])))
    unknown = metric.bind(people.encoder).read(pd.DataFrame({"age": [30], "region": ["west"]}))
    with pytest.raises(ValueError, match="coded with all of their categories"):
        ReportData("", "", metric, unknown)


def test_several_classes_differ_in_total_variation_and_numbers_by_shares_of_their_range():
    metric = TableMetric({"age": 0.01})
    people, pair = rows_of(metric, [[30], [40]]), (np.array([0]), np.array([1]))
    three = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    assert differences(ReportData("", "c", metric, people, after=three).shares["after"], *pair) == pytest.approx(0.3)
    two = np.array([[0.5, 0.5], [0.2, 0.8]])
    for shown in (0, 1):
        data = ReportData("", "c", metric, people, after=two, shown=shown)
        assert differences(data.shares["after"], *pair) == pytest.approx(0.3)
        assert data.shares["after"][:, 0].tolist() == two[:, shown].tolist()
    wages = ReportData("", "wage", metric, people, after=np.array([20.0, 50.0]), output_range=(0.0, 200.0))
    assert differences(wages.shares["after"], *pair) == pytest.approx(0.15)


def test_a_cost_is_of_methods_that_were_compared():
    with pytest.raises(ValueError, match="method must be one of the comparison; got 'smoothing'"):
        replace(costs(), method="smoothing")
