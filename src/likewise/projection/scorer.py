"""Scores between the envelopes of the anchors: the base score, the blend, and the scorer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from likewise._fit_validation import TrainingData
from likewise._guarantee_warnings import suppress_guarantee_warnings
from likewise._inner_estimator import fit_weighted, scores_of
from likewise._progress import progress_bar
from likewise._typing import FloatArray, IntArray
from likewise._validation import short_repr
from likewise.base import BLOCK, ConstrainedEstimator, PlainScorer
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel import rules
from likewise.kernel.certificate import Estimate
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.links import from_unit_range, to_unit_range
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.projection.mcshane_whitney import Envelope, make_envelope

_MAX_PARAMETERS = 900


def default_base(metric: BoundMetric, n_people: float, *, classify: bool) -> tuple[Any, Any]:
    """Unfitted additive models: the base, and one that is fitted several times, with few knots.

    Both are None for a metric whose distance is no sum over single columns.
    """
    if not metric.has_parts or metric.schema.mixes_features or metric.p != 1:
        return None, None
    from likewise.additive.binning import knots_for
    from likewise.additive.estimators import AdditiveClassifier, AdditiveRegressor

    model, n_columns = AdditiveClassifier if classify else AdditiveRegressor, len(metric.schema.names)
    base, coarse = (
        model(metric.description),
        model(metric.description, max_knots=max(2, min(32, _MAX_PARAMETERS // n_columns))),
    )
    is_small = n_columns * knots_for(n_people, _MAX_PARAMETERS) <= _MAX_PARAMETERS
    return base if is_small else coarse, coarse


def fit_base(base: Any, data: TrainingData, metric: BoundMetric, limits: tuple[float, float]) -> Any:
    """Scale a number to [0, 1], or fit an estimator that is within the metric; a `FrozenEstimator` is not refitted."""
    if isinstance(base, Real) and not isinstance(base, bool):
        number: Any = base
        if not limits[0] <= number <= limits[1]:
            raise InvalidInputError(
                f"base must be within the outputs, {limits[0]:g} to {limits[1]:g}; got {short_repr(base)}."
            )
        return float(to_unit_range(number, limits))
    if isinstance(base, FrozenEstimator):
        model: Any = base.estimator
        own, given = getattr(getattr(model, "encoder_", None), "raw_labels", None), data.people.encoder.raw_labels
        if own is not None and given is not None and own != given:
            raise InvalidInputError(
                f"base must have the columns of X, {list(given)}, in this order; it has {list(own)}."
            )
    elif isinstance(base, ConstrainedEstimator):
        if base.metric is not None and not metric.is_of(base.metric):
            raise InvalidInputError(
                f"base must have the same metric, {metric.description!r}; it has {base.metric!r}. Leave it out there."
            )
        model = clone(base).with_metric(metric.description)
        if "output_range" in model.get_params():
            model.set_params(output_range=limits)
        with suppress_guarantee_warnings():
            table = data.people.table if data.people.given is None else data.people.given
            model = fit_weighted(model, table, data.y, data.weights)
    else:
        raise InvalidTypeError(
            "base must be None, a number, or an estimator that is within the metric, such as AdditiveClassifier; got "
            f"{type(base).__name__}. Wrap a fitted one in FrozenEstimator."
        )
    _check_guarantee(model, metric, limits)
    return model


def check_base_classes(base: Any, classes: npt.NDArray[Any] | None) -> None:
    """Raise if a base has other classes: its probabilities are taken by position."""
    both = (getattr(base, "classes_", None), classes)
    own, known = (None if found is None else np.asarray(found).tolist() for found in both)
    if not isinstance(base, float) and own != known:
        wanted, given = ("numbers" if found is None else f"classes {found}" for found in (known, own))
        raise InvalidInputError(f"base must have the outputs of this model, {wanted}; it has {given}. Fit it anew.")


def _check_guarantee(model: Any, metric: BoundMetric, limits: tuple[float, float]) -> None:
    """Raise unless ``|h(x) - h(x')| <= D(x, x')``, in units of the limits, with certainty."""
    guarantee = getattr(model, "guarantee_", None)
    if guarantee is None:
        raise InvalidTypeError(
            f"base must have a guarantee (guarantee_), as AdditiveClassifier does; {type(model).__name__} has none."
        )
    if not metric.is_of(guarantee.metric):
        raise InvalidInputError(f"base must have the same metric, {metric.description!r}; it has {guarantee.metric!r}.")
    if guarantee.epsilon > 0 or guarantee.delta > 0:
        raise InvalidInputError(
            f"base must be within the metric exactly; its outputs may differ by D + {guarantee.epsilon:.3g}. Use an "
            "AdditiveClassifier, for example."
        )
    if (guarantee.output_range or (0.0, 1.0)) != limits:
        raise InvalidInputError(f"base must have the same output_range, {limits}; it has {guarantee.output_range}.")


@dataclass(frozen=True)
class BlendWeights:
    """Weights of the base score and of both envelopes; non-negative, with sum 1."""

    base: float
    lower: float
    upper: float

    def blend(self, base: FloatArray | None, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """``w_base min(max(base, L), U) + w_lower L + w_upper U``.

        If base, L and U move by at most D between two people, so do their minima, maxima and averages.
        """
        scores = self.lower * lower + self.upper * upper
        if base is not None:
            scores = scores + self.base * np.minimum(np.maximum(base, lower), upper)
        return np.clip(scores, 0.0, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class ProjectedScorer(PlainScorer):
    """Scores between the envelopes of values at anchors.

    Attributes
    ----------
    envelope : Envelope
    values : ndarray of shape (n_anchors,)
        Probabilities of the second class, or predictions scaled to [0, 1]. The guarantee holds for any values.
    blend : BlendWeights
    base : fitted estimator, float or None
        Itself within the metric, such as a constant (between 0 and 1).
    classes : ndarray, or None for regression
    output_range : tuple of float, or None for classes
    """

    envelope: Envelope
    values: FloatArray
    blend: BlendWeights
    base: Any
    classes: npt.NDArray[Any] | None
    output_range: tuple[float, float] | None

    def prove(self) -> Guarantee:
        """Scores lie between envelopes, or are a base that is within the metric itself."""
        shares = self.blend.base, self.blend.lower, self.blend.upper
        base = getattr(self.base, "guarantee_", self.base)
        return rules.envelope(self.envelope, self.values, shares, base, self.output_range)

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Exact scores; the intervals have width 0."""
        with progress_bar("Scoring", len(people), show=verbose) as advance:
            parts = []
            for start in range(0, len(people), BLOCK):
                block = people.take(slice(start, start + BLOCK))
                parts.append(self._scores(block))
                advance(len(block))
        scores = np.concatenate(parts)
        if self.output_range is None:
            return Estimate.certain(np.column_stack([1 - scores, scores]))
        return Estimate.certain(from_unit_range(scores, self.output_range)[:, None])

    def visible(self, people: People) -> FloatArray:
        """Columns of positive weight, with infinity for missing numbers.

        A function and a base may tell values apart that are one code here, such as unseen categories. Their scores
        are one more column, so that people with other scores have other rows.
        """
        rows, metric = people.rows, self.envelope.metric
        if metric.has_parts:
            rows = rows[:, metric.matters]
        rows = np.where(np.isnan(rows), np.inf, rows)
        if metric.has_parts and (people.encoder.is_plain or isinstance(self.base, float | None)):
            return rows
        return np.column_stack([rows, self._scores(people)])

    @property
    def reads_tables(self) -> bool:
        """True: a base, and a `FunctionMetric`, take tables."""
        return True

    def breakpoints(self, n_columns: int) -> list[FloatArray]:
        """Numbers of the anchors."""
        breakpoints = super().breakpoints(n_columns)
        for column, values in self.envelope.numbers():
            breakpoints[column] = np.unique(values[~np.isnan(values)])
        return breakpoints

    def _scores(self, people: People) -> FloatArray:
        n, base = len(people), None
        bounds = self.envelope.bounds(people, self.values, np.zeros(n), np.ones(n))
        if self.base is not None:
            base = base_scores(self.base, people, self.classes, self.output_range or (0.0, 1.0))
        return self.blend.blend(base, bounds.lower, bounds.upper)


def base_scores(base: Any, people: People, classes: npt.NDArray[Any] | None, limits: tuple[float, float]) -> FloatArray:
    """Scores of a base, between 0 and 1."""
    return np.full(len(people), base) if isinstance(base, float) else scores_of(base, people, classes, limits)


_FOLDS = 5


def fit_blend(
    metric: BoundMetric,
    anchors: People,
    values: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
    base: Callable[[IntArray], FloatArray] | None = None,
) -> BlendWeights:
    """Blend weights that minimise the squared error on held-out anchors, by cross-validation.

    Parameters
    ----------
    values, outcomes, weights : ndarray of shape (n_anchors,)
    base : callable, optional
        From positions of held-out anchors to their scores by a base fitted without them.
    """
    n = len(anchors)
    if n < 2:
        return BlendWeights(0.0, 0.5, 0.5)
    fold = np.empty(n, dtype=np.int64)
    fold[np.random.default_rng(0).permutation(n)] = np.arange(n) % _FOLDS  # a fixed seed: the same data, the same folds
    parts = np.zeros((n, 2 if base is None else 3))
    for k in range(min(n, _FOLDS)):
        test, train = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        envelope = make_envelope(metric, anchors.take(train))
        bounds = envelope.bounds(anchors.take(test), values[train], np.zeros(len(test)), np.ones(len(test)))
        parts[test, 0], parts[test, 1] = bounds.lower, bounds.upper
        if base is not None:
            parts[test, 2] = np.minimum(np.maximum(base(test), bounds.lower), bounds.upper)
    lower, upper, *rest = simplex_least_squares(parts, outcomes, weights).tolist()
    return BlendWeights(rest[0] if rest else 0.0, lower, upper)


def simplex_least_squares(parts: FloatArray, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted least squares over coefficients of the columns of `parts` that are non-negative with sum 1.

    With few columns, every support is tried: on each, the coefficients solve a linear system.

    Examples
    --------
    >>> parts = np.array([[0.0, 1.0, 0.5], [0.2, 0.6, 0.9]])
    >>> simplex_least_squares(parts, np.array([0.25, 0.3]), np.ones(2)).round(6).tolist()
    [0.75, 0.25, 0.0]
    """
    k = parts.shape[1]
    best: FloatArray = np.eye(k)[0]
    least = np.inf
    for support in range(1, 2**k):
        used = [i for i in range(k) if support >> i & 1]
        last = parts[:, used[-1]]
        differences = (parts[:, used[:-1]] - last[:, None]) * np.sqrt(weights)[:, None]
        target = (outcomes - last) * np.sqrt(weights)
        first = np.linalg.lstsq(differences, target, rcond=None)[0]
        coefficients = np.zeros(k)
        coefficients[used] = [*first, 1 - first.sum()]
        loss = float(((differences @ first - target) ** 2).sum())
        if (coefficients >= 0).all() and loss < least:
            best, least = coefficients, loss
    return best
