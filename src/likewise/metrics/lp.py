"""What makes two people similar: weighted Lp distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.spatial.distance import cdist

from likewise._typing import FloatArray


class WeightedLp:
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
    feature_names : sequence of str, optional
        Names of the features, for errors and tables; taken from `weights` if that is a mapping.

    Attributes
    ----------
    weights, scales : ndarray of shape (n_features,)
    p : float
    feature_names : tuple of str, or None

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
    p: float
    feature_names: tuple[str, ...] | None

    def __init__(
        self,
        weights: npt.ArrayLike | Mapping[str, float],
        p: float = 1,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        if isinstance(weights, (Mapping, pd.Series)):
            if feature_names is not None:
                raise ValueError("feature_names must not be given when weights is a mapping: it has the names.")
            named = dict(weights)
            feature_names, weights = [str(name) for name in named], list(named.values())
        self.p = _check_p(p)
        self.weights = _check_weights(weights, feature_names)
        self.feature_names = None if feature_names is None else tuple(str(n) for n in feature_names)
        with np.errstate(under="ignore"):
            self.scales = self.weights if np.isinf(self.p) else self.weights ** (1 / self.p)
        self.weights.flags.writeable = self.scales.flags.writeable = False

    @property
    def n_features(self) -> int:
        """How many features the metric has."""
        return len(self.weights)

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> FloatArray:
        """Distances between the people in `A` and those in `B`, row by row.

        Parameters
        ----------
        A, B : array-like of shape (n_samples, n_features) or (n_features,)
            Broadcast against each other, so one of them may be a single person.

        Returns
        -------
        ndarray of shape (n_samples,), or a scalar for two single people
        """
        a, b = self._check_people(A, "A"), self._check_people(B, "B")
        return lp_norm(self.scales * (a - b), self.p)

    def pairwise(self, A: npt.ArrayLike, B: npt.ArrayLike | None = None) -> FloatArray:
        """Distances between every person in `A` and every person in `B` (or `A` itself).

        Returns
        -------
        ndarray of shape (n_samples_A, n_samples_B)
        """
        a = np.atleast_2d(self._check_people(A, "A"))
        b = a if B is None else np.atleast_2d(self._check_people(B, "B"))
        matters = self.scales > 0
        if not matters.any():
            return np.zeros((len(a), len(b)))
        # Centring first keeps the digits of features that are large compared with their differences.
        centre, scales = np.median(a[:, matters], axis=0), self.scales[matters]
        a, b = (a[:, matters] - centre) * scales, (b[:, matters] - centre) * scales
        if np.isinf(self.p):
            return cdist(a, b, "chebyshev")
        if self.p == 1:
            return cdist(a, b, "cityblock")
        return cdist(a, b, "minkowski", p=self.p)

    def scaled(self, factor: float) -> WeightedLp:
        """Return the metric whose distances are `factor` times as large."""
        if not (np.isfinite(factor) and factor > 0):
            raise ValueError(f"factor must be a positive finite number; got {factor!r}.")
        power = 1.0 if np.isinf(self.p) else self.p
        return WeightedLp(self.weights * factor**power, self.p, feature_names=self.feature_names)

    def normalized(self, mean: float = 1.0) -> WeightedLp:
        """Return the metric with the same relative weights and the given mean weight."""
        if not (np.isfinite(mean) and mean > 0):
            raise ValueError(f"mean must be a positive finite number; got {mean!r}.")
        if not self.weights.any():
            raise ValueError("weights are all 0, so they cannot be scaled to a mean. Give one a positive weight.")
        relative = self.weights / self.weights.max()
        return WeightedLp(relative * (mean / relative.mean()), self.p, feature_names=self.feature_names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeightedLp):
            return NotImplemented
        return (
            self.p == other.p
            and self.feature_names == other.feature_names
            and np.array_equal(self.weights, other.weights)
        )

    def __hash__(self) -> int:
        return hash((self.p, self.feature_names, self.weights.tobytes()))

    def __repr__(self) -> str:
        names = self.feature_names
        parts = [
            f"{weight:.6g}" if names is None else f"{names[i]}={weight:.6g}" for i, weight in enumerate(self.weights)
        ]
        if len(parts) > 10:
            parts = [*parts[:8], f"... {len(parts) - 9} more ...", parts[-1]]
        shown = ", ".join(parts)
        return f"WeightedLp({f'[{shown}]' if names is None else shown}, p={self.p:g})"

    def _check_people(self, X: Any, name: str) -> FloatArray:
        columns = getattr(X, "columns", None)
        if columns is not None and self.feature_names is not None and tuple(columns) != self.feature_names:
            raise ValueError(
                f"{name} must have the columns of the metric in its order, {list(self.feature_names)}; "
                f"got {list(columns)}. Select them with {name}[list(metric.feature_names)]."
            )
        try:
            array = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold numbers only ({error}). Encode text columns first.") from None
        if array.ndim not in (1, 2) or array.shape[-1] != self.n_features:
            raise ValueError(
                f"{name} must have {self.n_features} columns, one per weight; got an array of shape {array.shape}."
            )
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite; got NaN or infinity. Impute or drop these rows first.")
        return array


def _check_p(p: float) -> float:
    if isinstance(p, bool) or not isinstance(p, (int, float, np.integer, np.floating)) or not p >= 1:
        raise ValueError(f"p must be a number >= 1 or infinity; got {p!r}. Below 1 it is not a metric.")
    return float(p)


def _check_weights(weights: Any, names: Sequence[str] | None) -> FloatArray:
    try:
        array = np.array(weights, dtype=np.float64)  # a copy: the caller's array stays the caller's
    except (TypeError, ValueError):
        raise ValueError(f"weights must be numbers, one per feature; got {weights!r}.") from None
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"weights must be a list with one number per feature; got an array of shape {array.shape}.")
    if names is not None:
        if len(names) != len(array):
            raise ValueError(f"feature_names must have one name per weight ({len(array)}); got {len(names)}.")
        if len(set(names)) != len(names):
            raise ValueError(f"feature_names must be distinct; got {list(names)}.")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if wrong.size:
        i = int(wrong[0])
        feature = f"feature {i}" if names is None else repr(names[i])
        raise ValueError(
            f"weights must be non-negative and finite; got {array[i]:g} for {feature}. "
            "Use 0 for a feature that must not matter."
        )
    return array


def lp_norm(z: FloatArray, p: float) -> FloatArray:
    """Lp norm of each row, safe from overflow and underflow in the powers."""
    z = np.abs(z)
    if p == 1:
        return np.asarray(z.sum(axis=-1))
    largest = z.max(axis=-1)
    if np.isinf(p):
        return np.asarray(largest)
    divisor = np.where(largest > 0, largest, 1.0)
    with np.errstate(under="ignore"):
        return np.asarray(largest * ((z / divisor[..., None]) ** p).sum(axis=-1) ** (1 / p))
