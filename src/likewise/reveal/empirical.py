"""The minimal metric of any model on given people, by linear programming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from likewise._optional import is_partitioned
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise._validation import BOOL, NON_NEGATIVE, check_names, checking, short_repr
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.distance import CODE, NULLABLE
from likewise.kernel.schema import ArrayEncoder, People, TableEncoder, as_frame, is_table, not_a_table
from likewise.metrics.base import Metric
from likewise.metrics.table import BLANKS_ONLY, TableMetric
from likewise.metrics.weighted_lp import WeightedLp, check_exponent
from likewise.metrics.zero_weights import ZERO_REASONS
from likewise.pairs.model_outputs import ModelOutputs
from likewise.pairs.points import Points
from likewise.reveal.active_set import DistinctPeople, PeopleInMemory
from likewise.reveal.exchange import Exchanges, exchange_columns
from likewise.reveal.linear import ends_of, least_missing_weight
from likewise.reveal.linear_program import MAX_ROUNDS, NO_PAIR, MinimalWeights
from likewise.reveal.shapes import MOST_COMPARED, CategoryShapes, declared_shapes


def read_people(X: Any, categorical: Sequence[Any] | None) -> People:
    """People as an array if all columns are numbers, and otherwise as a table, whose dtypes give the categories."""
    if not is_table(X):
        if categorical is not None:
            raise InvalidTypeError(f"categorical names columns, so X must be a table; got {type(X).__name__}.")
        return _numbers(X, None)
    frame = as_frame(X)
    names = list(frame.columns)
    chosen = _categorical_columns(frame, categorical)
    if categorical is None and not chosen and not frame.isna().any(axis=None):
        return _numbers(frame, tuple(names))
    return People.read(frame, TableEncoder.learn(frame, [name for name in names if name not in chosen], chosen))


def _read_shaped(
    X: Any, categorical: Sequence[Any] | None, order: Any, groups: Any, distances: Any
) -> tuple[People, TableMetric | None, list[Any]]:
    """People, and the `declared_shapes` of their categories; None if there are none."""
    if order is None and groups is None and distances is None:
        return read_people(X, categorical), None, []
    if not is_table(X):
        raise InvalidTypeError(
            f"order, groups and distances name columns, so X must be a table; got {type(X).__name__}."
        )
    frame = as_frame(X)
    chosen = _categorical_columns(frame, categorical)
    metric, free = declared_shapes(list(frame.columns), chosen, order, groups, distances)
    return People.read(frame, metric.encoder(frame)), metric, free


def _numbers(X: Any, names: tuple[Any, ...] | None) -> People:
    with checking():
        shape = np.shape(X)
    if len(shape) != 2 or shape[1] == 0:
        raise not_a_table("X", shape)
    return People.read(X, ArrayEncoder(shape[1], names))


def _categorical_columns(frame: pd.DataFrame, given: Sequence[Any] | None) -> list[Any]:
    if given is None:
        return [name for name in frame.columns if _is_categorical(frame[name])]
    return check_names("categorical", given, list(frame.columns))


def _is_categorical(column: pd.Series[Any]) -> bool:
    kinds = pd.api.types.is_bool_dtype, pd.api.types.is_object_dtype, pd.api.types.is_string_dtype
    return isinstance(column.dtype, pd.CategoricalDtype) or any(of_kind(column.dtype) for of_kind in kinds)


_CURE = (
    "Weights to a large power p are too far apart for the solver: use p up to 7, or rescale features whose values are "
    "extremely large."
)


_NOT_EXCHANGED = (
    "No column is exchanged on a Dask DataFrame: a weight may be 0 although the model uses the column. Pass a "
    "sample of the rows in memory to check."
)
NOT_FORCED, FORCED, FIXED = ZERO_REASONS["not_forced"].meaning, "forced", "fixed"
COULD_BE_0, NOT_SEEN, UNKNOWN = "could be 0", "not used, as far as asked", "not known"
TOLERANCE_OF_RANGES = 0.01
"""Relative excess over the optimum up to which solutions count as equally good."""
_IN_UNITS = ["estimate", "low", "high", "least", "cost_of_0"]  # of the outputs, to the power p


@dataclass(frozen=True, eq=False, repr=False)
class MetricEstimate:
    """Result of `estimate_minimal_metric`.

    Attributes
    ----------
    metric : WeightedLp or TableMetric
    not_forced : tuple
        Columns of weight 0: other columns account for the differences of outputs. The model may still use them:
        swapping their values may change outputs.
    notes : tuple of str
        Missing values with more weight than the people force, and how many people had columns exchanged.
    weights : DataFrame
        Per weight: the ``column``, its ``kind`` ("weight"; "missing" for the distance between a number and a missing
        one; "within" for that between two categories of one group), the ``estimate``, the range ``low`` to ``high``
        over all solutions that are as good within 1%, and its ``status``:
        "forced" (no metric of these people has it at 0: it is at least ``least`` in each, as the pair ``row_a`` and
        ``row_b`` shows, which differs in nothing else that could account for its outputs; if ``exchanged``, ``row_a``
        and the same person with the value of ``row_b`` in this column), "could be 0" (in another metric of these
        people, whose mean ``D^p`` is larger by ``cost_of_0``), "not forced by these people" (it is 0), "not used, as
        far as asked" (exchanging the column changed no output, so it was left out, which these people allow), "fixed",
        or "not known" (the solver failed, for large p).
    active_pairs : DataFrame
        The pairs that force the weights: their difference of outputs uses all of their distance. ``row_a`` and
        ``row_b`` are positions in X.
    n_pairs : int
        Pairs of distinct people; none of them exceeds the metric.
    n_rounds : int
        Linear programs solved.
    n_constraints : int
        Pairs that entered the linear program.
    """

    metric: Metric
    active_pairs: pd.DataFrame
    n_pairs: int
    n_rounds: int
    n_constraints: int
    weights: pd.DataFrame
    not_forced: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.metric, TableMetric) and self.not_forced:
            reasons = dict.fromkeys(self.not_forced, "not_forced")
            object.__setattr__(self, "metric", self.metric.with_params(zero_reasons=reasons))

    def describe(self) -> pd.DataFrame:
        """Return the exchange rates of the metric, with the range of each weight and whether people force it."""
        table = self.metric.describe()
        ranges = self.weights[self.weights["kind"] == "weight"].set_index("column").loc[table["column"]]
        for name in ("low", "high", "status"):
            table[name] = ranges[name].to_numpy()
        idle = table["column"].isin(self.not_forced)
        table.loc[idle, "one point"] = table.loc[idle, "status"]
        return table

    def __repr__(self) -> str:
        idle = f", {NOT_FORCED}: {', '.join(map(str, self.not_forced))}" if self.not_forced else ""
        return f"MetricEstimate({self.metric!r}, n_pairs={self.n_pairs}{idle})"


def estimate_minimal_metric(
    model: Any,
    X: Any,
    p: float = 1,
    *,
    categorical: Sequence[Any] | None = None,
    order: Mapping[Any, Sequence[Any]] | None = None,
    groups: Mapping[Any, Any] | None = None,
    distances: Mapping[Any, Any] | None = None,
    predictions: Any = None,
    output_range: tuple[float, float] | None = None,
    upper: Mapping[Any, float] | None = None,
    fixed: Mapping[Any, float] | None = None,
    columns: Sequence[str] | None = None,
    exchange: bool = True,
) -> MetricEstimate:
    """Smallest weighted Lp metric under which a model treats the people in `X` alike.

    Solves ``min c.w`` under ``sum_i w_i |x_ai - x_bi|^p >= difference(a, b)^p`` for all pairs (a, b) of people,
    where ``c_i`` is the mean of ``|x_ai - x_bi|^p`` (among more than 131,072 people, that of about as many): of all
    metrics that no pair in `X` exceeds and whose weights cannot be shrunk, the one with the smallest mean ``D^p``
    (approximately for p that is not whole, or above 16). Pairs enter the program when a search finds them violated,
    which compares few (`docs/theory.md` §8). In a table, ``|x_ai - x_bi|`` is 1 for different categories, and their
    weight at most 1.

    A weight need not be determined: columns that go together can stand in for each other. ``weights`` has the range of
    each over all solutions that are as good within 1%: their cost ``c.w`` is at most 1% above the smallest, and no pair
    is short by more than 1% of the largest difference of outputs. If the model can be called, people are also compared
    with copies of themselves that have another person's value in one column: a column whose exchange changed an output
    then has a positive weight, at least its largest observed effect; one whose exchange changed none is left out.

    Parameters
    ----------
    model : object with predict_proba or predict, or callable
        Class probabilities are compared by total variation, labels as probabilities of 0 and 1, and numbers by
        absolute difference. A plain function returns one number per row, or one probability per class.
    X : array-like of shape (n_samples, n_features)
        Or a table (pandas, polars or pyarrow) with categories, which the model is given as a pandas DataFrame. A
        missing number is a category of its own: what its absence weighs is in ``metric.missing``, and
        where no number is missing in `X` the metric refuses people with one missing. A missing value weighs at least
        half of the column's largest distance among these people, up to 1, since less would limit the column: `notes`
        names the columns where the people force less.
        Or a Dask DataFrame of any size, or the path of a Parquet file or of a directory of them, which Dask reads: the
        search runs on the active Dask client, or in threads (`docs/scale.md`). The result is that of a table in memory,
        to the last bit.
    p : float, default=1
        Any finite number >= 1; 1 for tables with categories. Above 7 the linear program may be too badly scaled to be
        solved, which raises an error.
    categorical : sequence of column names, optional
        Columns whose values are equal or not. None takes those of text, categories and truth values.
    order : mapping from column to list of categories, optional
        Ordinal categories, from the first to the last, as in `TableMetric`: their weight is per step.
    groups : mapping from column to groups of categories, optional
        ``{"job": [["clerk", "teacher"], ["farmer"]]}`` finds two weights, between two categories of one group and
        between others. ``{"job": {"within": 0.3, "groups": [...]}}`` finds one, the first being 0.3 times the second.
        A missing value, and a category that is not listed, belongs to no group.
    distances : mapping from column to DataFrame or mapping of mappings, optional
        Distance matrix between categories, as in `TableMetric`; its scale is estimated. If they are not nested groups,
        every pair is compared: up to 10,000 distinct people, in memory.
    predictions : array-like of shape (n_samples,) or (n_samples, n_classes), optional
        Probabilities to use in place of the model's outputs, or numbers within `output_range`; `model` may then be
        None. For a Dask DataFrame or a path, a Dask Series or the name of a column.
    output_range : tuple of float, optional
        Limits ``(a, b)`` of what a regressor predicts. Weights are then shares of ``b - a``, as `SmoothedRegressor` and
        `audit` take them; otherwise they are in the unit of the output.
    upper : mapping from feature name or position to weight, optional
        Upper limits of weights.
    fixed : mapping from feature name or position to weight, optional
        Given weights: ``fixed={"race": 0}`` tests whether the other columns account for the outputs of these people.
        If they do, the model may still use race: exchange its values to see. A number that is the name of a column
        means that column.
    columns : sequence of str, optional
        For a Dask DataFrame or a path: the columns of the distance. None takes those that the model was fitted on, or
        all but the predictions.
    exchange : bool, default=True
        Call the model for people with one column exchanged, except in `fixed` columns. Up to 16 distinct values are
        all tried; if there are more, the 16 most frequent categories, or quantiles at least half a standard deviation
        away; and a missing value if there are any. This is done for up to 2,000 people, in memory; `notes` says if
        there are more. False compares the given people only, as with `predictions` and a Dask DataFrame.

    Returns
    -------
    MetricEstimate
        With a `TableMetric` if `X` is a table, and a `WeightedLp` if it is an array.

    Raises
    ------
    RuntimeError
        If the linear program cannot be solved, which happens for large p.
    ValueError
        If no metric exists, with the pairs that show it: equal people with different outputs, or pairs that differ only
        in features whose weights are bounded.

    Notes
    -----
    No pair of rows of `X` exceeds the metric by more than 1e-9 of the range of the outputs. Other people may: it
    is an estimate for them. A weight of 0 means that these people do not force one, not that the model ignores the
    column. With more people, single weights may rise or fall, since columns can stand in for each other.
    `minimal_metric` covers everyone, for linear models.

    Examples
    --------
    >>> X = [[0, 0], [1, 0], [0, 2], [1, 2]]
    >>> result = estimate_minimal_metric(lambda X: 3 * X[:, 0] - X[:, 1], X)
    >>> result.metric
    WeightedLp([3, 1], p=1)
    >>> X = pd.DataFrame({"age": [30, 40, 40], "region": ["north", "north", "south"]})
    >>> estimate_minimal_metric(None, X, predictions=[0.1, 0.3, 0.6]).metric
    TableMetric(numeric: age=0.02; mismatch: region=0.3; p=1)
    """
    if check_exponent(p) == np.inf:
        raise InvalidInputError(
            "p must be finite; got inf. With p = inf, D is a maximum over features: the constraint of a pair is "
            "not linear in the weights, and there is no single smallest metric. Use a finite p."
        )
    p = float(p)
    BOOL.check("exchange", exchange)
    may_ask, exchanged, notes = exchange and predictions is None, None, []
    people: DistinctPeople
    if is_partitioned(X):
        for parameter, given in (("order", order), ("groups", groups), ("distances", distances)):
            if given is not None:
                raise InvalidInputError(
                    f"{parameter} must be None for a Dask DataFrame or a path; got {short_repr(given)}. Pass people in "
                    "memory, such as a sample of the rows."
                )
        from likewise.distributed.reveal import dask_people

        people, declared = dask_people(model, X, columns, categorical, predictions, output_range), None
        _check_people(people, p, declared)
        notes = [_NOT_EXCHANGED] if may_ask else []
    else:
        if columns is not None:
            raise InvalidInputError("columns is for a Dask DataFrame or a path; select them with X[columns] in memory.")
        read, declared, free = _read_shaped(X, categorical, order, groups, distances)
        everyone = Points.of(read)
        shapes = CategoryShapes.of(declared, free, read.encoder, everyone.kinds)
        people = PeopleInMemory(ModelOutputs.of(model, X, everyone, predictions, output_range), shapes)
        _check_people(people, p, declared)
        if may_ask:
            held = {_position("fixed", key, everyone) for key in (fixed if isinstance(fixed, Mapping) else ())}
            asked = [i for i in range(everyone.n_columns) if i not in held]
            exchanged = exchange_columns(model, X, people, p, output_range, asked)
            notes = exchanged.notes()
    return _estimate(people, p, upper, fixed, exchanged, notes, declared)


def _check_people(people: DistinctPeople, p: float, declared: TableMetric | None) -> None:
    """Raise if there is no linear program, if all people are equal, or if equal people have other outputs."""
    if people.shapes.tables and people.n_people > MOST_COMPARED:
        raise InvalidInputError(
            f"X must hold at most {MOST_COMPARED:,} distinct people for distances that are not nested groups, since "
            f"every pair is compared; got {people.n_people:,}. Pass a sample of them, or groups."
        )
    if p != 1 and ((people.template.kinds == CODE).any() or (declared is not None and declared.order)):
        raise InvalidInputError(
            f"p must be 1 for a table with categories, ordered or not, or missing numbers; got {p:g}. Their weights "
            "are added outside the power, (sum_i w_i |x_i - x'_i|^p)^(1/p) + sum_c w_c: for another p, the constraint "
            "of a pair is not linear in the weights, and there is no linear program to solve."
        )
    if people.n_people < 2:
        raise InvalidInputError(f"X must hold at least two distinct rows; all {people.n_rows} rows are equal.")
    if people.largest_gap > 1e-9:  # rows of one batch may be rounded differently
        one, other = people.equal_rows
        raise InvalidInputError(
            f"Equal people must have equal outputs, or no metric exists; rows {one} and {other} of X are equal and "
            f"their outputs differ by {people.unit * people.largest_gap:.3g}. Use a deterministic model, or add "
            "the feature that tells these people apart."
        )


def _estimate(
    people: DistinctPeople,
    p: float,
    upper: Any,
    fixed: Any,
    exchanged: Exchanges | None,
    said: list[str],
    declared: TableMetric | None = None,
) -> MetricEstimate:
    """Solve for the weights; `declared` has the shapes of categories."""
    template = people.template
    # Weights are found for outputs in `unit`s, and multiplied by unit^p at the end.
    low, high = _bounds(upper, fixed, template, people.shapes, people.unit**p)
    is_fixed = low == high
    if exchanged is not None:
        _check_exchanged(exchanged, template, people.unit, low, high, p)
        low = np.where(is_fixed, low, np.minimum(np.maximum(low, exchanged.weights), high))
    program = MinimalWeights(people, low, high, p)
    n_rounds = program.solve_with_cuts(MAX_ROUNDS, _CURE)
    if exchanged is not None:
        n_rounds += _leave_out_unused(program, exchanged)
    metric, notes = _metric(template, program.weights * people.unit**p, p, people.shapes, declared)
    n, names = people.n_people, template.people.encoder.names
    excluded = [_position("fixed", key, template) for key, weight in (fixed or {}).items() if weight == 0]
    idle = np.flatnonzero(program.weights[: template.n_columns] == 0).tolist()
    estimates, n_constraints = program.weights, program.n_constraints
    active_pairs = _describe(people, *program.active(), metric, list(notes))
    needs = _find_needs(program, is_fixed, exchanged)
    unused = (estimates == 0) & (exchanged is not None and exchanged.n_tried > 0)
    status = np.select(
        [is_fixed, needs["least"] > 0, unused, needs["cost_of_0"].isna(), estimates > 0],
        [FIXED, FORCED, NOT_SEEN, UNKNOWN, COULD_BE_0],
        NOT_FORCED,
    )
    n_columns, nullable, within = template.n_columns, template.nullable.tolist(), people.shapes.within
    columns = [names[i] for i in (*range(n_columns), *nullable, *within.values())]
    kinds = ["weight"] * n_columns + ["missing"] * len(nullable) + ["within"] * len(within)
    least, most = program.ranges(TOLERANCE_OF_RANGES)
    least = np.where((least > 1e-6 * most) | (least == most), least, 0.0)
    weights = pd.DataFrame({"column": columns, "kind": kinds, "estimate": estimates, "low": least, "high": most})
    weights = pd.concat([weights.assign(status=status), needs], axis=1)
    weights[_IN_UNITS] *= people.unit**p
    return MetricEstimate(
        metric=metric,
        active_pairs=active_pairs,
        n_pairs=n * (n - 1) // 2,
        n_rounds=n_rounds,
        n_constraints=n_constraints,
        weights=weights,
        not_forced=tuple(names[i] for i in idle if i not in excluded),
        notes=(*notes.values(), *_notes_on_groups(people.shapes, names, estimates), *said),
    )


def _check_exchanged(
    exchanged: Exchanges, points: Points, unit: float, low: FloatArray, high: FloatArray, p: float
) -> None:
    """Raise if a person and the same person with one column exchanged violate an upper limit."""
    above = (low < high) & (exchanged.weights > high * (1 + 1e-9))
    for i in np.flatnonzero(above):
        a, b = exchanged.rows[i]
        needs = (
            f"the weight {exchanged.weights[i] * unit**p:.4g}, above its limit of {high[i] * unit**p:.4g} (1 for "
            "categories and missing values)"
        )
        raise InvalidInputError(
            f"upper leaves no metric: {exchanged.names[i]!r} of row {a} exchanged for that of row {b} needs {needs}. "
            "Raise the limit, give output_range=(lowest, highest), declare these categories further apart, or pass "
            "exchange=False to compare the given people only."
        ).in_commands(
            f"No metric has these groups and distances of categories: {exchanged.names[i]!r} needs {needs}. Declare "
            "categories whose outputs differ more as further apart, or leave the shape of this column out."
        )


def _leave_out_unused(program: MinimalWeights, exchanged: Exchanges) -> int:
    """Leave out columns whose exchange changed no output, where people allow it; return the linear programs solved."""
    unused = np.flatnonzero((exchanged.n_tried > 0) & (exchanged.weights == 0) & (program.low < program.high))
    for i in unused.tolist():
        program.leave_out(i, keep=True)
    if not len(unused):
        return 0
    program.solve()
    return program.solve_with_cuts(MAX_ROUNDS, _CURE)


def _find_needs(program: MinimalWeights, is_fixed: BoolArray, exchanged: Exchanges | None) -> pd.DataFrame:
    """Per weight: the least in any metric of these people, what 0 would cost instead, and the rows that show it."""
    needs = []
    for i, fixed in enumerate(is_fixed.tolist()):
        least, cost, pair, alone = 0.0, np.nan if fixed else 0.0, NO_PAIR, False
        if not fixed and program.weights[i] > 0:
            alone = exchanged is not None and bool(exchanged.weights[i] > 0)
            if exchanged is not None and alone:
                least, pair = float(exchanged.weights[i]), exchanged.rows[i]
            else:
                cost, least, pair = program.leave_out(i)
        needs.append((least, np.nan if least > 0 else cost, *pair, alone))
    return pd.DataFrame(needs, columns=["least", "cost_of_0", "row_a", "row_b", "exchanged"])


def _metric(
    points: Points, weights: FloatArray, p: float, shapes: CategoryShapes, declared: TableMetric | None
) -> tuple[Metric, dict[int, str]]:
    """The metric with these weights, and notes on columns whose missing values got more, by position."""
    encoder = points.people.encoder
    if encoder.labels is None or p != 1:
        return WeightedLp(weights, p, feature_names=encoder.labels), {}
    own, missing, notes = weights[: points.n_columns].copy(), {}, {}
    absent = np.minimum(weights[points.n_columns : len(points.kinds)], 1.0).tolist()
    for i, forced in zip(points.nullable.tolist(), absent, strict=True):
        name, ends = encoder.names[i], ends_of(points.X[:, i]) or (0.0, 0.0)  # none if it is blank everywhere
        if own[i] == 0 and forced > 0:
            own[i] = BLANKS_ONLY
        # A weight of 0 may be raised later, and missing values may then need up to 1.
        least = least_missing_weight(own[i], *ends) if own[i] else 1.0
        missing[name] = max(forced, least)
        if own[i] and missing[name] > forced:
            reason = "the maximum" if least == 1 else "half the column's largest distance here"
            notes[i] = (
                f"A blank in {name!r} weighs {least:.3g}, {reason}. The data require only {forced:.3g}, which would "
                f"cap the column's effect at {2 * forced:.3g}."
            )
    named = list(zip(encoder.names, own.tolist(), encoder.is_number, strict=True))
    metric = TableMetric(
        {name: weight for name, weight, number in named if number},
        {name: min(1.0, weight) for name, weight, number in named if not number},
        missing=missing or "refuse",
    )
    if declared is not None:
        groups = dict(declared.groups)
        for within, i in shapes.within.items():
            share = min(1.0, weights[within] / weights[i]) if weights[i] else 1.0
            groups[encoder.names[i]] = groups[encoder.names[i]] | {"within": share}
        metric = metric.with_params(order=declared.order, groups=groups, distances=declared.distances)
    return metric, notes


def _notes_on_groups(shapes: CategoryShapes, names: list[Any], weights: FloatArray) -> list[str]:
    """Notes on groups whose categories are at distance 0."""
    return [
        f"Categories of one group of {names[i]!r} are at distance 0: these people do not force more. Others may."
        for within, i in shapes.within.items()
        if weights[within] == 0 < weights[i]
    ]


def _describe(
    people: DistinctPeople, pairs: IntArray, differences: FloatArray, metric: Metric, raised: list[int]
) -> pd.DataFrame:
    """Pairs that use all of their distance, without those that a `raised` weight of missing values affects."""
    rows, places = np.unique(pairs, return_inverse=True)
    points, (a, b) = people.points_at(rows), places.reshape(-1, 2).T
    if raised:
        blank = np.isnan(points.people.rows[:, raised])
        tight = ~(blank[a] != blank[b]).any(axis=1)
        pairs, differences, a, b = pairs[tight], differences[tight], a[tight], b[tight]
    weights = metric.bind(points.people.encoder)
    gaps = people.shapes.gaps(points.X[a], points.X[b])[:, : len(points.kinds)]
    gaps *= np.append(weights.scales, weights.missing[points.nullable])
    forced = [", ".join(dict.fromkeys(points.name(int(i)) for i in np.flatnonzero(part))) for part in gaps]
    frame = pd.DataFrame(
        {
            "row_a": pairs[:, 0],
            "row_b": pairs[:, 1],
            "difference": people.unit * differences,
            "distance": weights.distances(points.people.rows[a], points.people.rows[b]),
            "forces": pd.Series(forced, dtype=object),
        }
    )
    return frame.sort_values(["difference", "row_a", "row_b"], ascending=[False, True, True], ignore_index=True)


def _bounds(
    upper: Any, fixed: Any, points: Points, shapes: CategoryShapes, unit: float
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limits of the weights, in units of the outputs."""
    codes = points.kinds == CODE
    low, high = np.zeros(len(codes)), np.where(codes, 1.0 / unit, np.inf)
    named: set[int] = set()
    for parameter, given in (("upper", upper), ("fixed", fixed)):
        if not (given is None or isinstance(given, Mapping)):
            raise InvalidTypeError(
                f"{parameter} must map features to weights, such as {{'age': 0.01}}; got {short_repr(given)}. "
                "None sets no limit."
            )
        for key, weight in (given or {}).items():
            i = _position(parameter, key, points)
            most = 1.0 if codes[i] else np.inf
            NON_NEGATIVE.check(f"{parameter}[{key!r}]", weight)
            if float(weight) > most:
                raise InvalidInputError(f"{parameter} must be at most 1 for categories; got {weight!r} for {key!r}.")
            if i in named:
                raise InvalidInputError(f"fixed and upper must not both name a feature; got {key!r} in both.")
            named.add(i)
            high[i] = float(weight) / unit
            if parameter == "fixed":
                low[i] = high[i]
            if weight == 0 and points.kinds[i] == NULLABLE:  # missing values of the column must not matter either
                high[points.n_columns + points.nullable.tolist().index(i)] = 0.0
    across = list(shapes.within.values())
    return np.append(low, np.zeros(len(across))), np.append(high, high[across])


def _position(parameter: str, key: Any, points: Points) -> int:
    encoder, d = points.people.encoder, points.n_columns
    unnamed = encoder.labels is None
    if not unnamed and key in encoder.names:
        return encoder.names.index(key)
    if isinstance(key, Integral) and 0 <= int(key) < d:
        return int(key)
    known = f"positions 0 to {d - 1}" if unnamed else encoder.names
    raise InvalidInputError(f"{parameter} must name features of X, {known}; got {key!r}.")
