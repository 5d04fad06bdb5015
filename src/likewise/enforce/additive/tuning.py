"""How smooth shapes should be: cross-validation on one path from smooth to rough, each fit started from the last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.enforce.additive.blocks import solve_any
from likewise.enforce.additive.fitting import Objective

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
    mixed = np.full(len(rows), seed % 2**64, dtype=np.uint64)
    for column in (*rows.T, *target):
        # One pattern of bits for 0 and one for a missing number.
        bits = np.where(np.isnan(column), np.nan, column + 0.0).view(np.uint64)
        mixed = _mix(mixed ^ bits)
    return (mixed % np.uint64(_N_FOLDS)).astype(np.int64)


def _mix(z: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The finaliser of splitmix64: every bit of the result depends on every bit."""
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _can_learn(problem: Objective) -> bool:
    """Whether no class is absent from the people kept, or alone: its intercept would have no limit."""
    if not problem.loss.of_classes:
        return True
    shares = problem.mean_target()
    return bool(((shares > 0) & (shares < 1)).all())
