"""What soft thresholds cost: closed forms on few people, and simulated rounds."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from likewise import AdditiveClassifier, SmoothedClassifier, ThresholdDecision, WeightedLp, decision_costs
from likewise._subsample import evenly_spaced
from likewise.decisions.threshold import chance_above
from likewise.exceptions import InvalidInputError, InvalidTypeError

METRIC = WeightedLp([0.5, 0.1])


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    return X, (rng.random(300) < 0.5 + 0.4 * X[:, 0]).astype(int)


@pytest.fixture(scope="module")
def card(people):
    return AdditiveClassifier(METRIC, penalty=0.01).fit(*people)


def test_figures_are_those_of_a_loop_over_people_and_pairs(card, people):
    X, y = people
    costs = decision_costs(card, X, y, threshold=0.45, widths=[0, 0.1], near=0.05, profit=[[0, -5], [-1, 2]])
    h = card.predict_proba(X)[:, 1]
    D = METRIC.pairwise(X)
    i, j = np.nonzero(np.triu(D <= 0.05, 1))
    assert costs.n_near_pairs == len(i) > 50
    for width in (0, 0.1):
        p = chance_above(h, 0.45, width)
        row = costs.table.loc[width]
        assert row["accuracy"] == pytest.approx(np.mean([p[k] if y[k] else 1 - p[k] for k in range(300)]))
        assert row["false_positive_rate"] == pytest.approx(p[y == 0].mean())
        assert row["false_negative_rate"] == pytest.approx(1 - p[y == 1].mean())
        gains = [(-1 * (1 - q) + 2 * q) if outcome else -5 * q for q, outcome in zip(p, y, strict=True)]
        assert row["profit"] == pytest.approx(np.mean(gains))
        assert row["near_different"] == pytest.approx(np.abs(p[i] - p[j]).mean())
        assert row["near_largest"] == pytest.approx(np.abs(p[i] - p[j]).max())
        independent = p[i] * (1 - p[j]) + p[j] * (1 - p[i])
        assert row["near_different_independent"] == pytest.approx(independent.mean())
        assert row["in_band"] == pytest.approx(np.mean(np.abs(h - 0.45) < width / 2))
        assert row["against_threshold"] == pytest.approx(np.abs(p - (h > 0.45)).mean())
    assert costs.table.loc[0.1, "guarantee"] == pytest.approx(float(card.guarantee_.bound(0.05)) / 0.1)
    assert costs.table.loc[0.0, ["in_band", "against_threshold", "guarantee"]].tolist() == [0, 0, 1]


def test_near_pairs_of_a_sample_are_pairs_of_these_people(card, people):
    X, _ = people
    costs = decision_costs(card, X, widths=[0.1], near=0.2, n_people=40)
    some = evenly_spaced(len(X), 40)
    i, j = np.nonzero(np.triu(METRIC.pairwise(X[some]) <= 0.2, 1))
    p = chance_above(card.predict_proba(X)[:, 1], 0.5, 0.1)[some]
    assert costs.n_people == 40
    assert costs.n_near_pairs == len(i) > 20
    assert costs.table.loc[0.1, "near_different"] == pytest.approx(np.abs(p[i] - p[j]).mean())


def test_the_share_of_near_pairs_is_that_of_rounds(card, people):
    X, _ = people
    width = 0.2
    costs = decision_costs(card, X, widths=[width])
    decision = ThresholdDecision.from_model(card, width=width)
    i, j = np.nonzero(np.triu(METRIC.pairwise(X) <= 0.05, 1))
    rounds = [decision.decide(X, round=str(r), key=bytes(16)) for r in range(400)]
    different = np.mean([(outcome[i] != outcome[j]).mean() for outcome in rounds])
    # Hoeffding: a mean of 400 shares is off by more than 0.135 with probability 1e-6.
    assert abs(different - costs.table.loc[width, "near_different"]) < 0.135
    assert costs.table.loc[width, "near_different"] <= costs.table.loc[width, "guarantee"]


def test_a_wider_band_promises_more_and_contradicts_the_score_more_often(card, people):
    table = decision_costs(card, *people).table
    assert (np.diff(table["guarantee"]) <= 0).all()
    assert (np.diff(table["against_threshold"]) >= 0).all()
    assert (np.diff(table["in_band"]) >= 0).all()


def test_models_without_a_guarantee_need_a_metric_and_have_no_guarantee(people):
    X, y = people
    model = LogisticRegression().fit(X, y)
    with pytest.raises(InvalidInputError, match="metric must be given for LogisticRegression"):
        decision_costs(model, X)
    assert "guarantee" not in decision_costs(model, X, metric=METRIC).table


def test_the_guarantee_counts_sampling_error_and_is_that_of_the_metric_it_is_about(people):
    """Under another metric nothing is promised; under the same one, given again, what was promised."""
    X, y = people
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    model = SmoothedClassifier(tree, metric=METRIC, noise="laplace", n_draws=500, random_state=0).fit(X, y)
    slack = model.guarantee_.slack
    assert slack > 0.01
    for metric in (None, WeightedLp([0.5, 0.1])):
        table = decision_costs(model, X, widths=[0.4, 0.05], near=0.1, metric=metric).table
        promised = -np.expm1(-0.1) + slack
        assert table["guarantee"].tolist() == pytest.approx([promised / 0.4, 1.0])
    other = WeightedLp([0.05, 0.1])
    costs = decision_costs(model, X, widths=[0.4], near=0.1, metric=other)
    assert "guarantee" not in costs.table
    assert costs.n_near_pairs == np.triu(other.pairwise(X) <= 0.1, 1).sum()


def test_a_guarantee_is_printed_rounded_up(card, people):
    costs = decision_costs(card, people[0], widths=[0.41], near=0.0501)
    exact = 100 * costs.table["guarantee"].iloc[0]
    told = float(str(costs).splitlines()[2].split("%")[-2])
    assert exact <= told < exact + 0.1
    assert told != round(exact, 1)  # otherwise nothing was rounded up


def test_large_tables_are_sampled_evenly_and_it_says_so(card, people):
    costs = decision_costs(card, people[0], n_people=50)
    assert costs.n_people == 50
    assert "among 50 people" in str(costs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"widths": [2]}, r"widths must be numbers from 0 to 1; got \[2.0\]"),
        ({"threshold": 0}, "threshold must be a positive number below 1; got 0"),
        ({"favourable": 3}, r"favourable must be one of the classes \[0, 1\]; got 3"),
        ({"profit": [1, 2]}, r"profit must be a matrix of 2 outcomes by 2 decisions; got shape \(2,\)"),
        ({"profit": np.eye(2)}, "profit needs y"),
        ({"y": [1]}, r"y must hold one outcome per row of X \(300\); got shape \(1,\)"),
    ],
)
def test_bad_input_is_refused(card, people, options, message):
    with pytest.raises(InvalidInputError, match=message):
        decision_costs(card, people[0], **options)


def test_what_is_no_model_is_refused(people):
    with pytest.raises(InvalidTypeError, match="model must be a fitted classifier with predict_proba; got int"):
        decision_costs(3, people[0])
