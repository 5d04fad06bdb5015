"""Trees of boxes in files, whose pairs are searched by workers.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.pairs.arranged import Arranged, Bearings
from likewise.pairs.crossing import Outline, crossing_pairs
from likewise.pairs.search import Aim, Box, Found, merge, search_between, search_within
from likewise.partitions.scratch import write_whole

_SHARED = ("kinds", "n_numbers", "scales", "p", "slopes", "steepness", "slack")
_VARYING = [name for name in Arranged._fields if name not in _SHARED]
_PAIRS_AT_ONCE = 8

Task = tuple[str, list[str]]
"""A box, and others to search it against, itself perhaps among them."""


def shelve(file: Path, box: Box, **beside: Any) -> str:
    """Write a box, and arrays that belong to it; return the file's name."""
    write_whole(file, {name: getattr(box.tree, name) for name in _VARYING} | {"weight": box.weight} | beside)
    return str(file)


def take_down(file: str, bearings: Bearings) -> tuple[Box, dict[str, Any]]:
    """A box that was written with these bearings, and what was written beside it."""
    arrays = dict(_arrays(file))
    tree = {name: arrays.pop(name) for name in _VARYING}
    tree["stack_size"] = int(tree["stack_size"])
    weight = arrays.pop("weight")
    return Box(Arranged(**tree, **{name: getattr(bearings, name) for name in _SHARED}), weight), arrays


@lru_cache(maxsize=2)
def _arrays(file: str) -> dict[str, Any]:
    with np.load(file) as stored:
        return {name: stored[name] for name in stored.files}


def tasks_among(files: list[str], outlines: list[Outline], bearings: Bearings, tolerance: float) -> Iterator[Task]:
    """Pairs of boxes that may hold pairs of people who exceed the metric by more than `tolerance`."""
    pairs: list[IntArray] = crossing_pairs(outlines, bearings, tolerance)
    for a, others in enumerate(pairs):
        for i in range(0, len(others), _PAIRS_AT_ONCE):
            yield files[a], [files[b] for b in others[i : i + _PAIRS_AT_ONCE]]


def search_shelves(bearings: Bearings, aim: Aim, n_jobs: int | None, task: Task) -> Found:
    """Search one box against others."""
    one = take_down(task[0], bearings)[0]
    found = [
        search_within(one, aim, n_jobs=n_jobs)
        if other == task[0]
        else search_between(one, take_down(other, bearings)[0], aim, n_jobs=n_jobs)
        for other in task[1]
    ]
    return merge(found, aim.n_worst)


def outputs_on_shelf(positions: IntArray, file: str) -> tuple[IntArray, FloatArray]:
    """Which of some sorted positions are of people in a box, and their outputs, shape (n_found, n_outputs)."""
    arrays = _arrays(file)
    here = np.isin(arrays["order"], positions)
    return np.searchsorted(positions, arrays["order"][here]), arrays["answers"][:, here].T
