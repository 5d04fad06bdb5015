"""BlendWeights of base and envelopes, and scores of people left out, against brute force."""

import itertools

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from likewise import AdditiveClassifier, ProjectedClassifier, ProjectedRegressor, WeightedLp
from likewise._fit_validation import TrainingData
from likewise._inner_estimator import out_of_fold_scores, scores_of
from likewise.exceptions import InvalidInputError
from likewise.projection import estimators as projected_models
from likewise.projection.scorer import fit_blend, simplex_least_squares

METRIC = WeightedLp([0.1])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [2, 3])
def test_no_shares_on_a_fine_grid_are_better(seed, k):
    rng = np.random.default_rng(seed)
    parts, outcomes, weights = rng.random((9, k)), rng.random(9), 10.0 ** rng.uniform(-1, 1, 9)
    found = simplex_least_squares(parts, outcomes, weights)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0).all()

    def loss(shares):
        return (weights * (parts @ shares - outcomes) ** 2).sum()

    grid = [np.array(s) / 20 for s in itertools.product(range(21), repeat=k) if sum(s) == 20]
    assert loss(found) <= min(map(loss, grid)) + 1e-12


def test_weights_decide_between_outcomes_that_contradict_each_other():
    """Between 0 and 1, with the outcomes 0 and 1 of weights 1 and 3: the upper end has three quarters."""
    parts = np.array([[0.0, 1.0], [0.0, 1.0]])
    assert simplex_least_squares(parts, np.array([0.0, 1.0]), np.array([1.0, 3.0])).tolist() == pytest.approx(
        [0.25, 0.75]
    )


def test_envelopes_of_those_kept_decide_about_those_left_out():
    """Anchors 20 apart, with distances of 2: nobody else says anything, and the outcomes are 0.3."""
    people = METRIC.encode_rows(np.arange(0, 200, 20.0)[:, None])
    found = fit_blend(METRIC.bind(people.encoder), people, np.full(10, 0.5), np.full(10, 0.3), np.ones(10))
    assert (found.base, found.lower, found.upper) == pytest.approx((0.0, 0.7, 0.3))
    # Anchors 1 apart, all with the value 0.5: who is left out lies within 0.1 of it.
    near = METRIC.encode_rows(np.arange(10.0)[:, None])
    found = fit_blend(METRIC.bind(near.encoder), near, np.full(10, 0.5), np.full(10, 0.2), np.ones(10))
    assert (found.lower, found.upper) == pytest.approx((1.0, 0.0))


def test_a_base_counts_as_far_as_the_envelopes_let_it():
    """Anchors 1 apart with the value 0.5 let it be 0.1 away: where it says 0.9 or 0.1, and 0.6 or 0.4 happens."""
    (bound, people), high = METRIC.read(np.arange(40.0)[:, None]), np.arange(40) % 2 == 0
    base = np.where(high, 0.9, 0.1)
    found = fit_blend(bound, people, np.full(40, 0.5), np.where(high, 0.6, 0.4), np.ones(40), base.__getitem__)
    score = found.blend(base, np.full(40, 0.4), np.full(40, 0.6))
    np.testing.assert_allclose(score, np.where(high, 0.6, 0.4), atol=0.02)


class Mean(ClassifierMixin, RegressorMixin, BaseEstimator):
    """Says the weighted mean of those it has learned from, of everybody."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.mean_ = np.average(y, weights=sample_weight)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)

    def predict_proba(self, X):
        return np.tile([1 - self.mean_, self.mean_], (len(X), 1))


def test_everybody_is_scored_by_those_who_are_kept_and_by_their_weights():
    people, folds = METRIC.encode_rows(np.arange(6.0)[:, None]), KFold(3)
    y, weights = np.array([0, 1, 1, 1, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    for given in (None, weights):
        found = out_of_fold_scores(
            Mean(), TrainingData(people, y, given), np.array([0, 1]), (0.0, 1.0), cv=folds, seed=0
        )
        for kept, out in folds.split(y):
            assert found[out] == pytest.approx(np.average(y[kept], weights=None if given is None else given[kept]))


def test_numbers_are_shares_of_their_limits_and_cut_to_them():
    people = METRIC.encode_rows(np.arange(3.0)[:, None])
    found = scores_of(lambda rows: np.array([50.0, 150.0, 999.0]), people, None, (100.0, 300.0))
    assert found.tolist() == [0.0, 0.25, 1.0]


def test_labels_and_single_numbers_are_probabilities_of_the_second_class():
    people, classes = METRIC.encode_rows(np.arange(2.0)[:, None]), np.array(["no", "yes"])
    assert scores_of(lambda rows: np.array(["yes", "no"]), people, classes).tolist() == [1.0, 0.0]
    assert scores_of(lambda rows: np.array([0.25, 0.5]), people, classes).tolist() == [0.25, 0.5]
    assert scores_of(lambda rows: np.array([[0.25, 0.75], [1.0, 0.0]]), people, classes).tolist() == [0.75, 0.0]


def test_a_base_that_judges_people_has_not_learned_from_those_who_are_equal_to_them(monkeypatch):
    """Everybody is there twice."""
    learned, judged = [], []

    def fitted(given, data, metric, limits):
        learned.append(data.people.rows[:, 0])
        return given.set_params(metric=metric.description, penalty=0.1).fit(data.people.table, data.y)

    def asked(base, people, classes, limits):
        judged.append(people.rows[:, 0])
        return np.full(len(people), 0.5)

    monkeypatch.setattr(projected_models, "fit_base", fitted)
    monkeypatch.setattr(projected_models, "base_scores", asked)
    rows = np.tile(np.arange(12.0), 2)[:, None]
    ProjectedClassifier(LogisticRegression(), metric=METRIC, random_state=0).fit(rows, np.tile(np.arange(12) % 2, 2))
    assert len(judged) == 5
    for without, about in zip(learned[1:], judged, strict=True):  # the first has learned from everybody
        assert not set(without) & set(about)
        assert len(without) == 24 - 2 * len(about)


@pytest.mark.parametrize("limits", [(100.0, 300.0), (-5.0, -1.0)])
def test_numbers_come_back_in_their_range(limits):
    """Anchors that are too far apart to bind each other keep what is said of them."""
    low, high = limits
    people = np.array([[0.0], [40.0], [80.0]])
    said = low + (high - low) * np.array([0.25, 0.5, 0.75])
    model = ProjectedRegressor(lambda rows: said, metric=METRIC, base=(low + high) / 2, output_range=limits)
    model.fit(people, said)
    np.testing.assert_allclose(model.predict(people), said)
    assert model.guarantee_.bound(0.5) == pytest.approx(0.5 * (high - low))
    np.testing.assert_allclose(model._unit_outcomes(said), [0.25, 0.5, 0.75])
    np.testing.assert_allclose(model.scores_, said)
    np.testing.assert_allclose(model.values_, said)


def test_weights_reach_the_base_the_judge_and_the_closest_values(monkeypatch):
    """Twelve people, each twice; the second of each pair counts three times as much as the first."""
    seen = {"base": [], "judge": [], "values": []}
    original = {name: getattr(projected_models, name) for name in ("fit_base", "fit_blend", "closest_values")}

    def fitted(given, data, metric, limits):
        seen["base"].append((len(data), data.weights))
        return original["fit_base"](given, data, metric, limits)

    def judged(metric, anchors, values, outcomes, weights, base):
        seen["judge"].append((outcomes, weights))
        return original["fit_blend"](metric, anchors, values, outcomes, weights, base)

    def closest(targets, weights, bounds, **options):
        seen["values"].append((targets, weights))
        return original["closest_values"](targets, weights, bounds, **options)

    for name, spy in (("fit_base", fitted), ("fit_blend", judged), ("closest_values", closest)):
        monkeypatch.setattr(projected_models, name, spy)
    rows = np.tile(np.arange(12.0), 2)[:, None]
    y, weights = np.append(np.arange(12) % 2, np.ones(12, dtype=int)), np.append(np.ones(12), np.full(12, 3.0))
    said = np.append(np.full(12, 0.2), np.full(12, 0.6))
    ProjectedClassifier(lambda table: said, metric=METRIC, random_state=0).fit(rows, y, sample_weight=weights)
    for n, given in seen["base"]:
        assert given is not None
        assert given.sum() == pytest.approx(2.0 * n)  # of each pair both are there, with 1 and 3
    (outcomes, given), (targets, heavy) = *seen["judge"], *seen["values"]
    assert given.tolist() == heavy.tolist() == [4.0] * 12
    np.testing.assert_allclose(outcomes, (np.arange(12) % 2 + 3) / 4)
    np.testing.assert_allclose(targets, (0.2 + 3 * 0.6) / 4)


def test_a_number_as_base_is_in_the_unit_of_the_output_and_is_said_of_people_far_away():
    model = ProjectedRegressor(
        lambda rows: np.full(len(rows), 150.0), metric=METRIC, base=250.0, output_range=(100, 300)
    )
    model.fit(np.array([[0.0], [1.0]]), np.array([100.0, 300.0]))
    np.testing.assert_allclose(model.predict([[0.0], [2.0], [99.0]]), [150.0, 170.0, 250.0])


@pytest.mark.parametrize("labels", [("approved", "denied"), ("denied", "paid")])
def test_a_frozen_base_with_other_classes_is_refused(labels):
    """Their probabilities would be mixed by position."""
    X = np.linspace(0, 1, 40)[:, None]
    base = AdditiveClassifier(WeightedLp([0.4])).fit(X, np.where(X[:, 0] > 0.5, *labels))
    model = ProjectedClassifier(LogisticRegression(), metric=WeightedLp([0.4]), base=FrozenEstimator(base))
    with pytest.raises(InvalidInputError, match="base must have the outputs of this model"):
        model.fit(X, np.where(X[:, 0] > 0.5, "granted", "refused"))
    model.fit(X, np.where(X[:, 0] > 0.5, *labels[::-1]))  # the same classes, however they are mixed
