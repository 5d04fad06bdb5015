"""The minimal metric of a Dask DataFrame: people in buckets, whose violating pairs are found by workers.

The linear program is solved by the client, in the same steps as in memory. Importing this module imports numba; callers
do so inside functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from likewise._subsample import fixed_sample
from likewise._typing import FloatArray, IntArray
from likewise._validation import check_names
from likewise.distributed.buckets import (
    SAMPLE_PER_BUCKET,
    BoxedBucket,
    BoxedBuckets,
    BucketTree,
    OutputReader,
    RowEncoder,
    n_buckets_for,
    output_unit,
    read_bucket,
    shuffle,
)
from likewise.distributed.cluster import compute, delayed, persist, reduce
from likewise.distributed.frames import DaskTable, Partitions
from likewise.exceptions import InvalidInputError
from likewise.kernel.distance import CODE
from likewise.pairs.box_tree import SLOPE_SAMPLE, SearchParameters, build_box_tree, column_ranges, search_parameters
from likewise.pairs.gather import gather_between, gather_within
from likewise.pairs.points import Points, RowHashes, groups_of, row_hashes
from likewise.pairs.scans import NO_PAIRS
from likewise.reveal.active_set import (
    TOLERANCE,
    Cuts,
    DistinctPeople,
    Subset,
    as_cuts,
    cuts_in_memory,
    shrunk,
    subsample,
    varying,
)
from likewise.reveal.empirical import read_people
from likewise.reveal.shapes import CategoryShapes

MAX_ON_CLIENT = 2**17
"""People whose pairs the client searches itself."""

_PAIRS_PER_ROUND = 256  # pairs of buckets that are gathered before checking whether there are too many cuts


class DaskPeople(DistinctPeople):
    """Distinct people in buckets that workers keep."""

    def __init__(self, partitions: Partitions, encoder: RowEncoder, buckets: list[Any], unit: float) -> None:
        self.partitions, self.encoder, self.unit, self.n_rows = partitions, encoder, unit, len(partitions)
        self.template = encoder.template
        self.shapes, self.varies = CategoryShapes(self.template.kinds), varying(self.template.X)
        collect = delayed(partial(_distinct, self.template.X.shape[1], unit))
        distinct = persist([collect(bucket) for bucket in buckets])
        buckets.clear()  # so that the workers can release them
        known = compute([delayed(_summary)(bucket) for bucket in distinct])
        self.buckets = [bucket for bucket, (n, *_) in zip(distinct, known, strict=True) if n]
        self.n_people = sum(n for n, *_ in known)
        _, self.largest_gap, self.equal_rows = max(known, key=lambda each: (each[1], -each[2][1]))

    def subsample(self, share: float) -> Subset:
        """About this share of the people."""
        take = delayed(partial(_subsample, share))
        return _concatenated(compute([take(bucket) for bucket in self.buckets]))

    def points_at(self, rows: IntArray) -> Points:
        """The people in some rows."""
        return self.encoder.points(self.partitions.rows_at(rows, list(self.encoder.digest.columns)))

    def violated_pairs(self, share: float, scales: FloatArray, p: float, max_pairs: int, n_worst: int) -> Cuts:
        """Pairs of a subsample that violate a metric."""
        if self.n_people * share <= MAX_ON_CLIENT:
            return cuts_in_memory(self.subsample(share), scales, p, self.shapes, max_pairs, n_worst)
        few, ends = self.subsample(SLOPE_SAMPLE / self.n_people), column_ranges(self.template.X)
        parameters = search_parameters(few.X, shrunk(few.outputs), ends, scales, p, self.shapes.kinds)
        box = delayed(partial(_box, share, parameters))
        boxed = persist([box(bucket) for bucket in self.buckets])
        n_worst = min(max_pairs, n_worst)
        boxes = BoxedBuckets.of(boxed, parameters, TOLERANCE, max(n_worst, 1))
        cuts = self._gathered(boxes, max_pairs)
        if cuts is None and n_worst == 0:
            return as_cuts(few, NO_PAIRS, self.shapes, complete=False)
        return cuts or self._worst(boxes, n_worst)

    def _gathered(self, boxes: BoxedBuckets, max_pairs: int) -> Cuts | None:
        """All pairs; None if there are more than `max_pairs`."""
        gather, join = delayed(partial(_gather, self.shapes, max_pairs)), partial(_joined, max_pairs=max_pairs)
        pairs = boxes.crossing_pairs(TOLERANCE)
        parts: list[Cuts] = []
        for i in range(0, len(pairs), _PAIRS_PER_ROUND):
            tasks = boxes.map_pairs(gather, pairs[i : i + _PAIRS_PER_ROUND])
            cuts = join([*parts, *compute([reduce(tasks, join)])])
            if cuts is None:
                return None
            parts = [cuts]
        return parts[0]

    def _worst(self, boxes: BoxedBuckets, n_worst: int) -> Cuts:
        pairs = boxes.search(boxes.goal(TOLERANCE, n_worst)).pairs
        take = delayed(partial(_rows_among, np.unique(pairs)))
        people = _concatenated(compute([take(bucket) for bucket in self.buckets]))
        return as_cuts(people, np.searchsorted(people.rows, pairs), self.shapes, complete=False)


def dask_people(
    model: Any,
    X: Any,
    columns: Sequence[str] | None,
    categorical: Sequence[str] | None,
    predictions: Any,
    output_range: tuple[float, float] | None,
) -> DaskPeople:
    """Compute the outputs of every row of a Dask DataFrame, and put the distinct people in buckets."""
    table = DaskTable.of(X)
    known = table.columns
    table, predictions = table.with_column(predictions, "predictions")
    if columns is None:
        columns = list(getattr(model, "feature_names_in_", known))
    else:
        columns = check_names("columns", columns, known)
    if categorical is not None:
        categorical = check_names("categorical", categorical, known)
    names = [name for name in known if name in columns and name != predictions]
    if not names:
        raise InvalidInputError(
            f"columns must name at least one column besides the predictions; got {list(columns)}. {table.name} has "
            f"{known}."
        )
    reader = OutputReader.of(model, table, names, predictions, output_range)
    partitions = table.scan(reader.columns, names, list(categorical or ()), by_type=categorical is None)
    encoder = RowEncoder(read_people(partitions.digest, categorical).encoder, partitions.digest)

    n = len(partitions)
    sample = partitions.rows_at(fixed_sample(n, max(SLOPE_SAMPLE, SAMPLE_PER_BUCKET * n_buckets_for(n))))
    reader.check_known(sample)
    points = encoder.points(sample[names])
    outputs, probable = reader.outputs(sample[:2], as_tables=encoder.reads_tables)
    numbers = np.where(np.isnan(points.X), 0.0, points.X)
    scales = np.where(points.kinds == CODE, 1.0, 1 / np.maximum(numbers.std(axis=0), 1e-300))
    tree = BucketTree.fit(points.X, np.empty((len(points), 0)), scales, points.kinds, n_buckets_for(n))
    buckets = shuffle(partitions, reader, encoder, tree, outputs.shape[1])
    return DaskPeople(partitions, encoder, buckets, 1.0 if probable else output_unit(buckets))


# -- one bucket ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Distinct people of a bucket, their hashes, and the equal rows whose outputs differ most."""

    people: Subset
    hashes: RowHashes
    largest_gap: float
    equal_rows: tuple[int, int]

    def __sizeof__(self) -> int:
        # Dask spills by size, and does not look into objects by itself.
        return sum(array.nbytes for array in (*self.people, self.hashes))


def _distinct(n_columns: int, unit: float, table: pd.DataFrame) -> DistinctRows:
    """Distinct people of a bucket; they keep the positions of their first rows."""
    bucket = read_bucket(table, n_columns)
    if not len(table):
        empty = Subset(bucket.X, bucket.outputs, bucket.position)
        return DistinctRows(empty, np.empty(0, dtype=np.uint64), -1.0, (0, 0))
    outputs = bucket.outputs / unit
    groups = groups_of(np.nan_to_num(bucket.X, nan=np.inf))
    own = groups.first[groups.of_row]
    gap = np.abs(outputs - outputs[own]).sum(axis=1)
    worst = int(gap.argmax())
    X, rows = bucket.X[groups.first], bucket.position[groups.first]
    equal = int(bucket.position[own[worst]]), int(bucket.position[worst])
    return DistinctRows(Subset(X, outputs[groups.first], rows), row_hashes(X.T), float(gap[worst]), equal)


def _summary(bucket: DistinctRows) -> tuple[int, float, tuple[int, int]]:
    return len(bucket.people.rows), bucket.largest_gap, bucket.equal_rows


def _subsample(share: float, bucket: DistinctRows) -> Subset:
    return subsample(bucket.people, bucket.hashes, share)


def _rows_among(rows: IntArray, bucket: DistinctRows) -> Subset:
    return bucket.people.take(np.isin(bucket.people.rows, rows))


def _concatenated(parts: Sequence[Subset]) -> Subset:
    """People of several buckets, in the order of their rows."""
    X, outputs, rows = (np.concatenate(lines) for lines in zip(*parts, strict=True))
    return Subset(X, outputs, rows).take(np.argsort(rows))


def _box(share: float, parameters: SearchParameters, bucket: DistinctRows) -> BoxedBucket | None:
    """The box tree of a subsample of a bucket."""
    people = _subsample(share, bucket)
    if not len(people.rows):
        return None
    return BoxedBucket(build_box_tree(people.X, shrunk(people.outputs), parameters, names=people.rows), people)


# -- a pair of buckets -----------------------------------------------------------------------------------------------


def _gather(shapes: CategoryShapes, max_pairs: int, one: BoxedBucket, other: BoxedBucket | None) -> Cuts | None:
    """Cuts between two buckets, or within one; None if there are more than `max_pairs`."""
    if other is None:
        pairs, people = gather_within(one.tree, TOLERANCE, max_pairs, 1), one.rows
    else:
        pairs = gather_between(one.tree, other.tree, TOLERANCE, max_pairs, 1)
        people = _concatenated([one.rows, other.rows])
    if pairs is None:
        return None
    return as_cuts(people, np.searchsorted(people.rows, pairs), shapes, complete=True)


def _joined(parts: Sequence[Cuts | None], max_pairs: int) -> Cuts | None:
    """All cuts; None if there are more than `max_pairs`."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or sum(len(part.pairs) for part in known) > max_pairs:
        return None
    pairs, gaps, differences = (np.concatenate(lines) for lines in list(zip(*known, strict=True))[:3])
    return Cuts(pairs, gaps, differences, complete=True)
