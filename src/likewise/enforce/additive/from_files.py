"""Fitting an additive model to a table in partitions, which need not fit one machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from likewise._rules import check_rules
from likewise._typing import FloatArray
from likewise.enforce.additive.assembling import Plan, Wishes
from likewise.enforce.additive.bins import Part, blocks_of, fill, intercept, knot_sample, plan_column, slot_shares
from likewise.enforce.additive.on_disk import FiledObjective, Ground, write_block
from likewise.enforce.additive.tuning import content_folds
from likewise.enforce.base import all_or_nothing, check_outcomes
from likewise.errors import InvalidInputError
from likewise.guarantees.vacuity import warn_if_ineffective, warn_if_vacuous
from likewise.metrics.coding import Coding
from likewise.metrics.people import People, spread
from likewise.pairs.interviews import columns_under
from likewise.partitions.parquet import Partition, StoredTable, joined
from likewise.partitions.scratch import working_room
from likewise.partitions.surveying import survey
from likewise.partitions.workforce import Workforce, workers_of

_SHOWN = 5000


class FitsPartitions:
    """What lets additive models learn from Parquet files."""

    def fit_partitions(
        self, path: str | PathLike[str], target: str, *, cluster: Any = None, scratch: Any = None
    ) -> Self:
        """Learn from people in Parquet files, of any number, all or nothing.

        The model is that of `fit`, to the last bit, for the same people in the same order. People are binned once, into
        files; every step of the fit then needs sums over blocks of people, which are added in a fixed order.

        Parameters
        ----------
        path : path-like
            A Parquet file, or a directory of them. Columns that the metric does not name are not read.
        target : str
            Column with the outcomes.
        cluster : str or distributed.Client, optional
            A Dask cluster, or the address of its scheduler, whose workers take the sums. None is this process.
        scratch : path-like, optional
            Directory for the binned people, about 9 bytes per person and number, which is empty at the end; every
            worker must be able to write there. None is the directory in which the table is.
        """
        model: Any = self
        check_rules(model.rules, model)
        metric = model._asked_metric()
        if metric is None:
            raise InvalidInputError(
                "metric must be given for a table in partitions; `linear_metric` makes one of a part."
            )
        people = StoredTable(path)  # type: ignore[arg-type]  # it makes a Path of it
        people.check_columns([target], "the target")
        if len(people) < 2:
            raise InvalidInputError(f"{people.path} must hold at least two people; it has {len(people)}.")
        names = [name for name in columns_under(people, metric, aside=target) if name != target]
        with all_or_nothing(self), workers_of(cluster) as work, working_room(people.path, scratch) as room:
            table, some = _survey(model, people, metric, names, target, work)
            # Twice each: scikit-learn suspects classes of one person.
            model._check_target(np.tile(check_outcomes(table[target], numeric=not model._classify), 2))
            model.n_features_in_, model.feature_names_in_ = len(names), np.array(names, dtype=object)
            coding = metric.coding(table[names])
            shown = metric.people(some, coding)
            wishes, plan = Wishes.read(model), Plan.of(metric, coding, model.monotone, model.link_name)
            telling = metric.people(table[names], coding)
            parts = _parts(plan, shown.rows, telling.rows, len(people), wishes.max_knots)
            reader = _Reader(model, names, target, coding, parts, len(people), wishes.seed)
            blocks = list(work.map(partial(_bin, reader, room), _blocks(people)))
            for j, part in enumerate(parts):
                parts[j] = replace(part, share=sum((block.shares[j] for block in blocks), np.zeros(part.n_slots)))
            loss = model.loss_of(np.asarray(table[target])[:2], telling.take(slice(2)))
            ground = Ground(plan.layout([intercept(0), *parts]), replace(loss, target=loss.target[:, :0]))
            problem = FiledObjective(
                *ground,
                np.empty(0),
                wishes.penalty or 1e-3,
                files=tuple(block.file for block in blocks),
                ground=ground,
                work=work,
            )
            output_range = None if model._classify else model.output_range_
            model.scorer_, model.penalty_ = plan.complete(problem, wishes, output_range)
            model.coding_ = coding
            warn_if_vacuous(model.guarantee_, shown.take(spread(len(shown), _SHOWN)))
            warn_if_ineffective(metric, shown)
        return self


def _survey(
    model: Any, people: StoredTable, metric: Any, names: list[str], target: str, work: Workforce
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A small table that stands for the whole, and some people, the same always."""
    numbers = metric.coding(people.head(names)).is_number
    categories = [name for name, number in zip(names, numbers, strict=True) if not number]
    categories += [target] if model._classify else []
    table, some = survey(people, [*names, target], categories, knot_sample(len(people)), work)
    return table, some[names]


def _parts(plan: Plan, some: FloatArray, telling: FloatArray, n_people: int, max_knots: int) -> list[Part]:
    shares = np.full(len(some), 1 / n_people)
    found = (
        plan_column(int(i), np.ascontiguousarray(some[:, i]), shares, telling[:, i], plan.columns, max_knots)
        for i in np.flatnonzero(plan.columns.matters)
    )
    return [part for part in found if part is not None]


@dataclass(frozen=True, eq=False)
class _Reader:
    model: Any
    names: list[str]
    target: str
    coding: Coding
    parts: list[Part]
    n_people: int
    seed: int


class _Block(NamedTuple):
    file: str
    shares: list[FloatArray]


def _blocks(people: StoredTable) -> list[tuple[int, int, list[Partition]]]:
    """First and last position of each block, and the partitions that hold them."""
    ends = [(block.start, block.stop) for block in blocks_of(len(people))]
    return [(a, b, [part for part in people.parts if part.start < b and part.stop > a]) for a, b in ends]


def _bin(reader: _Reader, room: Path, task: tuple[int, int, list[Partition]]) -> _Block:
    """Bin the people of a block, and put them in a file."""
    first, last, partitions = task
    model, frames = reader.model, []
    for part in partitions:
        for start, frame in part.batches([*reader.names, reader.target]):
            frames.append(frame.iloc[max(0, first - start) : max(0, last - start)])
    categories = [name for name, number in zip(reader.names, reader.coding.is_number, strict=True) if not number]
    frame = joined([each for each in frames if len(each)], categories)
    people = People.read(frame[reader.names], reader.coding)
    model.metric.check_people(people)
    y = check_outcomes(frame[reader.target], numeric=not model._classify)
    parts = [fill(part, np.ascontiguousarray(people.rows[:, part.column])) for part in reader.parts]
    weights = np.full(len(people), 1 / reader.n_people)
    target = model.loss_of(y, people).target
    matters = model.metric.weights_of(reader.coding).matters
    file = room / f"block-{first}.npz"
    write_block(file, parts, target, weights, content_folds(people.rows[:, matters], target, reader.seed))
    return _Block(str(file), [slot_shares(part, weights) for part in parts])
