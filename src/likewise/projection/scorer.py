"""How much of the room between the envelopes to use, judged at anchors that are left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.frozen import FrozenEstimator

from likewise._inner_estimator import scores_of
from likewise._progress import progress_bar
from likewise._typing import FloatArray, IntArray
from likewise._validation import in_a_line
from likewise.base import ConstrainedEstimator, PlainScorer
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.guarantee import said_once
from likewise.metrics.base import Metric
from likewise.metrics.encoders import Encoder, People
from likewise.pairs.points import groups_of
from likewise.projection.mcshane_whitney import Envelope, envelope_of

_MOST = 5_000
_MOST_OF_A_FUNCTION = 2_000  # each person is compared with every anchor


@dataclass(frozen=True, eq=False)
class Anchors:
    """Distinct people, each of whom stands for all that are equal in what matters.

    Attributes
    ----------
    first : ndarray of int, shape (n_anchors,)
        Where each one stands among all people.
    of_row : ndarray of int, shape (n_people,)
        The anchor that each person is; -1 for none.
    weights : ndarray of shape (n_anchors,)
        Total weight of those that each one stands for.
    """

    first: IntArray
    of_row: IntArray
    weights: FloatArray

    @classmethod
    def choose(
        cls, people: People, weights: FloatArray | None, metric: Metric, n_anchors: Any, rng: np.random.Generator
    ) -> Anchors:
        """All distinct people who count, or as many as asked for, drawn by `rng`; the order of rows does not matter."""
        rows, columns = people.rows, metric.known_weights(people.encoder)
        if columns is not None:
            rows = rows[:, columns.matters]
        rows = np.where(np.isnan(rows), np.inf, rows)
        counted = np.arange(len(rows)) if weights is None else np.flatnonzero(weights > 0)
        groups = groups_of(rows[counted])
        n = len(groups.first)
        chosen = np.lexsort(rows[counted[groups.first]].T[::-1]) if rows.shape[1] else np.arange(n)
        wanted = min(n, _MOST_OF_A_FUNCTION if columns is None else _MOST)
        if n_anchors != "auto":
            wanted = int(n_anchors)
            if wanted > n:
                raise InvalidInputError(
                    f"n_anchors must be at most the number of distinct people in X, {n}; got {n_anchors}. "
                    "'auto' takes all of them, up to 5,000."
                )
        chosen = chosen[np.sort(rng.permutation(n)[:wanted])]
        anchor = np.full(n, -1)
        anchor[chosen] = np.arange(wanted)
        of_row = np.full(len(rows), -1)
        of_row[counted] = anchor[groups.of_row]
        weight = np.ones(len(rows)) if weights is None else weights
        return cls(counted[groups.first[chosen]], of_row, _sums(of_row, weight, wanted))

    def __len__(self) -> int:
        return len(self.first)

    @property
    def rows(self) -> IntArray:
        """All people for whom the anchors stand."""
        return np.flatnonzero(self.of_row >= 0)

    def mean(self, values: FloatArray, weights: FloatArray | None) -> FloatArray:
        """Per anchor, the weighted mean over `rows` of `values`, which belong to those."""
        weight = np.ones(len(self.of_row)) if weights is None else weights
        rows = self.rows
        return _sums(self.of_row[rows], weight[rows] * values, len(self)) / self.weights


def _sums(of_row: IntArray, amounts: FloatArray, n: int) -> FloatArray:
    there = of_row >= 0
    return np.bincount(of_row[there], weights=amounts[there], minlength=n).astype(np.float64)


_MOST_VARIABLES = 900


def default_base(metric: Metric, encoder: Encoder, *, classify: bool) -> Any:
    """An additive model; None for a metric without weights, for which there is none."""
    if metric.known_weights(encoder) is None:
        return None
    from likewise.additive.estimators import AdditiveClassifier, AdditiveRegressor

    knots = max(
        2, min(32, _MOST_VARIABLES // len(encoder.names))
    )  # it is fitted several times: wide tables get coarser shapes
    return (AdditiveClassifier if classify else AdditiveRegressor)(metric, max_knots=knots)


def fitted_base(
    base: Any,
    people: People,
    y: npt.NDArray[Any],
    weights: FloatArray | None,
    metric: Metric,
    limits: tuple[float, float],
) -> Any:
    """A number as a share of the limits, or an estimator that is within the metric, fitted; others are refused.

    A `FrozenEstimator` is taken as it is. Another estimator is fitted for the metric, and for the limits if it predicts
    numbers.
    """
    if isinstance(base, Real) and not isinstance(base, bool):
        number: Any = base
        low, high = limits
        if not low <= number <= high:
            raise InvalidInputError(f"base must lie within the outputs, {low:g} to {high:g}; got {in_a_line(base)}.")
        return (float(number) - low) / (high - low)
    if isinstance(base, FrozenEstimator):
        model: Any = base.estimator
    elif isinstance(base, ConstrainedEstimator):
        if base.metric is not None and base.metric != metric:
            raise InvalidInputError(
                f"base must have the same metric, {metric!r}; it has {base.metric!r}. Leave it out there."
            )
        model = base.with_metric(metric)
        if "output_range" in model.get_params():
            model.set_params(output_range=limits)
        with said_once():
            model = model.fit(people.table, y) if weights is None else model.fit(people.table, y, sample_weight=weights)
    else:
        raise InvalidTypeError(
            "base must be None, a number, or an estimator that is within the metric, such as AdditiveClassifier; got "
            f"{type(base).__name__}. Wrap a fitted one in FrozenEstimator."
        )
    _check_promise(model, metric, limits)
    return model


def _check_promise(model: Any, metric: Metric, limits: tuple[float, float]) -> None:
    """Raise unless the outputs move by at most D, in units of the limits, with certainty."""
    guarantee = getattr(model, "guarantee_", None)
    if guarantee is None:
        raise InvalidTypeError(
            f"base must make a promise (guarantee_), as AdditiveClassifier does; {type(model).__name__} does not."
        )
    if guarantee.metric != metric:
        raise InvalidInputError(f"base must have the same metric, {metric!r}; it has {guarantee.metric!r}.")
    if guarantee.epsilon > 0 or guarantee.delta > 0:
        raise InvalidInputError(
            f"base must be within the metric exactly; its outputs may differ by D + {guarantee.epsilon:.3g}. Use one "
            "that is so by construction, such as AdditiveClassifier."
        )
    if (guarantee.output_range or (0.0, 1.0)) != limits:
        raise InvalidInputError(f"base must have the same output_range, {limits}; it has {guarantee.output_range}.")


_BLOCK = 16_384  # people at a time: memory does not grow with their number


@dataclass(frozen=True)
class Shares:
    """What the base, the lower and the upper envelope count in the scores; non-negative, with sum 1."""

    base: float
    lower: float
    upper: float

    def blend(self, base: FloatArray | None, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """``base_share * min(max(base, L), U) + lower_share * L + upper_share * U``.

        If base, L and U move by at most D between two people, so do minima, maxima and averages of them.
        """
        scores = self.lower * lower + self.upper * upper
        if base is not None:
            scores = scores + self.base * np.minimum(np.maximum(base, lower), upper)
        return np.clip(scores, 0.0, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Extension(PlainScorer):
    """Scores between the envelopes of values on anchors.

    Attributes
    ----------
    guarantee : Guarantee
    envelope : Envelope
        The anchors.
    values : ndarray of shape (n_anchors,)
        Between 0 and 1: probabilities of the second class, or shares of the output range. The promise holds for any.
    shares : Shares
    base : fitted estimator, float or None
        Itself within the metric, such as a constant (between 0 and 1).
    classes : ndarray, or None for regression
    """

    envelope: Envelope
    values: FloatArray
    shares: Shares
    base: Any
    classes: npt.NDArray[Any] | None

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Exact scores; the intervals have width 0."""
        with progress_bar("Scoring", len(people), show=verbose) as advance:
            parts = []
            for start in range(0, len(people), _BLOCK):
                block = people.take(slice(start, start + _BLOCK))
                parts.append(self._scores(block))
                advance(len(block))
        scores = np.concatenate(parts)
        if self.guarantee.output_range is None:
            return Estimate.certain(np.column_stack([1 - scores, scores]))
        low, high = self.guarantee.output_range
        return Estimate.certain(np.clip(low + (high - low) * scores, low, high)[:, None])

    def visible(self, people: People) -> FloatArray:
        """The columns that matter; what is missing is infinite."""
        rows, columns = people.rows, self.guarantee.metric.known_weights(people.encoder)
        if columns is not None:
            rows = rows[:, columns.matters]
        return np.where(np.isnan(rows), np.inf, rows)

    @property
    def reads_tables(self) -> bool:
        """A base, and a function of people, do."""
        return True

    def landmarks(self, n_columns: int) -> list[FloatArray]:
        """The numbers of the anchors."""
        found = super().landmarks(n_columns)
        for column, values in self.envelope.numbers():
            found[column] = np.unique(values[~np.isnan(values)])
        return found

    def _scores(self, people: People) -> FloatArray:
        n = len(people)
        found = self.envelope.narrow(people, self.values, np.zeros(n), np.ones(n))
        base = None
        if self.base is not None:
            base = base_scores(self.base, people, self.classes, self.guarantee.output_range or (0.0, 1.0))
        return self.shares.blend(base, found.lower, found.upper)


def base_scores(base: Any, people: People, classes: npt.NDArray[Any] | None, limits: tuple[float, float]) -> FloatArray:
    """What a base says of people, between 0 and 1."""
    return np.full(len(people), base) if isinstance(base, float) else scores_of(base, people, classes, limits)


_FOLDS = 5


def judged_shares(
    metric: Metric,
    anchors: People,
    values: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
    base: Callable[[IntArray], FloatArray] | None = None,
) -> Shares:
    """Shares of base and envelopes that come closest to the outcomes at anchors that are left out in turn.

    Parameters
    ----------
    values, outcomes, weights : ndarray of shape (n_anchors,)
    base : callable, optional
        From positions of anchors to what a base says of them that has not seen them.
    """
    n = len(anchors)
    if n < 2:
        return Shares(0.0, 0.5, 0.5)
    fold = np.empty(n, dtype=np.int64)
    fold[np.random.default_rng(0).permutation(n)] = np.arange(n) % _FOLDS  # the same for the same people
    parts = np.zeros((n, 2 if base is None else 3))
    for k in range(min(n, _FOLDS)):
        out, kept = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        envelope = envelope_of(metric, anchors.take(kept))
        found = envelope.narrow(anchors.take(out), values[kept], np.zeros(len(out)), np.ones(len(out)))
        parts[out, 0], parts[out, 1] = found.lower, found.upper
        if base is not None:
            parts[out, 2] = np.minimum(np.maximum(base(out), found.lower), found.upper)
    lower, upper, *rest = best_shares(parts, outcomes, weights).tolist()
    return Shares(rest[0] if rest else 0.0, lower, upper)


def best_shares(parts: FloatArray, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
    """Non-negative shares with sum 1 of the columns of `parts`, closest to the outcomes in weighted least squares.

    With few columns, each set of those that count is tried: without the others, the shares solve a linear system.

    Examples
    --------
    >>> parts = np.array([[0.0, 1.0, 0.5], [0.2, 0.6, 0.9]])
    >>> best_shares(parts, np.array([0.25, 0.3]), np.ones(2)).round(6).tolist()
    [0.75, 0.25, 0.0]
    """
    k = parts.shape[1]
    best: FloatArray = np.eye(k)[0]
    least = np.inf
    for chosen in range(1, 2**k):
        used = [i for i in range(k) if chosen >> i & 1]
        last = parts[:, used[-1]]
        differences = (parts[:, used[:-1]] - last[:, None]) * np.sqrt(weights)[:, None]
        rest = (outcomes - last) * np.sqrt(weights)
        first = np.linalg.lstsq(differences, rest, rcond=None)[0]
        shares = np.zeros(k)
        shares[used] = [*first, 1 - first.sum()]
        loss = float(((differences @ first - rest) ** 2).sum())
        if (shares >= 0).all() and loss < least:
            best, least = shares, loss
    return best
