"""Trees and sums of trees under noise with independent coordinates, leaf by leaf.

A leaf is a box, and independent coordinates make the probability of a box a product. Going down the tree, the
chance to turn left at a split ``x_i <= threshold``, given the box so far ``low < x_i <= high``, is
``(F(threshold) - F(low)) / (F(high) - F(low))``; low and high are thresholds further up, so they are known in
advance, and one pass over the nodes gives the probability of every leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from likewise._threads import run_in_threads
from likewise._typing import FloatArray, IntArray
from likewise.enforce.smoothing.bank import Bank
from likewise.enforce.smoothing.noises import Gaussian, Laplace, Noise, Uniform
from likewise.models.unwrapping import affine_map, last_step

SINGLE_TREES = {DecisionTreeClassifier, ExtraTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor}
FORESTS = {RandomForestClassifier, ExtraTreesClassifier, RandomForestRegressor, ExtraTreesRegressor}
BOOSTED = {GradientBoostingRegressor, HistGradientBoostingRegressor}

_PEOPLE_AT_ONCE = 1024


def cumulative(noise: Noise) -> Callable[[FloatArray], FloatArray] | None:
    """Distribution function of the standard noise per coordinate; None if coordinates are not independent."""
    d = int(noise.visible.sum())
    if type(noise) is Gaussian:
        return lambda z: np.asarray(ndtr(z / Gaussian.SIGMA))
    if type(noise) is Uniform:
        return lambda z: np.clip(z + 0.5, 0.0, 1.0)
    if type(noise) is Laplace and (noise.metric.p == 1 or d == 1):
        return lambda z: np.where(z < 0, 0.5 * np.exp(-2 * np.abs(z)), 1 - 0.5 * np.exp(-2 * np.abs(z)))
    return None


@dataclass(frozen=True, eq=False)
class TreeVotes:
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
        cls, model: Any, bank: Bank, *, vote: str = "soft", limits: tuple[float, float] | None = None
    ) -> TreeVotes | None:
        """Read the model; None where leaves do not give its votes exactly.

        Parameters
        ----------
        vote : {"hard", "soft", "trees"}
            For classifiers. A forest's hard vote is a majority, which is not a sum over trees.
        limits : tuple of float, optional
            For regressors, the range to which predictions are clipped. Clipping a sum is not a sum: unless the
            model cannot leave the range, it must be a single tree.
        """
        if cumulative(bank.noise) is None:
            return None
        trees = _read(last_step(model), vote)
        if trees is None:
            return None
        nodes, baseline = trees
        if limits is not None:
            if len(nodes) == 1:
                nodes[0].values[:] = np.clip(nodes[0].values + baseline, *limits) - baseline
            else:
                least, most = _range(nodes, baseline)
                # A forest averages values of y; that the mean of n equal numbers may be rounded is no way out.
                margin = 1e-12 * max(abs(least), abs(most))
                if least < limits[0] - margin or most > limits[1] + margin:
                    return None
        return _assemble(cls, nodes, baseline, model, bank)

    def mean_votes(self, X: FloatArray, n_jobs: int | None = None) -> FloatArray:
        """Exact averages of the votes, shape (n_samples, n_outputs)."""
        from likewise.enforce.smoothing.kernels import leaf_average

        F = cumulative(self.noise)
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


@dataclass(eq=False)
class _Nodes:
    """One tree as arrays; a leaf has left = -1.

    A row goes left if it is at most `threshold` after rounding to `dtype`: if it is at most `border`, ties aside.
    """

    left: IntArray
    right: IntArray
    feature: IntArray
    threshold: FloatArray
    border: FloatArray
    values: FloatArray
    dtype: type[np.floating[Any]]


def output_limits(model: Any) -> tuple[float, float]:
    """Range that a regression tree, forest or boosted sum of trees cannot leave, for any input.

    Sums of the smallest and of the largest leaves. With an `output_range` that holds it, a sum of trees can be
    smoothed exactly.

    Examples
    --------
    >>> model = GradientBoostingRegressor(n_estimators=2).fit([[0], [1], [2]], [0, 1, 2])
    >>> [round(limit, 2) for limit in output_limits(model)]
    [0.81, 1.19]
    """
    trees = _read(last_step(model), "soft")
    if trees is None:
        raise TypeError(f"model must be a fitted sum of regression trees; got {type(model).__name__}.")
    return _range(*trees)


def _range(nodes: list[_Nodes], baseline: FloatArray) -> tuple[float, float]:
    leaves = [tree.values[tree.left < 0] for tree in nodes]
    least = float(baseline[0]) + sum(float(leaf.min()) for leaf in leaves)
    most = float(baseline[0]) + sum(float(leaf.max()) for leaf in leaves)
    return least, most


def _read(model: Any, vote: str) -> tuple[list[_Nodes], FloatArray] | None:
    """Trees whose sum (plus a baseline) is the model's vote."""
    kind = type(model)
    if getattr(model, "n_outputs_", 1) != 1:
        return None
    if kind in SINGLE_TREES:
        return [_from_sklearn(model.tree_, 1.0, vote, classify=hasattr(model, "classes_"))], np.zeros(1)
    if kind in FORESTS:
        if vote == "hard" and hasattr(model, "classes_"):
            return None
        share = 1 / len(model.estimators_)
        classify = hasattr(model, "classes_")
        return [_from_sklearn(tree.tree_, share, vote, classify=classify) for tree in model.estimators_], np.zeros(1)
    if kind is GradientBoostingRegressor:
        if type(model.init_) is DummyRegressor:
            baseline = np.ravel(model.init_.constant_).astype(np.float64)
        elif isinstance(model.init_, str):  # "zero"
            baseline = np.zeros(1)
        else:
            return None
        trees = [tree.tree_ for tree in model.estimators_.ravel()]
        return [_from_sklearn(tree, model.learning_rate, "soft", classify=False) for tree in trees], baseline
    if kind is HistGradientBoostingRegressor:
        if model.loss not in ("squared_error", "absolute_error", "quantile"):  # others have a link function
            return None
        if model.is_categorical_ is not None and np.any(model.is_categorical_):
            return None
        trees = [_from_histogram(stage[0].nodes) for stage in model._predictors]
        return trees, np.ravel(model._baseline_prediction).astype(np.float64)
    return None


def _from_sklearn(tree: Any, factor: float, vote: str, *, classify: bool) -> _Nodes:
    values = np.array(tree.value[:, 0, :], dtype=np.float64)
    if classify and vote in ("hard", "trees"):
        values = np.eye(values.shape[1])[values.argmax(axis=1)]
    elif classify:
        values /= values.sum(axis=1, keepdims=True)
    # These trees round a row to float32 first: it is then at most the threshold if and only if the row is at most
    # the middle between the last float32 that is, and the next.
    last = tree.threshold.astype(np.float32)
    last = np.where(last > tree.threshold, np.nextafter(last, np.float32(-np.inf)), last)
    middle = (last.astype(np.float64) + np.nextafter(last, np.float32(np.inf)).astype(np.float64)) / 2
    return _Nodes(
        tree.children_left.astype(np.int64),
        tree.children_right.astype(np.int64),
        tree.feature.astype(np.int64),
        tree.threshold,
        middle,
        values * factor,
        np.float32,
    )


def _from_histogram(nodes: Any) -> _Nodes:
    leaf = nodes["is_leaf"].astype(bool)
    return _Nodes(
        np.where(leaf, -1, nodes["left"].astype(np.int64)),
        np.where(leaf, -1, nodes["right"].astype(np.int64)),
        nodes["feature_idx"].astype(np.int64),
        nodes["num_threshold"].astype(np.float64),
        nodes["num_threshold"].astype(np.float64),
        nodes["value"].astype(np.float64)[:, None],
        np.float64,
    )


def _assemble(cls: type[TreeVotes], trees: list[_Nodes], baseline: FloatArray, model: Any, bank: Bank) -> TreeVotes:
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
