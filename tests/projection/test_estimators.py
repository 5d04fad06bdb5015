"""The promise of projected models, by search and with controls; what they take and what they refuse."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from climbing import Climb
from contract import run_check
from likewise import (
    FunctionMetric,
    ProjectedClassifier,
    ProjectedRegressor,
    SmoothedClassifier,
    Splitting,
    WeightedLp,
    attack,
    audit,
)
from likewise.dummy import ConstantClassifier, ConstantRegressor
from likewise.projection.scorer import BlendWeights

ROUNDING = 1e-12
EXPONENTS = (1, 2, 3.5, np.inf)


@parametrize_with_checks(
    [
        ProjectedClassifier(LogisticRegression(), base=0.5),
        ProjectedRegressor(Ridge(), base=0.0, output_range=(-1e3, 1e3)),
    ]
)
def test_scikit_learn_contract(estimator, check):
    run_check(estimator, check)


@pytest.mark.slow
@parametrize_with_checks([ProjectedClassifier(LogisticRegression()), ProjectedRegressor(Ridge())])
def test_scikit_learn_contract_of_models_whose_base_is_fitted_too(estimator, check):
    run_check(estimator, check)


@pytest.fixture(scope="module")
def people():
    return make_classification(300, 4, n_informative=3, n_redundant=0, random_state=0)


def a_metric(p):
    scales = np.array([0.3, 0.2, 0.1, 0.0])
    return WeightedLp(scales ** (1 if np.isinf(p) else p), p)


@pytest.fixture(scope="module")
def models(people):
    """A model for each exponent."""
    return {
        p: ProjectedClassifier(DecisionTreeClassifier(), metric=a_metric(p), random_state=0).fit(*people)
        for p in EXPONENTS
    }


@pytest.fixture(scope="module")
def model(models):
    return models[1]


# -- the promise ------------------------------------------------------------------------------------------------


# That no pair exceeds the metric, for all exponents and kinds of columns, is tested in tests/auditing/test_attack.py.


def most_excess(model, metric, X, n=20_000):
    return attack(model, metric, X, n_pairs=n, random_state=0).excess_over_bound


@pytest.mark.parametrize(
    ("p", "n_starts"), [*((p, 800) for p in EXPONENTS), pytest.param(1, 8_000, marks=pytest.mark.slow)]
)
def test_no_pair_that_climbs_by_gradients_exceeds_the_metric(people, models, p, n_starts):
    X, metric, model = people[0], a_metric(p), models[p]
    rng = np.random.default_rng(0)
    search = Climb(lambda rows: model.predict_proba(rows)[:, 1], metric, model.guarantee_.bound)
    starts = X[rng.integers(len(X), size=n_starts)]
    starts = starts + rng.normal(scale=0.3, size=starts.shape) * (rng.random((len(starts), 1)) < 0.7)
    assert search.most(starts, rng, n_steps=18) <= ROUNDING
    assert search.n_pairs > 125 * n_starts


@pytest.mark.parametrize("p", EXPONENTS)
def test_control_one_anchor_whose_value_was_moved_is_found_by_climbing(people, models, p):
    X, metric, model = people[0], a_metric(p), models[p]

    def moved(rows):
        """The scores, but a hundredth more for the first person, who is an anchor."""
        return model.predict_proba(rows)[:, 1] + 0.01 * (metric(rows, X[0]) == 0)

    search = Climb(moved, metric, model.guarantee_.bound)
    assert search.most(np.repeat(X[:3], 50, axis=0), np.random.default_rng(0), n_steps=3) > 1e-3
    assert search.most(np.repeat(X[3:6], 50, axis=0), np.random.default_rng(0), n_steps=3) <= ROUNDING


def test_among_the_anchors_no_pair_exceeds_and_one_value_moved_is_caught(people, model):
    X, _ = people
    scores = model.predict_proba(X)[:, 1]
    assert audit(None, X, a_metric(1), predictions=scores, tolerance=ROUNDING).n_violations == 0
    # Control: the person who is held the most tightly is moved by a hundredth.
    room = a_metric(1).pairwise(X) - (scores[:, None] - scores)
    np.fill_diagonal(room, np.inf)
    held = np.unravel_index(room.argmin(), room.shape)[0]
    scores[held] += 0.01
    found = audit(None, X, a_metric(1), predictions=scores, tolerance=ROUNDING)
    assert found.max_excess == pytest.approx(0.01, abs=1e-6)
    assert held in set(found.violations[["row_a", "row_b"]].iloc[0])


def test_large_numbers_lose_no_digit(people):
    X, y = people
    far, metric = 1e9 + 1e3 * X, WeightedLp(np.array([0.3, 0.2, 0.1, 0.0]) / 1e3)
    model = ProjectedClassifier(DecisionTreeClassifier(), metric=metric, random_state=0).fit(far, y)
    assert most_excess(model, metric, far) <= ROUNDING


def test_numbers_within_a_range(people):
    X, y = make_regression(200, 4, random_state=0)
    metric = a_metric(1)
    model = ProjectedRegressor(DecisionTreeRegressor(), metric=metric, output_range=(-300, 300), random_state=0).fit(
        X, y
    )
    assert model.guarantee_.output_range == (-300, 300)
    assert most_excess(model, metric, X) <= ROUNDING
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.5
    np.testing.assert_allclose(model.predict(X[:5]), model.certify(X[:5]).lower[:, 0], rtol=0)


# -- tables -----------------------------------------------------------------------------------------------------


# -- what it does to a model ------------------------------------------------------------------------------------


def test_a_model_within_the_metric_is_kept_at_the_anchors(people):
    X, y = people
    given = lambda rows: 0.5 + 0.1 * np.tanh(rows[:, 0])  # noqa: E731
    model = ProjectedClassifier(given, metric=a_metric(1), random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], given(X), rtol=0, atol=1e-15)
    assert (model.values_ == model.scores_).all()


def test_values_are_said_of_the_anchors_whatever_the_base(people):
    X, y = people
    for base in (None, 0.1, 0.9):
        model = ProjectedClassifier(DecisionTreeClassifier(), metric=a_metric(1), base=base, random_state=0).fit(X, y)
        at = model.predict_proba(np.column_stack([model.scorer_.envelope.rows, np.zeros(model.n_anchors_)]))[:, 1]
        np.testing.assert_allclose(at, model.values_, rtol=0, atol=1e-15)


def test_far_from_everybody_the_base_is_said(people):
    model = ProjectedClassifier(DecisionTreeClassifier(), metric=a_metric(1), base=0.37, random_state=0).fit(*people)
    np.testing.assert_allclose(model.predict_proba(np.full((1, 4), 1e6)), [[0.63, 0.37]])


def test_scores_are_out_of_fold(people):
    """A tree that knows its people by heart would say 0 or 1 of each; out of fold it errs as it does on others."""
    X, y = people
    noise = np.random.default_rng(0).permutation(y)
    model = ProjectedClassifier(KNeighborsClassifier(1), metric=a_metric(1), random_state=0).fit(X, noise)
    frozen = FrozenEstimator(KNeighborsClassifier(1).fit(X, noise))
    known = ProjectedClassifier(frozen, metric=a_metric(1), random_state=0).fit(X, noise)
    order = np.lexsort(X[:, :3].T[::-1])
    assert np.mean(known.scores_ == noise[order]) == 1
    assert np.mean(model.scores_ == noise[order]) < 0.6


def test_labels_count_as_zero_and_one(people):
    model = ProjectedClassifier(LinearSVC(), metric=a_metric(1), random_state=0).fit(*people)
    assert set(model.scores_) == {0.0, 1.0}


@pytest.mark.parametrize(
    "function",
    [
        lambda rows: (rows[:, 0] > 0).astype(float),
        lambda rows: (rows[:, [0]] > 0).astype(float),
        lambda rows: np.column_stack([rows[:, 0] <= 0, rows[:, 0] > 0]).astype(float),
        lambda rows: np.where(rows[:, 0] > 0, "yes", "no"),
    ],
)
def test_functions_answer_with_scores_or_labels(people, function):
    X, y = people
    model = ProjectedClassifier(function, metric=a_metric(1), random_state=0).fit(X, np.where(y == 1, "yes", "no"))
    assert model.classes_.tolist() == ["no", "yes"]
    assert (model.scores_ == (np.sort(X[:, 0]) > 0)).all()


def test_weights_of_people_are_counted(people):
    X, y = people
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 3, len(X))
    folds = rng.integers(0, 3, len(X))
    split = lambda of: [(np.flatnonzero(of != k), np.flatnonzero(of == k)) for k in range(3)]  # noqa: E731
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    weighted = ProjectedClassifier(tree, metric=a_metric(1), cv=split(folds), random_state=0).fit(X, y, counts)
    again = np.repeat(np.arange(len(X)), counts)
    repeated = ProjectedClassifier(tree, metric=a_metric(1), cv=split(folds[again]), random_state=0).fit(
        X[again], y[again]
    )
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


# -- functions as metrics ---------------------------------------------------------------------------------------


def test_what_is_no_distance_is_refused_in_fit(people):
    squared = FunctionMetric(lambda A, B: ((A - B) ** 2).sum(axis=1))
    with pytest.raises(ValueError, match="triangle inequality"):
        ProjectedClassifier(DecisionTreeClassifier(), metric=squared).fit(*people)


# -- batches, seeds, files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", EXPONENTS)
def test_scores_do_not_depend_on_the_batch(models, p):
    model = models[p]
    others = np.random.default_rng(1).normal(size=(1500, 4))
    whole = model.predict_proba(others)
    turned = np.random.default_rng(2).permutation(1500)
    assert (model.predict_proba(others[turned]) == whole[turned]).all()
    assert (np.concatenate([model.predict_proba(part) for part in np.array_split(others, 11)]) == whole).all()


def test_the_same_seed_gives_the_same_model_and_stored_models_are_the_same(people, model):
    X, y = people
    again = ProjectedClassifier(DecisionTreeClassifier(), metric=a_metric(1), random_state=0).fit(X, y)
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert (pickle.loads(pickle.dumps(model)).predict_proba(X) == model.predict_proba(X)).all()


def test_fewer_anchors_are_drawn_by_the_seed(people):
    X, y = people
    fit = lambda seed: ProjectedClassifier(  # noqa: E731
        DecisionTreeClassifier(), metric=a_metric(1), n_anchors=50, random_state=seed
    ).fit(X, y)
    one, same, other = fit(0), fit(0), fit(1)
    assert one.n_anchors_ == len(one.values_) == 50
    assert (one.scorer_.envelope.rows == same.scorer_.envelope.rows).all()
    assert not (one.scorer_.envelope.rows == other.scorer_.envelope.rows).all()
    assert most_excess(one, a_metric(1), X) <= ROUNDING


def test_people_who_are_equal_in_what_matters_are_one_anchor(people):
    X, y = people
    rounded = np.column_stack([X[:, :3].round(), X[:, 3]])
    model = ProjectedClassifier(DecisionTreeClassifier(), metric=a_metric(1), random_state=0).fit(rounded, y)
    assert model.n_anchors_ == len(np.unique(rounded[:, :3], axis=0)) < len(X)


# -- a base -----------------------------------------------------------------------------------------------------


def test_a_base_is_another_projected_model(people):
    X, y = people
    inner = ProjectedClassifier(LogisticRegression(), n_anchors=20, random_state=0)
    model = ProjectedClassifier(
        DecisionTreeClassifier(), metric=a_metric(1), base=inner, n_anchors=30, random_state=0
    ).fit(X, y)
    frozen = FrozenEstimator(inner.with_metric(a_metric(1)).fit(X, y))
    same = ProjectedClassifier(
        DecisionTreeClassifier(), metric=a_metric(1), base=frozen, n_anchors=30, random_state=0
    ).fit(X, y)
    assert (same.predict_proba(X) == model.predict_proba(X)).all()
    assert most_excess(model, a_metric(1), X) <= ROUNDING


def test_an_additive_model_is_the_base_where_it_helps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = (rng.random(400) < 0.5 + 0.2 * np.tanh(X[:, 0]) + 0.2 * np.tanh(X[:, 1])).astype(int)
    metric = WeightedLp([0.3, 0.3, 0.3, 0.3])
    model = ProjectedClassifier(DecisionTreeClassifier(max_depth=3), metric=metric, n_anchors=40, random_state=0).fit(
        X, y
    )
    assert model.scorer_.blend.base > 0.2
    assert most_excess(model, metric, X) <= ROUNDING


@pytest.mark.parametrize(
    ("base", "error", "words"),
    [
        (1.5, ValueError, "base must be within the outputs, 0 to 1; got 1.5"),
        (True, TypeError, "base must be None, a number, or an estimator"),
        (LogisticRegression(), TypeError, "base must be None, a number, or an estimator"),
        (FrozenEstimator(DummyClassifier()), TypeError, "base must have a guarantee"),
        (ProjectedClassifier(LogisticRegression(), metric=WeightedLp([1, 1, 1, 1])), ValueError, "the same metric"),
        (
            SmoothedClassifier(KNeighborsClassifier(), noise="laplace", n_draws=50),
            ValueError,
            "within the metric exactly",
        ),
    ],
)
def test_a_base_that_is_not_within_the_metric_is_refused(people, base, error, words):
    with pytest.raises(error, match=words):
        ProjectedClassifier(DecisionTreeClassifier(), metric=a_metric(1), base=base).fit(*people)


def test_a_fitted_base_with_another_promise_is_refused(people):
    X, y = people
    other = ConstantClassifier(a_metric(1).scaled(2)).fit(X, y)
    grid = SmoothedClassifier(
        KNeighborsClassifier(), noise=Splitting.for_metric(a_metric(1), steps=None), n_draws=50
    ).fit(X, y)
    assert (grid.guarantee_.delta, grid.guarantee_.epsilon > 0) == (0, True)
    for base, words in ((other, "the same metric"), (grid, "within the metric exactly")):
        with pytest.raises(ValueError, match=words):
            ProjectedClassifier(DecisionTreeClassifier(), metric=a_metric(1), base=FrozenEstimator(base)).fit(X, y)
    wide, same = (ConstantRegressor(a_metric(1), output_range=(0, high)).fit(X, y) for high in (2, 1))
    with pytest.raises(ValueError, match="the same output_range"):
        ProjectedRegressor(Ridge(), metric=a_metric(1), output_range=(0, 1), base=FrozenEstimator(wide)).fit(X, y)
    model = ProjectedRegressor(Ridge(), metric=a_metric(1), output_range=(0, 1), base=FrozenEstimator(same)).fit(X, y)
    assert model.guarantee_.epsilon == 0  # the control


def test_the_score_is_the_median_of_base_and_envelopes():
    lower, upper = np.array([0.1, 0.1, 0.1]), np.array([0.4, 0.4, 0.4])
    found = BlendWeights(1.0, 0.0, 0.0).blend(np.array([0.0, 0.3, 0.9]), lower, upper)
    assert found.tolist() == [0.1, 0.3, 0.4]
    assert BlendWeights(0.5, 0.25, 0.25).blend(np.array([0.9]), lower[:1], upper[:1]).tolist() == [pytest.approx(0.325)]
    assert BlendWeights(0.0, 0.5, 0.5).blend(None, lower[:1], upper[:1]).tolist() == [0.25]


# -- bad input --------------------------------------------------------------------------------------------------


def test_three_classes_are_refused_with_a_method_out(people):
    X, _ = people
    with pytest.raises(ValueError, match=r"Only binary.*another method for 3 classes"):
        ProjectedClassifier(DecisionTreeClassifier()).fit(X, np.arange(len(X)) % 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_anchors": 301}, "n_anchors must be at most the number of distinct people in X, 300; got 301"),
        ({"n_anchors": 0}, "n_anchors must be 'auto' or a whole number >= 1; got 0"),
        ({"n_anchors": "all"}, "n_anchors must be 'auto' or a whole number"),
        ({"cv": [(np.arange(100), np.arange(100, 300))]}, "cv must hold out every person once; row 0 never is"),
    ],
)
def test_bad_parameters(people, options, words):
    with pytest.raises(ValueError, match=words):
        ProjectedClassifier(DecisionTreeClassifier(), metric=a_metric(1), **options).fit(*people)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (DecisionTreeClassifier, "instance, not a class"),
        ("tree", "must have predict, or be a function of rows; got str"),
        (StandardScaler(), "predict"),
    ],
)
def test_what_is_no_model_is_refused(people, estimator, words):
    with pytest.raises(TypeError, match=words):
        ProjectedClassifier(estimator, metric=a_metric(1)).fit(*people)


def test_weights_for_a_model_that_takes_none_are_refused(people):
    X, y = people
    with pytest.raises(TypeError, match=r"sample_weight needs an estimator.*KNeighborsClassifier does not"):
        ProjectedClassifier(KNeighborsClassifier(), metric=a_metric(1)).fit(X, y, np.ones(len(X)))


def test_a_class_of_one_person_is_refused(people):
    X, _ = people
    with pytest.raises(ValueError, match="each class at least twice"):
        ProjectedClassifier(DecisionTreeClassifier(), metric=a_metric(1)).fit(X, np.arange(len(X)) == 0)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda A, B: np.full(len(A), np.nan), "between 0 and 1e.100; got nan"),
        (lambda A, B: -np.abs(A - B).sum(axis=1), "between 0 and 1e.100; got -"),
        (lambda A, B: np.maximum(A - B, 0).sum(axis=1), "same in both directions"),
    ],
)
@pytest.mark.parametrize("estimator", [ProjectedClassifier(LogisticRegression()), ProjectedRegressor(Ridge())])
def test_functions_that_are_no_distance_are_refused_in_fit(people, estimator, function, words):
    with pytest.raises(ValueError, match=words):
        estimator.set_params(metric=FunctionMetric(function)).fit(*people)
    assert not hasattr(estimator, "n_anchors_")
