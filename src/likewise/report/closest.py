"""Pairs of people worth a look: those who use most of the difference that they may have, and the one shown first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import FloatArray
from likewise.metrics.abstract import Metric
from likewise.metrics.people import People, spread
from likewise.report.data import ReportData

_PEOPLE = 1200
_BLOCK = 200
_ROUNDING = 1e-9
_LEAST = 0.002  # of a distance, and of a difference: below a fifth of a point there is nothing to look at


def closest_pairs(people: People, answers: FloatArray, metric: Metric, epsilon: float, n: int) -> pd.DataFrame:
    """The `n` pairs with the largest ``difference / min(1, D + epsilon)``; nobody is in two of them.

    Among up to 1,200 people, spread evenly, and pairs that may not differ freely (D < 1).

    Parameters
    ----------
    people : People
    answers : ndarray of shape (n_people, n_classes)
        Probabilities; or one column, of numbers as shares of their range.

    Returns
    -------
    DataFrame
        ``row_a`` and ``row_b`` (positions among the people), ``difference`` and ``distance``.

    Examples
    --------
    >>> from likewise import TableMetric
    >>> metric = TableMetric({"age": 0.01})
    >>> people = metric.people(pd.DataFrame({"age": [30, 40, 60]}))
    >>> closest_pairs(people, np.array([[0.5], [0.58], [0.6]]), metric, 0.0, 1).round(2)
       row_a  row_b  difference  distance
    0      0      1        0.08       0.1
    """
    chosen = spread(len(people), _PEOPLE)
    rows, shares, weights = people.rows[chosen], answers[chosen], metric.weights_of(people.coding)
    half = 1.0 if shares.shape[1] == 1 else 0.5
    best = np.empty((0, 5))
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        distances = weights.pairwise(rows[block], rows)
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
    """The two people with whom the page opens, as positions in its sample, and the rule by which they were chosen.

    Of the pairs at a distance D < 1 that the model keeps within ``D + epsilon``, the one whose distance the baseline
    exceeds most. If there is none, the pair with the smallest distance.
    """
    sample, shares = data.sample, data.shares
    if len(sample) < 2:
        return {"pair": [0, 0] if len(sample) else None, "rule": ""}
    first, second = np.triu_indices(len(sample), 1)
    a, b = sample[first], sample[second]
    rows = data.people.rows
    distances = data.metric.weights_of(data.people.coding).distances(rows[a], rows[b])
    if {"before", "after"} <= shares.keys():
        excess = data.differences("before", a, b) - distances
        kept = data.differences("after", a, b) <= distances + data.epsilon + _ROUNDING
        able = (distances < 1) & kept & (excess > _ROUNDING)
        if able.any():
            best = int(np.where(able, excess, -np.inf).argmax())
            rule = (
                f"Shown first are the two whose scores {data.plain} sets furthest apart beyond their distance, of "
                "those whom this model keeps within it."
            )
            return {"pair": [int(first[best]), int(second[best])], "rule": rule}
    best = int(distances.argmin())
    return {"pair": [int(first[best]), int(second[best])], "rule": "Shown first are the two at the smallest distance."}
