"""People of a table in partitions as a crowd: shuffled into buckets on disk, whose pairs are searched by workers.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likewise._checks import check_names
from likewise._typing import FloatArray, IntArray
from likewise.errors import InvalidInputError
from likewise.metrics.coding import ArrayCoding
from likewise.pairs.arranged import SOME, Bearings, arrange, ends_of, take_bearings
from likewise.pairs.buckets import choose_splits
from likewise.pairs.crossing import Outline, outline_of
from likewise.pairs.gathering import WORST, gather_between, gather_within
from likewise.pairs.interviews import Interview, Known, check_named
from likewise.pairs.marks import content_marks
from likewise.pairs.points import CODE, Kinds, Points, groups_of
from likewise.pairs.search import Aim, Box, Found, first_guess, merge, settle
from likewise.pairs.sending import BUCKET, read_bucket, shuffle, slices_of, unit_of
from likewise.pairs.shelves import Task, search_shelves, shelve, take_down, tasks_among
from likewise.partitions.parquet import StoredTable
from likewise.partitions.scratch import write_whole
from likewise.partitions.surveying import fetch, fixed_sample, survey
from likewise.partitions.workforce import Workforce
from likewise.reveal.crowds import TOLERANCE, Crowd, Cuts, Some, chosen, cuts_among, described, lowered, varying
from likewise.reveal.intake import read_people

AT_ONCE = 2**17  # people whose pairs are searched in this process
_SAMPLE_PER_BUCKET = 128


class Dispersed(Crowd):
    """People in buckets on disk, each of which a worker can hold."""

    def __init__(
        self, people: StoredTable, known: Known, buckets: list[Collected], unit: float, room: Path, work: Workforce
    ) -> None:
        self.people, self.known, self.buckets, self.unit = people, known, buckets, unit
        self.room, self.work = room, work
        self.n_people = sum(bucket.n_people for bucket in buckets)
        self.template = known.points(known.table)
        self.kinds, self.varies = self.template.kinds, varying(self.template.X)
        self._n_searches = 0

    def some(self, share: float) -> Some:
        """About this share of the people."""
        return _together(self.work.map(partial(_some, share), self._files))

    def points_at(self, rows: IntArray) -> Points:
        """The people in some rows."""
        return self.known.points(fetch(self.people, list(self.known.table.columns), rows, self.work))

    def unexplained(self, share: float, scales: FloatArray, p: float, most: int) -> Cuts:
        """Pairs of a share of the people that a metric does not explain."""
        if self.n_people * share <= AT_ONCE:
            return cuts_among(self.some(share), scales, p, self.kinds, most)
        few = self.some(SOME / self.n_people)
        bearings = take_bearings(few.X, lowered(few.outputs), ends_of(self.template.X), scales, p, self.kinds)
        self._n_searches += 1
        put = partial(_box, share, bearings, min(most, WORST), self.room, self._n_searches)
        boxed = [box for box in self.work.map(put, self._files) if box is not None]
        files, outlines = [box.file for box in boxed], [box.outline for box in boxed]
        try:
            tasks = list(tasks_among(files, outlines, bearings, TOLERANCE))
            return self._gathered(tasks, bearings, most) or self._worst(tasks, bearings, boxed, min(most, WORST))
        finally:
            for file in files:
                os.unlink(file)

    @property
    def _files(self) -> list[str]:
        return [bucket.file for bucket in self.buckets]

    def _gathered(self, tasks: list[Task], bearings: Bearings, most: int) -> Cuts | None:
        """All pairs; None if there is no room for them."""
        parts, room = [], most
        for cuts in self.work.map(partial(_gather, bearings, self.kinds, most, self.work.n_jobs), tasks):
            if cuts is None or len(cuts.pairs) > room:
                return None
            parts.append(cuts)
            room -= len(cuts.pairs)
        pairs, gaps, differences = (np.concatenate(lines) for lines in list(zip(*parts, strict=True))[:3])
        return Cuts(pairs, gaps, differences, complete=True)

    def _worst(self, tasks: list[Task], bearings: Bearings, boxed: list[_Crate], n_worst: int) -> Cuts:
        aim = Aim(TOLERANCE, n_worst, *settle([box.guess for box in boxed], TOLERANCE, n_worst))
        parts: list[Found] = []
        for found in self.work.map(partial(search_shelves, bearings, aim, self.work.n_jobs), tasks):
            parts = [merge([*parts, found], n_worst)]
        pairs = parts[0].pairs
        people = _together(self.work.map(partial(_those, np.unique(pairs)), self._files))
        return described(people, np.searchsorted(people.rows, pairs), self.kinds, complete=False)


# -- to the buckets --------------------------------------------------------------------------------------------------


class Collected(NamedTuple):
    """What is left of a bucket in memory: its file, and the equal people whose outputs differ most."""

    file: str
    n_people: int
    largest_gap: float
    equal_rows: tuple[int, int]


def disperse(
    people: StoredTable,
    model: Any,
    columns: Sequence[str] | None,
    categorical: Sequence[str] | None,
    predictions: Any,
    output_range: tuple[float, float] | None,
    *,
    room: Path,
    work: Workforce,
) -> Dispersed:
    """Ask the model about everyone, and put the distinct people in buckets."""
    check_named(predictions)
    if columns is None:
        columns = list(getattr(model, "feature_names_in_", people.columns))
    else:
        columns = check_names("columns", columns, people.columns)
    if categorical is not None:
        categorical = check_names("categorical", categorical, people.columns)
    names = [name for name in people.columns if name in columns and name != predictions]
    if not names:
        raise InvalidInputError(
            f"columns must name at least one column besides the predictions; got {list(columns)}. {people.path} has "
            f"{people.columns}."
        )
    interview = Interview.of(model, people, names, predictions, output_range)
    n_buckets = -(-len(people) // BUCKET)
    sample = fixed_sample(len(people), max(SOME, _SAMPLE_PER_BUCKET * n_buckets))
    table, some = survey(people, names, list(categorical or ()), sample, work)
    coding = read_people(table, categorical).coding
    known = Known(coding, table)
    interview = replace(interview, tables=not isinstance(coding, ArrayCoding), known=known)
    points = known.points(some)
    numbers = np.where(np.isnan(points.X), 0.0, points.X)
    scales = np.where(points.kinds == CODE, 1.0, 1 / np.maximum(numbers.std(axis=0), 1e-300))
    splits = choose_splits(points.X, np.empty((len(points), 0)), scales, points.kinds, n_buckets)
    sent = shuffle(interview, people, splits, np.empty(0, dtype=np.int64), room, work)
    unit = unit_of(sent)
    buckets = list(work.map(partial(_collect, sent[0].n_columns, unit, room), slices_of(sent)))
    for part in sent:
        os.unlink(part.file)
    return Dispersed(people, known, buckets, unit, room, work)


def _collect(n_columns: int, unit: float, room: Path, task: tuple[int, list[tuple[str, int, int]]]) -> Collected:
    """Collapse the equal people of a bucket; they keep the positions of their first rows."""
    number, slices = task
    bucket = read_bucket(slices, n_columns)
    outputs = bucket.outputs / unit
    groups = groups_of(np.nan_to_num(bucket.X, nan=np.inf))
    own = groups.first[groups.of_row]
    gap = np.abs(outputs - outputs[own]).sum(axis=1)
    worst = int(gap.argmax())
    X, rows = bucket.X[groups.first], bucket.first[groups.first]
    file = room / f"bucket-{number}.npz"
    write_whole(file, {"X": X, "outputs": outputs[groups.first], "rows": rows, "marks": content_marks(X.T)})
    return Collected(str(file), len(rows), float(gap[worst]), (int(bucket.first[own[worst]]), int(bucket.first[worst])))


def _some(share: float, file: str) -> Some:
    with np.load(file) as stored:
        people = Some(stored["X"], stored["outputs"], stored["rows"])
        return people if share >= 1 else chosen(people, stored["marks"], share)


def _those(rows: IntArray, file: str) -> Some:
    people = _some(1.0, file)
    return people.take(np.isin(people.rows, rows))


def _together(parts: Any) -> Some:
    """People of several buckets, in the order of their rows."""
    X, outputs, rows = (np.concatenate(lines) for lines in zip(*parts, strict=True))
    return Some(X, outputs, rows).take(np.argsort(rows))


# -- the search ------------------------------------------------------------------------------------------------------


class _Crate(NamedTuple):
    file: str
    guess: tuple[FloatArray, float]
    outline: Outline


def _box(share: float, bearings: Bearings, n_worst: int, room: Path, search: int, file: str) -> _Crate | None:
    """Put a share of the people of a bucket in boxes."""
    people = _some(share, file)
    if not len(people.rows):
        return None
    tree = arrange(people.X, lowered(people.outputs), bearings)
    box = Box(tree._replace(order=people.rows[tree.order]), np.ones(len(people.rows), dtype=np.int64))
    name = shelve(room / f"boxes-{search}-{Path(file).name}", box, **people._asdict())
    return _Crate(name, first_guess(box, TOLERANCE, n_worst), outline_of(tree))


def _gather(bearings: Bearings, kinds: Kinds, most: int, n_jobs: int | None, task: Task) -> Cuts | None:
    """Gather the pairs between one bucket and others, or itself; None if there are more than `most`."""
    one, own = take_down(task[0], bearings)
    parts = []
    for file in task[1]:
        if file == task[0]:
            pairs, people = gather_within(one.tree, TOLERANCE, most, n_jobs), Some(**own)
        else:
            other, others = take_down(file, bearings)
            pairs = gather_between(one.tree, other.tree, TOLERANCE, most, n_jobs)
            people = _together([Some(**own), Some(**others)])
        if pairs is None:
            return None
        parts.append(described(people, np.searchsorted(people.rows, pairs), kinds, complete=True))
    found, gaps, differences = (np.concatenate(lines) for lines in list(zip(*parts, strict=True))[:3])
    return Cuts(found, gaps, differences, complete=True)
