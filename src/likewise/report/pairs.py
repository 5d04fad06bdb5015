"""The pairs of people that a report shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from likewise._subsample import evenly_spaced
from likewise._typing import FloatArray
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.report.data import ReportData

_PEOPLE, _BLOCK = 1200, 200  # people among whom pairs are searched, and how many at a time
_ROUNDING = 1e-9
_LEAST = 0.002  # smallest distance and difference of a pair to show: a fifth of a point


def closest_pairs(people: People, answers: FloatArray, bound: BoundMetric, epsilon: float, n: int) -> pd.DataFrame:
    """The `n` pairs with the largest ``difference / min(1, D + epsilon)`` and D < 1; nobody is in two of them.

    Among an even sample of up to 1,200 people.

    Parameters
    ----------
    people : People
    answers : ndarray of shape (n_people, n_classes)
        Probabilities; or one column, of numbers as shares of their range.
    bound : BoundMetric
        The metric of these people.

    Returns
    -------
    DataFrame
        ``row_a`` and ``row_b`` (positions among the people), ``difference`` and ``distance``.

    Examples
    --------
    >>> from likewise import TableMetric
    >>> metric = TableMetric({"age": 0.01})
    >>> people = metric.encode_rows(pd.DataFrame({"age": [30, 40, 60]}))
    >>> closest_pairs(people, np.array([[0.5], [0.58], [0.6]]), metric.bind(people.encoder), 0.0, 1).round(2)
       row_a  row_b  difference  distance
    0      0      1        0.08       0.1
    """
    chosen = evenly_spaced(len(people), _PEOPLE)
    rows, shares = people.rows[chosen], answers[chosen]
    half = 1.0 if shares.shape[1] == 1 else 0.5
    best = np.empty((0, 5))
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        distances = bound.pairwise(rows[block], rows)
        gaps = half * np.abs(shares[block, None, :] - shares[None]).sum(axis=2)
        used = gaps / np.minimum(1.0, distances + epsilon + 1e-300)
        a, b = np.indices(used.shape)
        able = (b > a + start) & (distances < 1) & (distances >= _LEAST) & (gaps >= _LEAST)
        found = np.stack([used, a + start, b, gaps, distances], axis=-1)[able]
        best = np.concatenate([best, found[np.argsort(-found[:, 0], kind="stable")[: 20 * n]]])
    best = best[np.argsort(-best[:, 0], kind="stable")]
    kept: list[tuple[int, int, float, float]] = []
    met = set[float]()
    for _, a, b, gap, distance in best.tolist():
        if len(kept) < n and not met & {a, b}:
            met |= {a, b}
            kept.append((int(chosen[int(a)]), int(chosen[int(b)]), gap, distance))
    return pd.DataFrame(kept, columns=["row_a", "row_b", "difference", "distance"])


def first_pair(data: ReportData) -> dict[str, Any]:
    """The pair that the page shows first, as positions in its sample, and the rule by which it was chosen.

    Of the pairs with D < 1 that the model keeps within ``D + epsilon``, the one that the unconstrained model exceeds
    most. If there is none, the closest pair.
    """
    sample, shares = data.sample, data.shares
    if len(sample) < 2:
        return {"pair": [0, 0] if len(sample) else None, "rule": ""}
    first, second = np.triu_indices(len(sample), 1)
    a, b = sample[first], sample[second]
    rows = data.people.rows
    distances = data.bound.distances(rows[a], rows[b])
    if {"before", "after"} <= shares.keys():
        excess = data.differences("before", a, b) - distances
        kept = data.differences("after", a, b) <= distances + data.epsilon + _ROUNDING
        able = (distances < 1) & kept & (excess > _ROUNDING)
        if able.any():
            best = int(np.where(able, excess, -np.inf).argmax())
            rule = (
                "Shown first are the two whose scores the unconstrained model sets furthest apart beyond their "
                "distance, of those whom this model keeps within it."
            )
            return {"pair": [int(first[best]), int(second[best])], "rule": rule}
    best = int(distances.argmin())
    return {"pair": [int(first[best]), int(second[best])], "rule": "Shown first are the two at the smallest distance."}
