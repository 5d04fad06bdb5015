"""Every pair of people checked against a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise._checks import check_count
from likewise._extras import is_partitioned
from likewise._html import folded, grid, panel, words
from likewise._rules import NOT_NEGATIVE
from likewise._typing import FloatArray, IntArray
from likewise.metrics.abstract import Metric, check_metric
from likewise.pairs.points import Points
from likewise.pairs.population import Population

if TYPE_CHECKING:
    from likewise.pairs.search import Found

_SAMPLE = 2000
_SHOWN = 5  # pairs in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What was searched for, and what was found.

    Attributes
    ----------
    n_pairs : int
        Pairs of rows of X. All of them were searched.
    n_violations : int
        Pairs whose outputs differ by more than ``D + tolerance``.
    max_excess : float
        Largest ``difference - D`` of a violation; 0 if there is none.
    max_ratio : float
        Largest ``difference / D`` of a violation; infinite if equal people (D = 0) have different outputs, and nan if
        there is no violation (ratios up to 1 are not searched for).
    violations : DataFrame
        The worst pairs of distinct people, largest excess first: ``row_a`` and ``row_b`` (positions of their first
        rows in X), ``difference``, ``distance``, ``excess``, ``ratio``, ``n_pairs`` (how many pairs of rows are
        this pair) and ``differs`` (the features in which they differ, with both values, those that contribute most
        to the distance first).
    sample : DataFrame
        ``difference`` and ``distance`` of random pairs, for context.
    coverage : str
        The same in words, with what was not searched.
    n_samples, n_distinct, n_compared : int
        Rows, distinct people (row and output), and pairs of distinct people that were compared one by one.
    tolerance : float
    metric : Metric
    """

    n_pairs: int
    n_violations: int
    max_excess: float
    max_ratio: float
    violations: pd.DataFrame
    sample: pd.DataFrame
    n_samples: int
    n_distinct: int
    n_compared: int
    tolerance: float
    metric: Metric

    def __repr__(self) -> str:
        return f"<Audit: {self.headline}>"

    @property
    def headline(self) -> str:
        """What was found, in a line."""
        if not self.n_violations:
            return f"none of {self.n_pairs:,} pairs was found to exceed the metric"
        return f"{self.n_violations:,} of {self.n_pairs:,} pairs exceed the metric, the worst by {self.max_excess:.3g}"

    def _repr_html_(self) -> str:
        rows = [
            (
                f"{pair['row_a']} and {pair['row_b']}",
                pair["differs"],
                *(f"{pair[size]:.3g}" for size in ("difference", "distance", "excess")),
            )
            for pair in self.violations.head(_SHOWN).to_dict("records")
        ]
        head = ["rows", "they differ in", "outputs differ by", "distance", "excess"]
        return panel(
            self.headline[0].upper() + self.headline[1:],
            grid(head, rows, left=2) if rows else "",
            words(f"The worst {len(rows)} pairs of distinct people; violations has more.", quiet=True) if rows else "",
            folded("What was searched, and what was not", self.coverage),
        )

    @property
    def coverage(self) -> str:
        """What was searched, what was found, and what was not searched."""
        distinct_pairs = max(1, self.n_distinct * (self.n_distinct - 1) // 2)
        if self.n_violations:
            found = (
                f"{self.n_violations:,} pairs exceed it, the worst by {self.max_excess:.3g} "
                f"(largest ratio {self.max_ratio:.3g})."
            )
        else:
            found = "No pair was found to exceed it."
        return (
            f"Searched: all {self.n_pairs:,} pairs of the {self.n_samples:,} rows of X "
            f"({self.n_distinct:,} distinct), exactly; {self.n_compared / distinct_pairs:.2%} of the pairs of distinct "
            "people were compared one by one, and bounds decided the others. "
            f"Limit: outputs may differ by D + {self.tolerance:.3g}, where D is {self.metric!r}. Found: {found} "
            "Not searched: people who are not in X, features that the metric leaves out, other answers that the "
            "model may give to the same people, and whether the metric is the right one."
        )


def audit(
    model: Any,
    X: Any,
    metric: Metric,
    *,
    predictions: Any = None,
    output_range: tuple[float, float] | None = None,
    tolerance: float | None = None,
    n_worst: int = 100,
) -> Audit:
    """Search all pairs of people in `X` for outputs that differ by more than the distance between the people.

    The result is exactly that of comparing every pair; a tree of boxes makes it much faster where people at a
    distance have outputs that differ by clearly less (`docs/theory.md` §8).

    Parameters
    ----------
    model : object with predict_proba or predict, or callable
        Class probabilities are compared by total variation, labels as probabilities of 0 and 1, and numbers by
        absolute difference, in the unit of the output. A plain function returns one number per row, or one
        probability per class. May be None if `predictions` is given.
    X : array-like of shape (n_samples, n_features)
        For a metric of tables a table (pandas, polars or pyarrow) with the metric's columns, in any order; the model is
        given it as a pandas DataFrame.
        Or a Dask DataFrame of any size, or the path of a Parquet file or of a directory of them, which Dask reads: the
        search runs on the active Dask client, or in threads (`docs/scale.md`). The model is given the columns it has
        learned from, or those of the metric. All but ``n_compared`` is as for a table in memory, to the last bit.
    metric : Metric
    predictions : array-like of shape (n_samples,) or (n_samples, n_classes), optional
        Outputs of any outside system, to be used in place of the model's answers: probabilities within [0, 1], or
        numbers within `output_range`. For a Dask DataFrame or a path, a Dask Series or the name of a column.
    output_range : tuple of float, optional
        Limits ``(a, b)`` of numbers. Differences are then divided by ``b - a``, as in the guarantee of
        `SmoothedRegressor`, whose own range is used if none is given.
    tolerance : float, optional
        Excess that does not count. None takes 1e-9 of the range of the outputs, for rounding. Use
        ``model.guarantee_.epsilon`` to leave room for the error of sampling in a smoothed model.
    n_worst : int, default=100
        How many of the worst pairs to list.

    Returns
    -------
    Audit

    Notes
    -----
    All pairs of rows of `X`, and nothing else: that no pair was found to exceed the metric is no promise about other
    people. `SmoothedClassifier` makes one.

    Examples
    --------
    >>> from likewise import WeightedLp
    >>> X = [[30, 2], [31, 2], [50, 8]]
    >>> result = audit(None, X, WeightedLp({"age": 0.01, "years": 0.1}), predictions=[0.2, 0.6, 0.7])
    >>> result.n_violations, round(result.max_excess, 3)
    (1, 0.39)
    >>> result.violations[["row_a", "row_b", "differs"]]
       row_a  row_b       differs
    0      0      1  age: 30 / 31

    The same for a table, with a column that must not matter:

    >>> from likewise import TableMetric
    >>> X = pd.DataFrame({"age": [30, 31], "race": ["x", "y"]})
    >>> audit(None, X, TableMetric({"age": 0.01}, {"race": 0}), predictions=[0.2, 0.6]).violations["differs"][0]
    'age: 30 / 31, race: x / y'
    """
    metric = check_metric(metric)
    n_worst = check_count("n_worst", n_worst)
    if is_partitioned(X):
        from likewise.distributed.audit import audit as audit_partitions

        return audit_partitions(model, X, metric, predictions, output_range, tolerance, n_worst)
    from likewise.pairs.search import search

    points = Points.of(metric.people(X))
    population = Population.of(model, X, points, predictions, output_range)
    weights, unit = metric.weights_of(points.people.coding), population.unit
    scales = points.scales(weights)
    tolerance = check_tolerance(tolerance, unit)
    groups = points.groups(population.outputs)
    found = search(
        points.X[groups.first],
        population.outputs[groups.first],
        groups.count,
        scales / unit,
        metric.p,
        tolerance / unit,
        n_worst,
        kinds=points.kinds,
    )
    n, rows = len(points), points.people.rows
    a, b = sampled_pairs(n)
    return Audit(
        n_pairs=n * (n - 1) // 2,
        n_violations=found.n_violations,
        max_excess=unit * float(found.differences[0] - found.distances[0]) if found.n_violations else 0.0,
        max_ratio=found.max_ratio,
        violations=tabulate(points, groups.first[found.pairs], found, unit, scales),
        sample=pd.DataFrame(
            {"difference": population.differences(a, b), "distance": weights.distances(rows[a], rows[b])}
        ),
        n_samples=n,
        n_distinct=len(groups.first),
        n_compared=found.n_compared,
        tolerance=tolerance,
        metric=metric,
    )


def tabulate(points: Points, pairs: IntArray, found: Found, unit: float, scales: FloatArray) -> pd.DataFrame:
    """The worst pairs, given as positions among the points."""
    a, b = pairs.T
    differences, distances = unit * found.differences, unit * found.distances
    contribution = scales * points.gaps(a, b)
    orders = np.argsort(-contribution, axis=1, kind="stable")
    with np.errstate(divide="ignore", over="ignore"):
        ratios = differences / distances
    return pd.DataFrame(
        {
            "row_a": a,
            "row_b": b,
            "difference": differences,
            "distance": distances,
            "excess": differences - distances,
            "ratio": ratios,
            "n_pairs": found.times,
            "differs": pd.Series(
                [points.differing(j, k, order) for j, k, order in zip(a, b, orders, strict=True)], dtype=object
            ),
        }
    )


def sampled_pairs(n_people: int) -> tuple[IntArray, IntArray]:
    """Random pairs of people. A fixed seed: the same audit twice is the same result."""
    a, b = np.random.default_rng(0).integers(n_people, size=(2, _SAMPLE))
    return a[a != b], b[a != b]


def check_tolerance(tolerance: Any, unit: float) -> float:
    """The excess that does not count; None for rounding only."""
    if tolerance is None:
        return 1e-9 * unit
    NOT_NEGATIVE.check("tolerance", tolerance)
    return float(tolerance)
