"""A tree of boxes over people, and what the boxes say about the pairs between them.

The first `n_numbers` features are numbers, the others codes (`likewise.pairs.points.Points`).
"""

from __future__ import annotations

import numpy as np

from likewise._compiling import njit

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
