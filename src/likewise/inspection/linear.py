"""Linear models, with their preprocessing, as functions of raw columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn import linear_model
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVR, LinearSVR, NuSVR
from sklearn.utils.validation import check_is_fitted

from likewise._typing import FloatArray
from likewise.ask import answers, as_taken
from likewise.exceptions import UnprovableError
from likewise.inspection.preprocessing import RawColumn, sources_after, unwrap
from likewise.kernel.columns import canonical_category

# Exact types, since a subclass may predict differently. Log links, several outputs and kernels are excluded.
_REGRESSORS = {
    getattr(linear_model, name)
    for name in (
        *("ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "HuberRegressor", "Lars", "LarsCV", "Lasso"),
        *("LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "LinearRegression", "OrthogonalMatchingPursuit"),
        *("OrthogonalMatchingPursuitCV", "PassiveAggressiveRegressor", "QuantileRegressor", "Ridge", "RidgeCV"),
        *("SGDRegressor", "TheilSenRegressor", "TweedieRegressor"),
    )
    if hasattr(linear_model, name)
} | {LinearSVR, SVR, NuSVR}
_CLASSIFIERS = {
    linear_model.LogisticRegression,
    linear_model.LogisticRegressionCV,
    linear_model.SGDClassifier,
    LinearDiscriminantAnalysis,
}


@dataclass(frozen=True)
class Link:
    """Link from linear scores to outputs.

    Attributes
    ----------
    apply : callable
        From scores (n, n_scores) to outputs.
    slope : float
        Largest slope of an output in the score.
    change : callable
        Largest change of an output for a change of the score of a given size.
    everywhere : bool
        Whether both are attained at all scores; otherwise only if the scores can take every value.
    """

    apply: Callable[[FloatArray], FloatArray]
    slope: float
    change: Callable[[FloatArray], FloatArray]
    everywhere: bool


IDENTITY = Link(lambda scores: scores[:, 1], 1.0, lambda t: t, everywhere=True)
LOGISTIC = Link(lambda scores: softmax(scores, axis=1), 0.25, lambda t: np.tanh(t / 4), everywhere=False)
# SGDClassifier(loss="modified_huber"): p = (clip(score, -1, 1) + 1) / 2.
CLIPPED = Link(
    lambda scores: np.stack([(1 - np.clip(scores[:, 1], -1, 1)) / 2, (np.clip(scores[:, 1], -1, 1) + 1) / 2], axis=1),
    0.5,
    lambda t: np.minimum(1.0, t / 2),
    everywhere=False,
)


@dataclass(frozen=True, eq=False)
class BlankEffect:
    """Scores of a number x minus those of a blank: ``slope * x + offset``, one entry per class."""

    slope: FloatArray
    offset: FloatArray

    def largest(self, low: float, high: float) -> float:
        """Largest spread over classes for numbers between `low` and `high`.

        It is convex in x, so attained at one of the ends.
        """
        return max(float(np.ptp(self.slope * x + self.offset)) for x in (low, high))


class LinearWeights(NamedTuple):
    """Weights of numeric and categorical columns, and the effects of blanks in numeric columns that allow them."""

    numeric: dict[str, float]
    categorical: dict[str, float]
    blanks: dict[str, BlankEffect]
    changes: dict[str, CategoryChanges]


class CategoryChanges(NamedTuple):
    """Largest change of output between any two categories of a column.

    `levels` names them, None for a missing one. The last of more rows than names is for unseen categories.
    """

    levels: tuple[Any, ...]
    matrix: FloatArray


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Scores linear in the preprocessed columns: ``coef @ columns + intercept``, one row of `coef` per class.

    Regression and two classes have the rows 0 and beta.
    """

    coef: FloatArray
    intercept: FloatArray
    link: Link
    sources: tuple[RawColumn, ...]
    names: tuple[str, ...]
    named: bool

    def weights(self) -> LinearWeights:
        """Weights per raw unit of numeric columns, mismatch weights of categorical ones, and effects of blanks."""
        n_classes = len(self.coef)
        slopes = np.zeros((len(self.names), n_classes))
        shifts = np.zeros_like(slopes)
        absent: dict[int, FloatArray | None] = {}  # effect of a missing value; None if refused
        effects: dict[int, FloatArray] = {}
        encoders: dict[int, Any] = {}
        levels: dict[int, tuple[Any, ...]] = {}
        for j, source in enumerate(self.sources):
            if source.is_constant:
                continue
            i, coef = source.column, self.coef[:, j]
            if encoders.setdefault(i, source.encoder) is not source.encoder:
                raise UnprovableError(f"the column {self.names[i]!r} is encoded in two ways")
            if source.levels is None:
                slopes[i] += source.scale * coef
                shifts[i] += source.shift * coef
            else:
                effects[i] = effects.get(i, 0.0) + np.outer(source.levels, coef)
                levels[i] = source.names
            before = absent.get(i, np.zeros(n_classes))
            absent[i] = None if source.absent is None or before is None else before + source.absent * coef
        for i, effect in effects.items():  # a missing category is one more level
            missing = absent[i]
            effects[i] = effect if missing is None else np.vstack([effect, missing])
        if not all(np.isfinite(part).all() for part in (slopes, shifts, *effects.values())):
            raise UnprovableError("a preprocessing step was fitted on a column without values")
        self._check_reached(slopes, effects)
        # With categories present, an unused column may be text: it is left out, which means weight 0.
        shown = range(len(self.names)) if not effects else sorted(set(encoders) - set(effects))
        numeric = {self.names[i]: self.link.slope * float(np.ptp(slopes[i])) for i in shown}
        categorical = {
            self.names[i]: float(self.link.change(np.asarray(_largest_change(effect)))) for i, effect in effects.items()
        }
        changes = {self.names[i]: self._changes(effects[i], levels[i], absent[i]) for i in effects if levels[i]}
        blanks = {
            self.names[i]: BlankEffect(slopes[i], shifts[i] - missing)
            for i, missing in absent.items()
            if missing is not None and i not in effects
        }
        return LinearWeights(numeric, categorical, blanks, changes)

    def refuse_merged(self) -> None:
        """Raise if the model tells categories apart that are one to every metric."""
        added: dict[int, Any] = {}
        names: dict[int, tuple[Any, ...]] = {}
        for j, source in enumerate(self.sources):
            if source.levels is not None and source.names:
                names[source.column] = source.names
                added[source.column] = added.get(source.column, 0.0) + np.outer(source.levels, self.coef[:, j])
        for i, listed in names.items():
            refuse_merged(self.names[i], listed, added[i])

    def _changes(self, effect: FloatArray, names: tuple[Any, ...], absent: FloatArray | None) -> CategoryChanges:
        """Changes between categories; `effect` has a row for each name, for an unseen one, and for a missing one."""
        if absent is not None:
            missing, names = len(effect) - 1, (*names, None)
            order = np.insert(np.arange(missing), len(names) - 1, missing)
            effect = effect[order]
        spread = np.ptp(effect[:, None] - effect[None], axis=2)
        return CategoryChanges(names, np.asarray(self.link.change(spread)))

    def _check_reached(self, slopes: FloatArray, effects: dict[int, FloatArray]) -> None:
        """Raise unless numeric columns reach every score (theory §8); otherwise the constants are too large."""
        if self.link.everywhere or not (slopes.any() or any(np.ptp(e, axis=0).any() for e in effects.values())):
            return
        n_classes = len(self.coef)
        relative = slopes - slopes[:, :1]
        size = np.abs(relative).max(axis=1)
        rank = np.linalg.matrix_rank(relative[size > 0] / size[size > 0, None]) if size.any() else 0
        if rank < n_classes - 1:
            raise UnprovableError(
                f"numeric features move the scores of the {n_classes} classes in {rank} of {n_classes - 1} "
                "dimensions, so that the steepest change of the link may never be reached"
            )


def refuse_merged(name: Any, values: Sequence[Any], added: FloatArray) -> None:
    """Raise if categories that every metric takes for one, such as None and NaN, or "1" and "1.0", add other scores."""
    first: dict[str | None, int] = {}
    for i, value in enumerate(values):
        other = first.setdefault(None if pd.isna(value) else canonical_category(value), i)
        if (added[i] != added[other]).any():
            raise UnprovableError(
                f"{values[other]!r} and {value!r} of {name!r} are one value to a metric, and two to the model. Write "
                "them in one way, and fit the model to that; domain=Domain.learn(X) keeps how a blank is written"
            )


def _largest_change(effect: FloatArray) -> float:
    """Largest spread over classes of the difference between two levels; `effect` has shape (n_levels, n_classes)."""
    relative = effect[:, :, None] - effect[:, None, :]  # score of one class above another, per level
    return float(np.ptp(relative, axis=0).max())


def read_linear_model(model: Any, *, in_pieces: bool = False) -> LinearModel:
    """Read a fitted linear model, or raise `UnprovableError` with the reason.

    With `in_pieces`, it may come after splines and bins: its scores are then not linear in raw numbers.
    """
    steps, last = unwrap(model)
    coef, intercept, link = linear_scores_of(last)
    first = next((part for part in (model, *steps, last) if hasattr(part, "n_features_in_")), last)
    known = getattr(model, "feature_names_in_", getattr(first, "feature_names_in_", None))
    n_raw = int(first.n_features_in_)
    names = tuple(f"x{i}" for i in range(n_raw)) if known is None else tuple(str(name) for name in known)
    sources = [RawColumn(i) for i in range(n_raw)]
    for step in steps:
        sources = sources_after(step, sources)
    if not in_pieces and any(source.pieces is not None for source in sources):
        raise UnprovableError("splines and bins in front of it are not linear")
    if len(sources) != coef.shape[1]:
        raise UnprovableError(f"the preprocessing returns {len(sources)} columns, and the model takes {coef.shape[1]}")
    return LinearModel(coef, intercept, link, tuple(sources), names, named=known is not None)


def is_linear(model: Any) -> bool:
    """Whether it is a linear model whose coefficients may be read."""
    return type(model) in _REGRESSORS | _CLASSIFIERS


def linear_scores_of(model: Any) -> tuple[FloatArray, FloatArray, Link]:
    """Coefficients and intercepts, one row per class (regression and two classes: 0 and beta), and the link."""
    try:
        check_is_fitted(model)
    except (AttributeError, TypeError, NotFittedError):  # the first of classes that are no BaseEstimator
        raise UnprovableError(f"{type(model).__name__} is not a fitted scikit-learn estimator") from None
    coef, intercept, link = _scores(model)
    _confirm(model, coef, intercept, link)
    return coef, intercept, link


def _scores(model: Any) -> tuple[FloatArray, FloatArray, Link]:
    kind = type(model)
    name = kind.__name__
    if kind in _REGRESSORS:
        link, classes = IDENTITY, 2
        if kind in (SVR, NuSVR) and model.kernel != "linear":
            raise UnprovableError(f"{name} with kernel={model.kernel!r} is not linear")
        if kind is linear_model.TweedieRegressor and (
            model.link == "log" or (model.link == "auto" and model.power > 0)
        ):
            raise UnprovableError(f"{name} with a log link has no largest slope")
    elif kind in _CLASSIFIERS:
        link, classes = LOGISTIC, len(model.classes_)
        if kind is linear_model.SGDClassifier:
            if model.loss not in ("log_loss", "modified_huber"):
                raise UnprovableError(f"{name} with loss={model.loss!r} has no probabilities")
            link = LOGISTIC if model.loss == "log_loss" else CLIPPED
            if classes > 2:
                raise UnprovableError(f"{name} normalises one-vs-rest probabilities for {classes} classes")
    else:
        raise UnprovableError(f"{name} is not among the linear models whose constant is proven")
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else np.asarray(model.coef_, dtype=np.float64)
    coef = np.atleast_2d(coef)
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64).ravel(), len(coef))
    if len(coef) == 1 and classes == 2:
        coef, intercept = np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)
    elif len(coef) != classes or classes == 2:
        raise UnprovableError(f"{name} has {len(coef)} outputs")
    return coef, intercept, link


def _confirm(model: Any, coef: FloatArray, intercept: FloatArray, link: Link) -> None:
    """Raise if the model's own outputs differ from the formula: settings and versions vary."""
    rng = np.random.default_rng(0)
    size = np.abs(coef).max(axis=0)
    probes = rng.normal(size=(20, coef.shape[1])) / np.where(size > 0, size, 1.0)
    outputs = answers(model, as_taken(model, probes), "predict" if link is IDENTITY else "predict_proba")
    expected = link.apply(probes @ coef.T + intercept)
    if outputs.shape != expected.shape or not np.allclose(outputs, expected, rtol=1e-4, atol=1e-5):
        raise UnprovableError(f"the outputs of {type(model).__name__} are not the expected function of its coef_")
