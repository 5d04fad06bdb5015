"""A metric is bound to the columns of X as they were given, whoever is asked in whatever order afterwards."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    FunctionMetric,
    LipschitzClassifier,
    MahalanobisMetric,
    ProjectedClassifier,
    RecalibratedClassifier,
    SmoothedClassifier,
    TableMetric,
    WeightedLp,
    attack,
)
from likewise.exceptions import FileError, InvalidInputError
from likewise.io import load_model, save_model

pytestmark = pytest.mark.filterwarnings("ignore")

SCALES = np.array([0.0, 0.3])  # of the columns of X as they are given, `b` and `a`


def weighted(A, B):
    return np.abs((np.asarray(A) - np.asarray(B)) * SCALES).sum(axis=1)


def by_position(A, B):
    return weighted(A.iloc[:, :2], B.iloc[:, :2])


METRICS = {
    "weighted": WeightedLp(SCALES),
    "mahalanobis": MahalanobisMetric([SCALES]),
    "function": FunctionMetric(weighted),
    "function of tables": FunctionMetric(by_position, takes_tables=True),
}


def people(n=120, seed=0, names=("b", "a")):
    X = pd.DataFrame(np.random.default_rng(seed).random((n, 2)).round(2), columns=list(names))
    return X, (X.iloc[:, 0] + 0.5 * X.iloc[:, 1] > 0.75).astype(int)


def true_distances(X):
    rows = np.asarray(X, dtype=float)
    return np.abs((rows[:, None] - rows) * SCALES).sum(axis=-1)


def excess(model, asked, distances):
    scores = model.predict_proba(asked)[:, 1]
    return float((np.abs(scores[:, None] - scores) - model.guarantee_.bound(distances)).max())


def frozen():
    """Fitted to the columns in another order than those of X."""
    X, y = people()
    return FrozenEstimator(LogisticRegression(C=100).fit(X[["a", "b"]], y))


KINDS = {
    "smoothed": lambda metric, inner: SmoothedClassifier(inner, metric=metric, vote="hard", random_state=0),
    "sampled": lambda metric, inner: SmoothedClassifier(inner, metric=metric, n_draws=50, random_state=0),
    "projected": lambda metric, inner: ProjectedClassifier(inner, metric=metric, random_state=0),
    "network": lambda metric, inner: LipschitzClassifier(metric, n_steps=50, random_state=0),
}
# A Mahalanobis distance has no formula under smoothing, and takes many draws without `n_draws`.
POSSIBLE = [(kind, metric) for kind in KINDS for metric in ("weighted", "mahalanobis")]
POSSIBLE.remove(("smoothed", "mahalanobis"))
POSSIBLE += [("projected", "function"), ("projected", "function of tables")]


@pytest.mark.parametrize("kind", ["smoothed", "projected"])
def test_a_frozen_model_is_asked_in_its_own_order(kind):
    X, y = people()
    loose = [
        KINDS[kind](WeightedLp(scales), frozen()).fit(table, y)
        for scales, table in (([9.0, 5.0], X), ([5.0, 9.0], X[["a", "b"]]))
    ]
    np.testing.assert_allclose(loose[0].predict_proba(X), loose[1].predict_proba(X), rtol=0, atol=1e-9)
    wrapped = RecalibratedClassifier(KINDS[kind](WeightedLp([9.0, 5.0]), frozen()), random_state=0).fit(X, y)
    np.testing.assert_allclose(wrapped.estimator_.predict_proba(X), loose[0].predict_proba(X), rtol=0, atol=1e-9)
    with pytest.raises(InvalidInputError, match=r"fitted to the columns of X, .*'x'"):
        KINDS[kind](WeightedLp([9.0, 5.0]), frozen()).fit(X.rename(columns={"a": "x"}), y)


NAMED = {
    "weighted": WeightedLp({"b": 0.0, "a": 0.3}),
    "mahalanobis": MahalanobisMetric([SCALES], feature_names=["b", "a"]),
    "function": FunctionMetric(weighted, feature_names=["b", "a"]),
}


def test_names_in_another_order_than_the_columns():
    X, y = people(names=("b", "a"))
    metric = MahalanobisMetric([[0.3, 0.0]], feature_names=["a", "b"])
    model = KINDS["projected"](metric, LogisticRegression(C=100)).fit(X, y)
    assert excess(model, X.to_numpy(), true_distances(X)) <= 1e-9
    assert model.guarantee_.bound_metric.is_of(metric)
    with pytest.raises(InvalidInputError, match="in this order"):
        KINDS["projected"](NAMED["function"], LogisticRegression()).fit(X[["a", "b"]], y)


def test_integer_names():
    X, y = people(names=(1, 0))
    for metric in ("weighted", "mahalanobis", "function"):
        model = KINDS["projected"](METRICS[metric], LogisticRegression(C=100)).fit(X, y)
        for asked in (X, X[[0, 1]], X.to_numpy()):
            assert excess(model, asked, true_distances(X)) <= 1e-9
            np.testing.assert_allclose(model.guarantee_.metric.pairwise(asked), true_distances(X), rtol=0, atol=1e-12)
    inner = FrozenEstimator(AdditiveClassifier(WeightedLp([0.3, 9.0])).fit(X[[0, 1]], y))
    turned = KINDS["projected"](WeightedLp([9.0, 9.0]), inner).fit(X, y)
    assert np.abs(turned.predict_proba(X)[:, 1] - inner.predict_proba(X)[:, 1]).mean() < 0.05


def test_mahalanobis_weights_hold_for_scaled_and_turned_encoders_only():
    rng = np.random.default_rng(0)
    X = rng.random((30, 3))
    for p, components in ((2, rng.normal(size=(4, 3))), (2, [[1.0, 2.0, 0.0]]), (1, rng.normal(size=(2, 3)))):
        metric = MahalanobisMetric(components, p, feature_names=["a", "b", "c"])
        rows = metric.encode_rows(X)
        for factor in (1 / 3, 7.0):
            there = metric.scaled(factor).bind(rows.encoder).pairwise(rows.rows, rows.rows)
            np.testing.assert_allclose(there, metric.scaled(factor).pairwise(X), rtol=0, atol=1e-12)
        other = np.array(metric.components)
        other[0, 0] *= 1 + 1e-6
        with pytest.raises(InvalidInputError, match="weighs directions"):
            metric.with_params(components=other).bind(rows.encoder)


# -- orders of categories ----------------------------------------------------------------------------------------------

ORDERS = {
    "text": ["low", "middle", "high"],
    "numbers": [10, 2, 7],
    "intervals": list(pd.interval_range(0, 3, periods=3)),
    "cut": list(pd.cut(pd.Series(np.linspace(0, 1, 20)), 3).cat.categories),
    "dates": list(pd.date_range("2020-01-01", periods=3)),
    "periods": list(pd.period_range("2020", periods=3, freq="Y")),
    "tuples": [(0, "x"), (1, "y"), (2, "z")],
    "decimals": [Decimal("0.3"), Decimal("0.1"), Decimal("0.2")],
    "many": [f"c{i}" for i in range(700)],
}
GRADE = TableMetric({"grade": 0.3})


def graded(order, n=300):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, n)
    y = (codes + rng.normal(0, 0.3, n) > 1).astype(int)
    places = np.array([0, 1, len(order) - 1]) if len(order) < 10 else np.array([0, 1, 2])
    return pd.DataFrame({"grade": pd.Categorical.from_codes(places[codes], categories=order, ordered=True)}), y


def two_of(order):
    """The first and the third category, next to each other in the order of their own dtype."""
    ends = [order[0], order[2]]
    return pd.DataFrame({"grade": pd.Categorical(ends, categories=ends, ordered=True)})


def check_order_of(model, order):
    far = 0.3 * 2
    two = two_of(order)
    np.testing.assert_allclose(model.guarantee_.metric.pairwise(two)[0, 1], far, rtol=1e-12)
    assert 0.2 < np.ptp(model.predict_proba(two)[:, 1]) <= far  # the control: more than one step
    assert excess(model, two, model.guarantee_.metric.pairwise(two)) <= 1e-9


@pytest.mark.parametrize("kind", ORDERS)
def test_every_kind_of_ordered_category_is_learned(kind, tmp_path):
    order = ORDERS[kind]
    X, y = graded(order)
    model = AdditiveClassifier(GRADE, penalty=1e-3).fit(X, y)
    check_order_of(model, order)
    assert model.guarantee_.bound_metric.is_of(GRADE)
    check_order_of(RecalibratedClassifier(AdditiveClassifier(GRADE, penalty=1e-3), random_state=0).fit(X, y), order)
    try:
        save_model(model, tmp_path / "model.skops")
    except FileError as error:
        assert kind in ("intervals", "cut", "dates", "periods", "decimals")
        assert "text or numbers as categories" in str(error)  # noqa: PT017
    else:
        check_order_of(load_model(tmp_path / "model.skops"), order)


@pytest.mark.parametrize("kind", ["numbers", "intervals", "dates"])
def test_models_are_asked_with_the_categories_of_the_table(kind):
    X, y = graded(ORDERS[kind])
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["grade"]))
    inner = FrozenEstimator(make_pipeline(encode, LogisticRegression()).fit(X, y))
    smoothed = SmoothedClassifier(inner, metric=GRADE, n_draws=100, random_state=0)
    for model in (smoothed, RecalibratedClassifier(smoothed, random_state=0)):
        assert np.ptp(model.fit(X, y).predict_proba(two_of(ORDERS[kind]))[:, 1]) > 0.2


def test_categories_without_a_text_of_their_own_are_refused():
    class Thing:
        pass

    X, y = graded([Thing(), Thing(), Thing()])
    with pytest.raises(InvalidInputError, match="ordered categories that are text, numbers, dates or intervals"):
        AdditiveClassifier(GRADE).fit(X, y)


# -- what scores depend on, and bases ----------------------------------------------------------------------------------


def lengths(A, B):
    return 0.3 * np.abs(A["g"].str.len().to_numpy() - B["g"].str.len().to_numpy())


def test_equal_visible_rows_have_equal_scores():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"g": rng.choice(["x", "yy", "zzz"], 200)})
    y = (X["g"] == "x").astype(int)
    inner = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    function = ProjectedClassifier(inner, metric=FunctionMetric(lengths, takes_tables=True), random_state=0).fit(X, y)
    metric = TableMetric({"a": 0.01}, {"g": 0.7})
    many = pd.DataFrame({"a": rng.random(400), "g": rng.choice(list("xyzw"), 400)})
    card = AdditiveClassifier(metric, penalty=1e-3).fit(many, many["g"].isin(["z"]).astype(int))
    few = many[many["g"].isin(["x", "y"])]
    base = ProjectedClassifier(lambda T: np.full(len(T), 0.5), metric=metric, base=FrozenEstimator(card))
    base.fit(few, (few["g"] == "x").astype(int))
    for model, asked in (
        (function, pd.DataFrame({"g": ["q", "qq", "qqqq"]})),
        (base, pd.DataFrame({"a": 0.5, "g": ["z", "w", "w"]})),
    ):
        seen, scores = model.visible_rows(asked), model.predict_proba(asked)[:, 1]
        assert np.ptp(scores) > 0.1  # the control: unseen categories have other scores
        equal = (seen[:, None] == seen).all(axis=-1)
        assert np.abs(scores[:, None] - scores)[equal].max() == 0
        assert equal.sum() < equal.size


def test_a_frozen_base_has_the_classes_of_the_model():
    X, y = people()
    metric = WeightedLp([0.3, 0.3])
    texts = FrozenEstimator(AdditiveClassifier(metric).fit(X, np.where(y, "yes", "no")))
    with pytest.raises(InvalidInputError, match=r"base must .*classes \[0, 1\]; it has classes \['no', 'yes'\]"):
        ProjectedClassifier(LogisticRegression(), metric=metric, base=texts).fit(X, y)
    numbers = FrozenEstimator(AdditiveRegressor(metric, output_range=(0, 1)).fit(X, y))
    with pytest.raises(InvalidInputError, match="it has numbers"):
        ProjectedClassifier(LogisticRegression(), metric=metric, base=numbers).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"\['no', 'yes'\]; got \[0, 1\]"):
        SmoothedClassifier(texts, metric=metric).fit(X, y)


def test_a_teacher_is_asked_in_its_own_order():
    X, y = people()
    metric = WeightedLp([9.0, 9.0])
    here, turned = (
        AdditiveClassifier(metric, penalty=1e-3, teacher=LogisticRegression(C=100).fit(table, y)).fit(X, y)
        for table in (X, X[["a", "b"]])
    )
    np.testing.assert_allclose(turned.predict_proba(X), here.predict_proba(X), rtol=0, atol=0.01)


def test_a_base_in_another_order_is_refused():
    X, y = people()
    metric = WeightedLp({"a": 0.3, "b": 0.3})
    base = FrozenEstimator(AdditiveClassifier(metric).fit(X[["a", "b"]], y))
    with pytest.raises(InvalidInputError, match=r"base must have the columns of X, .*, in this order"):
        ProjectedClassifier(LogisticRegression(), metric=metric, base=base).fit(X, y)


def test_a_guarantee_is_about_the_metric_that_was_given():
    X, y = people()
    for metric in (WeightedLp({"a": 0.4, "b": 0.0}), WeightedLp([0.0, 0.4]), TableMetric({"a": 0.4, "b": 0.0})):
        model = AdditiveClassifier(metric, penalty=1e-3).fit(X, y)
        assert model.guarantee_.bound_metric.is_of(metric)
        assert attack(model, metric, X, n_pairs=1000).guarantee is not None
        assert not model.guarantee_.bound_metric.is_of(metric.scaled(1.1))
        assert not model.guarantee_.bound_metric.is_of(WeightedLp({"a": 0.0, "b": 0.4}))
    ordered = TableMetric({"grade": 0.1}, order={"grade": ["low", "high"]})
    bound = ordered.bind(ordered.encoder(pd.DataFrame({"grade": ["low", "high"]})))
    assert bound.is_of(TableMetric({"grade": 0.1}))
    assert not bound.is_of(TableMetric({"grade": 0.1}, order={"grade": ["high", "low"]}))
