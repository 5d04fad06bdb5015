"""What every method to enforce inherits: what was fitted is frozen, and promises cannot go stale."""

import pickle
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pkgutil import walk_packages

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

import likewise
from chance import too_few, too_many
from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    ProjectedClassifier,
    RecalibratedClassifier,
    SmoothedClassifier,
    SmoothedRegressor,
    Splitting,
    TableMetric,
    ThresholdDecision,
    WeightedLp,
    base,
)
from likewise._fit_validation import seed_from
from likewise.base import ConstrainedClassifier, PlainScorer, Scorer
from likewise.dummy import ConstantClassifier as ConstantOfAll
from likewise.kernel.bounds import Bound
from likewise.kernel.certificate import Estimate
from likewise.projection import scorer as projected
from promised import Promised
from promised import promise as promised_guarantee

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=120) > 0).astype(int)
METRIC = WeightedLp([0.5, 0.25, 0.0])


def test_no_parameter_changed_after_fit_reaches_what_was_fitted():
    model = SmoothedClassifier(RandomForestClassifier(5, random_state=0), metric=METRIC, vote="soft", random_state=0)
    model.fit(X, Y)
    scores, promise = model.predict_proba(X), model.guarantee_
    assert (promise.level, promise.epsilon) == ("exact", 0)
    for changed in (
        {"vote": "hard"},
        {"metric": WeightedLp([9.0, 9.0, 9.0])},
        {"noise": "gaussian"},
        {"epsilon": 0.9, "delta": 0.9, "n_draws": 1},
        {"estimator": LogisticRegression()},
        {"augment": 3, "random_state": 7},
    ):
        model.set_params(**changed)
        np.testing.assert_array_equal(model.predict_proba(X), scores)
        assert model.guarantee_ is promise
        assert len(model.decide(X[:5])) == 5
    assert (model.fit(X, Y).predict_proba(X) != scores).any()  # the control: what was changed does matter


@pytest.mark.parametrize("noise", ["gaussian", "splitting"])
@pytest.mark.parametrize("inner", [LogisticRegression(), MLPClassifier((8,), max_iter=3, random_state=0)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_frozen_model_that_is_fitted_again_does_not_reach_what_was_fitted(noise, inner):
    inner = clone(inner).fit(X, Y)
    model = SmoothedClassifier(FrozenEstimator(inner), metric=METRIC, noise=noise, epsilon=0.1, random_state=0)
    scores, decisions = model.fit(X, Y).predict_proba(X), model.decide(X, 0)
    inner.fit(X, 1 - Y)
    for same in (model, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same.predict_proba(X), scores)
        np.testing.assert_array_equal(same.decide(X, 0), decisions)


def test_decide_and_the_noise_are_told_what_a_grid_adds():
    """Without a grid, people a hair apart may fall into different cells in one of the K draws."""
    noise = Splitting.for_metric(WeightedLp([1.0]), steps=None)
    rows = np.linspace(0, 1, 400)[:, None]
    model = SmoothedClassifier(lambda z: (np.floor(z[:, 0] * 8) % 2).astype(int), noise=noise, n_draws=8)
    chances = model.fit(rows, np.arange(400) % 2).predict_proba(rows)[:, 1]  # the very law of decide
    gap, D = np.abs(chances[:, None] - chances), WeightedLp([1.0]).pairwise(rows)
    assert (gap > np.minimum(1, D) + 0.1).any()  # what was named before
    for curve in (model.guarantee_.curve, model.noise_.curve):
        assert (gap <= curve.bound(D)).all()
    assert (gap <= model.guarantee_.bound(D)).all()
    assert model.guarantee_.epsilon == model.noise_.excess == 1 / 8


def sigmoid_column(rows):
    return 1 / (1 + np.exp(-3 * rows[:, :1]))


@pytest.mark.parametrize("vote", ["hard", "soft"])
def test_a_single_column_is_the_probability_of_the_second_class(vote):
    options = {"metric": METRIC, "vote": vote, "n_draws": 300, "random_state": 0}
    model = SmoothedClassifier(sigmoid_column, **options).fit(X, Y)
    both = SmoothedClassifier(lambda rows: np.hstack([1 - sigmoid_column(rows), sigmoid_column(rows)]), **options)
    np.testing.assert_array_equal(model.predict_proba(X), both.fit(X, Y).predict_proba(X))
    assert model.score(X, Y) > 0.75
    assert np.ptp(model.predict_proba(X)[:, 1]) > 0.2  # not a constant


def test_a_column_of_labels_is_not_a_column_of_probabilities():
    options = {"metric": METRIC, "n_draws": 300, "random_state": 0}
    labels = np.where(X[:, 0] > 0, 2, 1)
    flat = SmoothedClassifier(lambda rows: np.where(rows[:, 0] > 0, 2, 1), **options).fit(X, labels)
    column = SmoothedClassifier(lambda rows: np.where(rows[:, :1] > 0, 2, 1), **options).fit(X, labels)
    np.testing.assert_array_equal(column.predict_proba(X), flat.predict_proba(X))


@pytest.mark.parametrize("vote", ["hard", "soft"])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda rows: np.full((len(rows), 3), 1 / 3), r"3 columns for 2 classes"),
        (lambda rows: rows[:, :1] * 9, r"single column must hold probabilities of .*1.*, between 0 and 1"),
        (lambda rows: np.full((len(rows), 1), np.nan), r"single column must hold probabilities"),
    ],
)
def test_columns_that_do_not_fit_the_classes_are_refused(vote, function, message):
    model = SmoothedClassifier(function, metric=METRIC, vote=vote, n_draws=50)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    model.set_params(batch=True).fit(X, Y)  # not tried out
    with pytest.raises(ValueError, match=message):
        model.predict_proba(X[:3])


def test_with_metric_keeps_the_inner_model_and_everything_else():
    model = SmoothedClassifier(DecisionTreeClassifier(max_depth=3), metric=METRIC, vote="soft", random_state=0).fit(
        X, Y
    )
    other = model.with_metric(METRIC.scaled(2))
    assert other.vote == "soft"
    assert not hasattr(other, "scorer_")
    assert isinstance(other.estimator, FrozenEstimator)
    other.fit(X, Y)
    np.testing.assert_array_equal(other.estimator_.predict_proba(X), model.estimator_.predict_proba(X))
    assert other.guarantee_.metric == METRIC.scaled(2)
    assert np.ptp(other.predict_proba(X)[:, 1]) > np.ptp(model.predict_proba(X)[:, 1])


def test_with_metric_keeps_what_a_noise_was_told():
    noise = Splitting.for_metric(METRIC, steps=[0.5, 0, 0])
    other = SmoothedClassifier(lambda rows: rows[:, 0] > 0, noise=noise).with_metric(METRIC.scaled(2))
    assert other.noise == Splitting.for_metric(METRIC.scaled(2), steps=[0.5, 0, 0])


def test_integer_column_names_work():
    people = pd.DataFrame(X, columns=[0, 1, 2])
    numbers = TableMetric({0: 0.5, 1: 0.25, 2: 0.0})
    model = SmoothedClassifier(lambda rows: (rows[0] > 0).to_numpy().astype(int), metric=numbers, n_draws=100)
    assert model.fit(people, Y).predict_proba(people).shape == (120, 2)
    assert numbers(people[:1], people[1:2])[0] == pytest.approx(METRIC(X[0], X[1]))
    assert SmoothedRegressor(Ridge(), metric=WeightedLp({0: 0.5, 1: 0.25, 2: 0.0})).fit(people, X[:, 0]).predict(
        people
    ).shape == (120,)


@pytest.mark.parametrize("metric", [WeightedLp({"a": 0.5, "b": 0.1}), TableMetric({"a": 0.5, "b": 0.1})])
def test_a_frozen_model_is_asked_by_name_whatever_the_order_in_fit(metric):
    people = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frozen = FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(people, Y))
    scores = [
        SmoothedClassifier(frozen, metric=metric, n_draws=50, random_state=0).fit(given, Y).predict_proba(people)
        for given in (people, people[["b", "a"]])
    ]
    np.testing.assert_array_equal(*scores)


def test_a_hidden_column_keeps_its_gaps_in_the_background():
    """The model is averaged over people who exist: half of them miss the hidden number."""
    people = pd.DataFrame({"a": X[:, 0], "h": np.where(np.arange(120) % 2, np.nan, 1.0)})
    inner = HistGradientBoostingClassifier(min_samples_leaf=5).fit(people, people["h"].isna())
    model = SmoothedClassifier(FrozenEstimator(inner), metric=TableMetric({"a": 0.2, "h": 0.0}), n_draws=500)
    model.fit(people, people["h"].isna())
    np.testing.assert_allclose(model.predict_proba(people)[:, 1], 0.5, atol=0.03)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y must hold one outcome per person"),
        (["a", None] * 60, "none of them missing"),
    ],
)
def test_outcomes_of_tables_are_checked(y, message):
    people = pd.DataFrame({"a": X[:, 0]})
    with pytest.raises(ValueError, match=message):
        SmoothedClassifier(DecisionTreeClassifier(), metric=TableMetric({"a": 0.1})).fit(people, y)
    with pytest.raises(ValueError, match="y must hold one number per person"):
        SmoothedRegressor(Ridge(), metric=TableMetric({"a": 0.1})).fit(people, ["x"] * 120)


def test_nothing_fitted_is_there_before_fit():
    model = SmoothedClassifier(DecisionTreeClassifier())
    for name in ("guarantee_", "estimator_", "noise_"):
        with pytest.raises(NotFittedError):
            getattr(model, name)


# -- a new method needs one class for what was learned and one method ------------------------------------------------


class Constant(Promised):
    def estimate(self, people, *, verbose=False):
        return Estimate.certain(np.full((len(people), 2), 0.5))

    def visible(self, people):
        return np.zeros((len(people), 0))


class ConstantClassifier(ConstrainedClassifier):
    def __init__(self, metric=None):
        self.metric = metric

    def learn(self, data, metric):
        return Constant(promised_guarantee(metric, Bound(), "exact", "It is a constant."))


class FailingClassifier(ConstantClassifier):
    def learn(self, data, metric):
        self.half_done_ = True
        raise RuntimeError("no")


def test_a_new_method_to_enforce_inherits_everything_else():
    model = ConstantClassifier(METRIC).fit(X, Y, sample_weight=np.ones(120))
    assert "It is a constant." in model.guarantee_.statement
    assert model.predict(X[:2]).tolist() == [0, 0]
    assert model.certify(X[:2]).distance.tolist() == [0, 0]
    assert set(model.decide(X, 0)) == {0, 1}
    assert model.visible_rows(X).shape == (120, 0)
    assert model.with_metric(METRIC.scaled(2)).metric == METRIC.scaled(2)


def test_equal_people_have_equal_chances_and_draws_of_their_own():
    """What the docstring of decide says: at 60%, two people are decided differently 48% of the time."""
    shares = np.arange(120) < 72
    model = ConstantOfAll(METRIC).fit(X, shares)
    assert model.predict_proba(X[:1])[0, 1] == pytest.approx(0.6)
    people, n = np.repeat(X[:1], 20_000, axis=0), 10_000
    drawn = model.decide(people, random_state=0)
    differ = int((drawn[:n] != drawn[n:]).sum())
    assert not too_many(differ, n, 0.48)
    assert not too_few(differ, n, 0.48)


HOOKS = ("prove", "estimate", "visible", "reads_tables", "breakpoints", "draw", "distance_to_tie")


def own_scorers(kind=Scorer):
    found = [kind] if kind.__module__.startswith("likewise.") else []
    return [*found, *(each for sub in kind.__subclasses__() for each in own_scorers(sub))]


def test_every_question_to_a_scorer_is_abstract():
    """What is asked of scorers from outside must be asked of every kind of them, so nothing may have a default."""
    asked = {name for name in vars(Scorer) if not name.startswith("_")} - {"guarantee"}
    assert asked == set(HOOKS) == {*Scorer.__abstractmethods__}


def test_a_scorer_around_another_answers_everything_itself():
    """The defaults of a plain scorer are those of one that stands alone; around another they would be wrong."""
    for module in walk_packages(likewise.__path__, "likewise."):
        if module.name != "likewise.__main__":
            import_module(module.name)
    kinds = own_scorers()
    around = [kind for kind in kinds if any("Scorer" in str(each.type) for each in fields(kind))]
    assert {kind.__name__ for kind in around} == {"WrappedScorer", "RecalibratedScorer", "ThresholdScorer"}
    assert {"AdditiveScorer", "ProjectedScorer", "LipschitzScorer", "ConstantScorer", "FormulaScorer"} <= {
        kind.__name__ for kind in kinds
    }
    for kind in around:
        assert not issubclass(kind, PlainScorer)
        assert all(any(name in vars(each) for each in kind.__mro__[:2]) for name in HOOKS if name != "estimate")
        assert "estimate" in vars(kind) or kind.__name__ == "WrappedScorer"


def test_control_a_wrapper_that_forgets_something_cannot_be_made():
    @dataclass(frozen=True, eq=False, repr=False)
    class Forgetful(Scorer):
        scorer: Scorer

        def estimate(self, people, *, verbose=False):
            return self.scorer.estimate(people)

        def visible(self, people):
            return self.scorer.visible(people)

    with pytest.raises(TypeError, match="breakpoints, distance_to_tie, draw, prove, reads_tables"):
        Forgetful(None)


def test_equal_people_have_the_same_visible_bytes_in_every_method():
    """Keyed decisions hash them: 0 and -0 are one number, and so are all numbers that are not there."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(-3, 4, 200).astype(float), "b": rng.normal(size=200)})
    y = (table["a"] + rng.normal(size=200) > 0).astype(int)
    table.loc[::7, "b"] = np.nan
    metric = TableMetric({"a": 0.2, "b": 0.1}, missing={"b": 0.2})
    card = AdditiveClassifier(metric, penalty=0.01, max_knots=6)
    tree = HistGradientBoostingClassifier(max_iter=5)
    models = [
        card,
        ProjectedClassifier(tree, metric=metric, random_state=0),
        RecalibratedClassifier(card, random_state=0),
        ThresholdDecision(card),
        SmoothedClassifier(tree, metric=metric, noise="splitting", n_draws=50),
        SmoothedClassifier(tree, metric=metric, noise="gaussian", n_draws=50),
        ConstantOfAll(metric),
    ]
    plus = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, np.nan]})
    other_nan = np.frombuffer(np.uint64(0xFFF8000000000001).tobytes())[0]
    minus = pd.DataFrame({"a": [-0.0, 1.0], "b": [-0.0, other_nan]})
    assert minus["b"].to_numpy().tobytes() != plus["b"].to_numpy().tobytes()
    for model in models:
        model.fit(table, y)
        if isinstance(model, AdditiveClassifier):  # a level of 0 may be stored with either sign
            assert model.scorer_.model.shapes
        assert model.visible_rows(minus).tobytes() == model.visible_rows(plus).tobytes(), model


def test_a_point_of_negative_zero_is_one_of_zero():
    """A scorecard may store -0.0 at a knot; between -0.0 and 0.0 of a person its points then differ in their sign."""
    rows = np.linspace(-2, 2, 101)[:, None]
    model = AdditiveClassifier(WeightedLp([0.5]), penalty=0.01, max_knots=5).fit(rows, rows[:, 0] > 0)
    shape = model.scorer_.model.shapes[0]
    knots = np.array([-2.0, 0.0, 2.0])
    values = np.array([[-1.0, -0.0, 1.0]])
    model.scorer_ = replace(
        model.scorer_, model=replace(model.scorer_.model, shapes=(replace(shape, knots=knots, values=values),))
    )
    assert model.visible_rows([[0.0]]).tobytes() == model.visible_rows([[-0.0]]).tobytes()


def test_probabilities_that_do_not_add_up_leave_the_rest_to_a_class_that_has_some():
    model = ConstantClassifier(METRIC).fit(X, np.arange(120) % 3)
    most = np.nextafter(1.0, 0.0)
    short = np.array([[0.25, 0.75 - 1e-12, 0.0], [1 - 1e-12, 0.0, 0.0], [0.3, 0.3, 0.4 - 1e-12]])
    assert model.outcomes_at(short, np.full(3, most)).tolist() == [1, 0, 2]
    long = np.array([[0.25, 0.75 + 1e-12, 0.0], [0.5, 0.5, 1e-12]])
    assert model.outcomes_at(long, np.full(2, most)).tolist() == [1, 1]
    assert model.outcomes_at(short, np.zeros(3)).tolist() == [0, 0, 0]


def test_fit_is_all_or_nothing():
    model = FailingClassifier(METRIC)
    before = dict(vars(model))
    with pytest.raises(RuntimeError, match="no"):
        model.fit(X, Y)
    assert vars(model) == before


@pytest.mark.parametrize(
    ("weights", "message"),
    [(np.ones(3), "one weight per row"), (-np.ones(120), "must be non-negative"), (np.zeros(120), "not zero for all")],
)
def test_bad_sample_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        ConstantClassifier(METRIC).fit(X, Y, sample_weight=weights)


def test_a_number_stands_for_a_class_by_the_cumulated_probabilities():
    """Half-open intervals: a uniform number in [0, 1) never stands for a class of probability 0."""
    model = ConstantClassifier(METRIC).fit(X, np.arange(120) % 3)
    law = np.array([[0.25, 0.0, 0.75]] * 5)
    assert model.outcomes_at(law, np.array([0.0, np.nextafter(0.25, 0), 0.25, 0.5, 0.999])).tolist() == [0, 0, 2, 2, 2]
    assert model.outcomes_at(np.array([[0.0, 0.0, 1.0]]), np.zeros(1)).tolist() == [2]
    assert model.outcomes_at(np.array([[0.0, 1.0, 0.0]]), np.array([0.999])).tolist() == [1]


def test_seeds_have_too_many_bits_to_be_found_by_trying():
    seeds = [seed_from(k) for k in range(200)]
    assert len(set(seeds)) == 200
    # Of 128 fair bits; each of the top ones is 1 for some seed and 0 for another (2^-199 otherwise).
    for bit in range(128):
        assert {seed >> bit & 1 for seed in seeds} == {0, 1}
    assert seed_from(7) == seed_from(7)


@pytest.mark.parametrize("n", [6, 7, 8, 13, 14, 15, 16])
@pytest.mark.parametrize("kind", ["additive", "projected", "smoothed", "numbers"])
def test_everyone_is_scored_at_the_ends_of_blocks_too(monkeypatch, kind, n):
    """Blocks of 7 people in place of 16,384: nobody is left out, twice there, or in another's place."""
    model = {
        "additive": AdditiveClassifier(METRIC, penalty=0.01),
        "projected": ProjectedClassifier(LogisticRegression(), metric=METRIC, random_state=0),
        "smoothed": SmoothedClassifier(LogisticRegression(), metric=METRIC, n_draws=20, random_state=0),
        "numbers": AdditiveRegressor(METRIC, penalty=0.01, output_range=(0, 1)),
    }[kind].fit(X, Y)
    ask = model.predict if kind == "numbers" else model.predict_proba
    people = RNG.normal(size=(n, 3))
    alone = np.concatenate([ask(row[None]) for row in people])
    monkeypatch.setattr(base, "BLOCK", 7)
    monkeypatch.setattr(projected, "BLOCK", 7)
    np.testing.assert_array_equal(ask(people), alone)


def test_the_last_person_of_a_block_of_16384_is_scored_as_alone():
    model = AdditiveClassifier(METRIC, penalty=0.01).fit(X, Y)
    people = np.random.default_rng(1).normal(size=(2 * base.BLOCK + 1, 3))
    ends = [0, base.BLOCK - 1, base.BLOCK, 2 * base.BLOCK - 1, 2 * base.BLOCK]
    scores = model.predict_proba(people)
    assert len(scores) == len(people)
    np.testing.assert_array_equal(scores[ends], np.concatenate([model.predict_proba(people[[i]]) for i in ends]))
    assert len(np.unique(scores[ends, 1])) == 5
