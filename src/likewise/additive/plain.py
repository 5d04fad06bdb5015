"""The functions of `likewise.additive.kernels` in NumPy, equal to the last bit: the same operations in one order."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._typing import BoolArray, FloatArray, IntArray


def points(
    rows: FloatArray,
    columns: IntArray,
    is_number: BoolArray,
    starts: IntArray,
    knots: FloatArray,
    values: FloatArray,
    others: FloatArray,
    codes: FloatArray,
    code_starts: IntArray,
    code_values: FloatArray,
    bits: int,
    out: FloatArray,
) -> None:
    """What each column adds for each person and function; `out[person, column, function]`."""
    step, steps = 2.0**-bits, 2.0**bits
    for j, column in enumerate(columns.tolist()):
        x, first, last = rows[:, column], int(starts[j]), int(starts[j + 1])
        if not is_number[j]:
            known = (x >= 0.0) & (x < last - first)
            at = first + np.where(known, x, 0.0).astype(np.int64)
            out[:, j] = np.where(known[:, None], values[:, at].T, others[j]) if last > first else others[j]
            continue
        own = knots[first:last]
        k = first + np.searchsorted(own[1 : max(1, last - first - 1)], x, side="right")
        out[:, j] = values[:, first + (x > own[0]) * (last - 1 - first)].T  # outside the knots
        inside = (x > own[0]) & (x < own[-1])
        k = k[inside]
        share = (x[inside] - knots[k]) / (knots[k + 1] - knots[k])
        rise = values[:, k + 1] - values[:, k]
        out[inside, j] = (values[:, k] + np.rint(rise * share * steps) * step).T
        out[np.isnan(x), j] = others[j]
        for s in range(code_starts[j], code_starts[j + 1]):
            out[x == codes[s], j] = code_values[:, s]


def add_numbers(index: IntArray, fraction: FloatArray, values: FloatArray, out: FloatArray) -> None:
    """Add to each row the value interpolated between two slots; `values` has one extra slot."""
    below = values[index]
    out += below + fraction * (values[1:][index] - below)


def add_categories(index: IntArray, values: FloatArray, out: FloatArray) -> None:
    """Add to each row the value of its slot."""
    out += values[index]


def sum_numbers(index: IntArray, fraction: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """Sums of weights per slot; each row counts for two slots."""
    upper, first = fraction * weights, index.astype(np.int64)
    _tally(np.stack([first, first + 1], axis=1), np.stack([weights - upper, upper], axis=1), out)


def sum_categories(index: IntArray, weights: FloatArray, out: FloatArray) -> None:
    """Sums of weights per slot."""
    _tally(index, weights, out)


def cross_numbers(
    index_a: IntArray, fraction_a: FloatArray, index_b: IntArray, fraction_b: FloatArray, weights: FloatArray, out: Any
) -> None:
    """Sums per pair of slots of two columns of numbers, for each line of weights."""
    width = out.shape[2]
    first, rest = index_a.astype(np.int64) * width + index_b, 1.0 - fraction_b
    places = np.stack([first, first + 1, first + width, first + width + 1], axis=1)
    shares = np.empty(places.shape)
    for line, sums in zip(weights, out, strict=True):
        upper = fraction_a * line
        lower = line - upper
        for corner, share in enumerate((lower * rest, lower * fraction_b, upper * rest, upper * fraction_b)):
            shares[:, corner] = share
        _tally(places, shares, sums)


def cross_mixed(index_a: IntArray, fraction_a: FloatArray, index_b: IntArray, weights: FloatArray, out: Any) -> None:
    """Sums per pair of slots of a column of numbers and one of categories, for each line of weights."""
    width = out.shape[2]
    first = index_a.astype(np.int64) * width + index_b
    places = np.stack([first, first + width], axis=1)
    for line, sums in zip(weights, out, strict=True):
        upper = fraction_a * line
        _tally(places, np.stack([line - upper, upper], axis=1), sums)


def cross_categories(index_a: IntArray, index_b: IntArray, weights: FloatArray, out: FloatArray) -> None:
    """Sums per pair of slots of two columns of categories, for each line of weights."""
    places = index_a.astype(np.int64) * out.shape[2] + index_b
    for line, sums in zip(weights, out, strict=True):
        _tally(places, line, sums)


def _tally(index: IntArray, weights: FloatArray, out: FloatArray) -> None:
    """Add the weights to `out`, which starts at 0, one by one in their order."""
    out += np.bincount(index.ravel(), weights=weights.ravel(), minlength=out.size).reshape(out.shape)
