"""Compiled bounds on the pairs between two boxes: their distances, the differences of their outputs, and the excess.

A box is two rows, `low` and `high`: ranges of columns, then of outputs, then of outputs minus slopes. A person is a box
with equal ends, NaN where a number is missing. Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likewise._numba import njit
from likewise._typing import FloatArray
from likewise.kernel.distance import Kinds

# Bounds are computed by the same operations as the values they bound, which are monotone in floating point except
# for powers; this relative margin is far above their rounding.
MARGIN = 1e-12


class Space(NamedTuple):
    """What distances and their bounds need of the columns, codes last.

    Attributes
    ----------
    kinds : ndarray of shape (n_columns,)
    n_numbers : int
    scales : ndarray of shape (n_columns,)
    p : float
    slopes : ndarray of shape (n_slopes, n_columns)
        Subtracted from the outputs.
    steepness : ndarray of shape (n_slopes,)
        Their dual norms.
    slack : float
        Above the rounding of every bound.
    """

    kinds: Kinds
    n_numbers: int
    scales: FloatArray
    p: float
    slopes: FloatArray
    steepness: FloatArray
    slack: float


@njit(cache=True, error_model="numpy")
def min_gaps(low_a, high_a, low_b, high_b, n_numbers, gap):
    """Fill `gap` with the smallest gap per column between two boxes."""
    for f in range(len(gap)):
        gap[f] = 0.0
        if low_a[f] > high_b[f]:
            gap[f] = low_a[f] - high_b[f] if f < n_numbers else 1.0
        elif low_b[f] > high_a[f]:
            gap[f] = low_b[f] - high_a[f] if f < n_numbers else 1.0


@njit(cache=True, error_model="numpy")
def least_distance(low_a, high_a, low_b, high_b, space, gap):
    """Lower bound of the distances between two boxes; `gap` is scratch space."""
    min_gaps(low_a, high_a, low_b, high_b, space.n_numbers, gap)
    return norm(gap, space.n_numbers, space.scales, space.p) * (1 - MARGIN)


@njit(cache=True, error_model="numpy")
def largest_distance(low_a, high_a, low_b, high_b, space, gap):
    """Upper bound of the distances between two boxes; `gap` is scratch space."""
    for f in range(len(gap)):
        gap[f] = max(high_a[f] - low_b[f], high_b[f] - low_a[f])
        if gap[f] != gap[f]:  # a missing number is at distance 0, but for its mark
            gap[f] = 0.0
        elif f >= space.n_numbers:
            gap[f] = min(gap[f], 1.0)
    return norm(gap, space.n_numbers, space.scales, space.p) * (1 + MARGIN)


@njit(cache=True, error_model="numpy")
def norm(gap, n_numbers, scales, p):
    """Distance for these gaps, by the operations of `fill_distances`."""
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
def max_difference(low_a, high_a, low_b, high_b, first, last):
    """Upper bound of the difference of outputs, which are in the places from `first` to `last` of two boxes."""
    if last - first == 1:
        return max(high_a[first] - low_b[first], high_b[first] - low_a[first])
    # Outputs are halved probabilities: TV = 1/2 sum |p - q| = sum (p - q)+ = sum (q - p)+.
    either, up, down = 0.0, 0.0, 0.0
    for k in range(first, last):
        rise, fall = high_a[k] - low_b[k], high_b[k] - low_a[k]
        either += max(rise, fall)
        up += max(0.0, rise)
        down += max(0.0, fall)
    # Rows of probabilities sum to 1 up to 1e-5 only, hence no tighter margin on the one-sided sums.
    return min(either, 2.0 * min(up, down) + 2e-5)


@njit(cache=True, error_model="numpy")
def linear_excess_bound(low_a, high_a, low_b, high_b, space, gap):
    """Upper bound of the excess between two boxes of one output, by subtracting slopes.

    For a slope g, with residual r = output - g.x: ``output_a - output_b - D = r_a - r_b - (D - g.(x_a - x_b))``. The
    last bracket is at least 0 if g is no steeper than the metric, and grows with the gap between the boxes. g is 0 for
    codes and for numbers that may be missing.
    """
    _, n_numbers, scales, p, slopes, steepness, _ = space
    up, down = np.inf, np.inf  # a above b, and b above a
    codes, nearest = 0.0, 0.0
    for f in range(n_numbers, len(scales)):
        if low_a[f] > high_b[f] or low_b[f] > high_a[f]:
            codes += scales[f]
    if p != 1.0:
        min_gaps(low_a, high_a, low_b, high_b, n_numbers, gap)
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
            kept_up = kept_down = (1.0 - steepness[g]) * nearest + codes
        residual = len(low_a) - len(slopes) + g
        up = min(up, high_a[residual] - low_b[residual] - kept_up * (1 - MARGIN))
        down = min(down, high_b[residual] - low_a[residual] - kept_down * (1 - MARGIN))
    return max(up, down)


@njit(cache=True, error_model="numpy")
def excess_bound(low_a, high_a, low_b, high_b, space, gap):
    """Upper bound of the excess between two boxes, with slack for rounding; `gap` is scratch space."""
    first, last = len(space.scales), len(low_a) - len(space.slopes)
    if last - first == 1:
        return linear_excess_bound(low_a, high_a, low_b, high_b, space, gap) + space.slack
    most = max_difference(low_a, high_a, low_b, high_b, first, last)
    return most - least_distance(low_a, high_a, low_b, high_b, space, gap) + space.slack


@njit(cache=True, error_model="numpy")
def all_exceed(low_a, high_a, low_b, high_b, space, tolerance, largest, gap):
    """Whether all pairs between two boxes exceed, with ratios below `largest`, so that they need only be counted."""
    first, last = len(space.scales), len(low_a) - len(space.slopes)
    if largest < np.inf:
        most = max_difference(low_a, high_a, low_b, high_b, first, last)
        if most >= largest * least_distance(low_a, high_a, low_b, high_b, space, gap):
            return False
    least = 0.0
    for k in range(first, last):
        least += max(0.0, low_a[k] - high_b[k], low_b[k] - high_a[k])
    farthest = largest_distance(low_a, high_a, low_b, high_b, space, gap)
    return least * (1 - MARGIN) - farthest > tolerance + space.slack
