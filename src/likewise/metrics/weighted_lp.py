"""Weighted Lp distances between rows of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import FloatArray
from likewise._validation import LARGEST, SMALLEST, check_numbers, check_positive, list_words, short_repr
from likewise.exceptions import InvalidInputError
from likewise.kernel.distance import root
from likewise.kernel.metric import BoundMetric, bind
from likewise.kernel.schema import ArrayEncoder, Encoder
from likewise.metrics.base import Metric, first_labels, order_by_name
from likewise.metrics.rounding import round_scale, round_weight
from likewise.metrics.units import in_points

_MOST_SHOWN = 10  # columns of a `repr`


class WeightedLp(Metric):
    """A weighted Lp distance between people.

    ``D(x, x') = (sum_i w_i |x_i - x'_i|^p)^(1/p)``, and ``max_i w_i |x_i - x'_i|`` for ``p = inf``.

    The weight is inside the power, as in Definition 2 of the paper. Everything else in the library works
    with the equivalent ``scales`` ``s_i = w_i^(1/p)`` (``s_i = w_i`` for ``p = inf``), for which
    ``D(x, x') = ||s * (x - x')||_p``: `docs/theory.md` §2 shows why the difference matters.

    Parameters
    ----------
    weights : array-like of shape (n_features,), or mapping from feature name to weight
        Non-negative, per unit of the feature (to the power p). 0 means that the feature must not matter:
        people who differ only there are at distance 0.
    p : float, default=1
        Any number >= 1, or ``np.inf``.
    feature_names : sequence, optional
        Names of the features, for errors and tables; taken from `weights` if that is a mapping.

    Attributes
    ----------
    weights, scales : ndarray of shape (n_features,)
    p : float
    feature_names : tuple, or None

    Examples
    --------
    >>> metric = WeightedLp({"age": 0.1, "income": 0.002}, p=1)
    >>> metric
    WeightedLp(age=0.1, income=0.002, p=1)
    >>> float(metric([30, 500], [32, 600]))
    0.4
    """

    weights: FloatArray
    scales: FloatArray

    def __init__(
        self,
        weights: npt.ArrayLike | Mapping[Any, float],
        p: float = 1,
        *,
        feature_names: Sequence[Any] | None = None,
    ) -> None:
        if isinstance(weights, (Mapping, pd.Series)):
            if feature_names is not None:
                raise InvalidInputError("feature_names must not be given when weights is a mapping: it has the names.")
            named = dict(weights)
            feature_names, weights = list(named), list(named.values())
        self.p = check_exponent(p)
        self.weights = _check_weights(weights, feature_names, self.p)
        self.feature_names = None if feature_names is None else tuple(feature_names)
        self.scales = root(self.weights, self.p)
        self.weights.flags.writeable = self.scales.flags.writeable = False

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.weights)

    @property
    def by_column(self) -> dict[Any, float]:
        """Weights by name; without names, those of feature 0, feature 1 and so on."""
        return dict(zip(self.encoder().names, self.weights.tolist(), strict=True))

    def reweighted(
        self, weights: Mapping[Any, float], missing: Mapping[Any, float] | None = None, reason: str = ""
    ) -> WeightedLp:
        """The same with other weights; there are no blanks, and no reasons are kept."""
        return self.with_params(weights=list({**self.by_column, **weights}.values()))

    def encoder(self, *people: Any) -> ArrayEncoder:
        """Rows of numbers, one column per weight."""
        return ArrayEncoder(self.n_features, self.feature_names or first_labels(people, self.n_features))

    def bind(self, schema: Encoder) -> BoundMetric:
        """The weights in the order of the schema's columns."""
        if len(schema.names) != self.n_features:
            raise InvalidInputError(
                f"metric must have one weight per feature of X ({len(schema.names)}); it has {self.n_features}: "
                f"{self!r}."
            )
        return bind(self.learned(schema), schema, self._in_order(schema.labels), p=self.p)

    def named(self, labels: tuple[Any, ...] | None) -> WeightedLp:
        """The weights in the order of `labels`; without names, by position."""
        if labels == self.feature_names:
            return self
        return WeightedLp(self._in_order(labels), self.p, feature_names=labels)

    def _in_order(self, labels: tuple[Any, ...] | None) -> FloatArray:
        order = order_by_name(self.feature_names, labels)
        return self.weights if order is None else self.weights[order]

    def scaled(self, factor: float) -> WeightedLp:
        """Return the metric whose distances are `factor` times as large."""
        check_positive("factor", factor)
        power = 1.0 if np.isinf(self.p) else self.p
        with np.errstate(over="ignore", under="ignore"):
            grown = np.float64(factor) ** power
        if not SMALLEST <= grown <= LARGEST:
            raise InvalidInputError(
                f"factor must be within {SMALLEST:g} to {LARGEST:g} to the power p = {self.p:g}; got {factor!r}. "
                "Use an infinite p."
            )
        return WeightedLp(self.weights * grown, self.p, feature_names=self.feature_names)

    def rounded(self) -> WeightedLp:
        """Return the metric in round numbers; distances are never larger, and at least 90% of those given.

        Examples
        --------
        >>> WeightedLp({"age": 0.00973, "income": 0.0005}).rounded().describe()["one point"].tolist()
        ['1.1', '20']
        """
        both = zip(self.weights.tolist(), self.scales.tolist(), strict=True)
        weights = [round_weight(weight, round_scale(scale), self.p) for weight, scale in both]
        return WeightedLp(weights, self.p, feature_names=self.feature_names)

    def describe(self) -> pd.DataFrame:
        """Exchange rates: per feature, its weight and the difference worth one percentage point."""
        names = self.encoder().names
        worth = ["must not matter" if scale == 0 else f"{0.01 / scale:.3g}" for scale in self.scales]
        return pd.DataFrame({"column": names, "weight": self.weights, "one point": worth})

    def _key(self) -> tuple[Any, ...]:
        return self.p, self.feature_names, tuple(self.weights.tolist())

    def in_words(self, written: Callable[[float], str] = in_points) -> str:
        """What the distance is, feature by feature.

        Examples
        --------
        >>> WeightedLp({"age": 0.01, "debt": 0.05}).in_words()
        'the sum of 1 point per 1 of age and 1 point per 0.2 of debt'
        """
        names = self.encoder().names
        scales = zip(names, self.scales.tolist(), strict=True)
        return together([f"{written(0.01)} per {0.01 / s:.3g} of {name}" for name, s in scales if s], self.p)

    def __repr__(self) -> str:
        names = self.feature_names
        parts = [
            f"{weight:.6g}" if names is None else f"{names[i]}={weight:.6g}" for i, weight in enumerate(self.weights)
        ]
        shown = shortened(parts)
        return f"WeightedLp({f'[{shown}]' if names is None else shown}, p={self.p:g})"


def shortened(parts: list[str]) -> str:
    """Join parts; of more than 10, only the first and the last."""
    if len(parts) > _MOST_SHOWN:
        parts = [*parts[: _MOST_SHOWN - 2], f"... {len(parts) - _MOST_SHOWN + 1} more ...", parts[-1]]
    return ", ".join(parts)


def together(parts: list[str], p: float) -> str:
    """What differences in numbers are together, from what each of them is."""
    how = {1.0: "the sum of ", np.inf: "the largest of "}.get(p, f"the norm with p = {p:g} of ")
    return f"{how if len(parts) > 1 else ''}{list_words(parts)}"


def check_exponent(p: float) -> float:
    """Validate the exponent."""
    if isinstance(p, bool) or not isinstance(p, (int, float, np.integer, np.floating)) or not p >= 1:
        raise InvalidInputError(
            f"p must be a number >= 1 or infinity; got {short_repr(p)}. Below 1 it is not a metric."
        )
    if LARGEST < p < np.inf:
        raise InvalidInputError(f"p must be at most {LARGEST:g}, or infinity; got {short_repr(p)}. Use infinity.")
    return float(p)


def check_feature_names(names: Sequence[Any] | None, n: int, each: str) -> None:
    """Validate feature names: one per `each`, all different."""
    if names is None:
        return
    if isinstance(names, str) or not np.iterable(names) or len(names) != n:
        raise InvalidInputError(f"feature_names must have one name per {each} ({n}); got {short_repr(names)}.")
    try:
        distinct = set(names)
    except TypeError:
        raise InvalidInputError(f"feature_names must be names, such as text; got {short_repr(names)}.") from None
    if len(distinct) != len(names):
        raise InvalidInputError(f"feature_names must be distinct; got {list(names)}.")


def _check_weights(weights: Any, names: Sequence[Any] | None, p: float) -> FloatArray:
    array = check_numbers("weights", weights, "Give one per feature.").copy()
    if array.ndim != 1 or array.size == 0:
        raise InvalidInputError(
            f"weights must be a list with one number per feature; got an array of shape {array.shape}."
        )
    check_feature_names(names, len(array), "weight")
    with np.errstate(invalid="ignore"):
        scales = root(array, p)
    wrong = np.flatnonzero(~((array == 0) | ((scales >= SMALLEST) & (scales <= LARGEST))))
    if wrong.size:
        i = int(wrong[0])
        feature = f"feature {i}" if names is None else repr(names[i])
        raise InvalidInputError(
            f"weights must be non-negative and finite; got {array[i]:g} for {feature}. Use 0 for a feature that must "
            f"not matter; the p-th root of others must be between {SMALLEST:g} and {LARGEST:g}."
        )
    return array
