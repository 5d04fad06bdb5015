"""The values within a metric that are closest to what a model says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likewise._progress import progress_bar
from likewise._typing import FloatArray
from likewise.projection.mcshane_whitney import Narrowed

_TOLERANCE = 1e-9
_MOST_ROUNDS = 200
_MOST_SWEEPS = 20_000


def closest_values(
    targets: FloatArray, weights: FloatArray, narrow: Callable[[FloatArray], Narrowed], *, verbose: bool = False
) -> FloatArray:
    """Values v of some people, ``|v_i - v_j| <= D_ij`` for all pairs, closest to the targets.

    Minimises ``sum_i weights_i (v_i - targets_i)^2``. Limits are added as they are needed: those that each person's
    value exceeds the most, until none does (`docs/theory.md` §13). The solution is unique, whatever the
    order of people.

    Parameters
    ----------
    targets : ndarray of shape (n_people,)
    weights : ndarray of shape (n_people,)
        Positive.
    narrow : callable
        From values to the envelopes that they make at the same people, and the people who decide.
    verbose : bool, default=False
        Show that work goes on.

    Examples
    --------
    Two people at distance 0.2 of whom a model says 0.1 and 0.9:

    >>> from likewise.projection.mcshane_whitney import envelope_of
    >>> from likewise.metrics.weighted_lp import WeightedLp
    >>> metric = WeightedLp([0.1])
    >>> people = metric.people([[0.0], [2.0]])
    >>> narrow = envelope_of(metric, people).among(people)
    >>> closest_values(np.array([0.1, 0.9]), np.ones(2), narrow).round(6)
    array([0.4, 0.6])
    """
    from likewise.projection.kernels import settle

    n = len(targets)
    weights = weights / weights.max()
    values, forces = targets.copy(), np.empty(0)
    limits = np.empty(0, dtype=np.int64)
    distances = np.empty(0)
    with progress_bar("Projecting", None, show=verbose) as advance:
        for _ in range(_MOST_ROUNDS):
            found = narrow(values)
            if max((values - found.upper).max(), (found.lower - values).max()) <= _TOLERANCE:
                break
            high, low = np.flatnonzero(found.above >= 0), np.flatnonzero(found.below >= 0)
            pairs = np.concatenate([high * n + found.above[high], found.below[low] * n + low])
            gaps = np.concatenate(
                [found.upper[high] - values[found.above[high]], values[found.below[low]] - found.lower[low]]
            )
            pairs, where = np.unique(pairs, return_index=True)
            new = ~np.isin(pairs, limits)
            limits, distances = np.append(limits, pairs[new]), np.append(distances, gaps[where][new])
            forces = np.append(forces, np.zeros(int(new.sum())))
            settle(values, weights, limits // n, limits % n, distances, forces, 0.1 * _TOLERANCE, _MOST_SWEEPS)
            advance(1)
    # Whatever is left over: between the largest values within the metric below these, and the smallest above.
    found = narrow(values)
    return np.asarray((found.lower + found.upper) / 2)
