"""People in a tree of boxes under one metric, with what bounds the pairs between boxes.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from likewise._numba import njit
from likewise._parallel import n_threads
from likewise._typing import FloatArray, IntArray
from likewise.metrics.base import lp_norm
from likewise.metrics.encoders import spread
from likewise.pairs.kernels import all_numbers
from likewise.pairs.points import CODE, GAPPY, NUMBER, Kinds

# Bounds are computed by the same operations as the values they bound, which are monotone in floating point except
# for powers; this relative margin is far above their rounding.
MARGIN = 1e-12


@njit(cache=True, error_model="numpy")
def build(columns, answers, n_numbers, scales, leaf):
    """Split the people along the widest of the scaled features and the outputs, until `leaf` are left.

    In halves along numbers. Along codes in the two most even parts that have none in common: it is only then that
    boxes are apart.
    """
    d, n = columns.shape
    k = answers.shape[0]
    most = 2 * n + 2
    start, stop = np.zeros(most, np.int64), np.zeros(most, np.int64)
    child = np.full(most, -1, np.int64)
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
                    value = columns[f, order[j]] if f < d else answers[f - d, order[j]]
                    lowest, highest = min(lowest, value), max(highest, value)
                width = highest - lowest
                if f < d:
                    width = scales[f] * (width if f < n_numbers else min(width, 1.0))
                if width > widest:
                    widest, axis = width, f
            for j in range(a, b):
                key[j] = columns[axis, order[j]] if axis < d else answers[axis - d, order[j]]
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
    """Where, nearest to `middle`, key[a:b] would go from one code to another if it were sorted."""
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


@njit(cache=True, error_model="numpy")
def least_gaps(low_a, high_a, low_b, high_b, n_numbers, gap):
    """Fill `gap` with the smallest gap per feature between two boxes (or people, whose missing numbers are NaN)."""
    for f in range(len(gap)):
        gap[f] = 0.0
        if low_a[f] > high_b[f]:
            gap[f] = low_a[f] - high_b[f] if f < n_numbers else 1.0
        elif low_b[f] > high_a[f]:
            gap[f] = low_b[f] - high_a[f] if f < n_numbers else 1.0


@njit(cache=True, error_model="numpy")
def most_gaps(low_a, high_a, low_b, high_b, n_numbers, gap):
    """Fill `gap` with the largest gap per feature between two boxes."""
    for f in range(len(gap)):
        gap[f] = max(high_a[f] - low_b[f], high_b[f] - low_a[f])
        if f >= n_numbers:
            gap[f] = min(gap[f], 1.0)


@njit(cache=True, error_model="numpy")
def norm(gap, n_numbers, scales, p):
    """The distance that belongs to `gap`, by the operations of `fill_distances`."""
    total = _norm_of_numbers(gap, n_numbers, scales, p)
    for f in range(n_numbers, len(gap)):
        total += scales[f] * gap[f]
    return total


@njit(cache=True, error_model="numpy")
def _norm_of_numbers(gap, n_numbers, scales, p):
    total = 0.0
    if p == 1.0:
        for f in range(n_numbers):
            total += scales[f] * gap[f]
        return total
    if p == 2.0:
        for f in range(n_numbers):
            z = scales[f] * gap[f]
            total += z * z
        return np.sqrt(total)
    largest = 0.0
    for f in range(n_numbers):
        largest = max(largest, scales[f] * gap[f])
    if p == np.inf or largest == 0.0 or largest == np.inf:
        return largest
    for f in range(n_numbers):
        total += (scales[f] * gap[f] / largest) ** p
    return largest * total ** (1.0 / p)


@njit(cache=True, error_model="numpy")
def most_difference(low_a, high_a, low_b, high_b):
    """Upper bound of the difference of outputs between two boxes."""
    if len(low_a) == 1:
        return max(high_a[0] - low_b[0], high_b[0] - low_a[0])
    # Outputs are halved probabilities: TV = 1/2 sum |p - q| = sum (p - q)+ = sum (q - p)+.
    either, up, down = 0.0, 0.0, 0.0
    for k in range(len(low_a)):
        rise, fall = high_a[k] - low_b[k], high_b[k] - low_a[k]
        either += max(rise, fall)
        up += max(0.0, rise)
        down += max(0.0, fall)
    # Rows of probabilities sum to 1 up to 1e-5 only, hence no tighter margin on the one-sided sums.
    return min(either, 2.0 * min(up, down) + 2e-5)


@njit(cache=True, error_model="numpy")
def most_excess(low_a, high_a, low_b, high_b, rest_low_a, rest_high_a, rest_low_b, rest_high_b,
                n_numbers, scales, p, slopes, used, gap):  # fmt: skip
    """Upper bound of the excess between two boxes, from what the slopes leave of output and distance.

    For a slope g, with rest r = output - g.x: ``output_a - output_b - D = r_a - r_b - (D - g.(x_a - x_b))``. The last
    bracket is at least 0 if g is no steeper than the metric, and grows with the gap between the boxes. g is 0 for
    codes, and for numbers that may be missing.
    """
    up, down = np.inf, np.inf  # a above b, and b above a
    codes, nearest = 0.0, 0.0
    for f in range(n_numbers, len(scales)):
        if low_a[f] > high_b[f] or low_b[f] > high_a[f]:
            codes += scales[f]
    if p != 1.0:
        least_gaps(low_a, high_a, low_b, high_b, n_numbers, gap)
        nearest = _norm_of_numbers(gap, n_numbers, scales, p)
    for g in range(len(slopes)):
        if p == 1.0:
            kept_up, kept_down = codes, codes
            for f in range(n_numbers):
                if low_a[f] > high_b[f]:
                    kept_up += (scales[f] - slopes[g, f]) * (low_a[f] - high_b[f])
                    kept_down += (scales[f] + slopes[g, f]) * (low_a[f] - high_b[f])
                elif low_b[f] > high_a[f]:
                    kept_up += (scales[f] + slopes[g, f]) * (low_b[f] - high_a[f])
                    kept_down += (scales[f] - slopes[g, f]) * (low_b[f] - high_a[f])
        else:
            kept_up = kept_down = (1.0 - used[g]) * nearest + codes
        up = min(up, rest_high_a[g] - rest_low_b[g] - kept_up * (1 - MARGIN))
        down = min(down, rest_high_b[g] - rest_low_a[g] - kept_down * (1 - MARGIN))
    return max(up, down)


@njit(cache=True, error_model="numpy")
def least_difference(low_a, high_a, low_b, high_b):
    """Lower bound of the difference of outputs between two boxes."""
    total = 0.0
    for k in range(len(low_a)):
        total += max(0.0, low_a[k] - high_b[k], low_b[k] - high_a[k])
    return total


LEAF = 32
SOME = 5000  # people by whom slopes are chosen
_LANES = 64  # fixed, so that results do not depend on the number of threads


class SearchParameters(NamedTuple):
    """What all boxes of one search share, whoever is in them.

    `used` are the columns that matter, codes last; the other lines are about these. `slopes` are taken out of the
    outputs around `centre`; `slack` is above the rounding of every bound.
    """

    used: IntArray
    kinds: Kinds
    n_numbers: int
    scales: FloatArray
    p: float
    centre: FloatArray
    slopes: FloatArray
    steepness: FloatArray
    slack: float


class BoxTree(NamedTuple):
    """A tree of boxes as compiled searches take it; they unpack it first, which makes them a quarter faster.

    People stand in the order of the tree, `order` says which ones they are; a node holds those from `start` to `stop`,
    and its parts are the nodes `child` and ``child + 1`` (-1 for a leaf). Ranges are of columns, of outputs
    (`answer_`) and of what `slopes` leave of these (`rest_`). `slack` is above the rounding of every bound.
    """

    columns: FloatArray
    answers: FloatArray
    rest: FloatArray
    order: IntArray
    kinds: Kinds
    n_numbers: int
    scales: FloatArray
    p: float
    slopes: FloatArray
    steepness: FloatArray
    slack: float
    start: IntArray
    stop: IntArray
    child: IntArray
    low: FloatArray
    high: FloatArray
    answer_low: FloatArray
    answer_high: FloatArray
    rest_low: FloatArray
    rest_high: FloatArray
    stack_size: int


def search_parameters(
    some: FloatArray, outputs: FloatArray, ends: FloatArray, scales: FloatArray, p: float, kinds: Kinds | None = None
) -> SearchParameters:
    """Choose slopes by some of the people and their outputs; `ends` are the lowest and highest values of everyone.

    Any slopes and any centre are sound. Other arguments as in `likewise.pairs.search.search`.
    """
    matters = scales > 0
    if not matters.any():  # one column that separates nobody keeps the kernels simple
        matters = np.arange(len(scales)) == 0
    used = np.flatnonzero(matters)
    if kinds is not None:  # the tree wants codes last
        used = used[np.argsort(kinds[used] == CODE, kind="stable")]
    scales = np.ascontiguousarray(scales[used])
    kinds = all_numbers(scales) if kinds is None else kinds[used]
    low, high = np.nan_to_num(ends[:, used])
    centre = low / 2 + high / 2
    centred = _without_gaps(np.ascontiguousarray(some[:, used].T)) - centre[:, None]
    slopes, steepness = _slopes(centred, outputs[:, 0], kinds, scales, p)
    # Rounding of the rests, and of distances up to the diameter: absolute, where MARGIN is relative.
    widest = np.maximum(high - centre, centre - low)
    slack = 64 * np.finfo(float).eps * (1 + float(scales @ np.where(kinds == CODE, 1.0, widest)))
    return SearchParameters(used, kinds, int((kinds != CODE).sum()), scales, float(p), centre, slopes, steepness, slack)


def default_search_parameters(
    X: FloatArray, outputs: FloatArray, scales: FloatArray, p: float, kinds: Kinds | None = None
) -> SearchParameters:
    """Bearings by these people alone."""
    some = spread(len(X), SOME)
    return search_parameters(X[some], outputs[some], ends_of(X), scales, p, kinds)


def ends_of(X: FloatArray) -> FloatArray:
    """Lowest and highest value of each column, shape (2, n_columns); NaN where there is none."""
    return np.stack([np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)])


def build_box_tree(X: FloatArray, outputs: FloatArray, bearings: SearchParameters) -> BoxTree:
    """Put people in boxes; `X` and `outputs` as in `likewise.pairs.search.search`."""
    used, kinds, n_numbers, scales, p, centre, slopes, steepness, slack = bearings
    columns = np.ascontiguousarray(X[:, used].T)
    answers = np.ascontiguousarray(outputs.T)
    order, start, stop, child = build(_without_gaps(columns), answers, n_numbers, scales, LEAF)
    columns, answers = columns.take(order, axis=1), answers.take(order, axis=1)
    filled = _without_gaps(columns)
    low, high = _boxes(columns, filled, kinds, start, stop, child)
    filled -= centre[:, None]
    rest = np.ascontiguousarray(answers[:1] - slopes @ filled)
    answer_low, answer_high = ranges(answers, start, stop, child)
    rest_low, rest_high = ranges(rest, start, stop, child)
    return BoxTree(
        columns=columns,
        answers=answers,
        rest=rest,
        order=order,
        kinds=kinds,
        n_numbers=n_numbers,
        scales=scales,
        p=p,
        slopes=slopes,
        steepness=steepness,
        slack=slack,
        start=start,
        stop=stop,
        child=child,
        low=low,
        high=high,
        answer_low=answer_low,
        answer_high=answer_high,
        rest_low=rest_low,
        rest_high=rest_high,
        stack_size=4 * (_depth(child) + 1),
    )


def side_by_side(a: BoxTree, b: BoxTree) -> BoxTree:
    """Two trees with the same bearings as one, without a common root: the nodes of `a`, then those of `b`."""
    shift, n_nodes = a.columns.shape[1], len(a.child)
    beside = ("columns", "answers", "rest", "order")
    below = ("low", "high", "answer_low", "answer_high", "rest_low", "rest_high")
    lines: dict[str, Any] = {name: np.hstack([getattr(a, name), getattr(b, name)]) for name in beside}
    lines |= {name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in below}
    return a._replace(
        **lines,
        start=np.append(a.start, b.start + shift),
        stop=np.append(a.stop, b.stop + shift),
        child=np.append(a.child, np.where(b.child < 0, -1, b.child + n_nodes)),
        stack_size=a.stack_size + b.stack_size,
    )


def share_out(tasks: IntArray, search: Callable[[IntArray], Any], n_jobs: int | None = None) -> list[Any]:
    """Run a compiled search in threads, on pairs of nodes; results in order."""
    lanes = [tasks[lane::_LANES].copy() for lane in range(min(_LANES, len(tasks)))]
    if n_threads(n_jobs) == 1:
        return [search(lane) for lane in lanes]
    with ThreadPoolExecutor(n_threads(n_jobs)) as pool:
        return list(pool.map(search, lanes))


def tasks_within(child: IntArray) -> IntArray:
    """Pairs of nodes that cover all pairs of people once, enough of them to share out; shape (n_tasks, 2)."""
    nodes = _frontier(child, 0)
    a, b = np.triu_indices(len(nodes))
    return np.stack([nodes[a], nodes[b]], axis=1)


def tasks_between(child: IntArray, second: int) -> IntArray:
    """The same for all pairs of a person of one tree and one of another beside it, whose root is `second`."""
    one, other = _frontier(child, 0), _frontier(child, second)
    return np.stack([np.repeat(one, len(other)), np.tile(other, len(one))], axis=1)


def _frontier(child: IntArray, root: int) -> IntArray:
    """Nodes that hold everyone below a root once, enough of them to share out."""
    nodes = [root]
    while len(nodes) < _LANES:
        parts = [part for node in nodes for part in ((child[node], child[node] + 1) if child[node] >= 0 else (node,))]
        if len(parts) == len(nodes):
            break
        nodes = parts
    return np.array(nodes, dtype=np.int64)


def _without_gaps(columns: FloatArray) -> FloatArray:
    """A copy with 0 in place of what is missing."""
    return np.where(np.isnan(columns), 0.0, columns)


def _boxes(
    columns: FloatArray, filled: FloatArray, kinds: Kinds, start: IntArray, stop: IntArray, child: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Ranges of the features; without limits where someone in the box misses a number, whose gap to all others is 0."""
    low, high = ranges(filled, start, stop, child)
    gappy = np.flatnonzero(kinds == GAPPY)
    if len(gappy):
        absent = ranges(np.isnan(columns[gappy]).astype(np.float64), start, stop, child)[1] > 0
        low[:, gappy] = np.where(absent, -np.inf, low[:, gappy])
        high[:, gappy] = np.where(absent, np.inf, high[:, gappy])
    return low, high


def _depth(child: IntArray) -> int:
    """How many times people are split, at most: what the stack of a search must hold."""
    depth = np.zeros(len(child), dtype=np.int64)
    for node in np.flatnonzero(child >= 0):  # children come after their parents
        depth[child[node] : child[node] + 2] = depth[node] + 1
    return int(depth.max())


def _slopes(
    centred: FloatArray, answers: FloatArray, kinds: Kinds, scales: FloatArray, p: float
) -> tuple[FloatArray, FloatArray]:
    """Slopes to take out of the outputs, none steeper than the metric, and their dual norms.

    Any choice is sound that is 0 for codes and gappy numbers; multiples of the least-squares slope follow smooth
    scores well. The first is 0.
    """
    X = centred.T * np.where(kinds == NUMBER, scales, 0.0)
    fit = np.linalg.lstsq(X - X.mean(axis=0), answers - answers.mean(), rcond=None)[0]
    fit = np.clip(np.nan_to_num(fit), -1e6, 1e6) * (kinds == NUMBER)  # it is infinite for people who hardly differ
    steps = np.array([0.0, 0.5, 1.0, 1.5, 2.0])[:, None] * fit
    if p == 1:
        return np.clip(steps, -1.0, 1.0) * scales, np.abs(steps).max(axis=1)
    conjugate = 1.0 if np.isinf(p) else p / (p - 1)
    steepness = lp_norm(steps, conjugate) * (1 + MARGIN)
    shrink = np.maximum(steepness, 1.0)
    return steps / shrink[:, None] * scales, steepness / shrink


@njit(cache=True, error_model="numpy")
def bound(
    low_a, high_a, low_b, high_b, answer_low_a, answer_high_a, answer_low_b, answer_high_b,
    rest_low_a, rest_high_a, rest_low_b, rest_high_b, n_numbers, scales, p, slopes, steepness, gap,
):  # fmt: skip
    """Upper bound of the excess between two boxes, or people; `gap` is room to work in."""
    if len(answer_low_a) == 1:
        return most_excess(
            low_a, high_a, low_b, high_b, rest_low_a, rest_high_a, rest_low_b, rest_high_b,
            n_numbers, scales, p, slopes, steepness, gap,
        )  # fmt: skip
    least_gaps(low_a, high_a, low_b, high_b, n_numbers, gap)
    most = most_difference(answer_low_a, answer_high_a, answer_low_b, answer_high_b)
    return most - norm(gap, n_numbers, scales, p) * (1 - MARGIN)


@njit(cache=True, error_model="numpy")
def push_parts(stack, top, a, b, start, stop, child):
    """Replace a pair of nodes by the pairs of its parts, splitting the larger node; return the new top."""
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
