"""Groups, orders and matrices of categories in metrics that are designed, judged or stated in odds: all are kept."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from likewise import TableMetric, audit, design_metric, learn_metric
from likewise.exceptions import InvalidInputError

JOBS = ["clerk", "teacher", "farmer", "smith"]
SHAPES = {
    "groups": {"job": {"within": 0.2, "groups": [["clerk", "teacher"], ["farmer", "smith"]]}},
    "distances": {"region": {"n": {"e": 1, "s": 3}, "e": {"s": 2}}},
}


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"income": rng.normal(50, 10, n).round(1), "job": rng.choice(JOBS, n)})
    X["region"], X["race"] = rng.choice(["n", "e", "s"], n), rng.choice(["x", "y"], n)
    X["grade"] = pd.Categorical(rng.choice(["low", "middle", "high"], n), ["low", "middle", "high"], ordered=True)
    z = (X["income"] - 50) / 10 + 1.5 * (X["job"] == "clerk") - (X["region"] == "e") + 0.5 * X["grade"].cat.codes
    return X, (rng.random(n) < expit(z)).astype(int)


def largest_share(card, X, metric):
    """The largest share of 4 D that the log-odds of two people use, over all pairs."""
    h, D = card.predict_proba(X)[:, 1], metric.pairwise(X)
    z = np.log(h / (1 - h))
    i, j = np.triu_indices(len(X), 1)
    apart = D[i, j] > 1e-12
    return np.max(np.abs(z[i] - z[j])[apart] / (4 * D[i, j][apart]))


def test_a_designed_metric_keeps_the_shape_and_its_card_is_within_it():
    X, y = people()
    shaped = design_metric(X, y, protected=["race"], n_points=3, cv=2, references=True, **SHAPES)
    plain = design_metric(X, y, protected=["race"], n_points=3, cv=2, references=False)
    for point in shaped.points[1:]:
        metric = point.metric
        assert (metric.groups, metric.distances) == (SHAPES["groups"], SHAPES["distances"])
        assert metric.zero_reasons["race"] == "protected"
        assert point.mean_distance == pytest.approx(metric.pairwise(X).mean(), rel=1e-9)
        assert audit(point.card, X, metric).n_violations == 0
        assert largest_share(point.card, X, metric) <= 1 + 1e-9
    last = shaped.points[-1].metric
    assert last.categorical["job"] > 0.02
    loose = plain.points[-1]
    control = loose.metric.with_params(**SHAPES)
    assert largest_share(loose.card, X, control) > 1.1  # a card that was designed without the shape breaks it
    between = shaped.at(mean_distance=np.mean([point.mean_distance for point in shaped.points[-2:]])).metric
    assert (between.groups, between.distances) == (SHAPES["groups"], SHAPES["distances"])


def test_a_column_that_is_not_worth_its_distance_is_not_used():
    X, y = people()
    X["noise"] = np.random.default_rng(1).normal(size=len(X))
    metric = design_metric(X, y, protected=["race"], n_points=4, cv=2, references=False).points[0].metric
    assert {metric.zero_reasons[name] for name in metric.hidden if name != "race"} == {"not_used"}
    assert metric.zero_reasons["race"] == "protected"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"groups": {"nobody": SHAPES["groups"]["job"]}}, "groups must name columns under categorical; 'nobody'"),
        ({"distances": {"income": SHAPES["distances"]["region"]}}, "distances must name columns under categorical"),
        ({"groups": {"job": 3}}, "groups must be like"),
        ({"groups": 3}, "groups must be a mapping"),
    ],
)
def test_shapes_of_other_columns_are_refused(given, words):
    X, y = people(60)
    with pytest.raises((InvalidInputError, TypeError), match=words) as caught:
        design_metric(X, y, **given)
    assert "\n" not in str(caught.value)


def test_an_array_has_no_categories():
    X, y = people(60)
    with pytest.raises(InvalidInputError, match="an array has none"):
        design_metric(X[["income"]].to_numpy(), y, groups=SHAPES["groups"])


# -- judgements --------------------------------------------------------------------------------------------------------

START = TableMetric(
    {"income": 0.001, "grade": 0.01},
    {"job": 0.1, "region": 0.1, "race": 0},
    order={"grade": ["low", "middle", "high"]},
    units={"income": "$"},
    zero_reasons={"race": "protected"},
    **SHAPES,
)


def test_judgements_learn_the_weight_of_a_shape_and_keep_it():
    X, _ = people(60)
    truth = START.with_params(
        numeric={"income": 0.002, "grade": 0.03}, categorical={"job": 0.3, "region": 0.24, "race": 0}
    )
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 60, (2, 150))
    a, b = a[a != b], b[a != b]
    D = 100 * truth(X.iloc[a].reset_index(drop=True), X.iloc[b].reset_index(drop=True))
    answers = pd.concat(
        [
            pd.DataFrame({"kind": kind, "a": a, "b": b, "points": points})
            for kind, points in (("at_most", D + 0.05), ("at_least", np.maximum(D - 0.05, 0)))
        ]
    )
    found = learn_metric(answers, X, START).metric
    for name, weight in {**truth.numeric, **truth.categorical}.items():
        assert {**found.numeric, **found.categorical}[name] == pytest.approx(weight, rel=0.02), name
    for part in ("order", "groups", "distances", "units", "zero_reasons"):
        assert getattr(found, part) == getattr(START, part)
    plain = START.with_params(groups={}, distances={})
    assert len(learn_metric(answers, X, plain).conflicts)  # control: without the shape, answers contradict each other
    assert not len(learn_metric(answers, X, START).conflicts)


def test_a_column_that_nobody_judged_says_so():
    X, _ = people(30)
    answers = pd.DataFrame({"kind": "at_most", "a": [0, 1], "b": [2, 3], "points": [50, 50]})
    strict = learn_metric(answers, X, START).strict()
    assert strict.zero_reasons == {
        **dict.fromkeys(["income", "grade", "job", "region"], "not_judged"),
        "race": "protected",
    }


# -- odds --------------------------------------------------------------------------------------------------------------


def test_odds_are_those_of_the_categories_furthest_apart():
    metric = TableMetric.from_odds(
        {"income": (0.05, 10), "grade": 0.1},
        {"job": 0.5, "region": 0.2, "race": 0},
        order=START.order,
        zero_reasons={"race": "protected"},
        **SHAPES,
    )
    job = metric.pairwise(pd.DataFrame({"income": 1, "grade": "low", "job": JOBS, "region": "n", "race": "x"}))
    assert np.exp(4 * job.max()) == pytest.approx(1.5)
    assert job[0, 1] == pytest.approx(0.2 * job[0, 2])
    assert metric.zero_reasons == {"race": "protected"}
    assert np.exp(4 * metric.numeric["grade"]) == pytest.approx(1.1)
