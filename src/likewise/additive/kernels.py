"""Compiled evaluation of sums of shapes, row by row. Imported inside functions, as it imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._numba import njit

_compiled: Any = njit(nogil=True, cache=True, error_model="numpy")


@_compiled
def add_numbers(index, fraction, values, out):  # type: ignore[no-untyped-def]
    """Add to each row the value interpolated between two slots; `values` has one extra slot."""
    for r in range(len(index)):
        k = index[r]
        out[r] += values[k] + fraction[r] * (values[k + 1] - values[k])


@_compiled
def add_categories(index, values, out):  # type: ignore[no-untyped-def]
    """Add to each row the value of its slot."""
    for r in range(len(index)):
        out[r] += values[index[r]]


@_compiled
def sum_numbers(index, fraction, weights, out):  # type: ignore[no-untyped-def]
    """Sums of weights per slot; each row counts for two slots."""
    for r in range(len(index)):
        k = index[r]
        upper = fraction[r] * weights[r]
        out[k] += weights[r] - upper
        out[k + 1] += upper


@_compiled
def sum_categories(index, weights, out):  # type: ignore[no-untyped-def]
    """Sums of weights per slot."""
    for r in range(len(index)):
        out[index[r]] += weights[r]


@_compiled
def cross_numbers(index_a, fraction_a, index_b, fraction_b, weights, out):  # type: ignore[no-untyped-def]
    """Sums per pair of slots of two columns of numbers, for each line of weights."""
    for line in range(len(weights)):
        for r in range(len(index_a)):
            k, m = index_a[r], index_b[r]
            w = weights[line, r]
            upper = fraction_a[r] * w
            lower = w - upper
            f = fraction_b[r]
            out[line, k, m] += lower * (1.0 - f)
            out[line, k, m + 1] += lower * f
            out[line, k + 1, m] += upper * (1.0 - f)
            out[line, k + 1, m + 1] += upper * f


@_compiled
def cross_mixed(index_a, fraction_a, index_b, weights, out):  # type: ignore[no-untyped-def]
    """Sums per pair of slots of a column of numbers and one of categories, for each line of weights."""
    for line in range(len(weights)):
        for r in range(len(index_a)):
            k, m = index_a[r], index_b[r]
            upper = fraction_a[r] * weights[line, r]
            out[line, k, m] += weights[line, r] - upper
            out[line, k + 1, m] += upper


@_compiled
def cross_categories(index_a, index_b, weights, out):  # type: ignore[no-untyped-def]
    """Sums per pair of slots of two columns of categories, for each line of weights."""
    for line in range(len(weights)):
        for r in range(len(index_a)):
            out[line, index_a[r], index_b[r]] += weights[line, r]


@_compiled
def place(knots, first, last, x):  # type: ignore[no-untyped-def]
    """Knot below `x` among ``knots[first:last]``, by bisection; the last gap holds everything above."""
    low, high = first, last - 1
    while high - low > 1:
        middle = (low + high) // 2
        if knots[middle] <= x:
            low = middle
        else:
            high = middle
    return low


@_compiled
def points(  # type: ignore[no-untyped-def]
    rows, columns, is_number, starts, knots, values, others, codes, code_starts, code_values, bits, out
):
    """What each column adds for each person and function; `out[person, column, function]`.

    Between two knots the share of the rise is rounded to the grid, so that all sums are exact. It never exceeds the
    rise, and is monotone in x.
    """
    n_functions = values.shape[0]
    step, steps = 2.0**-bits, 2.0**bits
    for r in range(rows.shape[0]):
        for j in range(len(columns)):
            x = rows[r, columns[j]]
            first, last = starts[j], starts[j + 1]
            special = -1
            for s in range(code_starts[j], code_starts[j + 1]):
                if x == codes[s]:
                    special = s
            if special >= 0:
                for f in range(n_functions):
                    out[r, j, f] = code_values[f, special]
            elif not is_number[j]:
                if 0.0 <= x < last - first:
                    for f in range(n_functions):
                        out[r, j, f] = values[f, first + int(x)]
                else:
                    for f in range(n_functions):
                        out[r, j, f] = others[j, f]
            elif x != x:
                for f in range(n_functions):
                    out[r, j, f] = others[j, f]
            elif x <= knots[first] or last - first == 1:
                for f in range(n_functions):
                    out[r, j, f] = values[f, first]
            elif x >= knots[last - 1]:
                for f in range(n_functions):
                    out[r, j, f] = values[f, last - 1]
            else:
                k = place(knots, first, last, x)
                share = (x - knots[k]) / (knots[k + 1] - knots[k])
                for f in range(n_functions):
                    rise = values[f, k + 1] - values[f, k]
                    out[r, j, f] = values[f, k] + np.rint(rise * share * steps) * step
