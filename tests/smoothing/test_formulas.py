"""Formulas: they agree with brute force, with closed forms and with sampling, and know when they do not apply."""

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_classification, make_regression
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from likewise import Gaussian, Laplace, SmoothedClassifier, SmoothedRegressor, Uniform, WeightedLp
from likewise.inspection.trees import output_limits
from likewise.smoothing.formulas import LeafVotes
from likewise.smoothing.sampling import SharedDraws

N_DRAWS = 20_000
# Hoeffding: a mean of votes in [0, 1] is off by more than this with probability 1e-9 (log(2 / 1e-9) = 21.4).
MARGIN = np.sqrt(21.42 / (2 * N_DRAWS))

X, Y = make_classification(300, 5, n_informative=3, n_redundant=0, random_state=0)
METRIC = WeightedLp([0.8, 0.0, 1.5, 0.4, 1.0])  # one column must not matter
NOISES = {"gaussian": Gaussian, "laplace": Laplace, "uniform": Uniform}


def both(estimator, noise, **options):
    exact = SmoothedClassifier(estimator, metric=METRIC, noise=noise, random_state=0, **options).fit(X, Y)
    sampled = SmoothedClassifier(estimator, metric=METRIC, noise=noise, random_state=0, n_draws=N_DRAWS, **options).fit(
        X, Y
    )
    assert exact.guarantee_.level == "exact"
    assert (exact.guarantee_.epsilon, exact.guarantee_.delta, exact.guarantee_.n_draws) == (0, 0, 0)
    assert sampled.guarantee_.level == "sampled"
    return exact, sampled


LINEAR = [
    LogisticRegression(),
    LinearSVC(),
    SGDClassifier(random_state=0),
    Perceptron(),
    RidgeClassifier(),
    LinearDiscriminantAnalysis(),
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(MinMaxScaler((-3, 2)), RobustScaler(), LinearSVC()),
    make_pipeline(MaxAbsScaler(), make_pipeline(StandardScaler(with_mean=False), Perceptron())),
]


@pytest.mark.parametrize("estimator", LINEAR, ids=lambda e: str(e)[:60])
def test_linear_classifiers_agree_with_sampling(estimator):
    exact, sampled = both(estimator, "gaussian")
    difference = exact.predict_proba(X[:12]) - sampled.predict_proba(X[:12])
    assert np.abs(difference).max() <= MARGIN


TREES = [
    (DecisionTreeClassifier(max_depth=6, random_state=0), "hard"),
    (DecisionTreeClassifier(max_leaf_nodes=20, random_state=0), "soft"),
    (RandomForestClassifier(15, max_depth=5, random_state=0), "soft"),
    (RandomForestClassifier(15, max_depth=5, random_state=0), "trees"),
    (ExtraTreesClassifier(15, max_depth=6, random_state=0), "soft"),
    (ExtraTreesClassifier(15, max_depth=6, random_state=0), "trees"),
    (make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=6, random_state=0)), "hard"),
]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("estimator", "vote"), TREES, ids=lambda e: str(e)[:40])
def test_trees_and_forests_agree_with_sampling(estimator, vote, noise):
    exact, sampled = both(estimator, noise, vote=vote)
    found = sampled.certify(X[:12])
    h = exact.predict_proba(X[:12])
    assert np.abs(h - found.estimate).max() <= MARGIN
    np.testing.assert_allclose(h.sum(axis=1), 1, atol=1e-12)


def test_the_check_would_see_noise_of_half_the_width():
    """Negative control: the formula for a metric twice as strict is not within the margin."""
    tree = DecisionTreeClassifier(max_depth=6, random_state=0)
    _, sampled = both(tree, "gaussian")
    wrong = SmoothedClassifier(tree, metric=METRIC.scaled(2), noise="gaussian", random_state=0).fit(X, Y)
    assert np.abs(wrong.predict_proba(X[:12]) - sampled.predict_proba(X[:12])).max() > MARGIN


REGRESSORS = [
    DecisionTreeRegressor(max_depth=5, random_state=0),
    RandomForestRegressor(10, max_depth=5, random_state=0),
    ExtraTreesRegressor(10, max_depth=5, random_state=0),
    GradientBoostingRegressor(n_estimators=20, random_state=0),
    HistGradientBoostingRegressor(max_iter=10, random_state=0),
]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda e: type(e).__name__)
def test_sums_of_regression_trees_agree_with_sampling(estimator, noise):
    A, b = make_regression(200, 5, noise=1.0, random_state=0)
    fitted = estimator.fit(A, b)
    low, high = output_limits(fitted)
    options = {"metric": METRIC, "noise": noise, "output_range": (low, high), "random_state": 0}
    exact = SmoothedRegressor(FrozenEstimator(fitted), **options).fit(A, b)
    sampled = SmoothedRegressor(FrozenEstimator(fitted), n_draws=N_DRAWS, **options).fit(A, b)
    assert exact.guarantee_.level == "exact"
    assert np.abs(exact.predict(A[:10]) - sampled.predict(A[:10])).max() <= MARGIN * (high - low)


def test_a_sum_that_clipping_could_change_is_not_called_exact():
    A, b = make_regression(200, 5, noise=1.0, random_state=0)
    for estimator in (GradientBoostingRegressor(random_state=0), RandomForestRegressor(10, random_state=0)):
        model = SmoothedRegressor(estimator, metric=METRIC, noise="uniform", output_range=(-10, 10), epsilon=0.2)
        assert model.fit(A, b).guarantee_.level == "sampled"
    # One side is enough: the other limit is far beyond any sum.
    for limits in ((-10, 1e6), (-1e6, 10)):
        model = SmoothedRegressor(
            RandomForestRegressor(10, random_state=0), metric=METRIC, noise="uniform", output_range=limits, epsilon=0.2
        )
        assert model.fit(A, b).guarantee_.level == "sampled"
    # A single tree is clipped leaf by leaf.
    tree = DecisionTreeRegressor(max_depth=5, random_state=0)
    options = {"metric": METRIC, "noise": "uniform", "output_range": (-10, 10), "random_state": 0}
    exact = SmoothedRegressor(tree, **options).fit(A, b)
    sampled = SmoothedRegressor(tree, n_draws=N_DRAWS, **options).fit(A, b)
    assert exact.guarantee_.level == "exact"
    assert np.abs(exact.predict(A[:10]) - sampled.predict(A[:10])).max() <= MARGIN * 20


def test_one_split_in_closed_form():
    A = np.array([[0.0], [1.0], [2.0], [3.0]])
    stump = DecisionTreeClassifier(max_depth=1).fit(A, [0, 0, 1, 1])  # splits at 1.5
    x = np.linspace(-1, 4, 30)
    expected = {
        "gaussian": stats.norm.sf(1.5 - x, scale=1 / np.sqrt(2 * np.pi)),
        "laplace": stats.laplace.sf(1.5 - x, scale=0.5),
        "uniform": np.clip(x - 1.0, 0, 1),
    }
    for noise, value in expected.items():
        model = SmoothedClassifier(FrozenEstimator(stump), metric=WeightedLp([1.0]), noise=noise).fit(A, [0, 0, 1, 1])
        np.testing.assert_allclose(model.predict_proba(x[:, None])[:, 1], value, atol=1e-6)  # 1.5 is rounded to float32


def products_over_boxes(tree, noise, people):
    """Every leaf's probability as a product over features, from the tree's own structure, times its shares."""
    F, t, d = noise.cumulative, tree.tree_, people.shape[1]
    expected = np.zeros((len(people), 2))
    stack = [(0, np.full(d, -np.inf), np.full(d, np.inf))]
    while stack:
        node, low, high = stack.pop()
        if t.children_left[node] < 0:
            for k, x in enumerate(people):
                inside = np.prod(F((high - x) / noise.widths) - F((low - x) / noise.widths))
                expected[k] += inside * t.value[node, 0] / t.value[node, 0].sum()
            continue
        i, cut = t.feature[node], t.threshold[node]
        left_high, right_low = high.copy(), low.copy()
        left_high[i] = right_low[i] = cut
        stack += [(t.children_left[node], low, left_high), (t.children_right[node], right_low, high)]
    return expected


def test_leaf_boxes_against_brute_force_products():
    tree = DecisionTreeClassifier(max_depth=7, random_state=1).fit(X, Y)
    for name, kind in NOISES.items():
        noise = kind.for_metric(WeightedLp(np.linspace(0.5, 1.5, 5)))
        votes = LeafVotes.from_model(tree, SharedDraws.from_training_data(noise, X, 0))
        expected = products_over_boxes(tree, noise, X[:5])
        np.testing.assert_allclose(votes.mean_votes(X[:5]), expected, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("side", [1.0, -1.0], ids=["above, below, between", "below, above, between"])
def test_a_split_between_two_others_of_the_same_feature_knows_both(side):
    """The last of the three needs the bound from two splits further up."""
    counts = [40, 8, 9, 50]
    values, y = np.repeat([-1.0, 0.5, 1.5, 3.0], counts)[:, None] * side, np.repeat([0, 1, 0, 1], counts)
    tree = DecisionTreeClassifier(random_state=0).fit(values, y)
    inner = tree.tree_.feature >= 0
    assert (side * tree.tree_.threshold[inner]).tolist() == [2.25, -0.25, 1.0]  # from the root down
    people = np.linspace(-1, 4, 11)[:, None] * side
    noise = Laplace.for_metric(WeightedLp([0.5]))
    votes = LeafVotes.from_model(tree, SharedDraws.from_training_data(noise, values, 0))
    np.testing.assert_allclose(votes.mean_votes(people), products_over_boxes(tree, noise, people), atol=1e-6)


def test_a_threshold_between_two_float32_is_where_rounding_puts_it():
    """The tree sees float32(x): with noise of 1e-3 float32 steps, the border is at the middle of two of them."""
    A = np.array([[16777216.0], [16777218.0]])  # neighbours in float32
    stump = DecisionTreeClassifier().fit(A, [0, 1])
    model = SmoothedClassifier(FrozenEstimator(stump), metric=WeightedLp([1000.0]), noise="uniform").fit(A, [0, 1])
    people = 16777217.0 + np.array([[-0.01], [0.01]])
    np.testing.assert_array_equal(model.predict_proba(people)[:, 1], stump.predict(people))
    np.testing.assert_array_equal(model.predict_proba(people)[:, 1], [0.0, 1.0])


def test_a_threshold_that_is_a_float32_holds_all_that_is_rounded_to_it():
    A = np.array([[16777216.0], [16777220.0]])  # two steps of float32 apart: the split is at the one between
    stump = DecisionTreeClassifier().fit(A, [0, 1])
    assert stump.tree_.threshold[0] == 16777218
    model = SmoothedClassifier(FrozenEstimator(stump), metric=WeightedLp([1000.0]), noise="uniform").fit(A, [0, 1])
    people = 16777219.0 + np.array([[-0.9], [-0.01], [0.01], [0.9]])
    np.testing.assert_array_equal(model.predict_proba(people)[:, 1], stump.predict(people))
    np.testing.assert_array_equal(stump.predict(people), [0, 0, 1, 1])


def test_a_linear_model_in_closed_form():
    """The margin of x + t is Gaussian; what a hidden column adds is averaged over the training rows."""
    A = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 5.0], [2.0, 1.0, 5.0], [3.0, 3.0, -2.0]])
    inner = LogisticRegression().fit(A, [0, 0, 1, 1])
    inner.coef_[:], inner.intercept_[:] = [[0.7, -0.4, 0.3]], 0.2
    metric = WeightedLp([4.0, 1.0, 0.0], p=2)
    model = SmoothedClassifier(FrozenEstimator(inner), metric=metric, noise="gaussian").fit(A, [0, 0, 1, 1])
    assert model.guarantee_.level == "exact"
    sigma = np.hypot(0.7 / 2, -0.4 / 1) / np.sqrt(2 * np.pi)
    margin = (A[:, :2] @ [0.7, -0.4] + 0.2)[:, None] + 0.3 * np.array([5.0, 5.0, 5.0, -2.0])
    np.testing.assert_allclose(model.predict_proba(A)[:, 1], stats.norm.cdf(margin / sigma).mean(axis=1), rtol=1e-12)


@pytest.mark.parametrize("corner", [0, 1])
def test_hidden_columns_of_a_tree_are_drawn_together_from_one_row(corner):
    """A tree that asks whether two hidden columns are both 0, or both 1: as many training rows as are so."""
    inner = DecisionTreeClassifier(random_state=0).fit(
        [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]], [a == b == corner for a in (0, 1) for b in (0, 1)]
    )
    A = np.array([[0.0, 0, 0], [0, 0, 0], [0, 1, 1], [0, 1, 0]])
    share = 0.5 if corner == 0 else 0.25
    assert inner.predict(A).mean() == share
    model = SmoothedClassifier(FrozenEstimator(inner), metric=WeightedLp([1.0, 0.0, 0.0]), noise="uniform")
    found = model.fit(A, [False, True, False, True]).predict_proba(A)[:, 1]
    np.testing.assert_allclose(found, share, rtol=1e-12)


def test_hidden_columns_never_matter_and_are_averaged_over_the_training_rows():
    for estimator in (LogisticRegression(), DecisionTreeClassifier(max_depth=6, random_state=0)):
        model = SmoothedClassifier(estimator, metric=METRIC, random_state=0).fit(X, Y)
        assert model.guarantee_.level == "exact"
        other = X.copy()
        other[:, 1] = np.random.default_rng(0).normal(1e3, 1e3, len(X))
        np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(other))


def test_a_linear_model_that_sees_only_hidden_columns_is_constant():
    inner = LogisticRegression().fit(X, Y)
    inner.coef_[:] = [[0, 1.0, 0, 0, 0]]
    inner.intercept_[:] = 0
    model = SmoothedClassifier(FrozenEstimator(inner), metric=METRIC, noise="gaussian", random_state=0).fit(X, Y)
    share = (X[:, 1] > 0).mean()
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], share, rtol=1e-12)


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (RandomForestClassifier(5), {"vote": "hard"}),  # a majority of trees is not a sum of leaves
        (LogisticRegression(), {"vote": "soft"}),
        (LogisticRegression(), {"noise": "laplace"}),
        (DecisionTreeClassifier(), {"noise": "laplace", "metric": WeightedLp(np.ones(5), p=2)}),
        (DecisionTreeClassifier(), {"n_draws": 500, "noise": "uniform"}),  # draws were asked for
    ],
)
def test_where_there_is_no_formula_none_is_claimed(estimator, options):
    model = SmoothedClassifier(estimator, **({"metric": METRIC, "epsilon": 0.2, "random_state": 0} | options)).fit(X, Y)
    assert model.guarantee_.level != "exact"
    assert np.isfinite(model.predict_proba(X[:2])).all()


class Contrarian(LogisticRegression):
    """A subclass may do anything, so nothing is known about it."""

    def predict(self, X):
        return 1 - super().predict(X)


def test_subclasses_are_not_trusted():
    model = SmoothedClassifier(Contrarian(), metric=METRIC, noise="gaussian", epsilon=0.2, random_state=0).fit(X, Y)
    assert model.guarantee_.level == "sampled"
    straight = SmoothedClassifier(LogisticRegression(), metric=METRIC, noise="gaussian", random_state=0).fit(X, Y)
    assert np.abs(model.predict_proba(X[:9]) - straight.predict_proba(X[:9])[:, ::-1]).max() <= 0.2


@pytest.mark.parametrize("p", [1, 2, 3, np.inf])
def test_the_nearest_person_with_another_decision_is_as_far_as_certified(p):
    """Along the direction in which a linear score changes most per distance, in each norm."""
    rng = np.random.default_rng(0)
    people, labels = rng.normal(size=(200, 3)), rng.random(200) < 0.5
    metric = WeightedLp([0.7, 0.3, 1.1], p)
    model = SmoothedClassifier(LogisticRegression(C=10), metric=metric, noise="gaussian").fit(people, labels)
    found = model.certify(people[:30])
    scales = metric.weights if np.isinf(p) else metric.weights ** (1 / p)
    slope = LogisticRegression(C=10).fit(people, labels).coef_[0] / scales
    best = np.eye(3)[np.abs(slope).argmax()] if p == 1 else np.abs(slope) ** (0 if np.isinf(p) else 1 / (p - 1))
    best = np.sign(slope) * best / np.linalg.norm(best, p) / scales  # at distance 1
    towards = np.where(found.outcome, -1, 1)[:, None] * best * found.distance[:, None]
    for share, same in ((1 - 1e-6, True), (1 + 1e-6, False)):
        assert ((model.predict(people[:30] + share * towards) == found.outcome) == same).all()


def test_several_classes_have_no_closed_form_for_linear_models_but_for_trees():
    A, b = make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    assert SmoothedClassifier(LogisticRegression(), metric=METRIC, epsilon=0.2).fit(A, b).guarantee_.level != "exact"
    forest = RandomForestClassifier(10, max_depth=4, random_state=0)
    options = {"metric": METRIC, "vote": "soft", "random_state": 0}
    exact = SmoothedClassifier(forest, **options).fit(A, b)
    sampled = SmoothedClassifier(forest, noise="uniform", n_draws=N_DRAWS, **options).fit(A, b)
    assert exact.guarantee_.level == "exact"
    assert np.abs(exact.predict_proba(A[:10]) - sampled.predict_proba(A[:10])).max() <= MARGIN


def test_the_statement_of_an_exact_model_does_not_talk_of_chance():
    model = SmoothedClassifier(LogisticRegression(), random_state=0).fit(X, Y)
    assert "formula" in model.guarantee_.statement
    assert "random" not in model.guarantee_.statement
    assert "probability at least" not in model.guarantee_.statement


def test_per_tree_votes_need_a_forest():
    with pytest.raises(TypeError, match="forest of classification trees"):
        SmoothedClassifier(LogisticRegression(), vote="trees", metric=METRIC).fit(X, Y)


def test_bits_do_not_depend_on_batch_or_threads():
    forest = RandomForestClassifier(10, max_depth=6, random_state=0)
    many = np.random.default_rng(0).normal(size=(3000, 5))
    model = SmoothedClassifier(forest, metric=METRIC, vote="soft", random_state=0, n_jobs=1).fit(X, Y)
    h = model.predict_proba(many)
    np.testing.assert_array_equal(h, model.set_params(n_jobs=3).predict_proba(many))
    np.testing.assert_array_equal(h[1234], model.predict_proba(many[1234:1235])[0])
    linear = SmoothedClassifier(LogisticRegression(), metric=METRIC, random_state=0).fit(X, Y)
    h = linear.predict_proba(many)
    np.testing.assert_array_equal(h[::-1], linear.predict_proba(many[::-1]))
    np.testing.assert_array_equal(h[7], linear.predict_proba(many[7:8])[0])
