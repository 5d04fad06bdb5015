"""A tree of boxes over people under one metric, with which pair searches prune.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from likewise._numba import njit
from likewise._parallel import run_in_threads
from likewise._subsample import evenly_spaced
from likewise._typing import FloatArray, IntArray
from likewise.kernel.distance import CODE, NULLABLE, NUMBER, Kinds, dual, lp_norm
from likewise.pairs.box_bounds import MARGIN, Space, all_exceed, excess_bound
from likewise.pairs.kernels import fill_differences, fill_distances

LEAF_SIZE = 32
SLOPE_SAMPLE = 5000  # sample size for the choice of slopes
_N_CHUNKS = 64  # fixed, so that results do not depend on the number of threads


class SearchParameters(NamedTuple):
    """What all trees of one search share: the columns that matter, codes last, and the centre of their numbers.

    The slopes of the space are subtracted from the outputs around the centre.
    """

    used: IntArray
    centre: FloatArray
    space: Space


class BoxTree(NamedTuple):
    """A tree of boxes as compiled searches take it.

    People are in tree order: `order` has their positions and `counts` how many equal people each stands for. Each is a
    column of `points`: the columns that matter, the outputs, and these minus slopes. A node holds people `start` to
    `stop`, within the box from `low` to `high`; its children are `child` and ``child + 1`` (-1 for a leaf).
    """

    points: FloatArray
    order: IntArray
    counts: IntArray
    space: Space
    start: IntArray
    stop: IntArray
    child: IntArray
    low: FloatArray
    high: FloatArray
    stack_size: int


def search_parameters(
    X: FloatArray, outputs: FloatArray, ends: FloatArray, scales: FloatArray, p: float, kinds: Kinds
) -> SearchParameters:
    """Choose slopes by a sample of people and outputs; `ends` are the lowest and highest values of everyone.

    Any slopes and any centre are sound. Other arguments as in `box_tree_of`.
    """
    matters = scales > 0
    if not matters.any():  # one column of scale 0 keeps the kernels simple
        matters = np.arange(len(scales)) == 0
    used = np.flatnonzero(matters)
    used = used[np.argsort(kinds[used] == CODE, kind="stable")]  # codes last
    scales, kinds = np.ascontiguousarray(scales[used]), kinds[used]
    low, high = np.nan_to_num(ends[:, used])
    centre = low / 2 + high / 2
    centred = _filled(np.ascontiguousarray(X[:, used].T)) - centre[:, None]
    slopes, steepness = _slopes(centred, outputs[:, 0], kinds, scales, p)
    # Rounding of residuals, and of distances up to the diameter: absolute, where MARGIN is relative.
    widest = np.maximum(high - centre, centre - low)
    slack = 64 * np.finfo(float).eps * (1 + float(scales @ np.where(kinds == CODE, 1.0, widest)))
    n_numbers = int((kinds != CODE).sum())
    return SearchParameters(used, centre, Space(kinds, n_numbers, scales, float(p), slopes, steepness, slack))


def column_ranges(X: FloatArray) -> FloatArray:
    """Lowest and highest value of each column, shape (2, n_columns); NaN if all are missing."""
    return np.stack([np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)])


def _slopes(
    centred: FloatArray, outputs: FloatArray, kinds: Kinds, scales: FloatArray, p: float
) -> tuple[FloatArray, FloatArray]:
    """Slopes to subtract from the outputs, none steeper than the metric, and their dual norms.

    Any choice is sound that is 0 for codes and nullable numbers; multiples of the least-squares slope follow smooth
    scores well. The first is 0.
    """
    X = centred.T * np.where(kinds == NUMBER, scales, 0.0)
    fit = np.linalg.lstsq(X - X.mean(axis=0), outputs - outputs.mean(), rcond=None)[0]
    fit = np.clip(np.nan_to_num(fit), -1e6, 1e6) * (kinds == NUMBER)  # infinite for people who hardly differ
    steps = np.array([0.0, 0.5, 1.0, 1.5, 2.0])[:, None] * fit
    if p == 1:
        return np.clip(steps, -1.0, 1.0) * scales, np.abs(steps).max(axis=1)
    steepness = lp_norm(steps, dual(p)) * (1 + MARGIN)
    shrink = np.maximum(steepness, 1.0)
    return steps / shrink[:, None] * scales, steepness / shrink


def build_box_tree(
    X: FloatArray,
    outputs: FloatArray,
    parameters: SearchParameters,
    count: IntArray | None = None,
    names: IntArray | None = None,
) -> BoxTree:
    """Build the tree; `X`, `outputs` and `count` (1 if None) as in `box_tree_of`.

    `order` has the `names` of people; their positions if None.
    """
    used, centre, space = parameters
    columns, outputs = np.ascontiguousarray(X[:, used].T), np.ascontiguousarray(outputs.T)
    order, start, stop, child = build(_filled(columns), outputs, space.n_numbers, space.scales, LEAF_SIZE)
    columns, outputs = columns.take(order, axis=1), outputs.take(order, axis=1)
    filled = _filled(columns)
    limits = feature_ranges(columns, filled, space.kinds, start, stop, child)
    residuals = outputs[:1] - space.slopes @ (filled - centre[:, None])
    points = np.concatenate([columns, outputs, residuals])
    others = ranges(points[len(columns) :], start, stop, child)
    low, high = (np.hstack(each) for each in zip(limits, others, strict=True))
    count = np.ones(len(X), dtype=np.int64) if count is None else count[order]
    names = order if names is None else names[order]
    return BoxTree(points, names, count, space, start, stop, child, low, high, 4 * (_depth(child) + 1))


def box_tree_of(
    X: FloatArray,
    outputs: FloatArray,
    scales: FloatArray,
    p: float,
    kinds: Kinds,
    count: IntArray | None = None,
) -> BoxTree:
    """Build the tree with parameters chosen by these people alone.

    Parameters
    ----------
    X : ndarray of shape (n_people, n_features)
    outputs : ndarray of shape (n_people, n_outputs)
        The difference of two people is the sum of their absolute differences.
    kinds : ndarray of shape (n_features,)
        As in `likewise.pairs.points.Points`.
    count : ndarray of shape (n_people,), optional
        How many equal people each one stands for.
    """
    some = evenly_spaced(len(X), SLOPE_SAMPLE)
    return build_box_tree(
        X, outputs, search_parameters(X[some], outputs[some], column_ranges(X), scales, p, kinds), count
    )


def concatenate_trees(a: BoxTree, b: BoxTree) -> BoxTree:
    """Two trees with the same parameters as one, without a common root: the nodes of `a`, then those of `b`."""
    shift, n_nodes = a.points.shape[1], len(a.child)
    return BoxTree(
        np.hstack([a.points, b.points]),
        np.append(a.order, b.order),
        np.append(a.counts, b.counts),
        a.space,
        np.append(a.start, b.start + shift),
        np.append(a.stop, b.stop + shift),
        np.append(a.child, np.where(b.child < 0, -1, b.child + n_nodes)),
        np.concatenate([a.low, b.low]),
        np.concatenate([a.high, b.high]),
        a.stack_size + b.stack_size,
    )


def map_chunks(search: Callable[[IntArray], Any], tasks: IntArray, n_jobs: int | None = None) -> list[Any]:
    """Run a compiled search on chunks of node pairs in threads; results in order."""
    chunks = [tasks[i::_N_CHUNKS].copy() for i in range(min(_N_CHUNKS, len(tasks)))]
    results: list[Any] = [None] * len(chunks)

    def work(i: int) -> None:
        results[i] = search(chunks[i])

    run_in_threads(work, range(len(chunks)), n_jobs)
    return results


def tasks_within(child: IntArray) -> IntArray:
    """Pairs of nodes that cover all pairs of people once, enough of them for `map_chunks`; shape (n_tasks, 2)."""
    nodes = _frontier(child, 0)
    a, b = np.triu_indices(len(nodes))
    return np.stack([nodes[a], nodes[b]], axis=1)


def tasks_between(child: IntArray, second: int) -> IntArray:
    """The same for pairs of a person of one tree and one of another; `second` is the root of the other."""
    one, other = _frontier(child, 0), _frontier(child, second)
    return np.stack([np.repeat(one, len(other)), np.tile(other, len(one))], axis=1)


def _frontier(child: IntArray, root: int) -> IntArray:
    """Nodes that partition the people below a root."""
    nodes = [root]
    while len(nodes) < _N_CHUNKS:
        parts = [part for node in nodes for part in ((child[node], child[node] + 1) if child[node] >= 0 else (node,))]
        if len(parts) == len(nodes):
            break
        nodes = parts
    return np.array(nodes, dtype=np.int64)


def _filled(columns: FloatArray) -> FloatArray:
    """A copy with 0 for missing numbers."""
    return np.where(np.isnan(columns), 0.0, columns)


def feature_ranges(
    columns: FloatArray, filled: FloatArray, kinds: Kinds, start: IntArray, stop: IntArray, child: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Ranges of features; unlimited where someone in the box misses the number, whose gap to all others is 0."""
    low, high = ranges(filled, start, stop, child)
    nullable = np.flatnonzero(kinds == NULLABLE)
    if len(nullable):
        absent = ranges(np.isnan(columns[nullable]).astype(np.float64), start, stop, child)[1] > 0
        low[:, nullable] = np.where(absent, -np.inf, low[:, nullable])
        high[:, nullable] = np.where(absent, np.inf, high[:, nullable])
    return low, high


def _depth(child: IntArray) -> int:
    """Depth of the tree, which sets the stack size of a search."""
    depth = np.zeros(len(child), dtype=np.int64)
    for node in np.flatnonzero(child >= 0):  # children come after their parents
        depth[child[node] : child[node] + 2] = depth[node] + 1
    return int(depth.max())


@njit(cache=True, error_model="numpy")
def build(columns, outputs, n_numbers, scales, leaf):
    """Split people along the widest scaled feature or output until at most `leaf` are left in a node.

    Numbers are split at the median. Codes are split between two codes, as evenly as possible: boxes that share a code
    are at distance 0 in that column.
    """
    d, n = columns.shape
    k = outputs.shape[0]
    max_nodes = 2 * n + 2
    start, stop = np.zeros(max_nodes, np.int64), np.zeros(max_nodes, np.int64)
    child = np.full(max_nodes, -1, np.int64)
    order = np.arange(n)
    key = np.empty(n)
    stop[0] = n
    n_nodes, node = 1, 0
    while node < n_nodes:
        a, b = start[node], stop[node]
        if b - a > leaf:
            widest, axis = -1.0, 0
            for f in range(d + k):
                lowest, highest = np.inf, -np.inf
                for j in range(a, b):
                    value = columns[f, order[j]] if f < d else outputs[f - d, order[j]]
                    lowest, highest = min(lowest, value), max(highest, value)
                width = highest - lowest
                if f < d:
                    width = scales[f] * (width if f < n_numbers else min(width, 1.0))
                if width > widest:
                    widest, axis = width, f
            for j in range(a, b):
                key[j] = columns[axis, order[j]] if axis < d else outputs[axis - d, order[j]]
            middle = (a + b) // 2
            _select(key, order, a, b, middle)
            if n_numbers <= axis < d and widest > 0:
                middle = _between_codes(key, a, b, middle)
                _select(key, order, a, b, middle)
            child[node] = n_nodes
            start[n_nodes], stop[n_nodes] = a, middle
            start[n_nodes + 1], stop[n_nodes + 1] = middle, b
            n_nodes += 2
        node += 1
    return order, start[:n_nodes].copy(), stop[:n_nodes].copy(), child[:n_nodes].copy()


@njit(cache=True, error_model="numpy")
def _between_codes(key, a, b, middle):
    """Position nearest to `middle` at which sorted key[a:b] changes from one code to the next."""
    below, above = a, b
    for j in range(a, b):
        if key[j] < key[middle]:
            below += 1
        elif key[j] > key[middle]:
            above -= 1
    return below if below > a and (above == b or middle - below <= above - middle) else above


@njit(cache=True, error_model="numpy")
def _select(key, order, a, b, middle):
    """Quickselect: rearrange key[a:b] (and order with it) so that key[a:middle] <= key[middle:b]."""
    left, right = a, b - 1
    while left < right:
        pivot = key[(left + right) // 2]
        i, j = left, right
        while i <= j:
            while key[i] < pivot:
                i += 1
            while key[j] > pivot:
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@njit(cache=True, error_model="numpy")
def ranges(rows, start, stop, child):
    """Smallest and largest value per row and node; shape (n_nodes, n_rows)."""
    n_nodes, n_rows = len(start), rows.shape[0]
    low, high = np.empty((n_nodes, n_rows)), np.empty((n_nodes, n_rows))
    for node in range(n_nodes - 1, -1, -1):  # children come after their parents
        for f in range(n_rows):
            if child[node] >= 0:
                low[node, f] = min(low[child[node], f], low[child[node] + 1, f])
                high[node, f] = max(high[child[node], f], high[child[node] + 1, f])
            else:
                low[node, f] = rows[f, start[node] : stop[node]].min()
                high[node, f] = rows[f, start[node] : stop[node]].max()
    return low, high


# Not cached: numba cannot compile a loop over a generator that comes from its cache. The loops are cached.
@njit(error_model="numpy", nogil=True)
def node_pairs(tree, tasks, goal):
    """Pairs of nodes in which pairs of people may exceed, below some pairs of nodes.

    Yields two nodes, and whether all pairs between them exceed, by less than `least` and with ratios below `largest`,
    so that they need only be counted; otherwise both are leaves.

    Parameters
    ----------
    goal : ndarray
        `tolerance`, `least` and `largest`; the last two may be raised on the way.
    """
    _, _, _, space, start, stop, child, low, high, stack_size = tree
    stack, gap = np.empty((stack_size, 2), np.int64), np.empty(len(space.scales))
    tolerance = goal[0]
    for task in range(len(tasks)):
        top = 1
        stack[0] = tasks[task]
        while top > 0:
            top -= 1
            a, b = stack[top]
            if a != b:
                most = excess_bound(low[a], high[a], low[b], high[b], space, gap)
                if most <= tolerance:
                    continue
                if most < goal[1] and all_exceed(low[a], high[a], low[b], high[b], space, tolerance, goal[2], gap):
                    yield a, b, True
                    continue
            if child[a] >= 0 or child[b] >= 0:
                top = _push_children(stack, top, a, b, start, stop, child)
                continue
            yield a, b, False


@njit(cache=True, error_model="numpy")
def fill_run(columns, outputs, space, i, first, last, differences, distances):
    """Fill in the differences and distances between a person and a run of others."""
    fill_differences(outputs, i, first, last, differences)
    fill_distances(columns, space.kinds, space.scales, space.p, i, first, last, differences, distances)


@njit(cache=True, error_model="numpy")
def parts_of(tree):
    """Columns and outputs of the people in a tree."""
    n_columns = len(tree.space.scales)
    return tree.points[:n_columns], tree.points[n_columns : len(tree.points) - len(tree.space.slopes)]


@njit(cache=True, error_model="numpy")
def _push_children(stack, top, a, b, start, stop, child):
    """Replace a pair of nodes by pairs of children, splitting the larger node; return the new top of the stack."""
    if a == b:
        one = child[a]
        stack[top, 0], stack[top, 1] = one, one
        stack[top + 1, 0], stack[top + 1, 1] = one, one + 1
        stack[top + 2, 0], stack[top + 2, 1] = one + 1, one + 1
        return top + 3
    if child[a] < 0 or (child[b] >= 0 and stop[b] - start[b] > stop[a] - start[a]):
        a, b = b, a
    stack[top, 0], stack[top, 1] = child[a], b
    stack[top + 1, 0], stack[top + 1, 1] = child[a] + 1, b
    return top + 2
