"""The data of a report: a realistic example that the other tests share, and what is refused."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from likewise.report import Audit, Claim, Column, Group, Metric, Person, ReportData, Utility, UtilityPoint, WorstPair
from likewise.report.distance import distances, pair_distances

METRIC = Metric(
    (
        Column("income", "numeric", 1.2e-05, "a month", "$", revealed_weight=1.2e-05, missing_weight=0.05),
        Column("loan amount", "numeric", 6e-07, "", "$", revealed_weight=9e-07),
        Column("monthly payments / income", "numeric", 0.009, "percent", revealed_weight=0.0095),
        Column("loan / price of the home", "numeric", 0.004, "percent", revealed_weight=0.0061),
        Column("years in current job", "numeric", 0.005, "years", revealed_weight=0.0012),
        Column(
            "credit history",
            "categorical",
            0.18,
            revealed_weight=0.24,
            categories=("no late payments", "one or two late payments", "more late payments"),
        ),
        Column("public record of default", "categorical", 0.22, revealed_weight=0.31, categories=("no", "yes")),
        Column("self-employed", "categorical", 0.03, revealed_weight=0.04, categories=("no", "yes")),
        Column("race", "categorical", 0.0, revealed_weight=0.09, categories=("black", "hispanic", "white")),
        Column("sex", "categorical", 0.0, revealed_weight=0.02, categories=("female", "male")),
    )
)


def _row(rng):
    return (
        None if rng.random() < 0.02 else round(float(np.clip(rng.lognormal(8.4, 0.45), 900, 8000)), -1),
        1000 * round(float(rng.lognormal(4.8, 0.4))),
        round(float(np.clip(rng.normal(33, 8), 5, 70)), 1),
        round(float(np.clip(rng.normal(76, 16), 15, 110)), 1),
        int(rng.poisson(6)),
        str(rng.choice(METRIC.columns[5].categories, p=[0.7, 0.2, 0.1])),
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
        - 1.1 * ["no late payments", "one or two late payments", "more late payments"].index(history)
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


def _audit(people, model):
    first, second = np.triu_indices(len(people), 1)
    distance = pair_distances(METRIC, [person.values for person in people])
    score = np.array([getattr(person, model) for person in people])
    gap = np.abs(score[first] - score[second])
    order = np.argsort(distance - gap, kind="stable")[:5]
    return Audit(
        n_people=len(people),
        n_pairs=len(gap),
        n_violations=int((gap > distance + 1e-9).sum()),
        max_excess=float((gap - distance).max()),
        max_ratio=float("inf") if model == "before" else float((gap / np.maximum(distance, 1e-12)).max()),
        coverage="All pairs of the people who were not used in training.",
        worst=tuple(
            WorstPair(
                people[first[k]].values,
                people[second[k]].values,
                float(distance[k]),
                float(min(1.0, distance[k])),
                float(gap[k]),
                (people[first[k]].name, people[second[k]].name),
            )
            for k in order
        ),
    )


def mortgage(n_people=200):
    """A report on mortgage applications, with every section."""
    rng = np.random.default_rng(7)
    rows = [_row(rng) for _ in range(n_people)]
    if n_people > 1:
        rows[1] = (*rows[0][:-2], "black" if rows[0][-2] == "white" else "white", rows[0][-1])
    people = tuple(Person(row, *_scores(row), name=f"Applicant {i}") for i, row in enumerate(rows, 1))
    factors = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
    return ReportData(
        title="Mortgage applications",
        subtitle="597 applications in Boston, gradient-boosted trees",
        outcome="loan approved",
        metric=METRIC,
        version="0.1.0",
        claim=Claim(
            "deterministic",
            "Splitting",
            "For two people x and x', the class probabilities differ by at most D(x, x') in total variation.\n"
            "Not covered: predict.",
            n_draws=1000,
        ),
        people=people,
        n_population=597,
        audit_before=_audit(people, "before") if n_people > 1 else None,
        audit_after=_audit(people, "after") if n_people > 1 else None,
        utility=Utility(
            tuple(
                UtilityPoint(f, 0.892 - 0.03 / (1 + 3 * f), 0.85 - 0.13 / (1 + 1.2 * f), 0.95 - 0.16 / (1 + 2.5 * f))
                for f in factors
            ),
            0.897,
            0.862,
            "597 applications that were not used in training",
        ),
        groups=(
            Group("race", "black", 61, 0.803, 0.82, 0.702, 0.768),
            Group("race", "hispanic", 55, 0.836, 0.836, 0.744, 0.79),
            Group("race", "white", 481, 0.917, 0.898, 0.902, 0.868),
            Group("sex", "female", 179, 0.888, 0.877, 0.861, 0.846),
            Group("sex", "male", 418, 0.9, 0.885, 0.866, 0.851),
        ),
    )


def test_data_convert_to_json_with_infinities_as_text():
    data = json.loads(mortgage(4).to_json())
    assert data["audit_before"]["max_ratio"] == "inf"
    assert data["people"][0]["values"][9] in ("female", "male")
    assert data["metric"]["columns"][0]["name"] == "income"


@pytest.mark.parametrize("p", [1, 2, 3.5, math.inf])
def test_the_distance_is_that_of_the_library(p):
    from likewise import WeightedLp

    rng = np.random.default_rng(0)
    A, B, w = rng.normal(size=(20, 3)), rng.normal(size=(20, 3)), np.array([0.3, 0.0, 0.05])
    columns = tuple(Column(f"x{i}", "numeric", float(weight)) for i, weight in enumerate(w))
    expected = WeightedLp(w, p)(A, B)
    np.testing.assert_allclose(distances(Metric(columns, p), A.tolist(), B.tolist()), expected, rtol=1e-12)


def test_missing_values():
    metric = Metric(
        (
            Column("said", "numeric", 0.5, missing_weight=0.1),
            Column("unsaid", "numeric", 0.5),
            Column("nothing", "numeric", 0.0),
            Column("word", "categorical", 0.2),
        ),
        p=2,
    )
    here, there = (1.0, 1.0, 1.0, "a"), (None, 1.0, None, None)
    expected = [0.0, 0.1 + 0.2, math.nan, 0.0]
    got = distances(metric, [here, here, here, (None,) * 4], [here, there, (1.0, None, 1.0, "a"), (None,) * 4])
    np.testing.assert_allclose(got, expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Column("age", "numeric", -1.0), "weight of 'age' must be at least 0; got -1.0"),
        (lambda: Column("race", "categorical", 1.5), "between 0 and 1"),
        (lambda: Column("race", "ordinal", 0.5), "kind must be one of 'numeric', 'categorical'"),
        (lambda: Column("age", "numeric", math.nan), "finite number"),
        (lambda: Metric(()), "columns must not be empty"),
        (lambda: Metric((Column("a", "numeric", 1.0),), p=0.5), "p must be at least 1"),
        (lambda: Person((1,), before=1.2), "before of a person must be between 0 and 1"),
        (lambda: Audit(1, 0, 0, 0.0, math.nan), "max_ratio"),
        (lambda: Audit(np.int64(1), 0, 0, 0.0, 0.0), "n_people must be a Python int"),
        (lambda: Claim("proven", "Gaussian", ""), "level must be one of"),
        (lambda: UtilityPoint(0.0, 0.5, 0.5), "factor must be positive"),
        (lambda: Group("sex", "female", -1), "n must be a Python int"),
        (lambda: replace(mortgage(2), people=(Person((1.0,)),)), "one value per column"),
        (lambda: replace(mortgage(2), people=(Person(("high", *[None] * 9)),)), "'income' must be a finite Python"),
        (lambda: replace(mortgage(2), people=(Person((*[None] * 9, 1)),)), "'sex' must be a text or None"),
        (
            lambda: replace(mortgage(2), people=(Person((None,) * 10, 0.5), Person((None,) * 10))),
            "before must be given for all people or for none",
        ),
    ],
)
def test_wrong_data_are_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()
