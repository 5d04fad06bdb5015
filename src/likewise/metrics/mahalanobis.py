"""Distances after a linear map: Mahalanobis distances, and distances that do not see some directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._frozen import Frozen
from likewise._parallel import threads_for
from likewise._typing import FloatArray
from likewise._validation import LARGEST, SMALLEST, check_numbers, check_positive, check_size, checking
from likewise.exceptions import InvalidInputError
from likewise.kernel.columns import NumericColumn
from likewise.kernel.distance import lp_norm
from likewise.kernel.metric import BoundMetric, bind
from likewise.kernel.schema import ArrayEncoder, Encoder, People, labels_of
from likewise.metrics.base import Metric, first_labels, order_by_name
from likewise.metrics.rounding import round_scale
from likewise.metrics.units import in_points
from likewise.metrics.weighted_lp import check_exponent, check_feature_names

_RANK = 1e-10  # of the largest singular value: below it, a direction does not matter
_NEAR = 1e-9  # relative difference of distances: rounding of a scaled matrix and its inverse


@dataclass(frozen=True, eq=False)
class LinearMapEncoder(Frozen, Encoder):
    """Encodes people as ``B x`` with an invertible matrix B, and decodes by its inverse.

    The first columns are the components of a metric; the others, of weight 0, are coordinates along the directions
    that must not matter.

    Attributes
    ----------
    raw : ArrayEncoder
        Of the features.
    matrix, inverse : ndarray of shape (n_features, n_features)
    n_components : int
    """

    raw: ArrayEncoder
    matrix: FloatArray
    inverse: FloatArray
    n_components: int

    mixes_features = True

    @property
    def labels(self) -> tuple[Any, ...]:
        """Names of the components and of the free directions."""
        free = len(self.matrix) - self.n_components
        return tuple(
            [f"component {k + 1}" for k in range(self.n_components)] + [f"free direction {k + 1}" for k in range(free)]
        )

    @property
    def raw_labels(self) -> tuple[Any, ...] | None:
        """Names of the features."""
        return self.raw.labels

    @property
    def columns(self) -> tuple[NumericColumn, ...]:  # type: ignore[override]
        """Numeric columns."""
        return tuple(NumericColumn(name) for name in self.labels)

    @property
    def is_plain(self) -> bool:
        """False: a model takes the features, not the components."""
        return False

    def as_table(self, X: Any, name: str = "X") -> Any:
        """An array of features, in this order."""
        return self.raw.as_table(X, name)

    def encode(self, X: Any, name: str = "X") -> FloatArray:
        """Components of finite numbers."""
        return _product(self.raw.encode(X, name), self.matrix)

    def decode(self, rows: FloatArray) -> FloatArray:
        """Features of components."""
        return _product(rows, self.inverse)

    def read_for_predict(self, X: Any, numbers: Callable[[Any], FloatArray]) -> People:
        """Validate the features."""
        return self.of(self.raw.read_for_predict(X, numbers))

    def recode(self, people: People) -> People:
        """Read the features again."""
        return People.read(people.arranged(self.raw_labels).table, self)

    def reordered(self, order: list[int]) -> LinearMapEncoder:
        """With the features in another order; the components are the same."""
        raw = self.raw.reordered(order)
        return LinearMapEncoder(raw, self.matrix[:, order], self.inverse[order], self.n_components)

    def of(self, people: People) -> People:
        """People whose rows are features, as components."""
        return People(_product(people.rows, self.matrix), self, people.table)


def _units(components: FloatArray) -> FloatArray:
    """A power of two near the largest entry of each column, by which it is divided without rounding; 1 without any."""
    largest = np.abs(components).max(axis=0)
    return np.asarray(np.exp2(np.floor(np.log2(np.where(largest > 0, largest, 1.0)))))


def _product(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """``rows @ matrix.T``, feature by feature: the same to the last bit in any batch."""
    out = np.zeros((*rows.shape[:-1], len(matrix)))
    for j, column in enumerate(matrix.T):
        out += rows[..., j, None] * column
    return out


class MahalanobisMetric(Metric):
    """A distance between rows of numbers after a linear map: ``D(x, x') = ||A (x - x')||_p``.

    With p = 2 it is a Mahalanobis distance, ``sqrt((x - x')' M (x - x'))`` with ``M = A'A``. Directions v with
    ``A v = 0`` must not matter: people who differ only along them are at distance 0. Projected models, networks and
    smoothing enforce it, and `audit` and `attack` search under it. Additive models, which read single columns, refuse
    it.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        The matrix A, of full row rank unless p is 2.
    p : float, default=2
        Any number >= 1, or ``np.inf``.
    feature_names : sequence, optional
        Names of the features, for errors and tables.

    Attributes
    ----------
    components : ndarray of shape (n_components, n_features)
        As given.
    p : float
    feature_names : tuple, or None

    Examples
    --------
    >>> metric = MahalanobisMetric.from_covariance([[4.0, 0.0], [0.0, 0.25]], scale=0.1)
    >>> metric([[0.0, 0.0]], [[2.0, 0.5]]).round(4)  # one standard deviation in each
    array([0.1414])

    A distance that does not see the sum of the two features rise:

    >>> metric = MahalanobisMetric.from_directions([[1.0, 1.0]], scales=0.1)
    >>> metric([[0.0, 0.0]], [[3.0, 3.0]]).round(4), metric([[0.0, 0.0]], [[1.0, -1.0]]).round(4)
    (array([0.]), array([0.1414]))
    """

    components: FloatArray

    def __init__(self, components: npt.ArrayLike, p: float = 2, *, feature_names: Sequence[Any] | None = None) -> None:
        self.p = check_exponent(p)
        array = check_numbers("components", components, "Give one row per component.").copy()
        if array.ndim != 2 or not array.size:
            raise InvalidInputError(
                f"components must be a matrix of components by features; got an array of shape {array.shape}."
            )
        if not np.isfinite(array).all() or not SMALLEST <= np.abs(array).max() <= LARGEST:
            raise InvalidInputError(
                f"components must be finite, and the largest between {SMALLEST:g} and {LARGEST:g}; it is "
                f"{np.abs(array).max():g}."
            )
        check_feature_names(feature_names, array.shape[1], "column of components")
        self.feature_names = None if feature_names is None else tuple(feature_names)
        array.flags.writeable = False
        self.components = array
        in_units = array / _units(array)
        rank = int(np.linalg.matrix_rank(in_units, tol=_RANK * np.linalg.norm(in_units, 2)))
        if self.p != 2 and rank < len(array):
            raise InvalidInputError(
                f"components must be linearly independent for p = {self.p:g}; {len(array)} rows have rank {rank}. "
                "Leave out those that follow from others, or use p = 2."
            )

    @classmethod
    def from_covariance(
        cls, covariance: npt.ArrayLike, *, scale: float = 1.0, feature_names: Sequence[Any] | None = None
    ) -> MahalanobisMetric:
        """``D = scale * sqrt((x - x')' C^-1 (x - x'))`` for a covariance matrix C, such as that of `LedoitWolf`."""
        C = check_numbers("covariance", covariance, "Give a square matrix.")
        if C.ndim != 2 or C.shape[0] != C.shape[1] or not np.allclose(C, C.T, rtol=1e-10, atol=0):
            raise InvalidInputError(f"covariance must be a symmetric matrix; got an array of shape {C.shape}.")
        check_positive("scale", scale)
        try:
            half = np.linalg.cholesky((C + C.T) / 2)
        except np.linalg.LinAlgError:
            raise InvalidInputError(
                "covariance must be positive definite. Shrink it, as sklearn.covariance.LedoitWolf does, or leave out "
                "features that follow from others."
            ) from None
        return cls(scale * np.linalg.inv(half), feature_names=feature_names)

    @classmethod
    def from_directions(
        cls, directions: npt.ArrayLike, *, scales: Any = 1.0, feature_names: Sequence[Any] | None = None
    ) -> MahalanobisMetric:
        """The Euclidean distance without some directions, which must not matter.

        ``D(x, x') = ||P S (x - x')||_2`` with ``S = diag(scales)`` and P the projection onto what is orthogonal to
        ``S v`` for every direction v.

        Parameters
        ----------
        directions : array-like of shape (n_directions, n_features)
            People who differ by a multiple of one, or by a sum of multiples, are at distance 0.
        scales : float or array-like of shape (n_features,), default=1
            Distance per unit of each feature.
        feature_names : sequence, optional
        """
        V = np.atleast_2d(check_numbers("directions", directions, "Give one row per direction."))
        if V.ndim != 2 or not V.size or not np.isfinite(V).all():
            raise InvalidInputError(f"directions must be finite, one row per direction; got shape {V.shape}.")
        S = check_numbers("scales", scales, "Give one per feature.")
        if S.shape not in ((), (V.shape[1],)):
            raise InvalidInputError(
                f"scales must be one number, or one per feature ({V.shape[1]}); got shape {S.shape}."
            )
        S = np.broadcast_to(S, V.shape[1])
        if not ((S >= SMALLEST) & (S <= LARGEST)).all():
            raise InvalidInputError(f"scales must be between {SMALLEST:g} and {LARGEST:g}; got {S.min():g}.")
        _, values, rows = np.linalg.svd(V * S)
        rank = int((values > _RANK * values.max(initial=0.0)).sum())
        if rank == V.shape[1]:
            raise InvalidInputError(
                f"directions must leave something that matters; these {len(V)} leave no direction of "
                f"{V.shape[1]} features. Give fewer."
            )
        return cls(rows[rank:] * S, feature_names=feature_names)

    @classmethod
    def from_protected(cls, X: Any, protected: npt.ArrayLike, *, scale: float = 1.0) -> MahalanobisMetric:
        """A distance without the directions in which a logistic regression tells protected groups apart.

        Features are counted in standard deviations, `scale` for each. The sensitive subspace is spanned by the
        coefficients of a regression for each protected column, as in Yurochkin, Bower and Sun (2020). It removes what
        is linear in the features; a nonlinear model may still tell the groups apart.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, without the protected columns themselves.
        protected : array-like of shape (n_samples,) or (n_samples, n_protected)
            Labels of groups.
        scale : float, default=1
        """
        from sklearn.linear_model import LogisticRegression

        with checking():
            shape = np.shape(X)
        if len(shape) != 2:
            raise InvalidInputError(f"X must be rows of numbers, (n_samples, n_features); got shape {shape}.")
        rows = ArrayEncoder(shape[1], labels_of(X)).encode(X)
        with checking():
            groups = np.asarray(protected)
        groups = groups[:, None] if groups.ndim == 1 else groups
        if groups.ndim != 2 or len(groups) != len(rows) or not groups.shape[1]:
            raise InvalidInputError(
                f"protected must have one row per row of X ({len(rows)}); got an array of shape {groups.shape}."
            )
        spread = rows.std(axis=0)
        if not len(spread):
            raise InvalidInputError("X must have at least one feature; got none.")
        check_size(rows, range(len(spread)))
        if not (spread > 0).all():
            raise InvalidInputError(f"X must have no constant feature; feature {int(np.argmin(spread))} is. Drop it.")
        scaled, found = (rows - rows.mean(axis=0)) / spread, []
        for k, labels in enumerate(groups.T):
            labels = labels.astype(str)
            if len(set(labels.tolist())) < 2:
                raise InvalidInputError(f"protected must hold at least two groups; column {k} has one.")
            with threads_for(scaled.size):
                fitted = LogisticRegression(max_iter=1000).fit(scaled, labels)
            found.append(fitted.coef_)
        scales = check_positive("scale", scale) / spread
        return cls.from_directions(np.vstack(found) / scales, scales=scales, feature_names=labels_of(X))

    @property
    def _n_features(self) -> int:
        """Number of features."""
        return int(self.components.shape[1])

    @cached_property
    def _map(self) -> tuple[FloatArray, FloatArray, int]:
        """An invertible matrix whose first rows give the distance, its inverse, and the number of these rows."""
        # Each feature in a unit of its own: rounding at the size of one is no rounding at the size of another.
        units = _units(self.components)
        left, values, rows = np.linalg.svd(self.components / units)
        rank = int((values > _RANK * values.max()).sum())
        # For p = 2, the left factor is a rotation and does not change the distance.
        top = self.components if self.p != 2 else values[:rank, None] * rows[:rank] * units
        first = (rows[:rank].T / values[:rank]) @ (left[:, :rank].T if self.p != 2 else np.eye(rank))
        unused = np.asarray(~self.components.any(axis=0))  # exactly: rounding times a large number is no small one
        top, first = np.where(unused, 0.0, top), np.where(unused[:, None], 0.0, first)
        inverse = np.hstack([first, rows[rank:].T]) / units[:, None]
        return np.vstack([top, rows[rank:] * units]), inverse, rank

    def encoder(self, *people: Any) -> LinearMapEncoder:
        """Components, and coordinates along the directions that must not matter."""
        names = self.feature_names or first_labels(people, self._n_features)
        return LinearMapEncoder(ArrayEncoder(self._n_features, names), *self._map)

    def read_training(self, X: Any, y: Any, estimator: Any, *, numeric: bool) -> tuple[People, npt.NDArray[Any]]:
        """As an array of features, encoded as components."""
        people, y = super().read_training(X, y, estimator, numeric=numeric)
        if people.rows.shape[1] != self._n_features:
            raise InvalidInputError(
                f"metric must have one column of components per feature of X ({people.rows.shape[1]}); it has "
                f"{self._n_features}."
            )
        raw = ArrayEncoder(self._n_features, people.encoder.labels)
        return LinearMapEncoder(raw, *self.named(raw.labels)._map).of(people), y

    def named(self, labels: tuple[Any, ...] | None) -> MahalanobisMetric:
        """The components of features in the order of `labels`; without names, by position."""
        if labels == self.feature_names:
            return self
        return MahalanobisMetric(self._in_order(labels), self.p, feature_names=labels)

    def _in_order(self, labels: tuple[Any, ...] | None) -> FloatArray:
        order = order_by_name(self.feature_names, labels)
        return self.components if order is None else self.components[:, order]

    def bind(self, schema: Encoder) -> BoundMetric:
        """The same for all components, 0 for free directions."""
        factor = self._factor(schema) if isinstance(schema, LinearMapEncoder) else None
        if not isinstance(schema, LinearMapEncoder) or factor is None:
            raise InvalidInputError(
                f"metric must have a weight for each column here; {self!r} weighs directions. Use WeightedLp or "
                "TableMetric, or a projected model, a network or smoothing."
            )
        d = len(schema.matrix)
        weight = factor if np.isinf(self.p) else factor**self.p
        weights = np.where(np.arange(d) < schema.n_components, weight, 0.0)
        return bind(self.learned(schema), schema, weights, p=self.p)

    def _factor(self, encoder: LinearMapEncoder) -> float | None:
        """Distance per unit of an encoder's components: 1 for its own metric, and other for a scaled one; else None."""
        components = self._in_order(encoder.raw_labels)
        if components is self.components and np.array_equal(encoder.matrix, self._map[0]):
            return 1.0
        # People at B x and B x' are at || A B^-1 (B x - B x') ||_p. That is a factor times the norm of their components
        # if A B^-1 is so many times the identity, or for p = 2 an isometry, and 0 along free directions.
        k = encoder.n_components
        if components.shape[1] != len(encoder.matrix):
            return None
        there, free = np.split(components @ encoder.inverse, [k], axis=1)
        square = there.T @ there if self.p == 2 else there
        if square.shape != (k, k) or not square[0, 0] > 0:
            return None
        near = np.abs(square / square[0, 0] - np.eye(k)).max() <= _NEAR
        if not near or np.abs(free).max(initial=0.0) > 2 * _RANK * np.abs(there).max():
            return None
        return float(np.sqrt(square[0, 0]) if self.p == 2 else square[0, 0])

    def scaled(self, factor: float) -> MahalanobisMetric:
        """Return the metric whose distances are `factor` times as large."""
        return self.with_params(components=self.components * check_positive("factor", factor))

    def rounded(self) -> MahalanobisMetric:
        """Return the metric in which one point of the feature that counts most is a round amount; never larger."""
        largest = float(self._scales.max())
        return self.with_params(components=self.components * (round_scale(largest) / largest))

    @property
    def _scales(self) -> FloatArray:
        """Distance per unit of each feature, if it alone differs."""
        return lp_norm(self.components.T, self.p)

    def describe(self) -> pd.DataFrame:
        """Per feature, the distance per unit and the difference worth one point, if it alone differs."""
        scales = np.where(self._scales <= _RANK * self._scales.max(), 0.0, self._scales)
        worth = ["must not matter" if scale == 0 else f"{0.01 / scale:.3g}" for scale in scales]
        return pd.DataFrame({"column": self.encoder().raw.names, "weight": scales, "one point": worth})

    def notes(self) -> str:
        """What the table leaves out: differences in several features."""
        free = self._n_features - self._map[2]
        return (
            f"{super().notes()} Differences in several features are taken together, and may add up or cancel; "
            f"{free} of {self._n_features} directions must not matter."
        )

    def _key(self) -> tuple[Any, ...]:
        return self.p, self.feature_names, self.components.shape, self.components.tobytes()

    @property
    def _map_in_words(self) -> str:
        k, d = self.components.shape
        return f"{k} components of {d} features"

    def in_words(self, written: Callable[[float], str] = in_points) -> str:
        """What the distance is: how many columns the linear map has."""
        return f"the distance with p = {self.p:g} after a linear map, {self._map_in_words}"

    def __repr__(self) -> str:
        return f"MahalanobisMetric({self._map_in_words}, p={self.p:g})"
