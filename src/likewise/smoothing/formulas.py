"""Smoothed models in closed form: linear classifiers under Gaussian noise, trees under independent coordinates.

A leaf is a box, so its probability under independent coordinates is a product. At a split ``x_i <= threshold``, given
the box so far ``low < x_i <= high``, the probability of going left is ``(F(threshold) - F(low)) / (F(high) - F(low))``;
low and high are thresholds further up the tree, so one pass over the nodes gives the probability of every leaf.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn import linear_model
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.svm import LinearSVC

from likewise._frozen import Frozen
from likewise._parallel import run_in_threads
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.inspection.preprocessing import affine_map, last_step
from likewise.inspection.trees import TreeNodes, leaf_range, read_trees
from likewise.kernel.bounds import round_down
from likewise.kernel.distance import dual, lp_norm
from likewise.smoothing.noise import Gaussian, Noise
from likewise.smoothing.sampling import SharedDraws

# Their `predict` is the sign of `coef_ @ x + intercept_`; a subclass may do anything.
_NAMES = (
    "LogisticRegression",
    "LogisticRegressionCV",
    "Perceptron",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
)
LINEAR_CLASSIFIERS = {LinearDiscriminantAnalysis, LinearSVC, *(getattr(linear_model, name) for name in _NAMES)}

_MAX_PRODUCTS = 2**22
_ROUNDING = 2.0**-40  # more than the errors of a norm, and of an average of probabilities
_HALVINGS = 200


class Formula(Frozen, ABC):
    """Exact averages of a model's votes under noise."""

    @abstractmethod
    def mean_votes(self, X: FloatArray, n_jobs: int | None = None) -> FloatArray:
        """Averages of the votes, shape (n_samples, n_outputs)."""

    def distance_to_tie(self, X: FloatArray) -> FloatArray | None:
        """Distance within which the most likely class stays the same, rounded down; None to use probabilities."""
        return None

    def breakpoints(self) -> Iterator[tuple[int, FloatArray]]:
        """Columns, with the values at which the averages have kinks."""
        return iter(())


@dataclass(frozen=True, eq=False)
class LinearVotes(Formula):
    """``h(x)[1] = E_b Phi((beta . x + intercept + b) / ||beta * sigma||)``.

    The margin of ``x + t`` is Gaussian; b is the contribution of the columns of weight 0, over the training rows.

    Attributes
    ----------
    visible : ndarray of bool, shape (n_features,)
    beta : ndarray of shape (n_visible,)
    sigma : float
        Standard deviation of the margin under the noise.
    slope : float
        Largest change of ``beta . x`` per unit of distance, rounded upwards.
    offsets, weights : ndarray of shape (n_offsets,)
        Distinct values of ``intercept + b``, and their relative frequencies.
    """

    visible: BoolArray
    beta: FloatArray
    sigma: float
    slope: float
    offsets: FloatArray
    weights: FloatArray

    @classmethod
    def from_model(cls, model: Any, draws: SharedDraws) -> LinearVotes | None:
        """Read a fitted model; None unless it is linear with two classes, and the noise Gaussian."""
        linear, noise = last_step(model), draws.noise
        if type(linear) not in LINEAR_CLASSIFIERS or type(noise) is not Gaussian or len(linear.classes_) != 2:
            return None
        factor, shift = affine_map(model, len(noise.metric.scales))
        coef = np.asarray(linear.coef_, dtype=np.float64).ravel()
        beta, visible = coef * factor, noise.visible
        sigma = float(np.linalg.norm(beta * noise.widths * Gaussian.SIGMA))
        # sum |beta_i| |x_i - x'_i| <= ||beta / s||_q ||s (x - x')||_p, by Hölder's inequality.
        slope = float(lp_norm(beta[visible] / noise.metric.scales[visible], dual(noise.metric.p))) * (1 + _ROUNDING)
        offset = float(coef @ shift) + float(np.ravel(linear.intercept_)[0])
        hidden = draws.background @ beta[~visible]
        offsets, counts = np.unique(hidden, return_counts=True)
        return cls(visible, beta[visible], sigma, slope, offset + offsets, counts / counts.sum())

    def mean_votes(self, X: FloatArray, n_jobs: int | None = None) -> FloatArray:
        """Probabilities of both classes, shape (n_samples, 2)."""
        upper = np.empty(len(X))
        rows = max(1, _MAX_PRODUCTS // len(self.offsets))
        for start in range(0, len(X), rows):
            upper[start : start + rows] = self._probability(self._products(X[start : start + rows]).sum(axis=1))
        upper = np.clip(upper, 0.0, 1.0)
        return np.stack([1 - upper, upper], axis=1)

    def distance_to_tie(self, X: FloatArray) -> FloatArray:
        """Distance to the nearest row for which both classes are equally likely, rounded down.

        h increases with ``beta . x`` alone, so the tie is at one value of it (`docs/theory.md` §10).
        """
        low, high = self._tie
        terms = self._products(X)
        products, size = terms.sum(axis=1), np.abs(terms).sum(axis=1)
        # The error of a sum of d products is below d + 1 units in the last place of their sizes; 4 is a safe margin.
        error = 4 * (self.beta.size + 1) * np.finfo(np.float64).eps * (size + max(abs(low), abs(high)))
        gap = np.maximum(0.0, np.maximum(products - high, low - products) - error)
        if self.slope == 0:  # a constant model
            return np.full(len(X), np.inf)
        return round_down(gap / self.slope)

    @cached_property
    def _tie(self) -> tuple[float, float]:
        """Two values of ``beta . x``: h is below 1/2 up to the first, and above from the second on."""
        room = 1 + 40 * self.sigma + _ROUNDING * float(np.abs(self.offsets).max())
        ends = -float(self.offsets.max()) - room, -float(self.offsets.min()) + room
        return (
            _bisect(lambda m: self._probability(m) <= 0.5 - _ROUNDING, *ends),
            -_bisect(lambda m: self._probability(-m) >= 0.5 + _ROUNDING, -ends[1], -ends[0]),
        )

    def _products(self, X: FloatArray) -> FloatArray:
        # Summed by row: a matrix product may round differently by position.
        return np.asarray(X[:, self.visible] * self.beta)

    def _probability(self, products: FloatArray) -> FloatArray:
        """Probability of the second class, for values of ``beta . x``."""
        margin = products[:, None] + self.offsets
        share = ndtr(margin / self.sigma) if self.sigma > 0 else (margin > 0).astype(np.float64)
        return np.asarray((share * self.weights).sum(axis=1))


def _bisect(holds: Callable[[FloatArray], Any], low: float, high: float) -> float:
    """Approximate the largest number up to which a condition holds; it holds at the result if it does at `low`."""
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        if holds(np.array([middle]))[0]:
            low = middle
        else:
            high = middle
    return low


_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class LeafVotes(Formula):
    """``h(x) = baseline + sum over trees and leaves of P(x + t in leaf) value(leaf)``.

    Attributes
    ----------
    noise : Noise
    features, thresholds : ndarray of shape (n_thresholds,)
        The distinct splits on visible features.
    split, low, high : ndarray of shape (n_nodes,)
        Indices into the splits; ``low`` and ``high`` bound the same feature further up (n_thresholds + 1 and
        n_thresholds: no bound). ``split = -1`` marks a leaf, ``-2`` a split on a hidden feature.
    left, right : ndarray of shape (n_nodes,)
        Children, always after their parent.
    goes_left : ndarray of shape (n_nodes,)
        For splits on hidden features: the fraction of the background that goes left.
    values : ndarray of shape (n_nodes, n_outputs)
    roots : ndarray of shape (n_trees,)
    baseline : ndarray of shape (n_outputs,)
    """

    noise: Noise
    features: IntArray
    thresholds: FloatArray
    split: IntArray
    low: IntArray
    high: IntArray
    left: IntArray
    right: IntArray
    goes_left: FloatArray
    values: FloatArray
    roots: IntArray
    baseline: FloatArray

    @classmethod
    def from_model(
        cls, model: Any, draws: SharedDraws, *, vote: str = "soft", limits: tuple[float, float] | None = None
    ) -> LeafVotes | None:
        """Read a fitted model; None where its votes are not a sum over leaves.

        A forest's hard vote is a majority, which is not a sum over trees. Predictions of regressors are clipped to
        `limits`; a clipped sum is not a sum, so the model must be a single tree or unable to leave the range.
        """
        trees = None if draws.noise.cumulative is None else read_trees(last_step(model), vote)
        if trees is None:
            return None
        nodes, baseline = trees
        if limits is not None:
            if len(nodes) == 1:
                nodes[0].values[:] = np.clip(nodes[0].values + baseline, *limits) - baseline
            else:
                least, most = leaf_range(nodes, baseline)
                # A forest averages values of y; the rounding of a mean is not leaving the range.
                margin = 1e-12 * max(abs(least), abs(most))
                if least < limits[0] - margin or most > limits[1] + margin:
                    return None
        return _join_trees(nodes, baseline, model, draws)

    def mean_votes(self, X: FloatArray, n_jobs: int | None = None) -> FloatArray:
        """Exact averages of the votes, shape (n_samples, n_outputs)."""
        from likewise.smoothing.kernels import leaf_average

        F = self.noise.cumulative
        assert F is not None
        widths = self.noise.widths[self.features]
        out = np.empty((len(X), self.values.shape[1]))

        def block(start: int) -> None:
            rows = X[start : start + _BLOCK]
            # Two more columns for "no bound": F = 1 at index -2, F = 0 at index -1.
            table = np.zeros((len(rows), len(self.features) + 2))
            table[:, -2] = 1.0
            with np.errstate(over="ignore", under="ignore"):
                table[:, :-2] = F((self.thresholds - rows[:, self.features]) / widths)
            out[start : start + len(rows)] = self.baseline
            leaf_average(
                table, self.split, self.low, self.high, self.left, self.right, self.goes_left, self.values, self.roots,
                out[start : start + len(rows)],
            )  # fmt: skip

        run_in_threads(block, range(0, len(X), _BLOCK), n_jobs)
        return out

    def breakpoints(self) -> Iterator[tuple[int, FloatArray]]:
        """Columns with splits, and the values from which the noise reaches a threshold."""
        for column in np.unique(self.features).tolist():
            thresholds = self.thresholds[self.features == column]
            yield column, np.unique(thresholds[:, None] + self.noise.widths[column] * np.array([-0.5, 0, 0.5]))


def _join_trees(trees: list[TreeNodes], baseline: FloatArray, model: Any, draws: SharedDraws) -> LeafVotes:
    """Number the distinct splits of all trees, and find for each the bounds further up."""
    noise = draws.noise
    factor, shift = affine_map(model, len(noise.metric.scales))
    column_of = np.cumsum(~noise.visible) - 1  # of a hidden feature, in the background
    starts = np.cumsum([0, *(len(tree.left) for tree in trees)])
    inner = np.concatenate([tree.left for tree in trees]) >= 0
    feature = np.where(inner, np.concatenate([tree.feature for tree in trees]), 0)
    threshold = (np.concatenate([tree.border for tree in trees]) - shift[feature]) / factor[feature]
    seen = inner & noise.visible[feature]
    splits, index = np.unique(
        np.stack([feature[seen].astype(np.float64), threshold[seen]]), axis=1, return_inverse=True
    )
    split = np.where(inner, -2, -1).astype(np.int64)
    split[seen] = index.ravel()
    n_nodes = len(split)
    low, high = np.full(n_nodes, len(splits[0]) + 1, np.int64), np.full(n_nodes, len(splits[0]), np.int64)
    goes_left = np.zeros(n_nodes)
    left, right = np.full(n_nodes, -1, np.int64), np.full(n_nodes, -1, np.int64)
    background_rows = np.arange(len(draws.background))
    for tree, start in zip(trees, starts, strict=False):
        stack: list[tuple[int, dict[int, tuple[int, int]], IntArray]] = [(0, {}, background_rows)]
        while stack:
            node, box, rows = stack.pop()
            here = start + node
            if tree.left[node] < 0:
                continue
            left[here], right[here] = start + tree.left[node], start + tree.right[node]
            i = int(tree.feature[node])
            if noise.visible[i]:
                low[here], high[here] = bounds = box.get(i, (int(low[here]), int(high[here])))
                cut = int(split[here])
                stack.append((int(tree.left[node]), box | {i: (bounds[0], cut)}, rows))
                stack.append((int(tree.right[node]), box | {i: (cut, bounds[1])}, rows))
            else:
                values = (draws.background[rows, column_of[i]] * factor[i] + shift[i]).astype(tree.dtype)
                below = values <= tree.threshold[node]
                goes_left[here] = below.mean() if len(rows) else 0.0
                stack.append((int(tree.left[node]), box, rows[below]))
                stack.append((int(tree.right[node]), box, rows[~below]))
    return LeafVotes(
        noise, splits[0].astype(np.int64), splits[1], split, low, high, left, right, goes_left,
        np.concatenate([tree.values for tree in trees]), starts[:-1], baseline,
    )  # fmt: skip
