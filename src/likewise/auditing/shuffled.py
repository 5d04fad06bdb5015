"""An audit of a table in partitions: people are shuffled into buckets on disk, and pairs of buckets are searched.

Four passes, each a set of tasks that depend on files and arguments only: look at every partition, send its people to
buckets, put each bucket in boxes, search each pair of buckets whose bounds do not decide it. A worker holds a batch or
two buckets, whatever the size of the table. Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise._typing import FloatArray, IntArray
from likewise.auditing.violations import Audit, check_tolerance, sampled_pairs, tabulate
from likewise.errors import InvalidInputError
from likewise.metrics.abstract import Metric
from likewise.pairs.arranged import SOME, Arranged, Bearings, arrange, ends_of, take_bearings
from likewise.pairs.buckets import Splits, choose_splits
from likewise.pairs.crossing import Outline, crossing_pairs
from likewise.pairs.interviews import Interview, survey
from likewise.pairs.points import groups_of
from likewise.pairs.population import unit_for
from likewise.pairs.search import Aim, Box, Found, first_guess, merge, search_between, search_within, settle
from likewise.partitions.parquet import Partition, StoredTable
from likewise.partitions.scratch import working_room, write_whole
from likewise.partitions.workforce import Workforce, workers_of

BUCKET = 2**17  # people, about: two buckets in boxes are some 50 MB
_SAMPLE_PER_BUCKET = 128
_PAIRS_AT_ONCE = 8


def audit_partitions(
    model: Any,
    people: StoredTable,
    metric: Metric,
    predictions: Any,
    output_range: tuple[float, float] | None,
    tolerance: float | None,
    n_worst: int,
    cluster: Any,
    scratch: Any,
) -> Audit:
    """As `audit`, for people in Parquet files."""
    n = len(people)
    if n < 2:
        raise InvalidInputError(f"{people.path} must hold at least two people, since pairs are compared; it has {n}.")
    interview = Interview.of(model, people, metric, predictions, output_range)
    with workers_of(cluster) as work, working_room(people.path, scratch) as room:
        n_buckets = -(-n // BUCKET)
        known, some, said = survey(interview, people, max(SOME, _SAMPLE_PER_BUCKET * n_buckets), work)
        interview = replace(interview, known=known)
        weights = metric.weights_of(known.coding)
        points = known.points(some)
        scales = points.scales(weights)
        splits = choose_splits(points.X, said, scales, points.kinds, n_buckets)
        shuffled = _shuffle(interview, people, splits, sampled_pairs(n), room, work)
        unit = shuffled.unit
        tolerance = check_tolerance(tolerance, unit)
        chosen = slice(None, None, -(-len(said) // SOME))
        ends = ends_of(known.points(known.table).X)
        bearings = take_bearings(points.X[chosen], said[chosen] / unit, ends, scales / unit, metric.p, points.kinds)
        found, n_distinct = _search(shuffled, bearings, tolerance / unit, n_worst, room, work)
        violations = _tabulate(interview, people, found, unit, scales, work)
    a, b = shuffled.sample_rows
    return Audit(
        n_pairs=n * (n - 1) // 2,
        n_violations=found.n_violations,
        max_excess=unit * float(found.differences[0] - found.distances[0]) if found.n_violations else 0.0,
        max_ratio=found.max_ratio,
        violations=violations,
        sample=pd.DataFrame({"difference": shuffled.sample_differences, "distance": weights.distances(a, b)}),
        n_samples=n,
        n_distinct=n_distinct,
        n_compared=found.n_compared,
        tolerance=tolerance,
        metric=metric,
    )


# -- to the buckets --------------------------------------------------------------------------------------------------


class _Sent(NamedTuple):
    """What is left of a partition in memory: where its file is, and where each bucket's people stand in it."""

    file: str
    n_columns: int
    starts: IntArray
    ends: tuple[float, float]
    probable: bool
    rows: FloatArray
    outputs: FloatArray


@dataclass(frozen=True, eq=False)
class _Shuffled:
    sent: list[_Sent]
    sample: tuple[IntArray, IntArray]

    @property
    def unit(self) -> float:
        if self.sent[0].probable:
            return 1.0
        return unit_for(max(part.ends[1] for part in self.sent) - min(part.ends[0] for part in self.sent))

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray]:
        _, places = np.unique(np.stack(self.sample), return_inverse=True)
        return places.reshape(2, -1)[0], places.reshape(2, -1)[1]

    @property
    def sample_rows(self) -> tuple[FloatArray, FloatArray]:
        rows, (a, b) = np.concatenate([part.rows for part in self.sent]), self._places
        return rows[a], rows[b]

    @property
    def sample_differences(self) -> FloatArray:
        outputs, (a, b) = np.concatenate([part.outputs for part in self.sent]) / self.unit, self._places
        return np.asarray(self.unit * np.abs(outputs[a] - outputs[b]).sum(axis=1))


def _shuffle(
    interview: Interview,
    people: StoredTable,
    splits: Splits,
    sample: tuple[IntArray, IntArray],
    room: Path,
    work: Workforce,
) -> _Shuffled:
    shares = people.shares(np.stack(sample))
    return _Shuffled(list(work.map(partial(_send, interview, splits, room), shares)), sample)


def _send(interview: Interview, splits: Splits, room: Path, task: tuple[Partition, IntArray]) -> _Sent:
    """Write the people of a partition in the order of their buckets, equal ones of a batch once."""
    part, wanted = task
    blocks, buckets, rows, kept, lowest, highest = [], [], [], [], np.inf, -np.inf
    for start, frame in part.batches(interview.columns):
        X, outputs, probable = interview.read(frame)
        lowest, highest = min(lowest, float(outputs.min())), max(highest, float(outputs.max()))
        here = wanted[(wanted >= start) & (wanted < start + len(frame))] - start
        rows.append(X[here, : len(interview.names)])
        kept.append(outputs[here])
        groups = groups_of(np.column_stack([np.nan_to_num(X, nan=np.inf), outputs]))
        whole = np.stack([groups.count, groups.first + start], axis=1)
        blocks.append(np.column_stack([X[groups.first], outputs[groups.first], whole.view(np.float64)]))
        buckets.append(splits.place(X[groups.first], outputs[groups.first]))
    bucket = np.concatenate(buckets)
    order = np.argsort(bucket, kind="stable")
    file = room / f"people-{part.start}.npy"
    write_whole(file, np.concatenate(blocks)[order])
    starts = np.searchsorted(bucket[order], np.arange(splits.n_buckets + 1))
    ends = (lowest, highest)
    return _Sent(str(file), X.shape[1], starts, ends, probable, np.concatenate(rows), np.concatenate(kept))


# -- the search ------------------------------------------------------------------------------------------------------


class _Parcel(NamedTuple):
    """What is left of a bucket in memory."""

    file: str
    n_people: int
    guess: tuple[FloatArray, float]
    outline: Outline


def _search(
    shuffled: _Shuffled, bearings: Bearings, tolerance: float, n_worst: int, room: Path, work: Workforce
) -> tuple[Found, int]:
    put = partial(_box, shuffled.sent[0].n_columns, shuffled.unit, bearings, tolerance, n_worst, room)
    slices = np.stack([np.stack([part.starts[:-1], part.starts[1:]], axis=1) for part in shuffled.sent], axis=1)
    files = [part.file for part in shuffled.sent]
    tasks = [
        (bucket, [(file, int(a), int(b)) for file, (a, b) in zip(files, some, strict=True) if b > a])
        for bucket, some in enumerate(slices)
    ]
    boxed = list(work.map(put, [task for task in tasks if task[1]]))
    for file in files:
        os.unlink(file)
    aim = Aim(tolerance, n_worst, *settle([box.guess for box in boxed], tolerance, n_worst))
    pairs = crossing_pairs([box.outline for box in boxed], bearings, tolerance)
    chunks = (
        (boxed[a].file, [boxed[b].file for b in others[i : i + _PAIRS_AT_ONCE]])
        for a, others in enumerate(pairs)
        for i in range(0, len(others), _PAIRS_AT_ONCE)
    )
    parts: list[Found] = []
    for found in work.map(partial(_cross, bearings, aim, work.n_jobs), chunks):
        parts = [merge([*parts, found], n_worst)]
    return parts[0], sum(box.n_people for box in boxed)


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
    bucket, slices = task
    rows = np.concatenate([np.load(file, mmap_mode="r")[a:b] for file, a, b in slices])
    first = rows[:, -1].copy().view(np.int64)
    rows = rows[np.argsort(first, kind="stable")]
    count, first = rows[:, -2].copy().view(np.int64), rows[:, -1].copy().view(np.int64)
    groups = groups_of(np.nan_to_num(rows[:, :-2], nan=np.inf))
    total = np.zeros(len(groups.first), dtype=np.int64)
    np.add.at(total, groups.of_row, count)
    people, outputs = rows[groups.first, :n_columns], rows[groups.first, n_columns:-2] / unit
    tree = arrange(people, outputs, bearings)
    box = Box(tree._replace(order=first[groups.first][tree.order]), total[tree.order])
    file = room / f"bucket-{bucket}.npz"
    write_whole(file, {name: getattr(box.tree, name) for name in _VARYING} | {"weight": box.weight})
    top = {name: getattr(tree, name)[0] for name in Outline._fields}
    return _Parcel(str(file), len(total), first_guess(box, tolerance, n_worst), Outline(**top))


def _cross(bearings: Bearings, aim: Aim, n_jobs: int | None, task: tuple[str, list[str]]) -> Found:
    """Search one bucket against others, or itself."""
    one = _load(task[0], bearings)
    found = [
        search_within(one, aim, n_jobs=n_jobs)
        if other == task[0]
        else search_between(one, _load(other, bearings), aim, n_jobs=n_jobs)
        for other in task[1]
    ]
    return merge(found, aim.n_worst)


_SHARED = ("kinds", "n_numbers", "scales", "p", "slopes", "steepness", "slack")
_VARYING = [name for name in Arranged._fields if name not in _SHARED]


def _load(file: str, bearings: Bearings) -> Box:
    arrays = dict(_arrays(file))
    weight, arrays["stack_size"] = arrays.pop("weight"), int(arrays["stack_size"])
    return Box(Arranged(**arrays, **{name: getattr(bearings, name) for name in _SHARED}), weight)


@lru_cache(maxsize=2)
def _arrays(file: str) -> dict[str, Any]:
    with np.load(file) as stored:
        return {name: stored[name] for name in stored.files}


# -- the result ------------------------------------------------------------------------------------------------------


def _tabulate(
    interview: Interview, people: StoredTable, found: Found, unit: float, scales: FloatArray, work: Workforce
) -> pd.DataFrame:
    assert interview.known is not None
    positions, places = np.unique(found.pairs, return_inverse=True)
    frames = list(
        work.map(
            partial(_fetch, interview.names), [(part, here) for part, here in people.shares(positions) if len(here)]
        )
    )
    table = pd.concat(frames, ignore_index=True) if frames else people.head(interview.names)
    points = interview.known.points(table)
    out = tabulate(points, places.reshape(-1, 2), found, unit, scales)
    return out.assign(row_a=found.pairs[:, 0], row_b=found.pairs[:, 1])


def _fetch(names: list[str], task: tuple[Partition, IntArray]) -> pd.DataFrame:
    return task[0].rows(names, task[1])
