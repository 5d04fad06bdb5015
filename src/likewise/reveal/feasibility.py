"""Whether limits of weights leave a metric at all."""

from __future__ import annotations

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.errors import InvalidInputError
from likewise.pairs.points import CODE, GAPPY, Points, groups_of
from likewise.pairs.population import Population
from likewise.reveal.widening import ROUNDING, SHORTFALL


def check_feasible(
    population: Population, first: IntArray, points: Points, outputs: FloatArray, high: FloatArray, p: float
) -> None:
    """Raise if some pair exceeds even the largest weights allowed.

    Every weight only helps, so the program is feasible if and only if the upper limits themselves are: the pairs left
    are those that differ in bounded features alone. `points` and `outputs` are of the distinct people, who stand in
    the rows `first` of the population; outputs differ by at most 1.
    """
    from likewise.pairs.gathering import gather

    free, codes = np.isinf(high), points.kinds == CODE
    if (free | (codes & (high >= 1))).all():  # distinct people differ somewhere, and each difference explains all
        return
    X, kinds, scales = [points.X[:, ~free]], [points.kinds[~free]], [high[~free] ** (1 / p)]
    # Any difference in a free feature explains all. Those without gaps together are one code.
    plain = free & (points.kinds != GAPPY)
    if plain.any():
        X.append(groups_of(points.X[:, plain]).of_row[:, None].astype(np.float64))
        kinds.append(np.array([CODE], dtype=np.int8))
        scales.append(np.ones(1))
    for i in np.flatnonzero(free & ~plain):
        values = np.unique(points.X[~np.isnan(points.X[:, i]), i])
        X.append(points.X[:, [i]])
        kinds.append(points.kinds[[i]])
        scales.append(np.array([1 / np.diff(values).min() if len(values) > 1 else 1.0]))
    found = gather(
        np.column_stack(X),
        outputs,
        np.concatenate(scales),
        p,
        tolerance=ROUNDING,
        shortfall=SHORTFALL,
        most=10_000,
        kinds=np.concatenate(kinds),
    )
    if len(found.pairs):
        pairs = np.sort(first[found.pairs], axis=1)
        raise InvalidInputError(_impossible(population, pairs, found.complete))


def _impossible(population: Population, pairs: IntArray, complete: bool) -> str:
    points, (a, b) = population.points, pairs.T
    gap = population.differences(a, b)
    order = np.arange(len(points.kinds))
    lines = [
        f"rows {a[k]} and {b[k]} (outputs differ by {gap[k]:.4g}; {points.differing(a[k], b[k], order)})"
        for k in np.lexsort((b, a, -gap))[:3]
    ]
    cure = "Raise these weights, or audit the model against the metric you have in mind."
    if (points.kinds == CODE).any() and population.unit > 1:
        cure = "Weights of categories are at most 1: give output_range=(lowest, highest) to have shares of its width."
    count = f"{len(pairs):,}" if complete else f"more than {len(pairs):,}"
    return (
        "fixed and upper leave no metric: some pairs differ only in bounded features, and these weights do not explain "
        f"the difference of outputs. Worst of those found ({count}): {'; '.join(lines)}. {cure}"
    )
