"""Trees of boxes in files, for other workers. Importing this module imports numba; callers do so inside functions."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from likewise.pairs.arranged import Arranged, Bearings
from likewise.partitions.scratch import write_whole

_SHARED = ("kinds", "n_numbers", "scales", "p", "slopes", "steepness", "slack")
_VARYING = [name for name in Arranged._fields if name not in _SHARED]


def shelve(file: Path, tree: Arranged, **beside: Any) -> None:
    """Write a tree, and arrays that belong to it."""
    write_whole(file, {name: getattr(tree, name) for name in _VARYING} | beside)


def take_down(file: str, bearings: Bearings) -> tuple[Arranged, dict[str, Any]]:
    """A tree that was written with these bearings, and what was written beside it."""
    arrays = dict(_arrays(file))
    tree = {name: arrays.pop(name) for name in _VARYING}
    tree["stack_size"] = int(tree["stack_size"])
    return Arranged(**tree, **{name: getattr(bearings, name) for name in _SHARED}), arrays


@lru_cache(maxsize=2)
def _arrays(file: str) -> dict[str, Any]:
    with np.load(file) as stored:
        return {name: stored[name] for name in stored.files}
