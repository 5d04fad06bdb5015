"""The minimal metric of a Dask DataFrame: people in buckets, whose pairs are searched for cuts by workers.

The linear program is solved by the client, in the same steps as in memory. Importing this module imports numba; callers
do so inside functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import FloatArray, IntArray
from likewise._validation import check_names
from likewise.distributed.buckets import (
    SAMPLE_PER_BUCKET,
    BoxedBucket,
    BucketSummary,
    BucketTree,
    OutputReader,
    RowEncoder,
    crossing_pairs,
    n_buckets_for,
    output_unit,
    read_bucket,
    search_pairs,
    shuffle,
    summarise,
)
from likewise.distributed.frames import DaskTable, Partitions, compute, delayed, persist, reduce
from likewise.exceptions import InvalidInputError
from likewise.metrics.encoders import ArrayEncoder, fixed_sample
from likewise.pairs.box_tree import SOME, SearchParameters, build_box_tree, ends_of, search_parameters
from likewise.pairs.gather import WORST, gather_between, gather_within
from likewise.pairs.points import CODE, Kinds, Points, groups_of, row_hashes
from likewise.pairs.search import Box, SearchGoal, settle
from likewise.reveal.active_set import TOLERANCE, Crowd, Cuts, Some, chosen, cuts_among, described, lowered, varying
from likewise.reveal.empirical import read_people

AT_ONCE = 2**17
"""People whose pairs the client searches itself."""

_PAIRS_AT_ONCE = 256  # pairs of buckets that are gathered before looking whether there is still room


class DaskCrowd(Crowd):
    """Distinct people in buckets that workers keep.

    Attributes
    ----------
    largest_gap : float
        Largest difference of outputs between equal people, in the rows `equal_rows`.
    n_rows : int
        Rows of the table, equal ones counted each.
    template : Points
        Rows with the ends of every column.
    """

    def __init__(self, partitions: Partitions, encoder: RowEncoder, buckets: list[Any], unit: float) -> None:
        self.partitions, self.encoder, self.unit, self.n_rows = partitions, encoder, unit, len(partitions)
        collect = delayed(partial(_collect, encoder.template.X.shape[1], unit))
        collected = persist([collect(bucket) for bucket in buckets])
        buckets.clear()  # the workers may forget them
        known = compute([delayed(_summary)(bucket) for bucket in collected])
        self.buckets = [bucket for bucket, (n, *_) in zip(collected, known, strict=True) if n]
        self.n_people = sum(n for n, *_ in known)
        _, self.largest_gap, self.equal_rows = max(known, key=lambda each: (each[1], -each[2][1]))
        self.template = encoder.template
        self.kinds, self.varies = self.template.kinds, varying(self.template.X)

    def some(self, share: float) -> Some:
        """About this share of the people."""
        take = delayed(partial(_share, share))
        return _concatenated(compute([take(bucket) for bucket in self.buckets]))

    def points_at(self, rows: IntArray) -> Points:
        """The people in some rows."""
        return self.encoder.points(self.partitions.rows_at(rows, list(self.encoder.digest.columns)))

    def unexplained(self, share: float, scales: FloatArray, p: float, most: int) -> Cuts:
        """Pairs of a share of the people that a metric does not explain."""
        if self.n_people * share <= AT_ONCE:
            return cuts_among(self.some(share), scales, p, self.kinds, most)
        few = self.some(SOME / self.n_people)
        bearings = search_parameters(few.X, lowered(few.outputs), ends_of(self.template.X), scales, p, self.kinds)
        box = delayed(partial(_box, share, bearings))
        boxed = persist([box(bucket) for bucket in self.buckets])
        n_worst = min(most, WORST)
        known: list[BucketSummary | None] = compute([delayed(summarise)(each, TOLERANCE, n_worst) for each in boxed])
        boxed = [each for each, summary in zip(boxed, known, strict=True) if summary is not None]
        summaries = [summary for summary in known if summary is not None]
        pairs = crossing_pairs([summary.root for summary in summaries], bearings, TOLERANCE)
        return self._gathered(boxed, pairs, most) or self._worst(boxed, pairs, summaries, n_worst)

    def _gathered(self, boxed: list[Any], pairs: list[tuple[int, int]], most: int) -> Cuts | None:
        """All pairs of people; None if there is no room for them."""
        gather = delayed(partial(_gather, self.kinds, most))
        parts: list[Cuts] = []
        for i in range(0, len(pairs), _PAIRS_AT_ONCE):
            tasks = [gather(boxed[a], None if a == b else boxed[b]) for a, b in pairs[i : i + _PAIRS_AT_ONCE]]
            found = _joined([*parts, *compute([reduce(tasks, partial(_joined, most=most))])], most)
            if found is None:
                return None
            parts = [found]
        return parts[0]

    def _worst(
        self, boxed: list[Any], pairs: list[tuple[int, int]], summaries: list[BucketSummary], n_worst: int
    ) -> Cuts:
        aim = SearchGoal(TOLERANCE, n_worst, *settle([summary.guess for summary in summaries], TOLERANCE, n_worst))
        (found,) = compute([search_pairs(boxed, pairs, aim)])
        take = delayed(partial(_those, np.unique(found.pairs)))
        people = _concatenated(compute([take(bucket) for bucket in self.buckets]))
        return described(people, np.searchsorted(people.rows, found.pairs), self.kinds, complete=False)


def dask_crowd(
    model: Any,
    X: Any,
    columns: Sequence[str] | None,
    categorical: Sequence[str] | None,
    predictions: Any,
    output_range: tuple[float, float] | None,
) -> DaskCrowd:
    """Ask the model about every row of a Dask DataFrame, and put the distinct people in buckets."""
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
    as_tables = not isinstance(encoder.encoder, ArrayEncoder)

    n = len(partitions)
    sample = partitions.rows_at(fixed_sample(n, max(SOME, SAMPLE_PER_BUCKET * n_buckets_for(n))))
    points = encoder.points(sample[names])
    outputs, probable = reader.outputs(sample[:2], as_tables=as_tables)
    numbers = np.where(np.isnan(points.X), 0.0, points.X)
    scales = np.where(points.kinds == CODE, 1.0, 1 / np.maximum(numbers.std(axis=0), 1e-300))
    tree = BucketTree.fit(points.X, np.empty((len(points), 0)), scales, points.kinds, n_buckets_for(n))
    buckets = shuffle(partitions, reader, encoder, tree, outputs.shape[1], as_tables)
    return DaskCrowd(partitions, encoder, buckets, 1.0 if probable else output_unit(buckets))


# -- one bucket ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Distinct people of a bucket, their hashes, and the equal ones whose outputs differ most."""

    people: Some
    marks: npt.NDArray[np.uint64]
    largest_gap: float
    equal_rows: tuple[int, int]

    def __sizeof__(self) -> int:
        # Dask spills by size, and does not look into objects by itself.
        return sum(array.nbytes for array in (*self.people, self.marks))


def _collect(n_columns: int, unit: float, table: pd.DataFrame) -> DistinctRows:
    """Collapse the equal people of a bucket; they keep the positions of their first rows."""
    bucket = read_bucket(table, n_columns)
    if not len(table):
        nobody = Some(bucket.X, bucket.outputs, bucket.position)
        return DistinctRows(nobody, np.empty(0, dtype=np.uint64), -1.0, (0, 0))
    outputs = bucket.outputs / unit
    groups = groups_of(np.nan_to_num(bucket.X, nan=np.inf))
    own = groups.first[groups.of_row]
    gap = np.abs(outputs - outputs[own]).sum(axis=1)
    worst = int(gap.argmax())
    X, rows = bucket.X[groups.first], bucket.position[groups.first]
    equal = int(bucket.position[own[worst]]), int(bucket.position[worst])
    return DistinctRows(Some(X, outputs[groups.first], rows), row_hashes(X.T), float(gap[worst]), equal)


def _summary(bucket: DistinctRows) -> tuple[int, float, tuple[int, int]]:
    return len(bucket.people.rows), bucket.largest_gap, bucket.equal_rows


def _share(share: float, bucket: DistinctRows) -> Some:
    return chosen(bucket.people, bucket.marks, share)


def _those(rows: IntArray, bucket: DistinctRows) -> Some:
    return bucket.people.take(np.isin(bucket.people.rows, rows))


def _concatenated(parts: Sequence[Some]) -> Some:
    """People of several buckets, in the order of their rows."""
    X, outputs, rows = (np.concatenate(lines) for lines in zip(*parts, strict=True))
    return Some(X, outputs, rows).take(np.argsort(rows))


def _box(share: float, bearings: SearchParameters, bucket: DistinctRows) -> BoxedBucket | None:
    """Put a share of the people of a bucket in boxes."""
    people = _share(share, bucket)
    if not len(people.rows):
        return None
    tree = build_box_tree(people.X, lowered(people.outputs), bearings)
    box = Box(tree._replace(order=people.rows[tree.order]), np.ones(len(people.rows), dtype=np.int64))
    return BoxedBucket(box, people)


# -- a pair of buckets -----------------------------------------------------------------------------------------------


def _gather(kinds: Kinds, most: int, one: BoxedBucket, other: BoxedBucket | None) -> Cuts | None:
    """Gather the pairs between two buckets, or within one; None if there are more than `most`."""
    if other is None:
        pairs, people = gather_within(one.box.tree, TOLERANCE, most, 1), one.rows
    else:
        pairs = gather_between(one.box.tree, other.box.tree, TOLERANCE, most, 1)
        people = _concatenated([one.rows, other.rows])
    if pairs is None:
        return None
    return described(people, np.searchsorted(people.rows, pairs), kinds, complete=True)


def _joined(parts: Sequence[Cuts | None], most: int) -> Cuts | None:
    """All cuts; None if there are more than `most`."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or sum(len(part.pairs) for part in known) > most:
        return None
    pairs, gaps, differences = (np.concatenate(lines) for lines in list(zip(*known, strict=True))[:3])
    return Cuts(pairs, gaps, differences, complete=True)
