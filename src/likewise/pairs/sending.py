"""People of a table in partitions, sent to buckets on disk, of which each holds all people of one part of the space."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.pairs.buckets import Splits
from likewise.pairs.interviews import Interview
from likewise.pairs.points import groups_of
from likewise.pairs.population import unit_for
from likewise.partitions.parquet import Partition, StoredTable
from likewise.partitions.scratch import write_whole
from likewise.partitions.workforce import Workforce

BUCKET = 2**17
"""People in a bucket, about: two buckets in boxes are some 50 MB."""


class Sent(NamedTuple):
    """What is left of a partition in memory: where its file is, and where each bucket's people stand in it.

    `rows` and `outputs` are of the people who were asked for; `ends` are the lowest and highest output of all.
    """

    file: str
    n_columns: int
    starts: IntArray
    ends: tuple[float, float]
    probable: bool
    rows: FloatArray
    outputs: FloatArray


class Bucket(NamedTuple):
    """People in the order of their positions; each stands for `times` equal ones, of whom it is the first."""

    X: FloatArray
    outputs: FloatArray
    times: IntArray
    first: IntArray


def shuffle(
    interview: Interview, people: StoredTable, splits: Splits, wanted: IntArray, room: Path, work: Workforce
) -> list[Sent]:
    """Send everyone to their buckets, in files; remember the people at the positions `wanted`."""
    return list(work.map(partial(_send, interview, splits, room), people.shares(wanted)))


def unit_of(sent: list[Sent]) -> float:
    """The unit of outputs, as in `Population`."""
    if sent[0].probable:
        return 1.0
    return unit_for(max(part.ends[1] for part in sent) - min(part.ends[0] for part in sent))


def slices_of(sent: list[Sent]) -> list[tuple[int, list[tuple[str, int, int]]]]:
    """Which buckets hold someone, and where their people stand in which files."""
    slices = np.stack([np.stack([part.starts[:-1], part.starts[1:]], axis=1) for part in sent], axis=1)
    files = [part.file for part in sent]
    found = (
        (bucket, [(file, int(a), int(b)) for file, (a, b) in zip(files, some, strict=True) if b > a])
        for bucket, some in enumerate(slices)
    )
    return [(bucket, some) for bucket, some in found if some]


def read_bucket(slices: list[tuple[str, int, int]], n_columns: int) -> Bucket:
    """The people of a bucket."""
    rows = np.concatenate([np.load(file, mmap_mode="r")[a:b] for file, a, b in slices])
    first = rows[:, -1].copy().view(np.int64)
    rows = rows[np.argsort(first, kind="stable")]
    count, first = rows[:, -2].copy().view(np.int64), rows[:, -1].copy().view(np.int64)
    return Bucket(rows[:, :n_columns], rows[:, n_columns:-2], count, first)


def _send(interview: Interview, splits: Splits, room: Path, task: tuple[Partition, IntArray]) -> Sent:
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
    return Sent(str(file), X.shape[1], starts, ends, probable, np.concatenate(rows), np.concatenate(kept))
