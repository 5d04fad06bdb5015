"""Trees and sums of trees under noise with independent coordinates, leaf by leaf.

A leaf is a box, and independent coordinates make the probability of a box a product. Going down the tree, the
chance to turn left at a split ``x_i <= threshold``, given the box so far ``low < x_i <= high``, is
``(F(threshold) - F(low)) / (F(high) - F(low))``; low and high are thresholds further up, so they are known in
advance, and one pass over the nodes gives the probability of every leaf.
"""

from __future__ import annotations

from collections.abc import Callable
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
from likewise.guarantees.bounds import round_down
from likewise.inspection.preprocessing import affine_map, last_step
from likewise.inspection.trees import TreeNodes, leaf_range, read_trees
from likewise.metrics.base import dual, lp_norm
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

_PRODUCTS_AT_ONCE = 2**22
_ROUNDING = 2.0**-40  # more than the errors of a norm, and of an average of probabilities
_HALVINGS = 200


@dataclass(frozen=True, eq=False)
class LinearVotes(Frozen):
    """``h(x)[1] = E_b Phi((beta . x + intercept + b) / ||beta * sigma||)``.

    The margin of ``x + t`` is Gaussian. b is what the columns of weight 0 add, over the training rows.

    Attributes
    ----------
    visible : ndarray of bool, shape (n_features,)
    beta : ndarray of shape (n_visible,)
    sigma : float
        Standard deviation of the margin under the noise.
    slope : float
        Most that ``beta . x`` moves per unit of distance, rounded upwards.
    offsets, weights : ndarray of shape (n_offsets,)
        Different values of ``intercept + b``, and their shares.
    """

    visible: BoolArray
    beta: FloatArray
    sigma: float
    slope: float
    offsets: FloatArray
    weights: FloatArray

    @classmethod
    def from_model(cls, model: Any, bank: SharedDraws) -> LinearVotes | None:
        """Read the model; None if it has not two classes, or its noise is not Gaussian."""
        linear, noise = last_step(model), bank.noise
        if type(linear) not in LINEAR_CLASSIFIERS or type(noise) is not Gaussian or len(linear.classes_) != 2:
            return None
        factor, shift = affine_map(model, noise.metric.n_features)
        coef = np.asarray(linear.coef_, dtype=np.float64).ravel()
        beta, visible = coef * factor, noise.visible
        sigma = float(np.linalg.norm(beta * noise.widths * Gaussian.SIGMA))
        # sum |beta_i| |x_i - x'_i| <= ||beta / s||_q ||s (x - x')||_p, by Hölder's inequality.
        slope = float(lp_norm(beta[visible] / noise.metric.scales[visible], dual(noise.metric.p))) * (1 + _ROUNDING)
        offset = float(coef @ shift) + float(np.ravel(linear.intercept_)[0])
        hidden = bank.background @ beta[~visible]
        offsets, counts = np.unique(hidden, return_counts=True)
        return cls(visible, beta[visible], sigma, slope, offset + offsets, counts / counts.sum())

    def mean_votes(self, X: FloatArray, n_jobs: int | None = None) -> FloatArray:
        """Probabilities of both classes, shape (n_samples, 2)."""
        upper = np.empty(len(X))
        rows = max(1, _PRODUCTS_AT_ONCE // len(self.offsets))
        for start in range(0, len(X), rows):
            upper[start : start + rows] = self._share(self._parts(X[start : start + rows]).sum(axis=1))
        upper = np.clip(upper, 0.0, 1.0)
        return np.stack([1 - upper, upper], axis=1)

    def distance_to_tie(self, X: FloatArray) -> FloatArray:
        """Distance of each person from the nearest one for whom both classes are equally likely, rounded down.

        h rises with ``beta . x`` alone, so a tie is at one value of that. `docs/theory.md` §10.
        """
        low, high = self._tie
        parts = self._parts(X)
        products, size = parts.sum(axis=1), np.abs(parts).sum(axis=1)
        # A sum of d products is off by less than d + 1 units in the last place of their sizes; some more is left.
        error = 4 * (self.beta.size + 1) * np.finfo(np.float64).eps * (size + max(abs(low), abs(high)))
        gap = np.maximum(0.0, np.maximum(products - high, low - products) - error)
        if self.slope == 0:  # nobody is told from anybody
            return np.full(len(X), np.inf)
        return round_down(gap / self.slope)

    @cached_property
    def _tie(self) -> tuple[float, float]:
        """Two values of ``beta . x``: h is below 1/2 up to the first, and above from the second on."""
        room = 1 + 40 * self.sigma + _ROUNDING * float(np.abs(self.offsets).max())
        ends = -float(self.offsets.max()) - room, -float(self.offsets.min()) + room
        return (
            _last_below(lambda m: self._share(m) <= 0.5 - _ROUNDING, *ends),
            -_last_below(lambda m: self._share(-m) >= 0.5 + _ROUNDING, -ends[1], -ends[0]),
        )

    def _parts(self, X: FloatArray) -> FloatArray:
        # Added up by row: a matrix product may round differently by position.
        return np.asarray(X[:, self.visible] * self.beta)

    def _share(self, products: FloatArray) -> FloatArray:
        """Probability of the second class, for values of ``beta . x``."""
        margin = products[:, None] + self.offsets
        share = ndtr(margin / self.sigma) if self.sigma > 0 else (margin > 0).astype(np.float64)
        return np.asarray((share * self.weights).sum(axis=1))


def _last_below(holds: Callable[[FloatArray], Any], low: float, high: float) -> float:
    """About the largest number up to which a condition holds: it holds at `low`, where it is true to begin with."""
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        if holds(np.array([middle]))[0]:
            low = middle
        else:
            high = middle
    return low


_PEOPLE_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class LeafVotes:
    """``h(x) = baseline + sum over trees and leaves of P(x + t in leaf) value(leaf)``.

    Attributes
    ----------
    noise : Noise
    features, thresholds : ndarray of shape (n_thresholds,)
        The distinct splits on visible features.
    split, low, high : ndarray of shape (n_nodes,)
        Index into the splits; ``low`` and ``high`` bound the same feature further up (n_thresholds + 1 and
        n_thresholds: no bound). ``split = -1`` marks a leaf, ``-2`` a split on a hidden feature.
    left, right : ndarray of shape (n_nodes,)
        Children, always after their parent.
    chance : ndarray of shape (n_nodes,)
        For splits on hidden features: the share of the background that goes left.
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
    chance: FloatArray
    values: FloatArray
    roots: IntArray
    baseline: FloatArray

    @classmethod
    def from_model(
        cls, model: Any, bank: SharedDraws, *, vote: str = "soft", limits: tuple[float, float] | None = None
    ) -> LeafVotes | None:
        """Read the model; None where leaves do not give its votes exactly.

        Parameters
        ----------
        vote : {"hard", "soft", "trees"}
            For classifiers. A forest's hard vote is a majority, which is not a sum over trees.
        limits : tuple of float, optional
            For regressors, the range to which predictions are clipped. Clipping a sum is not a sum: unless the
            model cannot leave the range, it must be a single tree.
        """
        if bank.noise.cumulative is None:
            return None
        trees = read_trees(last_step(model), vote)
        if trees is None:
            return None
        nodes, baseline = trees
        if limits is not None:
            if len(nodes) == 1:
                nodes[0].values[:] = np.clip(nodes[0].values + baseline, *limits) - baseline
            else:
                least, most = leaf_range(nodes, baseline)
                # A forest averages values of y; the rounding of a mean does not count as leaving the range.
                margin = 1e-12 * max(abs(least), abs(most))
                if least < limits[0] - margin or most > limits[1] + margin:
                    return None
        return _assemble(cls, nodes, baseline, model, bank)

    def mean_votes(self, X: FloatArray, n_jobs: int | None = None) -> FloatArray:
        """Exact averages of the votes, shape (n_samples, n_outputs)."""
        from likewise.smoothing.kernels import leaf_average

        F = self.noise.cumulative
        assert F is not None
        widths = self.noise.widths[self.features]
        out = np.empty((len(X), self.values.shape[1]))

        def block(start: int) -> None:
            rows = X[start : start + _PEOPLE_AT_ONCE]
            # Two more columns for "no bound": F = 1 at index -2, F = 0 at index -1.
            table = np.zeros((len(rows), len(self.features) + 2))
            table[:, -2] = 1.0
            with np.errstate(over="ignore", under="ignore"):
                table[:, :-2] = F((self.thresholds - rows[:, self.features]) / widths)
            out[start : start + len(rows)] = self.baseline
            leaf_average(
                table, self.split, self.low, self.high, self.left, self.right, self.chance, self.values, self.roots,
                out[start : start + len(rows)],
            )  # fmt: skip

        run_in_threads(block, range(0, len(X), _PEOPLE_AT_ONCE), n_jobs)
        return out


def _assemble(
    cls: type[LeafVotes], trees: list[TreeNodes], baseline: FloatArray, model: Any, bank: SharedDraws
) -> LeafVotes:
    """Join the trees: number the distinct splits, and find for each the bounds further up."""
    noise = bank.noise
    factor, shift = affine_map(model, noise.metric.n_features)
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
    chance = np.zeros(n_nodes)
    left, right = np.full(n_nodes, -1, np.int64), np.full(n_nodes, -1, np.int64)
    everyone = np.arange(len(bank.background))
    for tree, start in zip(trees, starts, strict=False):
        stack: list[tuple[int, dict[int, tuple[int, int]], IntArray]] = [(0, {}, everyone)]
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
                seen_by_tree = (bank.background[rows, column_of[i]] * factor[i] + shift[i]).astype(tree.dtype)
                goes_left = seen_by_tree <= tree.threshold[node]
                chance[here] = goes_left.mean() if len(rows) else 0.0
                stack.append((int(tree.left[node]), box, rows[goes_left]))
                stack.append((int(tree.right[node]), box, rows[~goes_left]))
    return cls(
        noise, splits[0].astype(np.int64), splits[1], split, low, high, left, right, chance,
        np.concatenate([tree.values for tree in trees]), starts[:-1], baseline,
    )  # fmt: skip
