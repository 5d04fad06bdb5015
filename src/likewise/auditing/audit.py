"""Every pair of people in a table checked against a metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, Literal

import numpy as np
import pandas as pd

from likewise._engine import should_compile
from likewise._favourable import given_or_stored
from likewise._html import folded, grid, panel, words
from likewise._optional import is_partitioned
from likewise._subsample import random_pairs
from likewise._typing import FloatArray, IntArray
from likewise._validation import NON_NEGATIVE, check_count, counted, one_of, short_repr
from likewise.exceptions import InvalidInputError
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.metric import BoundMetric
from likewise.metrics.base import Metric, check_metric
from likewise.pairs.model_outputs import ModelOutputs, OutputLabels
from likewise.pairs.plain import blocks_after
from likewise.pairs.points import Difference, Groups, Points, listed
from likewise.pairs.scans import SearchResult, cells_of, person_by_person, search_every_pair

N_SAMPLED = 2000  # random pairs, the same in every audit
_MAX_COMPARED = 10_000  # distinct people under a FunctionMetric: 50 million pairs, all compared
_SHOWN = 5  # pairs in a notebook
_AGAINST = one_of("metric", "guarantee")


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Result of `audit`.

    Attributes
    ----------
    n_pairs : int
        Pairs of rows of X. All of them were searched.
    n_violations : int
        Pairs whose outputs differ by more than ``D + tolerance``.
    max_excess : float
        Largest ``difference - D`` of a violation; 0 if there is none.
    max_ratio : float
        Largest ``difference / D`` of a violation; infinite if people at D = 0 have different outputs, and nan if there
        is no violation.
    violations : DataFrame
        The worst pairs of distinct people, largest excess first: ``row_a`` and ``row_b`` (positions of their first
        rows in X), ``score_a`` and ``score_b`` (their outputs; of several classes, the probabilities of the class in
        which they differ most, which ``outcome`` names), ``favoured`` (``"a"``, ``"b"`` or ``"neither"``; where
        it is not known what is favourable, the column is ``higher``, who has the higher score),
        ``difference``, ``distance``, ``excess``, ``ratio``,
        ``n_pairs`` (how many pairs of rows are this pair) and ``differs`` (all columns in which they differ, with both
        values: those of weight 0 first, then those that contribute most to the distance).
    n_above : dict from float to int
        For each of the `thresholds`, how many pairs exceed the distance by more.
    differences : list of lists of Difference
        The content of ``violations["differs"]``, column by column.
    sample : DataFrame
        ``difference`` and ``distance`` of random pairs, for context.
    coverage : str
        What was searched, what was found, and what was not searched.
    n_samples, n_distinct, n_compared : int
        Rows, distinct people (row and output), and pairs of distinct people that were compared one by one: all where
        people are few, and otherwise those that bounds did not decide.
    tolerance : float
    metric : Metric
    labels : OutputLabels
        What the outputs are: `labels.written` shows a difference or a distance in points of a probability, or in the
        unit of the scores.
    guarantee : Guarantee or None
        What outputs were compared with in place of the metric; ``violations`` then has its ``bound``.
    favourable : str
        What is favourable, in words; empty if it is not known.
    """

    n_pairs: int
    n_violations: int
    max_excess: float
    max_ratio: float
    violations: pd.DataFrame
    n_above: dict[float, int]
    differences: list[list[Difference]]
    sample: pd.DataFrame
    n_samples: int
    n_distinct: int
    n_compared: int
    tolerance: float
    metric: Metric
    labels: OutputLabels
    guarantee: Guarantee | None = None
    favourable: str = ""

    def __repr__(self) -> str:
        return f"<Audit: {self.headline}>"

    @property
    def headline(self) -> str:
        """The result in a line."""
        if not self.n_violations:
            return f"none of {counted(self.n_pairs, 'pair')} was found to exceed {self._limit}"
        verb = "exceeds" if self.n_violations == 1 else "exceed"
        found = f"{self.n_violations:,} of {counted(self.n_pairs, 'pair')} {verb} {self._limit}"
        return f"{found}, the worst by {self.labels.written(self.max_excess, 3)}"

    @property
    def _limit(self) -> str:
        return "the metric" if self.guarantee is None else "the guarantee"

    def abridged(self, max_columns: int = 6) -> pd.DataFrame:
        """The worst pairs for a screen: at most `max_columns` of the columns with a weight that differ, and a count."""
        return self.violations.assign(differs=[listed(each, max_columns) for each in self.differences])

    def _repr_html_(self) -> str:
        rows = [
            (
                f"{pair['row_a']} and {pair['row_b']}",
                pair["differs"],
                f"{pair['score_a']:.4g} and {pair['score_b']:.4g}",
                *(self.labels.written(pair[size], 3) for size in ("difference", "distance", "excess")),
            )
            for pair in self.abridged().head(_SHOWN).to_dict("records")
        ]
        head = ["rows", "they differ in", "scores", "outputs differ by", "distance", "excess"]
        return panel(
            self.headline[0].upper() + self.headline[1:],
            grid(head, rows, left=2) if rows else "",
            words(f"The worst {len(rows)} pairs of distinct people; violations has more.", quiet=True) if rows else "",
            folded("What was searched, and what was not", self.coverage),
        )

    @property
    def coverage(self) -> str:
        """What was searched, what was found, and what was not searched."""
        told, found = self.labels.written, "No pair was found to exceed it."
        if self.n_violations:
            larger = {each: n for each, n in self.n_above.items() if each > self.tolerance}
            more = "".join(f"; {n:,} by more than {told(each, 3)}" for each, n in larger.items())
            ratio = f"largest ratio {self.max_ratio:.3g}"
            if np.isinf(self.max_ratio):
                ratio = "some are at distance 0 and have different outputs"
            exceed = counted(self.n_violations, "pair exceeds", "pairs exceed")
            found = f"{exceed} it{more}; the worst by {told(self.max_excess, 3)} ({ratio})."
        allowed = "D" if self.guarantee is None else "the model's guarantee at distance D"
        return (
            f"Searched: every pair of the {counted(self.n_samples, 'person', 'people')} of the table "
            f"({self.n_distinct:,} of them different), {counted(self.n_pairs, 'pair')}. "
            f"Limit: outputs may differ by {allowed} + {told(self.tolerance, 3)}, "
            f"where D is {self.metric.in_words(told)}. Found: {found} "
            f"{f'Favourable: {self.favourable}. ' if self.favourable else ''}"
            "Not searched: people who are not in the table, columns that the metric leaves out, other outputs that the "
            "model may give for the same people, and whether the metric is the right one."
        )


def audit(
    model: Any,
    X: Any,
    metric: Metric,
    *,
    predictions: Any = None,
    output_range: tuple[float, float] | None = None,
    tolerance: float | None = None,
    thresholds: Sequence[float] = (),
    n_worst: int = 100,
    against: Literal["metric", "guarantee"] = "metric",
    favourable: Any = None,
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
        Under a `FunctionMetric`, or `distances` between categories that are not a sum of groups, every pair is
        compared, so `X` may then hold at most 10,000 distinct people, in memory.
    predictions : array-like of shape (n_samples,) or (n_samples, n_classes), optional
        Outputs of any outside system, used in place of the model's: probabilities within [0, 1], or numbers within
        `output_range`. The columns of a DataFrame name the classes. For a Dask DataFrame or a path, a
        Dask Series or the name of a column.
    output_range : tuple of float, optional
        Limits ``(a, b)`` of numbers. Differences are then divided by ``b - a``, as in the guarantee of
        `SmoothedRegressor`, whose own range is used if none is given.
    tolerance : float, optional
        Excess to ignore, in the unit of the outputs: 0.01 is one percentage point of probability. None takes
        1e-9 of the range of the outputs, for rounding. Use ``model.guarantee_.epsilon`` to leave room for the error of
        sampling in a smoothed model. Probabilities and shares of a range never differ by more than 1, so 1 or more is
        refused: it would find nothing.
    thresholds : sequence of float, default=()
        Larger excesses, in the same unit, above which pairs are counted as well, such as the epsilon of a guarantee or
        what a gate tolerates: see ``Audit.n_above``.
    n_worst : int, default=100
        How many of the worst pairs to list.
    against : {"metric", "guarantee"}, default="metric"
        What outputs are compared with: the distance, or ``model.guarantee_.bound`` of it, which is smaller where a
        method guarantees more (``tanh(D)`` for a scorecard) and larger by the sampling error of a smoothed model. For
        a model whose guarantee is under this metric, and up to 10,000 distinct people in memory, as every pair is
        compared.
    favourable : class label, "high" or "low", optional
        What is better for a person: a class, or an end of the score ("low" for a risk). None is known only if the
        classes are two known words, such as approved and denied; otherwise the
        result says who has the higher score.

    Returns
    -------
    Audit

    Notes
    -----
    Covers all pairs of rows of `X`, and nothing else: that no pair exceeds the metric is no guarantee for other people.
    The estimators that enforce a metric give one.

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
    'race: x / y, age: 30 / 31'
    """
    metric = check_metric(metric)
    favourable = given_or_stored(favourable, model)
    n_worst = check_count("n_worst", n_worst)
    _AGAINST.check("against", against)
    guarantee = _guarantee_under(model, metric) if against == "guarantee" else None
    if guarantee is not None and (is_partitioned(X) or predictions is not None):
        raise InvalidInputError(
            "against='guarantee' must have a model, and X a table in memory, whose every pair is compared. Take up to "
            f"{_MAX_COMPARED:,} rows as a pandas DataFrame, and leave predictions out."
        )
    if is_partitioned(X):
        from likewise.distributed.audit import audit as audit_partitions

        if not metric.weighs_columns:
            got = "a path" if isinstance(X, (str, PathLike)) else "a Dask DataFrame"
            raise InvalidInputError(
                f"X must be a table in memory for {metric!r}, whose every pair has to be compared; got {got}. Take "
                f"up to {_MAX_COMPARED:,} rows as a pandas DataFrame, or use WeightedLp or TableMetric."
            )
        return audit_partitions(model, X, metric, predictions, output_range, tolerance, thresholds, n_worst, favourable)
    bound, people = metric.read(X)
    points = Points.of(people, bound)
    model_outputs = ModelOutputs.of(model, X, points, predictions, output_range)
    unit, groups = model_outputs.unit, points.groups(model_outputs.outputs)
    tolerance, above = check_limits(tolerance, thresholds, unit, shares=model_outputs.labels.are_shares)
    limits = [max(tolerance, each) / unit for each in (tolerance, *above)]
    if guarantee is None and points.splits is not None:
        result, counts = _search_boxes(model_outputs, groups, limits, n_worst)
    else:
        result, counts = _search_every_pair(bound, model_outputs, groups, limits, n_worst, limit_under(guarantee))
    pairs, (a, b) = groups.first[result.pairs], random_pairs(len(points), N_SAMPLED)
    distances = bound.between(points.people.take(a), points.people.take(b))
    sample = pd.DataFrame({"difference": model_outputs.differences(a, b), "distance": distances})
    others: dict[str, Any] = {
        "tolerance": tolerance,
        "n_above": dict(zip(above, counts, strict=True)),
        "sample": sample,
    }
    others |= {"metric": metric, "n_distinct": len(groups.first)}
    return as_audit(result, len(points), model_outputs, pairs, pairs, favourable, guarantee, **others)


def as_audit(
    result: SearchResult,
    n_samples: int,
    outputs: ModelOutputs,
    places: IntArray,
    rows: IntArray,
    favourable: Any,
    guarantee: Guarantee | None = None,
    **others: Any,
) -> Audit:
    """What a search of all pairs found, in units of the outputs; `others` are attributes of the `Audit` as they are.

    The worst pairs are at some `places` among the people of `outputs`, and in `rows` of X.
    """
    direction = outputs.direction(favourable)
    points, unit, (a, b) = outputs.points, outputs.unit, places.T
    differences, distances = unit * result.differences, unit * result.distances
    scores = outputs.labels.pairs(unit * outputs.outputs[a], unit * outputs.outputs[b])
    lead: FloatArray = (scores["score_a"] - scores["score_b"]).to_numpy()
    if direction.sign:
        lead = direction.gains(outputs.outputs[a]) - direction.gains(outputs.outputs[b])
    columns = [points.differences(j, k) for j, k in zip(a, b, strict=True)]
    with np.errstate(divide="ignore", over="ignore"):
        ratios = differences / distances
    violations = pd.DataFrame(
        {
            "row_a": rows[:, 0],
            "row_b": rows[:, 1],
            "score_a": scores["score_a"],
            "score_b": scores["score_b"],
            direction.names[0]: np.where(lead > 0, "a", np.where(lead < 0, "b", "neither")),
            "outcome": scores["outcome"],
            "difference": differences,
            "distance": distances,
            "excess": differences - distances,
            "ratio": ratios,
            "n_pairs": result.times,
            "differs": pd.Series([listed(each) for each in columns], dtype=object),
        }
    )
    if guarantee is not None:
        bound: Any = points.metric
        # What was compared with is the bound; the distance stands beside it.
        between = bound.between(points.people.take(a), points.people.take(b))
        violations = violations.assign(bound=distances, distance=between)
    return Audit(
        n_pairs=n_samples * (n_samples - 1) // 2,
        n_violations=result.n_violations,
        max_excess=unit * result.max_excess,
        max_ratio=result.max_ratio,
        violations=violations,
        differences=columns,
        n_samples=n_samples,
        n_compared=result.n_compared,
        labels=outputs.labels,
        guarantee=guarantee,
        favourable=direction.text,
        **others,
    )


def _guarantee_under(model: Any, metric: Metric) -> Guarantee:
    own = getattr(model, "guarantee_", None)
    if not isinstance(own, Guarantee) or not own.bound_metric.is_of(metric):
        found = "has none" if own is None else f"has one under {own.metric!r}"
        raise InvalidInputError(
            f"against='guarantee' needs a model with a guarantee under metric; {type(model).__name__} {found}. Use "
            "model.guarantee_.metric, or against='metric'."
        )
    return own


def limit_under(guarantee: Guarantee | None) -> Callable[[FloatArray], FloatArray]:
    """What outputs may differ by at a distance, as a share of their range: the guarantee's bound, or the distance."""
    if guarantee is None:
        return lambda distance: distance
    low, high = guarantee.output_range or (0.0, 1.0)
    return lambda distance: guarantee.bound(distance) / (high - low)


def _search_boxes(
    model_outputs: ModelOutputs, groups: Groups, limits: Sequence[float], n_worst: int
) -> tuple[SearchResult, list[int]]:
    """Pairs that exceed by more than the first limit, and counts above the others; in units of the outputs."""
    points, outputs = model_outputs.points.take(groups.first), model_outputs.outputs[groups.first]
    X, kinds, scales, p = columns = points.columns_in(model_outputs.unit)
    cells = cells_of(len(points) ** 2 / 2, len(X), p)
    if not should_compile("likewise.pairs.box_search._run", cells):
        blocks = blocks_after(columns, np.ascontiguousarray(outputs.T))
        return search_every_pair(blocks, groups.count, limits[0], n_worst, limits[1:])
    from likewise.pairs.box_search import count_above, search_tree, search_within
    from likewise.pairs.box_tree import box_tree_of

    tree = box_tree_of(points.X, outputs, scales, p, kinds, groups.count)
    result = search_tree(tree, limits[0], n_worst)
    return result, count_above(limits[1:], result, partial(search_within, tree))


def _search_every_pair(
    metric: BoundMetric,
    model_outputs: ModelOutputs,
    groups: Groups,
    limits: Sequence[float],
    n_worst: int,
    allowed: Callable[[FloatArray], FloatArray],
) -> tuple[SearchResult, list[int]]:
    """The same where every pair is compared: under functions, matrices of categories, and bounds of guarantees."""
    people, n = model_outputs.points.people, len(groups.first)
    if n > _MAX_COMPARED:
        raise InvalidInputError(
            f"X must hold at most {_MAX_COMPARED:,} distinct people for {metric.description!r}; got {n:,}. With a "
            "function, distances between categories that are not a sum of groups, or against='guarantee', every "
            "pair has to be compared. Draw some of the rows, or use WeightedLp or TableMetric without them."
        )
    metric.description.check_axioms(people)
    distinct = people.take(groups.first)

    def distances_after(i: int) -> FloatArray:
        distances = metric.between(distinct.take([i]), distinct.take(slice(i + 1, None)))
        return allowed(distances) / model_outputs.unit

    blocks = person_by_person(distances_after, model_outputs.outputs[groups.first])
    return search_every_pair(blocks, groups.count, limits[0], n_worst, limits[1:])


def check_tolerance(tolerance: Any, unit: float) -> float:
    """Validate `tolerance`; None allows for rounding only."""
    if tolerance is None:
        return 1e-9 * unit
    NON_NEGATIVE.check("tolerance", tolerance)
    return float(tolerance)


def check_limits(tolerance: Any, thresholds: Any, unit: float, *, shares: bool) -> tuple[float, list[float]]:
    """Validate `tolerance` and `thresholds`; if outputs are `shares`, differences are at most 1."""
    least = check_tolerance(tolerance, unit)
    if shares and least >= 1:
        raise InvalidInputError(
            f"tolerance must be below 1, since these outputs never differ by more; got {least:g}. 0.01 is one "
            "percentage point."
        )
    if not isinstance(thresholds, (Sequence, np.ndarray)) or isinstance(thresholds, str) or np.ndim(thresholds) != 1:
        raise InvalidInputError(f"thresholds must be a list of non-negative numbers; got {short_repr(thresholds)}.")
    for threshold in thresholds:
        NON_NEGATIVE.check("thresholds", threshold)
    return least, [float(threshold) for threshold in thresholds]


def tolerance_under(guarantee: Guarantee | None) -> float:
    """The `tolerance` with which to search a model that may exceed the distance by the epsilon of its guarantee."""
    epsilon = 0.0 if guarantee is None else guarantee.epsilon
    return float(np.clip(epsilon, 1e-9, 1 - 1e-9))
