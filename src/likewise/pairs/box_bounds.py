"""Compiled bounds on the pairs between two boxes: their distances, the differences of their outputs, and the excess.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

import numpy as np

from likewise._numba import njit

# Bounds are computed by the same operations as the values they bound, which are monotone in floating point except
# for powers; this relative margin is far above their rounding.
MARGIN = 1e-12


@njit(cache=True, error_model="numpy")
def min_gaps(low_a, high_a, low_b, high_b, n_numbers, gap):
    """Fill `gap` with the smallest gap per feature between two boxes (or people, whose missing numbers are NaN)."""
    for f in range(len(gap)):
        gap[f] = 0.0
        if low_a[f] > high_b[f]:
            gap[f] = low_a[f] - high_b[f] if f < n_numbers else 1.0
        elif low_b[f] > high_a[f]:
            gap[f] = low_b[f] - high_a[f] if f < n_numbers else 1.0


@njit(cache=True, error_model="numpy")
def max_gaps(low_a, high_a, low_b, high_b, n_numbers, gap):
    """Fill `gap` with the largest gap per feature between two boxes."""
    for f in range(len(gap)):
        gap[f] = max(high_a[f] - low_b[f], high_b[f] - low_a[f])
        if f >= n_numbers:
            gap[f] = min(gap[f], 1.0)


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
def max_difference(low_a, high_a, low_b, high_b):
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
def min_difference(low_a, high_a, low_b, high_b):
    """Lower bound of the difference of outputs between two boxes."""
    total = 0.0
    for k in range(len(low_a)):
        total += max(0.0, low_a[k] - high_b[k], low_b[k] - high_a[k])
    return total


@njit(cache=True, error_model="numpy")
def linear_excess_bound(low_a, high_a, low_b, high_b, residual_low_a, residual_high_a, residual_low_b, residual_high_b,
                n_numbers, scales, p, slopes, steepness, gap):  # fmt: skip
    """Upper bound of the excess between two boxes of one output, by subtracting slopes.

    For a slope g, with residual r = output - g.x: ``output_a - output_b - D = r_a - r_b - (D - g.(x_a - x_b))``. The
    last bracket is at least 0 if g is no steeper than the metric, and grows with the gap between the boxes. g is 0 for
    codes and for numbers that may be missing.
    """
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
        up = min(up, residual_high_a[g] - residual_low_b[g] - kept_up * (1 - MARGIN))
        down = min(down, residual_high_b[g] - residual_low_a[g] - kept_down * (1 - MARGIN))
    return max(up, down)


@njit(cache=True, error_model="numpy")
def excess_bound(
    low_a, high_a, low_b, high_b, output_low_a, output_high_a, output_low_b, output_high_b,
    residual_low_a, residual_high_a, residual_low_b, residual_high_b, n_numbers, scales, p, slopes, steepness, gap,
):  # fmt: skip
    """Upper bound of the excess between two boxes, or people; `gap` is scratch space."""
    if len(output_low_a) == 1:
        return linear_excess_bound(
            low_a, high_a, low_b, high_b, residual_low_a, residual_high_a, residual_low_b, residual_high_b,
            n_numbers, scales, p, slopes, steepness, gap,
        )  # fmt: skip
    min_gaps(low_a, high_a, low_b, high_b, n_numbers, gap)
    most = max_difference(output_low_a, output_high_a, output_low_b, output_high_b)
    return most - norm(gap, n_numbers, scales, p) * (1 - MARGIN)


@njit(cache=True, error_model="numpy")
def all_exceed(
    low_a, high_a, low_b, high_b, output_low_a, output_high_a, output_low_b, output_high_b,
    n_numbers, scales, p, tolerance, largest, gap,
):  # fmt: skip
    """Whether all pairs between two boxes exceed, with ratios below `largest`, so that they need only be counted."""
    if largest < np.inf:
        min_gaps(low_a, high_a, low_b, high_b, n_numbers, gap)
        most = max_difference(output_low_a, output_high_a, output_low_b, output_high_b)
        if most >= largest * norm(gap, n_numbers, scales, p) * (1 - MARGIN):
            return False
    max_gaps(low_a, high_a, low_b, high_b, n_numbers, gap)
    least = min_difference(output_low_a, output_high_a, output_low_b, output_high_b)
    return least * (1 - MARGIN) - norm(gap, n_numbers, scales, p) * (1 + MARGIN) > tolerance
