"""An audit of a table in partitions: people are shuffled into buckets on disk, and pairs of buckets are searched.

Four passes, each a set of tasks that depend on files and arguments only: look at every partition, send its people to
buckets, put each bucket in boxes, search each pair of buckets whose bounds do not decide it. A worker holds a batch or
two buckets, whatever the size of the table. Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise._typing import FloatArray, IntArray
from likewise.auditing.violations import Audit, check_limits, sampled_pairs, tabulate
from likewise.errors import InvalidInputError
from likewise.metrics.abstract import Metric
from likewise.metrics.distance import ColumnWeights
from likewise.pairs.arranged import SOME, Bearings, arrange, ends_of, take_bearings
from likewise.pairs.buckets import choose_splits
from likewise.pairs.crossing import Outline, outline_of
from likewise.pairs.interviews import Interview, check_named, columns_under, take_stock
from likewise.pairs.points import Difference, groups_of
from likewise.pairs.population import OutputLabels, Population
from likewise.pairs.search import Aim, Box, Found, aim_above, first_guess, merge, settle
from likewise.pairs.sending import BUCKET, Sent, read_bucket, shuffle, slices_of, unit_of
from likewise.pairs.shelves import outputs_on_shelf, search_shelves, shelve, tasks_among
from likewise.partitions.parquet import StoredTable
from likewise.partitions.scratch import working_room
from likewise.partitions.surveying import fetch
from likewise.partitions.workforce import Workforce, workers_of

_SAMPLE_PER_BUCKET = 128


def audit_partitions(
    model: Any,
    people: StoredTable,
    metric: Metric,
    predictions: Any,
    output_range: tuple[float, float] | None,
    tolerance: float | None,
    thresholds: Sequence[float],
    n_worst: int,
    cluster: Any,
    scratch: Any,
) -> Audit:
    """As `audit`, for people in Parquet files."""
    n = len(people)
    if n < 2:
        raise InvalidInputError(f"{people.path} must hold at least two people, since pairs are compared; it has {n}.")
    check_named(predictions)
    names = columns_under(people, metric, aside=predictions)
    interview = Interview.of(model, people, names, predictions, output_range)
    with workers_of(cluster) as work, working_room(people.path, scratch) as room:
        n_buckets = -(-n // BUCKET)
        size = max(SOME, _SAMPLE_PER_BUCKET * n_buckets)
        interview, some, said = take_stock(interview, metric, people, size, work)
        known = interview.known
        assert known is not None
        weights = metric.weights_of(known.coding)
        points = known.points(some)
        scales = points.scales(weights)
        splits = choose_splits(points.X, said, scales, points.kinds, n_buckets)
        pairs = sampled_pairs(n)
        sent = shuffle(interview, people, splits, np.stack(pairs), room, work)
        unit = unit_of(sent)
        labels = OutputLabels.of(model, predictions, output_range, probable=sent[0].probable)
        tolerance, above = check_limits(tolerance, thresholds, unit, shares=labels.are_shares)
        chosen = slice(None, None, -(-len(said) // SOME))
        ends = ends_of(known.points(known.table).X)
        bearings = take_bearings(points.X[chosen], said[chosen] / unit, ends, scales / unit, metric.p, points.kinds)
        boxed = _box_all(sent, unit, bearings, tolerance / unit, n_worst, room, work)
        found = _search(boxed, bearings, tolerance / unit, n_worst, work)
        aims = {each: aim_above(found, max(tolerance, each) / unit) for each in above}
        n_above = {
            threshold: 0 if aim is None else _look(boxed, bearings, aim, work).n_violations
            for threshold, aim in aims.items()
        }
        outputs = _outputs_at(boxed, np.unique(found.pairs), work)
        violations, differences = _tabulate(interview, people, found, outputs, unit, labels, weights, work)
    sample = _Sample(sent, pairs, unit)
    return Audit(
        n_pairs=n * (n - 1) // 2,
        n_violations=found.n_violations,
        max_excess=unit * float(found.differences[0] - found.distances[0]) if found.n_violations else 0.0,
        max_ratio=found.max_ratio,
        violations=violations,
        n_above=n_above,
        differences=differences,
        sample=pd.DataFrame({"difference": sample.differences, "distance": weights.distances(*sample.rows)}),
        n_samples=n,
        n_distinct=sum(box.n_people for box in boxed),
        n_compared=found.n_compared,
        tolerance=tolerance,
        metric=metric,
    )


@dataclass(frozen=True, eq=False)
class _Sample:
    """Some pairs, for a picture of all."""

    sent: list[Sent]
    pairs: tuple[IntArray, IntArray]
    unit: float

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray]:
        _, places = np.unique(np.stack(self.pairs), return_inverse=True)
        return places.reshape(2, -1)[0], places.reshape(2, -1)[1]

    @property
    def rows(self) -> tuple[FloatArray, FloatArray]:
        rows, (a, b) = np.concatenate([part.rows for part in self.sent]), self._places
        return rows[a], rows[b]

    @property
    def differences(self) -> FloatArray:
        outputs, (a, b) = np.concatenate([part.outputs for part in self.sent]) / self.unit, self._places
        return np.asarray(self.unit * np.abs(outputs[a] - outputs[b]).sum(axis=1))


# -- the search ------------------------------------------------------------------------------------------------------


class _Parcel(NamedTuple):
    """What is left of a bucket in memory."""

    file: str
    n_people: int
    guess: tuple[FloatArray, float]
    outline: Outline


def _box_all(
    sent: list[Sent], unit: float, bearings: Bearings, tolerance: float, n_worst: int, room: Path, work: Workforce
) -> list[_Parcel]:
    put = partial(_box, sent[0].n_columns, unit, bearings, tolerance, n_worst, room)
    boxed = list(work.map(put, slices_of(sent)))
    for part in sent:
        os.unlink(part.file)
    return boxed


def _search(boxed: list[_Parcel], bearings: Bearings, tolerance: float, n_worst: int, work: Workforce) -> Found:
    aim = Aim(tolerance, n_worst, *settle([box.guess for box in boxed], tolerance, n_worst))
    return _look(boxed, bearings, aim, work)


def _look(boxed: list[_Parcel], bearings: Bearings, aim: Aim, work: Workforce) -> Found:
    tasks = tasks_among([box.file for box in boxed], [box.outline for box in boxed], bearings, aim.tolerance)
    parts: list[Found] = []
    for found in work.map(partial(search_shelves, bearings, aim, work.n_jobs), tasks):
        parts = [merge([*parts, found], aim.n_worst)]
    return parts[0]


def _box(
    n_columns: int,
    unit: float,
    bearings: Bearings,
    tolerance: float,
    n_worst: int,
    room: Path,
    task: tuple[int, list[tuple[str, int, int]]],
) -> _Parcel:
    """Collapse the equal people of a bucket, and put them in boxes; people keep the positions of their first rows."""
    number, slices = task
    bucket = read_bucket(slices, n_columns)
    groups = groups_of(np.column_stack([np.nan_to_num(bucket.X, nan=np.inf), bucket.outputs]))
    total = np.zeros(len(groups.first), dtype=np.int64)
    np.add.at(total, groups.of_row, bucket.times)
    tree = arrange(bucket.X[groups.first], bucket.outputs[groups.first] / unit, bearings)
    box = Box(tree._replace(order=bucket.first[groups.first][tree.order]), total[tree.order])
    file = shelve(room / f"bucket-{number}.npz", box)
    return _Parcel(file, len(total), first_guess(box, tolerance, n_worst), outline_of(tree))


# -- the result ------------------------------------------------------------------------------------------------------


def _outputs_at(boxed: list[_Parcel], positions: IntArray, work: Workforce) -> FloatArray:
    """Outputs of the people at these positions, first rows of distinct people: those that were compared."""
    parts = list(work.map(partial(outputs_on_shelf, positions), [box.file for box in boxed]))
    places, outputs = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return np.asarray(outputs[np.argsort(places)])


def _tabulate(
    interview: Interview,
    people: StoredTable,
    found: Found,
    outputs: FloatArray,
    unit: float,
    labels: OutputLabels,
    weights: ColumnWeights,
    work: Workforce,
) -> tuple[pd.DataFrame, list[list[Difference]]]:
    assert interview.known is not None
    positions, places = np.unique(found.pairs, return_inverse=True)
    points = interview.known.points(fetch(people, interview.names, positions, work))
    population = Population(points, outputs, unit, labels)
    out, differences = tabulate(points, places.reshape(-1, 2), found, population, weights)
    return out.assign(row_a=found.pairs[:, 0], row_b=found.pairs[:, 1]), differences
