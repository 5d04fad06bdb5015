"""Functions of `likewise.smoothing.kernels` in NumPy, equal to the last bit: the same operations in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._typing import FloatArray, IntArray


def cell_centres(
    shifts: Any, position: Any, n_positions: int, middle: FloatArray, unit: FloatArray, origins: FloatArray,
    columns: IntArray, rows: FloatArray,
) -> None:  # fmt: skip
    """Centres of the cells that a position falls into, for each draw (row of `shifts`), written to `rows`.

    `position` may have a row for each draw too.
    """
    rest = position % n_positions
    first = position - rest + shifts - np.where(shifts > rest, n_positions, 0)
    rows[:, columns] = (first + middle) * unit + origins
