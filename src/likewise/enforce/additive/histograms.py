"""Compiled passes over binned people: scores, and sums per slot. Imported inside functions, as it imports numba.

Every sum is taken by one thread in the order of people, so that no last bit depends on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._compiling import njit

_compiled: Any = njit(nogil=True, cache=True, error_model="numpy")


@_compiled
def add_numbers(index, fraction, values, out):  # type: ignore[no-untyped-def]
    """Add to each person the value at their place between two slots; `values` has one slot to spare."""
    for r in range(len(index)):
        k = index[r]
        out[r] += values[k] + fraction[r] * (values[k + 1] - values[k])


@_compiled
def add_categories(index, values, out):  # type: ignore[no-untyped-def]
    """Add to each person the value of their slot."""
    for r in range(len(index)):
        out[r] += values[index[r]]


@_compiled
def sum_numbers(index, fraction, weights, out):  # type: ignore[no-untyped-def]
    """Sums of weights per slot; each person counts for two of them."""
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
    """Sums of weights per pair of slots of two columns of numbers."""
    for r in range(len(index_a)):
        k, m = index_a[r], index_b[r]
        w = weights[r]
        upper = fraction_a[r] * w
        lower = w - upper
        f = fraction_b[r]
        out[k, m] += lower * (1.0 - f)
        out[k, m + 1] += lower * f
        out[k + 1, m] += upper * (1.0 - f)
        out[k + 1, m + 1] += upper * f


@_compiled
def cross_mixed(index_a, fraction_a, index_b, weights, out):  # type: ignore[no-untyped-def]
    """Sums of weights per pair of slots of a column of numbers and one of categories."""
    for r in range(len(index_a)):
        k, m = index_a[r], index_b[r]
        upper = fraction_a[r] * weights[r]
        out[k, m] += weights[r] - upper
        out[k + 1, m] += upper


@_compiled
def cross_categories(index_a, index_b, weights, out):  # type: ignore[no-untyped-def]
    """Sums of weights per pair of slots of two columns of categories."""
    for r in range(len(index_a)):
        out[index_a[r], index_b[r]] += weights[r]


@_compiled
def add_products(starts, columns, values, weights, out):  # type: ignore[no-untyped-def]
    """Add ``A' diag(weights) A`` to `out`, for a sparse matrix A by rows."""
    for r in range(len(starts) - 1):
        for a in range(starts[r], starts[r + 1]):
            scaled = weights[r] * values[a]
            for b in range(starts[r], starts[r + 1]):
                out[columns[a], columns[b]] += scaled * values[b]


def empty_slots(*sizes: int) -> Any:
    """Zeros for sums, with the slot to spare that the compiled loops may touch."""
    return np.zeros([size + 1 for size in sizes])
