"""Everything that can meet: estimators that promise, wrappers, ways to a model, metrics, and forms of a table.

A *cell* is one of each. `tests/property` tries one property on cells that together hold every pair of features
(`covering`), every triple in `make test-all`, and random ones in `make fuzz`. A new feature is one entry here.
"""

import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import likewise as lw
from oracle import Described

# -- people ------------------------------------------------------------------------------------------------------------

GRADES = ["low", "middle", "high", "top"]
BANDS = pd.IntervalIndex.from_breaks([0, 10, 20, 40, 90])
JOBS = ["clerk", "teacher", "farmer", "smith"]
NUMBERS, CATEGORIES = ("age", "income", "grade", "band"), ("job", "code", "member", "race")


def people(n, seed):
    """People as values that somebody would say; every column that a metric of the catalogue can name."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "income": (rng.integers(0, 80, n) / 4),
            "wealth": rng.integers(-40, 40, n) / 2,
            "grade": pd.Categorical(rng.choice(GRADES, n), categories=GRADES, ordered=True),
            "band": pd.Categorical(BANDS[rng.integers(0, 4, n)], categories=BANDS, ordered=True),
            "job": rng.choice(JOBS, n).astype(object),
            "code": rng.choice([2, 7, 30], n),
            "member": rng.random(n) < 0.5,
            "race": rng.choice(["x", "y"], n).astype(object),
        }
    )


def outcomes(table, kind, seed):
    """Outcomes that depend on every column, the hidden ones included, more than any metric here allows."""
    rng = np.random.default_rng(seed)
    score = sum(_steep(table[name]) for name in table.columns) + rng.normal(scale=0.3, size=len(table))
    if kind == "number":
        return np.tanh(score)
    cuts = [0.0] if kind == "two" else [-0.7, 0.7]
    return np.array(["no", "maybe", "yes"])[np.digitize(score, cuts) * (2 if kind == "two" else 1)]


def _steep(column):
    """Standardised ranks of a column, whatever it holds; blanks count as its largest value."""
    codes = pd.factorize(column.astype(object).where(column.notna(), None).map(str), sort=True)[0]
    if pd.api.types.is_numeric_dtype(column) and column.dtype != bool:
        codes = column.fillna(column.max()).to_numpy(dtype=float)
    spread = np.std(codes)
    return (codes - np.mean(codes)) / (spread if spread else 1.0)


class Jagged(BaseEstimator):
    """A model that jumps everywhere and reads every column that it was fitted to, by name, or by position."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.array(X.columns, dtype=object)
        return self

    def waves(self, X):
        if hasattr(X, "columns"):
            assert list(X.columns) == list(self.feature_names_in_), "asked in another order than it was fitted to"
            columns = {name: X[name] for name in X.columns}
        else:
            names = getattr(self, "feature_names_in_", range(X.shape[1]))
            columns = {name: pd.Series(np.asarray(X)[:, i]) for i, name in enumerate(names)}
        total = np.zeros(len(X))
        for name, column in sorted(columns.items(), key=lambda item: str(item[0])):
            total += _wave(str(name), column)
        return total


class JaggedClassifier(ClassifierMixin, Jagged):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return super().fit(X, y)

    def predict_proba(self, X):
        chosen = np.floor(self.waves(X)).astype(int) % len(self.classes_)
        return 0.02 / len(self.classes_) + 0.98 * np.eye(len(self.classes_))[chosen]

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class StepClassifier(JaggedClassifier):
    """A model that reads one column, and tells blanks and large values from small ones: no noise can hide less."""

    def __init__(self, column="income"):
        self.column = column

    def waves(self, X):
        frame = X if hasattr(X, "columns") else pd.DataFrame(X, columns=getattr(self, "feature_names_in_", THREE))
        column = frame[self.column] if self.column in frame.columns else frame.iloc[:, -1]
        if not pd.api.types.is_numeric_dtype(column):
            codes, values = pd.factorize(column)
            return np.array([*(float(sum(map(ord, str(value))) % 2) for value in values), 1.0])[codes]
        values = column.to_numpy(dtype=float, na_value=np.nan)
        return (np.isnan(values) | (values > 10)).astype(float)


class JaggedRegressor(RegressorMixin, Jagged):
    def predict(self, X):
        return np.where(np.floor(self.waves(X)) % 2 > 0, 0.9, -0.9)


def _wave(name, column):
    seed = sum(map(ord, name)) % 7 + 1
    if name in ("age", "income", "wealth") and column.dtype == object:  # decimals, or text
        column = column.map(lambda value: np.nan if pd.isna(value) else float(value)).astype(float)
    if pd.api.types.is_numeric_dtype(column) and column.dtype != bool and name not in CATEGORIES:
        values = column.to_numpy(dtype=float, na_value=np.nan)
        return np.where(np.isnan(values), seed / 3, np.floor(values * seed / 9) % 2 + seed / 5)
    codes, values = pd.factorize(column, use_na_sentinel=True)
    return np.array([*((seed * sum(map(ord, str(value)))) % 5 / 2 for value in values), 0.7])[codes]


# -- metrics -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MetricEntry:
    """A description of a distance; the columns of its people in the order of their table; which may be blank.

    `codes` are special codes, by the column that holds them.
    """

    make: Callable
    columns: tuple
    blanks: tuple = ()
    ranks: dict = field(default_factory=dict)
    codes: dict = field(default_factory=dict)

    @property
    def is_array(self):
        """Whether people are rows of numbers."""
        return set(self.columns) <= {"age", "income", "wealth"}


def _file(metric):
    """The same metric through a metric file."""
    with tempfile.TemporaryDirectory() as place:
        lw.write_metric(metric, Path(place) / "metric.toml")
        return lw.read_metric(Path(place) / "metric.toml")


THREE = ("income", "wealth", "age")
TABLE = ("race", "job", "age", "code", "income", "member")
SHAPED = ("job", "grade", "age", "code", "race")
_numeric, _mismatch = {"age": 0.01, "income": 0.03}, {"job": 0.1, "code": 0.15, "member": 0.05, "race": 0}
_groups = {"job": {"within": 0.25, "groups": [["clerk", "teacher"], ["farmer"], ["smith"]]}}
_matrix = {"code": {2: {7: 1, 30: 3}, 7: {30: 2}}}


def _lifted(A, B):
    """A distance of tables that reads columns by name: L1 of two columns, one of them in steps of its own."""
    return 0.02 * np.abs(A["age"].to_numpy(float) - B["age"].to_numpy(float)) + 0.1 * (
        A["job"].to_numpy() != B["job"].to_numpy()
    )


def _weighted_rows(A, B):
    """A distance of arrays, by position."""
    return np.abs(np.asarray(A, float) - np.asarray(B, float)) @ np.array([0.05, 0.0, 0.01])


def _map(names=None, p=2):
    return lw.MahalanobisMetric([[0.04, 0.0, 0.01], [0.0, 0.0, 0.02]], p, feature_names=names)


METRICS = {
    "named": MetricEntry(lambda: lw.WeightedLp({"income": 0.05, "wealth": 0, "age": 0.01}), THREE),
    "named, other order": MetricEntry(lambda: lw.WeightedLp({"wealth": 0, "age": 0.01, "income": 0.05}), THREE),
    "unnamed": MetricEntry(lambda: lw.WeightedLp([0.05, 0, 0.01]), THREE),
    "p = 2": MetricEntry(lambda: lw.WeightedLp({"wealth": 0, "age": 1e-4, "income": 0.0025}, 2), THREE),
    "p = 2, unnamed": MetricEntry(lambda: lw.WeightedLp([0.0025, 0, 1e-4], 2), THREE),
    "p = inf": MetricEntry(lambda: lw.WeightedLp({"age": 0.01, "income": 0.05, "wealth": 0.004}, np.inf), THREE),
    "Mahalanobis": MetricEntry(lambda: _map(["income", "wealth", "age"]), THREE),
    "Mahalanobis, unnamed": MetricEntry(_map, THREE),
    "function": MetricEntry(lambda: lw.FunctionMetric(_weighted_rows), THREE),
    "function of tables": MetricEntry(lambda: lw.FunctionMetric(_lifted, takes_tables=True), ("job", "age")),
    "numbers of a table": MetricEntry(lambda: lw.TableMetric({"wealth": 0, "age": 0.01, "income": 0.05}), THREE),
    "table": MetricEntry(lambda: lw.TableMetric(_numeric, _mismatch), TABLE),
    "categories only": MetricEntry(lambda: lw.TableMetric({"age": 0}, _mismatch), ("job", "race", "code", "member")),
    "blanks weigh 1": MetricEntry(
        lambda: lw.TableMetric(_numeric, _mismatch, missing="category"), TABLE, ("age", "income", "job", "race")
    ),
    "blanks of numbers alone": MetricEntry(
        lambda: lw.TableMetric(_numeric, {"race": 0}, missing={"income": 1.0}), ("race", "age", "income"), ("income",)
    ),
    "blanks weigh little": MetricEntry(
        lambda: lw.TableMetric(_numeric, _mismatch, missing={"income": 0.12}), TABLE, ("income", "job")
    ),
    "blanks without a weight": MetricEntry(
        lambda: lw.TableMetric(_numeric | {"wealth": 0}, _mismatch, missing={"wealth": 0.5}),
        ("wealth", *TABLE),
        ("wealth", "race"),
    ),
    "order given": MetricEntry(
        lambda: lw.TableMetric(
            {"grade": 0.07, "age": 0.01}, {"job": 0.1, "code": 0.1, "race": 0}, order={"grade": GRADES}
        ),
        SHAPED,
        ranks={"grade": GRADES},
    ),
    "order of the table": MetricEntry(
        lambda: lw.TableMetric({"age": 0.01, "grade": 0.07}, {"job": 0.1, "code": 0.1, "race": 0}),
        SHAPED,
        ranks={"grade": GRADES},
    ),
    "order with blanks": MetricEntry(
        lambda: lw.TableMetric({"grade": 0.07, "age": 0.01}, {"race": 0}, missing={"grade": 0.15}),
        ("race", "grade", "age"),
        ("grade",),
        ranks={"grade": GRADES},
    ),
    "intervals of the table": MetricEntry(
        lambda: lw.TableMetric({"band": 0.07, "age": 0.01}, {"race": 0}),
        ("race", "age", "band"),
        ranks={"band": list(BANDS)},
    ),
    "groups": MetricEntry(
        lambda: lw.TableMetric({"age": 0.01}, {"job": 0.2, "code": 0.1, "race": 0}, groups=_groups),
        ("age", "code", "job", "race"),
        ("job",),
    ),
    "distances": MetricEntry(
        lambda: lw.TableMetric({"age": 0.01}, {"job": 0.1, "code": 0.3, "race": 0}, distances=_matrix),
        ("race", "code", "job", "age"),
        ("code",),
    ),
    "order, groups, distances": MetricEntry(
        lambda: lw.TableMetric(
            {"grade": 0.05, "age": 0.01},
            {"job": 0.2, "code": 0.2, "race": 0},
            order={"grade": GRADES},
            groups=_groups,
            distances=_matrix,
            missing={"age": 0.3},
        ),
        SHAPED,
        ("age",),
        ranks={"grade": GRADES},
    ),
    "scaled and capped": MetricEntry(
        lambda: lw.TableMetric(_numeric, {"job": 0.5, "code": 0.3, "member": 0.05, "race": 0}, groups=_groups).scaled(
            3
        ),
        TABLE,
    ),
    "rounded": MetricEntry(
        lambda: lw.TableMetric(
            {"age": 0.01234, "income": 0.0321}, {"job": 0.1234, "code": 0.1, "member": 0.0567, "race": 0}
        ).rounded(),
        TABLE,
    ),
    "odds": MetricEntry(
        lambda: lw.TableMetric.from_odds(
            {"age": (0.05, 1), "income": (0.2, 2)}, {"job": 0.5, "code": 0.4, "member": 0.1, "race": 0}
        ),
        TABLE,
    ),
    "file": MetricEntry(
        lambda: _file(
            lw.TableMetric(
                {"grade": 0.05, "age": 0.01},
                {"job": 0.2, "code": 0.2, "race": 0},
                order={"grade": GRADES},
                groups=_groups,
                missing={"age": 0.3},
            )
        ),
        SHAPED,
        ("age",),
        ranks={"grade": GRADES},
    ),
}

_codes = {"income": {-9: 0.3, 7.5: 0.2, -8: 0.05}}
METRICS |= {
    "special codes": MetricEntry(
        lambda: lw.TableMetric(_numeric, _mismatch, special=_codes | {"age": {-1: 1.0}}),
        TABLE,
        codes={"income": [*_codes["income"]], "age": [-1]},
    ),
    "special codes and blanks, from a file": MetricEntry(
        lambda: _file(
            lw.TableMetric(
                _numeric | {"grade": 0.05},
                {"job": 0.2, "race": 0},
                order={"grade": GRADES},
                groups=_groups,
                missing={"income": 0.1},
                special=_codes,
            ).scaled(1.5)
        ),
        ("race", "grade", "job", "income", "age"),
        ("income",),
        ranks={"grade": GRADES},
        codes={"income": [*_codes["income"]]},
    ),
}

LINEAR_MAPS, FUNCTIONS = ("Mahalanobis", "Mahalanobis, unnamed"), ("function", "function of tables")
SPECIAL = ("special codes", "special codes and blanks, from a file")
MATRICES = ("groups", "distances", "order, groups, distances", "scaled and capped", "file", *SPECIAL)
BY_POSITION = ("unnamed", "p = 2, unnamed", "Mahalanobis, unnamed", *FUNCTIONS)
FROM_DTYPE = ("order of the table", "order with blanks", "intervals of the table")

# -- forms of a table that must not matter -----------------------------------------------------------------------------


def _each(frame, names, change):
    return frame.assign(**{name: change(frame[name]) for name in frame.columns if name in names})


def _as_text(column, written=str):
    return column.astype(object).map(written, na_action="ignore").astype(object).where(column.notna(), None)


def _whole_as_float(value):
    return f"{value}.0" if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else str(value)


def _several_types(column):
    """Every second value as text, in a column of objects."""
    values = column.astype(object)
    return values.where(np.arange(len(column)) % 2 == 0, _as_text(column))


def _type_per_value(column):
    """Every second category as text, in a column of objects: a model that was fitted to it knows each in one way."""
    as_text = column.isin(sorted(column.dropna().unique().tolist())[::2])
    return column.astype(object).where(~as_text, _as_text(column))


def _levels(column, further=(), ordered=False):
    known = sorted(column.dropna().unique().tolist(), key=str)
    return pd.Series(pd.Categorical(column, [*known[::-1], *further], ordered=ordered), index=column.index)


def _hidden_garbage(frame, entry):
    """Other values, of the same kind, in the columns that must not matter."""

    def other(column):
        return pd.Series(-1234.5 if column.name in ("age", "wealth") else "?", index=frame.index)

    return _each(frame, hidden(entry), other)


def _polars(frame, entry):
    import polars as pl

    # Intervals and mixed objects have no counterpart; orders of pandas do not survive.
    return pl.from_pandas(_plain(frame, entry))


def _plain(frame, entry):
    return _each(frame, ("grade", "band"), _as_text)


def _pyarrow(frame, entry):
    import pyarrow as pa

    return pa.Table.from_pandas(_plain(frame, entry), preserve_index=False)


def _decimals(frame, entry):
    return _each(
        frame,
        ("age", "income", "wealth"),
        lambda c: c.astype(object).map(lambda v: Decimal(str(v)), na_action="ignore").astype(object),
    )


def hidden(entry):
    """Columns of weight 0 that a table may lack."""
    return list(getattr(entry.make(), "hidden", []))


FORMS = {
    "as it is": lambda frame, entry: frame,
    "columns reversed": lambda frame, entry: frame[list(frame.columns)[::-1]],
    "columns sorted": lambda frame, entry: frame[sorted(frame.columns)],
    "hidden columns dropped": lambda frame, entry: frame.drop(columns=hidden(entry), errors="ignore"),
    "hidden columns rewritten": _hidden_garbage,
    "whole numbers as floats": lambda frame, entry: _each(frame, ("age", "code"), lambda c: c.astype(float)),
    "nullable dtypes": lambda frame, entry: _each(
        frame, [n for n in frame.columns if n not in ("grade", "band")], lambda c: c.convert_dtypes()
    ),
    "objects": lambda frame, entry: frame.astype(object).where(frame.notna(), None).astype(object),
    "objects with NaN": lambda frame, entry: frame.astype(object).where(frame.notna(), np.nan).astype(object),
    "objects with NA": lambda frame, entry: frame.astype(object).where(frame.notna(), pd.NA).astype(object),
    "decimals": _decimals,
    "all text": lambda frame, entry: _each(frame, list(frame.columns), _as_text),
    "codes as 2.0": lambda frame, entry: _each(frame, ("code",), lambda c: _as_text(c, _whole_as_float)),
    "codes of several types": lambda frame, entry: _each(frame, ("code",), _several_types),
    "a type per code": lambda frame, entry: _each(frame, ("code",), _type_per_value),
    "category dtype": lambda frame, entry: _each(frame, CATEGORIES, _levels),
    "ordered dtype": lambda frame, entry: _each(frame, CATEGORIES, lambda c: _levels(c, ordered=True)),
    "unused levels": lambda frame, entry: _each(frame, ("job", "race"), lambda c: _levels(c, ["zz", "never"])),
    "polars": _polars,
    "pyarrow": _pyarrow,
    "negative zero": lambda frame, entry: _each(
        frame, ("income", "wealth"), lambda c: c.astype(float).where(c != 0, -0.0)
    ),
    "other index": lambda frame, entry: frame.set_axis([f"p{i // 2}" for i in range(len(frame))]),
    "array": lambda frame, entry: frame[by_position(entry)].to_numpy(dtype=float),
    "one by one": lambda frame, entry: [frame.iloc[[i]] for i in range(len(frame))],
    "dask": lambda frame, entry: _dask(frame),
}


def _dask(frame):
    import dask.dataframe as dd

    return dd.from_pandas(frame, npartitions=3, sort=False)


def by_position(entry):
    """Columns of an array: those of a metric with names are in its order."""
    return list(getattr(entry.make(), "feature_names", None) or entry.columns)


ASKED_ONLY = ("one by one", "dask")
WITHOUT_DTYPES = ("objects", "objects with NaN", "objects with NA", "all text", "polars", "pyarrow")


def accepts(form, metric, *, given):
    """Whether a table of this form is one that the documentation accepts under a metric."""
    entry = METRICS[metric]
    if given and (form in ASKED_ONLY or (form in WITHOUT_DTYPES and metric in FROM_DTYPE)):
        return False
    if form == "array":
        return entry.is_array and metric != "numbers of a table"
    if metric == "function of tables":  # a function takes its table as it is
        return form in ("as it is", "columns reversed", "columns sorted", "other index", "one by one")
    if entry.is_array and form in ("hidden columns dropped", "hidden columns rewritten"):
        return metric == "numbers of a table"
    if entry.is_array and metric != "numbers of a table":
        # Rows of numbers are read by scikit-learn, which takes numbers only.
        return form not in ("all text", "decimals", "objects with NA", "codes as 2.0")
    return True


# -- models ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelEntry:
    """How to make an estimator for a metric: ``make(metric, X, y)`` with the training table as it is in memory."""

    make: Callable
    outcome: str = "two"
    promise: str | None = "line"
    refuses: tuple = ()
    arrays_only: bool = False
    tables_only: bool = False
    wraps: bool = True
    card: bool = False
    stranger: bool = False  # holds a class that a model file refuses


ADDITIVE = {"refuses": (*LINEAR_MAPS, *FUNCTIONS, "p = 2", "p = 2, unnamed", "p = inf"), "card": True}
SMOOTHED = {"refuses": (*FUNCTIONS, *MATRICES)}
SAMPLED = {"delta": 1e-9, "n_draws": 12000, "random_state": 0}


class StrictClassifier(JaggedClassifier):
    """A model that takes no category that it was not fitted to, nor another type or spelling of it."""

    def fit(self, X, y):
        self.known_ = {name: self.written(X[name]) for name in X.columns if name in CATEGORIES}
        return super().fit(X, y)

    def waves(self, X):
        for name in self.known_ if hasattr(X, "columns") else ():
            strange = self.written(X[name]) - self.known_[name]
            assert not strange, f"asked about {name!r} as {strange}, and fitted to {self.known_[name]}"
        return super().waves(X)

    @staticmethod
    def written(column):
        return {(type(value), value) for value in column.dropna().tolist()}


def _inner(X, y, *, reverse=False, kind=StrictClassifier):
    """A fitted stranger's model, perhaps on the columns in another order."""
    return FrozenEstimator(kind().fit(X[list(X.columns)[::-1]] if reverse else X, y))


def _pipeline(X, last):
    """Categories one-hot coded, ordered ones too; numbers as they are."""
    numbers = [name for name in X.columns if name in ("age", "income", "wealth")]
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(make_column_transformer(("passthrough", numbers), remainder=encode), last)


def _noise(kind):
    """Noise that was made for a metric, around a model of the column that must not matter."""
    return lambda metric, X, y: lw.SmoothedClassifier(
        StepClassifier("wealth"), noise=kind.for_metric(metric), **SAMPLED
    )


NOT_WEIGHTED_LP = tuple(
    name
    for name in METRICS
    if name not in ("named", "named, other order", "unnamed", "p = 2", "p = 2, unnamed", "p = inf")
)
NOT_L1 = ("p = 2", "p = 2, unnamed", "p = inf", *LINEAR_MAPS)

MODELS = {
    "additive": ModelEntry(lambda m, X, y: lw.AdditiveClassifier(m, max_knots=6), promise="logistic", **ADDITIVE),
    "additive, probit": ModelEntry(
        lambda m, X, y: lw.AdditiveClassifier(m, max_knots=6, link="probit"), promise="probit", **ADDITIVE
    ),
    "additive, clip": ModelEntry(lambda m, X, y: lw.AdditiveClassifier(m, max_knots=6, link="clip"), **ADDITIVE),
    "additive, three classes": ModelEntry(
        lambda m, X, y: lw.AdditiveClassifier(m, max_knots=6), "three", "logistic", wraps=False, **ADDITIVE
    ),
    "additive regression": ModelEntry(
        lambda m, X, y: lw.AdditiveRegressor(m, max_knots=6, output_range=(-2, 3)), "number", **ADDITIVE
    ),
    "additive, teacher": ModelEntry(
        lambda m, X, y: lw.AdditiveClassifier(m, max_knots=6, teacher=_inner(X, y)),
        promise="logistic",
        **ADDITIVE,
        stranger=True,
    ),
    "projected": ModelEntry(
        lambda m, X, y: lw.ProjectedClassifier(JaggedClassifier(), metric=m, random_state=0), stranger=True
    ),
    "projected, frozen": ModelEntry(
        lambda m, X, y: lw.ProjectedClassifier(_inner(X, y, reverse=True), metric=m, base=None, random_state=0),
        stranger=True,
    ),
    "projected, frozen base": ModelEntry(
        lambda m, X, y: lw.ProjectedClassifier(
            JaggedClassifier(), metric=m, base=FrozenEstimator(_base(m, X, y)), random_state=0
        ),
        refuses=(*ADDITIVE["refuses"],),
        stranger=True,
    ),
    "projected regression": ModelEntry(
        lambda m, X, y: lw.ProjectedRegressor(JaggedRegressor(), metric=m, output_range=(-1, 1), random_state=0),
        "number",
        stranger=True,
    ),
    "Gaussian": ModelEntry(
        lambda m, X, y: lw.SmoothedClassifier(StepClassifier(), metric=m, noise="gaussian", **SAMPLED),
        promise=None,
        **SMOOTHED,
        stranger=True,
    ),
    "Laplace, frozen": ModelEntry(
        lambda m, X, y: lw.SmoothedClassifier(_inner(X, y, reverse=True), metric=m, noise="laplace", **SAMPLED),
        promise=None,
        **SMOOTHED,
        stranger=True,
    ),
    "uniform, soft votes": ModelEntry(
        lambda m, X, y: lw.SmoothedClassifier(JaggedClassifier(), metric=m, noise="uniform", vote="soft", **SAMPLED),
        promise=None,
        **SMOOTHED,
        stranger=True,
    ),
    "splitting": ModelEntry(
        lambda m, X, y: lw.SmoothedClassifier(StepClassifier(), metric=m, noise="splitting", n_draws=150),
        promise=None,
        refuses=(*FUNCTIONS, *MATRICES, *NOT_L1),
        stranger=True,
    ),
    "splitting, frozen, three classes": ModelEntry(
        lambda m, X, y: lw.SmoothedClassifier(_inner(X, y, reverse=True), metric=m, noise="splitting", n_draws=150),
        "three",
        None,
        refuses=(*FUNCTIONS, *MATRICES, *NOT_L1),
        wraps=False,
        stranger=True,
    ),
    "smoothed regression": ModelEntry(
        lambda m, X, y: lw.SmoothedRegressor(
            JaggedRegressor(), metric=m, output_range=(-1, 1), noise="gaussian", **SAMPLED
        ),
        "number",
        None,
        **SMOOTHED,
        stranger=True,
    ),
    "smoothed tree": ModelEntry(
        lambda m, X, y: lw.SmoothedClassifier(
            DecisionTreeClassifier(max_depth=5, random_state=0), metric=m, random_state=0
        ),
        promise=None,
        arrays_only=True,
        refuses=(*FUNCTIONS, *NOT_L1),
    ),
    "smoothed logistic": ModelEntry(
        lambda m, X, y: lw.SmoothedClassifier(LogisticRegression(C=1e4, max_iter=2000), metric=m, random_state=0),
        promise=None,
        arrays_only=True,
        refuses=FUNCTIONS,
    ),
    "smoothed tree regression": ModelEntry(
        lambda m, X, y: lw.SmoothedRegressor(
            DecisionTreeRegressor(max_depth=5, random_state=0), metric=m, output_range=(-1, 1), random_state=0
        ),
        "number",
        None,
        arrays_only=True,
        refuses=(*FUNCTIONS, *NOT_L1),
    ),
    "Gaussian object": ModelEntry(_noise(lw.Gaussian), promise=None, refuses=NOT_WEIGHTED_LP, stranger=True),
    "Laplace object": ModelEntry(_noise(lw.Laplace), promise=None, refuses=NOT_WEIGHTED_LP, stranger=True),
    "uniform object": ModelEntry(_noise(lw.Uniform), promise=None, refuses=NOT_WEIGHTED_LP, stranger=True),
    "splitting object": ModelEntry(
        lambda m, X, y: lw.SmoothedClassifier(StepClassifier("wealth"), noise=lw.Splitting.for_metric(m), n_draws=150),
        promise=None,
        refuses=(*NOT_WEIGHTED_LP, *NOT_L1),
        stranger=True,
    ),
    "uniform object, tree": ModelEntry(
        lambda m, X, y: lw.SmoothedClassifier(
            DecisionTreeClassifier(max_depth=5, random_state=0), noise=lw.Uniform.for_metric(m), random_state=0
        ),
        promise=None,
        arrays_only=True,
        refuses=(*NOT_WEIGHTED_LP, *NOT_L1),
    ),
    "projected tree": ModelEntry(
        lambda m, X, y: lw.ProjectedClassifier(
            _pipeline(X, DecisionTreeClassifier(max_depth=5, random_state=0)), metric=m, random_state=0
        ),
        refuses=FUNCTIONS,
        tables_only=True,
    ),
    "splitting, tree of a table": ModelEntry(
        lambda m, X, y: lw.SmoothedClassifier(
            _pipeline(X, DecisionTreeClassifier(max_depth=5, random_state=0)), metric=m, noise="splitting", n_draws=150
        ),
        promise=None,
        refuses=(*FUNCTIONS, *MATRICES, *NOT_L1),
        tables_only=True,
    ),
    "constant": ModelEntry(lambda m, X, y: _constant(m), wraps=False),
}


def _base(metric, X, y):
    return lw.AdditiveClassifier(metric, max_knots=4).fit(X, y)


def _constant(metric):
    from likewise.dummy import ConstantClassifier

    return ConstantClassifier(metric)


def _has_torch():
    from importlib.util import find_spec

    return find_spec("torch") is not None


if _has_torch():
    _NETWORK = {"hidden_layer_sizes": (8,), "n_steps": 40, "random_state": 0}
    MODELS |= {
        "network": ModelEntry(
            lambda m, X, y: lw.LipschitzClassifier(m, **_NETWORK),
            promise="logistic",
            refuses=(*FUNCTIONS, *MATRICES),
        ),
        "network regression": ModelEntry(
            lambda m, X, y: lw.LipschitzRegressor(m, output_range=(-1, 1), **_NETWORK),
            "number",
            refuses=(*FUNCTIONS, *MATRICES),
        ),
    }

# -- what stands around a model, and how it came about -----------------------------------------------------------------

WRAPPERS = {
    "none": lambda model, X, y: model,
    "recalibrated": lambda model, X, y: lw.RecalibratedClassifier(model, cv=2, random_state=0),
    "recalibrated, sigmoid": lambda model, X, y: lw.RecalibratedClassifier(
        model, method="sigmoid", cv=2, random_state=0
    ),
    "threshold": lambda model, X, y: lw.ThresholdDecision(model, threshold=0.5, width=0.4),
    "threshold of a recalibrated one": lambda model, X, y: lw.ThresholdDecision(
        lw.RecalibratedClassifier(model, cv=2, random_state=0), threshold=0.5, width=0.3
    ),
    "frozen, recalibrated": lambda model, X, y: lw.RecalibratedClassifier(
        FrozenEstimator(model.fit(_turned(X), y)), cv=2, random_state=0
    ),
    "frozen, threshold": lambda model, X, y: lw.ThresholdDecision(
        FrozenEstimator(model.fit(X, y)), threshold=0.4, width=0.25, favourable="no"
    ),
}


def _turned(X):
    """The same people, with their columns in another order."""
    return X[list(X.columns)[::-1]]


def _saved(model, given, y):
    with tempfile.TemporaryDirectory() as place:
        lw.save_model(model.fit(given, y), Path(place) / "model.skops")
        return lw.load_model(Path(place) / "model.skops")


def _from_dask(model, given, y):
    import dask.dataframe as dd

    frame = given.reset_index(drop=True).assign(outcome_=y)
    return model.fit(dd.from_pandas(frame, npartitions=3, sort=False), "outcome_")


def _other_metric_first(model, given, y):
    """Fitted for a metric twice as loose, then for the metric of the cell."""
    metric = _innermost_metric(model)
    return model.with_metric(metric.scaled(2)).fit(given, y).with_metric(metric).fit(given, y)


def _innermost_metric(model):
    while getattr(model, "metric", None) is None:
        model = model.noise if hasattr(model, "noise") else model.estimator
    return model.metric


WAYS = {
    "fit": lambda model, given, y: model.fit(given, y),
    "saved and loaded": _saved,
    "pickled": lambda model, given, y: pickle.loads(pickle.dumps(clone(model).fit(given, y))),
    "with_metric": _other_metric_first,
    "JSON": lambda model, given, y: type(model).from_json(model.fit(given, y).to_json()),
    "whole points": lambda model, given, y: model.fit(given, y).in_points(points_to_double=4000),
    "Dask": _from_dask,
}


# -- cells -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One of each."""

    model: str
    wrapper: str
    way: str
    metric: str
    given: str
    asked: str

    def __str__(self):
        return " | ".join(vars(self).values())

    @property
    def is_possible(self):
        """Whether the documentation says that these meet."""
        model, entry = MODELS[self.model], METRICS[self.metric]
        if self.metric in model.refuses or (model.arrays_only and not entry.is_array):
            return False
        if model.tables_only and entry.is_array and self.metric != "numbers of a table":
            return False
        if not accepts(self.given, self.metric, given=True) or not accepts(self.asked, self.metric, given=False):
            return False
        if self.asked == "array" and self.given != "array" and self.metric not in ("named", "unnamed"):
            return False
        if self.wrapper != "none" and (not model.wraps or model.outcome != "two"):
            return False
        if self.model in ("splitting, tree of a table", "projected tree") and (
            self.given == "objects with NA" or (self.given == "nullable dtypes" and entry.blanks)
        ):
            return False  # scikit-learn refuses pd.NA among numbers or text
        if self.wrapper == "recalibrated, sigmoid" and model.promise != "logistic":
            return False
        if "frozen" in self.wrapper and "array" in (self.given, self.asked):
            return False  # an array goes by the columns of the table that the model inside was fitted to
        if self.wrapper == "frozen, recalibrated" and self.metric in FUNCTIONS:
            return False  # a function refuses another order than it was fitted to
        if (
            self.given == "array"
            and self.metric in BY_POSITION
            and self.asked in ("columns reversed", "columns sorted")
        ):
            return False  # nothing has names
        if self.model == "projected, frozen base" and self.wrapper == "frozen, recalibrated":
            return False  # a base has the columns of X in their order
        if self.model == "projected, frozen base" and self.given == "array" and by_position(entry) != [*entry.columns]:
            return False  # nor has an array in another order
        return self._way_is_possible(model)

    def _way_is_possible(self, model):
        if self.way == "with_metric" and self.model == "projected, frozen base":
            return False  # a base has the metric of its model
        if self.way in ("JSON", "saved and loaded") and self.metric == "intervals of the table":
            return False  # files hold no intervals
        if self.way in ("JSON", "whole points", "Dask"):
            if not model.card or self.wrapper != "none":
                return False
            if self.way == "Dask":
                return self.given in ("as it is", "columns reversed", "columns sorted", "other index", "category dtype")
            if self.way == "whole points":
                return model.promise == "logistic" and model.outcome == "two"
        return self.way != "saved and loaded" or not (model.stranger or self.metric in FUNCTIONS)


FACTORS = {
    "model": list(MODELS),
    "wrapper": list(WRAPPERS),
    "way": list(WAYS),
    "metric": list(METRICS),
    "given": [form for form in FORMS if form not in ASKED_ONLY],
    "asked": list(FORMS),
}


def covering(strength, seed=0, factors=FACTORS, make=Cell):
    """Cells that together hold every possible combination of `strength` features, and these combinations.

    Greedy: each cell is completed from a combination that is still wanted, the best of some at random. A combination
    that no possible cell holds is left out.
    """
    rng, names = np.random.default_rng(seed), list(factors)
    parts = list(combinations(names, strength))
    wanted = dict.fromkeys(
        tuple(zip(part, values, strict=True)) for part in parts for values in product(*(factors[name] for name in part))
    )
    if strength > 2:  # most of what is impossible is so because two features are
        fewer = covering(strength - 1, seed, factors, make)[1]
        wanted = {each: None for each in wanted if all(c in fewer for c in combinations(each, strength - 1))}
    cells, held = [], set()
    while wanted:
        combination = dict(next(iter(wanted)))
        first = _complete(combination, names, factors, make, rng, tries=150)
        if first is None:
            del wanted[next(iter(wanted))]
            continue
        others = [_complete(combination, names, factors, make, rng, tries=3) for _ in range(12 // strength)]
        options = [[tuple((n, getattr(c, n)) for n in part) for part in parts] for c in (first, *others) if c]
        best = max(options, key=lambda combinations: sum(each in wanted for each in combinations))
        cells.append(make(**dict(feature for each in best for feature in each)))
        for each in best:
            wanted.pop(each, None)
        held.update(best)
    return cells, held


def _complete(fixed, names, factors, make, rng, tries):
    """A possible cell with some features fixed and the others at random; None if none was found."""
    for _ in range(tries):
        chosen = {name: fixed.get(name) or factors[name][int(rng.random() * len(factors[name]))] for name in names}
        cell = make(**chosen)
        if cell.is_possible:
            return cell
    return None


@dataclass(frozen=True)
class Fitted:
    """A cell's model, the distance it is about, and the people in memory."""

    cell: Cell
    model: object
    described: Described


def training_table(metric, n=70, seed=1):
    entry = METRICS[metric]
    table = people(n, seed)[list(entry.columns)]
    for name, codes in entry.codes.items():
        drawn = np.random.default_rng(seed + 5).choice([np.nan, *codes], n, p=[0.7, *[0.3 / len(codes)] * len(codes)])
        table[name] = table[name].where(np.isnan(drawn), drawn).astype(table[name].dtype)
    return with_blanks(table, entry.blanks, seed)


def with_blanks(table, names, seed):
    rng = np.random.default_rng(seed)
    for name in names:
        absent = rng.random(len(table)) < 0.15
        column = table[name]
        table = table.assign(**{name: column.where(~absent, None) if is_text(column) else column.mask(absent)})
    return table


def is_text(column):
    return column.dtype == object or pd.api.types.is_string_dtype(column)


@lru_cache(maxsize=64)
def fit(cell_key):
    """Fit the model of a cell; `cell_key` is a cell whose `asked` does not matter."""
    cell = cell_key
    entry, model = METRICS[cell.metric], MODELS[cell.model]
    X = training_table(cell.metric)
    y = outcomes(X, model.outcome, 2)
    given = FORMS[cell.given](X, entry)
    frame = given if isinstance(given, pd.DataFrame) else X
    metric = entry.make()
    estimator = WRAPPERS[cell.wrapper](model.make(metric, frame, y), frame, y)
    fitted = WAYS[cell.way](estimator, given, y)
    columns = list(getattr(given, "column_names", getattr(given, "columns", by_position(entry))))
    if cell.wrapper == "frozen, recalibrated":
        columns = list(_turned(frame).columns)  # a metric goes by the table that the model inside was fitted to
    return Fitted(cell, fitted, Described(metric, columns, entry.ranks))


def strangers(metric, seed, n=14):
    """People to compare: some who were there, and their neighbours one column away, at levels, borders and far out."""
    entry, rng = METRICS[metric], np.random.default_rng(seed)
    seen = training_table(metric).iloc[rng.permutation(70)[:n]].reset_index(drop=True)
    rows = [seen]
    for name in entry.columns:
        moved = seen.iloc[rng.integers(n, size=4)].copy()
        values = _further(name, seen[name], name in entry.blanks) + 2 * entry.codes.get(name, [])
        moved[name] = _series(seen[name], [values[k] for k in rng.integers(len(values), size=4)], moved.index)
        rows.append(moved)
    return pd.concat(rows, ignore_index=True)


def _further(name, column, blank):
    known = column.dropna()
    if name in ("age", "income", "wealth"):
        x = float(known.iloc[0])
        values = [x + 1, x - 0.5, 0.0, 1e9, -1e9, float(known.max()) + 3, 1e-9]
        values = [float(round(v)) for v in values] if name == "age" else [*values, np.nextafter(x, np.inf)]
    elif name in ("grade", "band"):
        values = list(column.cat.categories)
    else:
        values = {"job": ["new", *JOBS], "code": [2, 7, 30, 31], "member": [True, False], "race": ["z", "x", "y"]}[name]
    return [*values, None] if blank else values


def _series(like, values, index):
    if isinstance(like.dtype, pd.CategoricalDtype):
        return pd.Series(pd.Categorical(values, dtype=like.dtype), index=index)
    if is_text(like):
        return pd.Series(values, index=index, dtype=like.dtype)
    return pd.Series([np.nan if value is None else value for value in values], index=index)


def ask(fitted, table, form):
    """Outputs of a model for people given in a form; shape (n_people, n_outputs)."""
    entry, model = METRICS[fitted.cell.metric], fitted.model
    given = FORMS[form](table, entry)
    if form == "array":
        given = table[fitted.described.columns].to_numpy(dtype=float)
    method = getattr(model, "predict_proba", None) or model.predict
    if form == "one by one":
        return np.concatenate([np.atleast_2d(np.asarray(method(row)).reshape(1, -1)) for row in given])
    values = method(given)
    values = values.compute() if hasattr(values, "compute") else values
    values = np.asarray(values, dtype=float)
    return values.reshape(len(table), -1)


def persons(table):
    """Rows as mappings from column to value; blanks are None."""
    return [
        {name: None if pd.api.types.is_scalar(value) and pd.isna(value) else value for name, value in row.items()}
        for row in table.astype(object).to_dict(orient="records")
    ]
