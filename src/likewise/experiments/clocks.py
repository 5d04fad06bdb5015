"""What is measured of a model in one cell: scores, what it costs, and whether it keeps its promise on every pair."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray
from likewise.auditing.audit import audit
from likewise.guarantees.guarantee import Guarantee

T = TypeVar("T")
_ROUNDS, _ENOUGH = 5, 1.0  # rounds at most, and seconds of processor time after which there is no further one


def scores_of(h: FloatArray, y: npt.NDArray[Any]) -> dict[str, float]:
    """Accuracy, mean probability of the correct class, and Brier score; two classes, coded 0 and 1."""
    own = h[np.arange(len(h)), y]
    return {
        "accuracy": float((h.argmax(axis=1) == y).mean()),
        "confidence": float(own.mean()),
        "brier": float(((1 - own) ** 2).mean()),
    }


def clocked(work: Callable[[], T]) -> tuple[T, float]:
    """What some work returns, and the seconds of processor time, of all cores, that it took.

    It is the best of some rounds, so that other load on the machine says little; a round of more than a second is
    long enough to stand alone.
    """
    best, spent = np.inf, 0.0
    for _ in range(_ROUNDS):
        start = time.process_time()
        result = work()
        took = time.process_time() - start
        best, spent = min(best, took), spent + took
        if spent > _ENOUGH:
            break
    return result, best


def kept_promise(X: FloatArray, h: FloatArray, guarantee: Guarantee) -> dict[str, Any]:
    """Compare all pairs of people with what is promised: ``n_pairs``, ``n_violations`` and ``largest_excess``."""
    # A billionth for the rounding of sums, as in `audit` itself.
    checked = audit(None, X, guarantee.metric, predictions=h, tolerance=guarantee.epsilon + 1e-9, n_worst=1)
    distinct, first = np.unique(X, axis=0, return_index=True)
    return {
        "level": guarantee.level,
        "epsilon": guarantee.epsilon,
        "n_pairs": checked.n_pairs,
        "n_violations": checked.n_violations,
        "largest_excess": largest_excess(distinct, h[first], guarantee),
    }


def largest_excess(X: FloatArray, probabilities: FloatArray, guarantee: Guarantee) -> float:
    """Largest difference between the outputs for two people in excess of what is promised; two classes."""
    most = -np.inf
    for i, (x, h) in enumerate(zip(X[:-1], probabilities[:-1, 1], strict=True)):
        promised = guarantee.bound(guarantee.metric(X[i + 1 :], x))
        most = max(most, float((np.abs(probabilities[i + 1 :, 1] - h) - promised).max()))
    return most
