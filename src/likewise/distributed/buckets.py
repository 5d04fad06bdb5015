"""Rows of a Dask DataFrame, shuffled into buckets of similar people, whose pairs are then searched.

Equal people share a bucket. Each bucket becomes a tree of boxes; the bounds that hold between two boxes hold between
two buckets, and only pairs of buckets that may hold a violation are searched. Importing this module imports numba;
callers do so inside functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise._frozen import Frozen
from likewise._numba import njit
from likewise._optional import need
from likewise._typing import FloatArray, IntArray
from likewise.ask import steady_answers
from likewise.distributed.cluster import compute, delayed, reduce, shared
from likewise.distributed.frames import DaskTable, Partitions
from likewise.exceptions import InvalidInputError
from likewise.kernel.distance import CODE, Kinds
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import ArrayEncoder, Encoder, People
from likewise.known_values import check_known
from likewise.pairs.box_bounds import excess_bound
from likewise.pairs.box_search import SearchGoal, goal_from, sampled_excesses, search_between, search_within
from likewise.pairs.box_tree import BoxTree, SearchParameters
from likewise.pairs.model_outputs import answered_outputs, given_outputs, power_of_two_unit
from likewise.pairs.points import Points, groups_of
from likewise.pairs.scans import SearchResult, merge

BUCKET_SIZE = 2**17
"""Approximate number of people in a bucket: two of them in box trees take some 50 MB."""

SAMPLE_PER_BUCKET = 128
"""Sampled people per bucket, by whom the thresholds between buckets are chosen."""

_BATCH = 2**17  # rows per call of a model


# -- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RowEncoder(Frozen):
    """Encodes rows of any partition as points; the `digest` is that of `Partitions`, and a metric validates rows."""

    encoder: Encoder
    digest: pd.DataFrame
    bound: BoundMetric | None = None

    @property
    def reads_tables(self) -> bool:
        """Whether a function without feature names is given tables, rather than arrays."""
        return not isinstance(self.encoder, ArrayEncoder)

    @cached_property
    def nullable(self) -> IntArray:
        """Columns in which numbers are missing in some row."""
        return np.array(People.read(self.digest, self.encoder).missing(), dtype=np.int64)

    @cached_property
    def template(self) -> Points:
        """The digest as points, with the range of every column."""
        return Points.among(People.read(self.digest, self.encoder), self.nullable, self.bound)

    def points(self, table: pd.DataFrame) -> Points:
        """Rows as points."""
        people = People.read(table, self.encoder) if self.bound is None else self.bound.read(table)
        return Points.among(people, self.nullable, self.bound)


@dataclass(frozen=True, eq=False)
class OutputReader:
    """Outputs of a model, or of a column of predictions, for the rows of any partition.

    Attributes
    ----------
    model : object with predict_proba or predict, or callable, or None
    names : list
        Columns of the metric, in the order of the table.
    model_columns : list
        Columns that the model takes.
    predictions : str or None
        Column with predictions, used in place of a model.
    output_range : tuple of float, or None
    """

    model: Any
    names: list[Any]
    model_columns: list[Any]
    predictions: Any
    output_range: tuple[float, float] | None

    @classmethod
    def of(cls, model: Any, table: DaskTable, names: list[Any], predictions: Any, output_range: Any) -> OutputReader:
        """Determine the columns needed, and check that they exist."""
        if predictions is not None:
            return cls(None, names, [], predictions, output_range)
        taken = list(getattr(model, "feature_names_in_", names))
        # likewise's own models do not need columns of weight 0.
        table.check_columns(getattr(model, "required_features_", taken), "which the model needs")
        return cls(model, names, [name for name in taken if name in table.columns], None, output_range)

    @property
    def columns(self) -> list[Any]:
        """All columns to read."""
        extra = [] if self.predictions is None else [self.predictions]
        return list(dict.fromkeys([*self.names, *self.model_columns, *extra]))

    def check_known(self, some: pd.DataFrame) -> None:
        """Raise if an encoder inside the model knows no value that some of the rows have in a column."""
        if self.predictions is None:
            check_known(self.model, some[self.model_columns])

    def outputs(self, table: pd.DataFrame, *, as_tables: bool) -> tuple[FloatArray, bool]:
        """Outputs, and whether they are probabilities; `as_tables` is for models without feature names."""
        if self.predictions is not None:
            return given_outputs(table[self.predictions], len(table), self.output_range)
        rows: Any = table[self.model_columns]
        if not as_tables and not hasattr(self.model, "feature_names_in_"):
            rows = rows.to_numpy(dtype=np.float64)
        classes = getattr(self.model, "classes_", _UnknownClasses())
        parts = [
            answered_outputs(self.model, steady_answers(self.model, part), len(part), self.output_range, classes)
            for part in (rows[i : i + _BATCH] for i in range(0, len(rows), _BATCH))
        ]
        return np.concatenate([outputs for outputs, _ in parts]), parts[0][1]


class _UnknownClasses:
    """Stands for the classes of a model without `classes_`: no partition has all labels."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise InvalidInputError(
            "model must have classes_ if it predicts labels, since no worker sees the labels of everyone. Give it "
            "predict_proba, or a function that returns one number per row."
        )


# -- buckets ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BucketTree:
    """A decision tree over columns and outputs; its leaves are buckets.

    Node k sends rows whose value on `axis[k]` is below `threshold[k]` to the node ``child[k]``, and the others to
    ``child[k] + 1``; a leaf has child -1 and a bucket.
    """

    axis: IntArray
    threshold: FloatArray
    child: IntArray
    bucket: IntArray

    @property
    def n_buckets(self) -> int:
        """Number of buckets."""
        return int(self.bucket.max()) + 1

    def apply(self, X: FloatArray, outputs: FloatArray) -> IntArray:
        """The bucket of each row."""
        rows = _stacked(X, outputs)
        out = np.empty(len(rows), dtype=np.int64)
        waiting = [(0, np.arange(len(rows)))]
        while waiting:
            node, here = waiting.pop()
            if self.child[node] < 0:
                out[here] = self.bucket[node]
                continue
            below = rows[here, self.axis[node]] < self.threshold[node]
            waiting += [(int(self.child[node]), here[below]), (int(self.child[node]) + 1, here[~below])]
        return out

    @classmethod
    def fit(cls, X: FloatArray, outputs: FloatArray, scales: FloatArray, kinds: Kinds, n_buckets: int) -> BucketTree:
        """Split a sample along the widest of the scaled columns and the outputs, until each part is a bucket's share.

        Examples
        --------
        >>> ages = np.array([[20.0], [30.0], [40.0], [50.0]])
        >>> tree = BucketTree.fit(ages, np.zeros((4, 1)), np.ones(1), np.zeros(1, dtype=np.int8), 2)
        >>> tree.apply(np.array([[35.0], [41.0], [20.0]]), np.zeros((3, 1)))
        array([0, 1, 0])
        """
        rows = _stacked(X, outputs)
        scales = np.append(scales, np.ones(outputs.shape[1]))
        codes = np.append(kinds == CODE, np.zeros(outputs.shape[1], dtype=bool))
        most = max(1.0, len(rows) / n_buckets * 1.5)
        axis, threshold, child = [0], [0.0], [-1]
        parts: list[Any] = [np.arange(len(rows))]
        node = 0
        while node < len(parts):
            here = rows[parts[node]]
            widths = np.ptp(here, axis=0) if len(here) else np.zeros(len(scales))
            widths = scales * np.where(codes, np.minimum(widths, 1.0), widths)
            widest = int(widths.argmax())
            if len(here) > most and widths[widest] > 0:
                values = np.sort(here[:, widest])
                middle = values[len(values) // 2]
                at = middle if middle > values[0] else values[values > middle][0]
                axis[node], threshold[node], child[node] = widest, float(at), len(parts)
                below = here[:, widest] < at
                parts += [parts[node][below], parts[node][~below]]
                axis, threshold, child = [*axis, 0, 0], [*threshold, 0.0, 0.0], [*child, -1, -1]
            node += 1
        leaf = np.array(child) < 0
        return cls(np.array(axis), np.array(threshold), np.array(child), np.where(leaf, np.cumsum(leaf) - 1, -1))


def _stacked(X: FloatArray, outputs: FloatArray) -> FloatArray:
    """Columns and outputs, with 0 for missing numbers as in box trees."""
    return np.column_stack([np.where(np.isnan(X), 0.0, X), outputs])


class Bucket(NamedTuple):
    """Rows in the order of their positions; each stands for `times` equal rows, of which it is the first."""

    X: FloatArray
    outputs: FloatArray
    times: IntArray
    position: IntArray


def n_buckets_for(n_rows: int) -> int:
    """Approximate number of buckets for `n_rows` rows."""
    return -(-n_rows // BUCKET_SIZE)


def shuffle(
    partitions: Partitions, reader: OutputReader, encoder: RowEncoder, tree: BucketTree, n_outputs: int
) -> list[Any]:
    """Shuffle rows to their buckets; return these as delayed tables for `read_bucket`, kept by the workers."""
    dd = need("dask.dataframe", "A table in partitions")
    n_columns = encoder.template.X.shape[1]
    context = shared(_Encoding(reader, encoder, tree))
    encoded = [
        delayed(_encode)(table, int(start), context)
        for table, start, stop in zip(partitions.tables, partitions.starts[:-1], partitions.starts[1:], strict=True)
        if stop > start
    ]
    meta = _frame(np.empty((0, n_columns)), np.empty((0, n_outputs)), *np.empty((3, 0), dtype=np.int64))
    rows = dd.from_delayed(encoded, meta=meta, verify_meta=False)
    buckets = rows.set_index("bucket", divisions=list(range(tree.n_buckets + 1)))
    return list(buckets.persist().to_delayed(optimize_graph=False))


@dataclass(frozen=True, eq=False)
class _Encoding:
    reader: OutputReader
    encoder: RowEncoder
    tree: BucketTree


def _encode(table: pd.DataFrame, start: int, given: _Encoding) -> pd.DataFrame:
    """Distinct rows as numbers, with their bucket."""
    table = table.set_axis(pd.RangeIndex(start, start + len(table)), axis=0)  # positions, for errors
    outputs, _ = given.reader.outputs(table, as_tables=given.encoder.reads_tables)
    X = given.encoder.points(table[given.reader.names]).X
    groups = groups_of(np.column_stack([np.nan_to_num(X, nan=np.inf), outputs]))
    X, outputs = X[groups.first], outputs[groups.first]
    return _frame(X, outputs, groups.count, groups.first + start, given.tree.apply(X, outputs))


def _frame(X: FloatArray, outputs: FloatArray, count: IntArray, position: IntArray, bucket: IntArray) -> pd.DataFrame:
    lines = {f"x{i}": line for i, line in enumerate(X.T)} | {f"y{i}": line for i, line in enumerate(outputs.T)}
    return pd.DataFrame({**lines, "count": count, "position": position, "bucket": bucket})


def read_bucket(table: pd.DataFrame, n_columns: int) -> Bucket:
    """The rows of a shuffled table."""
    table = table.sort_values("position", ignore_index=True)
    numbers = table.drop(columns=["count", "position"]).to_numpy(dtype=np.float64)
    X, outputs = np.ascontiguousarray(numbers[:, :n_columns]), np.ascontiguousarray(numbers[:, n_columns:])
    return Bucket(X, outputs, table["count"].to_numpy(), table["position"].to_numpy())


def output_unit(buckets: Sequence[Any]) -> float:
    """The unit of outputs that are numbers, as in `ModelOutputs`."""
    ends = [each for each in compute([delayed(_ends)(bucket) for bucket in buckets]) if each is not None]
    return power_of_two_unit(max(high for _, high in ends) - min(low for low, _ in ends))


def _ends(bucket: pd.DataFrame) -> tuple[float, float] | None:
    return (float(bucket["y0"].min()), float(bucket["y0"].max())) if len(bucket) else None


# -- pairs of buckets ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BoxedBucket:
    """A bucket as a box tree whose `order` has row positions; `rows` only where they are needed."""

    tree: BoxTree
    rows: Any = None

    def __sizeof__(self) -> int:
        # Dask spills by size, and does not look into objects by itself.
        return sum(array.nbytes for array in (*self.tree, *(self.rows or ())) if isinstance(array, np.ndarray))


class BucketSummary(NamedTuple):
    """What the client knows of a bucket: `sample` is that of `sampled_excesses`, `low` and `high` are its box."""

    n_rows: int
    sample: tuple[FloatArray, float]
    low: FloatArray
    high: FloatArray


class BoxedBuckets(NamedTuple):
    """Non-empty buckets as box trees, which the workers keep, and their summaries."""

    buckets: list[Any]
    summaries: list[BucketSummary]
    parameters: SearchParameters

    @classmethod
    def of(cls, boxed: list[Any], parameters: SearchParameters, tolerance: float, n_worst: int) -> BoxedBuckets:
        """Summarise delayed `BoxedBucket`s, of which empty ones are None."""
        summaries = compute([delayed(_summarise)(each, tolerance, n_worst) for each in boxed])
        kept = [(each, summary) for each, summary in zip(boxed, summaries, strict=True) if summary is not None]
        return cls([each for each, _ in kept], [summary for _, summary in kept], parameters)

    def goal(self, tolerance: float, n_worst: int) -> SearchGoal:
        """The goal of a first search."""
        return goal_from([summary.sample for summary in self.summaries], tolerance, n_worst)

    def crossing_pairs(self, tolerance: float) -> list[tuple[int, int]]:
        """Pairs of buckets, or of one with itself, in which a pair of people may exceed by more than `tolerance`."""
        low, high = (np.stack(ends) for ends in zip(*((each.low, each.high) for each in self.summaries), strict=True))
        return [
            (a, int(b))
            for a in range(len(self.buckets))
            for b in np.flatnonzero(_may_exceed(a, low, high, self.parameters.space, tolerance))
        ]

    def map_pairs(self, task: Any, pairs: Sequence[tuple[int, int]]) -> list[Any]:
        """A delayed function of two buckets for each pair; the second is None for a bucket with itself."""
        return [task(self.buckets[a], None if a == b else self.buckets[b]) for a, b in pairs]

    def search(self, goal: SearchGoal) -> SearchResult:
        """Search all pairs."""
        results = self.map_pairs(delayed(partial(_search, goal)), self.crossing_pairs(goal.tolerance))
        (result,) = compute([reduce(results, partial(merge, n_worst=goal.n_worst))])
        return result  # type: ignore[no-any-return]


def _summarise(bucket: BoxedBucket | None, tolerance: float, n_worst: int) -> BucketSummary | None:
    if bucket is None:
        return None
    tree = bucket.tree
    return BucketSummary(len(tree.counts), sampled_excesses(tree, tolerance, n_worst), tree.low[0], tree.high[0])


@njit(cache=True, error_model="numpy")
def _may_exceed(a, low, high, space, tolerance):
    out, gap = np.zeros(len(low), np.bool_), np.empty(len(space.scales))
    out[a] = True
    for b in range(a + 1, len(low)):
        out[b] = excess_bound(low[a], high[a], low[b], high[b], space, gap) > tolerance
    return out


def _search(goal: SearchGoal, one: BoxedBucket, other: BoxedBucket | None) -> SearchResult:
    # One thread: Dask gives a worker as many tasks as it has threads.
    if other is None:
        return search_within(one.tree, goal, n_jobs=1)
    return search_between(one.tree, other.tree, goal, n_jobs=1)
