"""How smooth shapes should be: cross-validation on one path from smooth to rough, each fit started from the last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.enforce.additive.blocks import solve_any
from likewise.enforce.additive.fitting import Objective
from likewise.pairs.marks import content_marks

PENALTIES = tuple(10.0**-k for k in range(1, 6))
_N_FOLDS = 5
_PATIENCE = 2  # penalties in a row that bring nothing


def choose_penalty(
    problem: Objective, start: FloatArray, advance: Callable[[int], None] = lambda steps: None
) -> tuple[float, FloatArray]:
    """Return the penalty with the smallest loss for held-out people, and variables to start from.

    Parameters
    ----------
    problem : Objective
        With folds; its penalty is not looked at.
    start : ndarray of shape (n_functions, n_variables)
    """
    found, parts, shares = {}, {}, problem.fold_shares(_N_FOLDS)
    for k in range(_N_FOLDS):
        left = float(np.delete(shares, k).sum())
        if shares[k] > 0 and left > 0 and _can_learn(problem.without(k, left)):
            found[k], parts[k] = start, problem.without(k, left)
    best, losses = PENALTIES[len(PENALTIES) // 2], [np.inf]
    nearest = start
    for penalty in PENALTIES:
        total = 0.0
        for k, x in found.items():
            found[k] = solve_any(replace(parts[k], penalty=penalty, tolerance=1e-7), x)
            held_out = problem.only(k)
            total += held_out.mean_loss(held_out.scores(found[k]))
            advance(1)
        if found and total < min(losses):
            best, nearest = penalty, found[min(found)]
        losses.append(total)
        if min(losses[-_PATIENCE:]) > min(losses):
            break
    return best, nearest


def content_folds(rows: FloatArray, target: FloatArray, seed: int) -> IntArray:
    """Folds from what is known of people, so that equal people share one and the order of people does not matter.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
    target : ndarray of shape (n_functions, n_samples)
    seed : int
    """
    return (content_marks((*rows.T, *target), seed) % np.uint64(_N_FOLDS)).astype(np.int64)


def _can_learn(problem: Objective) -> bool:
    """Whether no class is absent from the people kept, or alone: its intercept would have no limit."""
    if not problem.loss.of_classes:
        return True
    shares = problem.mean_target()
    return bool(((shares > 0) & (shares < 1)).all())
