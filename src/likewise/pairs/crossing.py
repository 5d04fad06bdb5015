"""Pairs of trees between which something may exceed the metric, by what is known of their roots.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likewise._compiling import njit
from likewise._typing import FloatArray, IntArray
from likewise.pairs.arranged import Arranged, Bearings, bound


class Outline(NamedTuple):
    """Ranges over everyone in a tree, as in `Arranged`."""

    low: FloatArray
    high: FloatArray
    answer_low: FloatArray
    answer_high: FloatArray
    rest_low: FloatArray
    rest_high: FloatArray


def outline_of(tree: Arranged) -> Outline:
    """The ranges at the root."""
    return Outline(**{name: getattr(tree, name)[0] for name in Outline._fields})


def crossing_pairs(outlines: list[Outline], bearings: Bearings, tolerance: float) -> list[IntArray]:
    """For each tree those from itself on whose people may exceed the metric by more than `tolerance` with its own."""
    whole = Outline(*(np.stack(lines) for lines in zip(*outlines, strict=True)))
    return [np.flatnonzero(_may_exceed(a, tuple(whole), tuple(bearings), tolerance)) for a in range(len(outlines))]


@njit(cache=True, error_model="numpy")
def _may_exceed(a, whole, bearings, tolerance):
    low, high, answer_low, answer_high, rest_low, rest_high = whole
    _, _, n_numbers, scales, p, _, slopes, steepness, slack = bearings
    out, gap = np.zeros(len(low), np.bool_), np.empty(len(scales))
    out[a] = True
    for b in range(a + 1, len(low)):
        most = bound(
            low[a], high[a], low[b], high[b], answer_low[a], answer_high[a], answer_low[b], answer_high[b],
            rest_low[a], rest_high[a], rest_low[b], rest_high[b], n_numbers, scales, p, slopes, steepness, gap,
        )  # fmt: skip
        out[b] = most + slack > tolerance
    return out
