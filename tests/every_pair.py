"""Pairs that exceed a distance, by comparing every pair as small jobs do."""

import numpy as np

from likewise.pairs.plain import blocks_after
from likewise.pairs.points import Columns
from likewise.pairs.scans import N_WORST, gather_blocks


def gather_every_pair(X, outputs, scales, p, *, tolerance, max_pairs, n_worst=N_WORST, kinds):
    """As `likewise.pairs.gather.gather`."""
    columns, answers = Columns(np.ascontiguousarray(X.T), kinds, scales, p), np.ascontiguousarray(outputs.T)
    return gather_blocks(lambda: blocks_after(columns, answers), len(X), tolerance, max_pairs, n_worst)
