"""How much of the room between the envelopes to use, judged at anchors that are left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.enforce.projection.envelopes import envelope_of
from likewise.enforce.projection.extension import Shares
from likewise.metrics.abstract import Metric
from likewise.metrics.people import People

_FOLDS = 5


def judged_shares(
    metric: Metric,
    anchors: People,
    values: FloatArray,
    outcomes: FloatArray,
    weights: FloatArray,
    base: Callable[[IntArray], FloatArray] | None = None,
) -> Shares:
    """Shares of base and envelopes that come closest to the outcomes at anchors that are left out in turn.

    Parameters
    ----------
    values, outcomes, weights : ndarray of shape (n_anchors,)
    base : callable, optional
        From positions of anchors to what a base says of them that has not seen them.
    """
    n = len(anchors)
    if n < 2:
        return Shares(0.0, 0.5, 0.5)
    fold = np.empty(n, dtype=np.int64)
    fold[np.random.default_rng(0).permutation(n)] = np.arange(n) % _FOLDS  # the same for the same people
    parts = np.zeros((n, 2 if base is None else 3))
    for k in range(min(n, _FOLDS)):
        out, kept = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        envelope = envelope_of(metric, anchors.take(kept))
        found = envelope.narrow(anchors.take(out), values[kept], np.zeros(len(out)), np.ones(len(out)))
        parts[out, 0], parts[out, 1] = found.lower, found.upper
        if base is not None:
            parts[out, 2] = np.minimum(np.maximum(base(out), found.lower), found.upper)
    lower, upper, *rest = best_shares(parts, outcomes, weights).tolist()
    return Shares(rest[0] if rest else 0.0, lower, upper)


def best_shares(parts: FloatArray, outcomes: FloatArray, weights: FloatArray) -> FloatArray:
    """Non-negative shares with sum 1 of the columns of `parts`, closest to the outcomes in weighted least squares.

    With few columns, each set of those that count is tried: without the others, the shares solve a linear system.

    Examples
    --------
    >>> parts = np.array([[0.0, 1.0, 0.5], [0.2, 0.6, 0.9]])
    >>> best_shares(parts, np.array([0.25, 0.3]), np.ones(2)).round(6).tolist()
    [0.75, 0.25, 0.0]
    """
    k = parts.shape[1]
    best: FloatArray = np.eye(k)[0]
    least = np.inf
    for chosen in range(1, 2**k):
        used = [i for i in range(k) if chosen >> i & 1]
        last = parts[:, used[-1]]
        differences = (parts[:, used[:-1]] - last[:, None]) * np.sqrt(weights)[:, None]
        rest = (outcomes - last) * np.sqrt(weights)
        first = np.linalg.lstsq(differences, rest, rcond=None)[0]
        shares = np.zeros(k)
        shares[used] = [*first, 1 - first.sum()]
        loss = float(((differences @ first - rest) ** 2).sum())
        if (shares >= 0).all() and loss < least:
            best, least = shares, loss
    return best
