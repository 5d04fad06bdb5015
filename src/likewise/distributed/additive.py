"""Additive models fitted to a Dask DataFrame, with the same bits as in memory.

Rows are binned once, in blocks of `binning.BLOCK` rows by position, whatever the partitions are; workers keep the
blocks. A step of the fit needs sums over rows: workers compute those of each block, and the sums of blocks are added in
order, as `fit` does in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._fit_validation import check_outcomes, restore_on_error
from likewise._guarantee_warnings import warn_if_ineffective, warn_if_vacuous
from likewise._subsample import evenly_spaced
from likewise._typing import FloatArray, IntArray
from likewise._validation import check_rules
from likewise.additive.binning import (
    MOST_VALUES,
    Part,
    blocks_of,
    fill,
    intercept,
    knot_sample,
    plan_column,
    slot_shares,
)
from likewise.additive.design_matrix import Layout
from likewise.additive.fit import Plan
from likewise.additive.objective import Loss, Objective
from likewise.base import ranges_of
from likewise.distributed.cluster import compute, delayed, persist, shared
from likewise.distributed.frames import DaskTable, Partitions, categories_under, joined, metric_columns
from likewise.exceptions import InvalidInputError
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import ArrayEncoder, People

_CHECKED = 5000  # people on whom the guarantee is checked for being vacuous
_BLOCKS_PER_SUM = 16  # blocks whose sums one task adds up


def fit(model: Any, X: Any, y: Any, sample_weight: Any = None) -> None:
    """Fit an additive model to a Dask DataFrame or a path, all or nothing; `y` as in `AdditiveClassifier.fit`."""
    check_rules(model.rules, model)
    metric = model._metric_to_enforce()
    if metric is None:
        raise InvalidInputError(
            "metric must be given for a Dask DataFrame; `linear_metric` makes one from a part of it in memory."
        )
    if sample_weight is not None:
        raise InvalidInputError("sample_weight must be None for a Dask DataFrame.")
    if y is None:
        raise InvalidInputError("y must be a Dask Series or the name of a column of X; got None.")
    table, target = DaskTable.of(X).with_column(y, "target")
    names = [name for name in metric_columns(table, metric, aside=target) if name != target]
    with restore_on_error(model):
        metric = metric.named(tuple(names))
        categories = categories_under(table, metric, names) + ([target] if model._classify else [])
        partitions = table.scan([*names, target], [*names, target], categories)
        digest, n = partitions.digest, len(partitions)
        # Each outcome twice: scikit-learn warns about classes with a single member.
        model._check_target(np.tile(check_outcomes(digest[target], numeric=not model._classify), 2))
        encoder = metric.encoder(digest[names])
        metric = metric.learned(encoder)
        model.n_features_in_ = len(names)
        if not isinstance(encoder, ArrayEncoder) or all(isinstance(name, str) for name in names):
            model.feature_names_in_ = np.array(names, dtype=object)  # as scikit-learn, which takes text only
        bound = metric.bind(encoder)
        if n > MOST_VALUES:  # the ends of a column are known only with its codes
            bound.refuse_special(f"Dask DataFrames of more than {MOST_VALUES:,} rows")
        sample = bound.read(partitions.rows_at(knot_sample(n), names))
        ends = People.read(digest[names], encoder)
        plan = Plan.of(model, bound)
        parts = _plan_columns(plan, sample.rows, ends.rows, n, plan.knots(n))
        binning = _Binning(model, bound, names, target, parts, n)
        blocks = persist(_bin_blocks(partitions, binning))
        shares = compute([delayed(_shares)(block) for block in blocks])
        for j, part in enumerate(parts):
            parts[j] = replace(part, share=sum((block[j] for block in shares), np.zeros(part.n_slots)))
        loss = model.loss_of(np.asarray(digest[target])[:2], ends.take(slice(2)))
        template = Template(plan.layout([intercept(0), *parts]), replace(loss, target=loss.target[:, :0]), n)
        problem = DaskObjective(
            template.layout, template.loss, np.empty(0), np.zeros(1 + len(parts)), n, blocks=blocks, template=template
        )
        model.scorer_, model.penalty_ = plan.fit(problem)
        model.encoder_ = encoder
        model.ranges_ = ranges_of(ends, bound)
        warn_if_vacuous(model.guarantee_, sample.take(evenly_spaced(len(sample), _CHECKED)))
        warn_if_ineffective(bound, ends)


def _plan_columns(plan: Plan, sample: FloatArray, ends: FloatArray, n_rows: int, knots: IntArray) -> list[Part]:
    shares = np.full(len(sample), 1 / n_rows)
    found = (
        plan_column(int(i), np.ascontiguousarray(sample[:, i]), shares, ends[:, i], plan.metric, int(knots[i]))
        for i in np.flatnonzero(plan.metric.matters)
    )
    return [part for part in found if part is not None]


# -- blocks ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Binning:
    """What a worker needs to bin rows."""

    model: Any
    metric: BoundMetric
    names: list[Any]
    target: Any
    parts: list[Part]
    n_rows: int


@dataclass(frozen=True, eq=False)
class Block:
    """Binned rows: per part the slot and the fraction towards the next one; targets and shares of slots."""

    index: list[npt.NDArray[Any]]
    fraction: list[FloatArray | None]
    target: FloatArray
    shares: list[FloatArray]

    def __sizeof__(self) -> int:
        # Dask spills by size, and does not look into objects by itself.
        arrays = [*self.index, *(line for line in self.fraction if line is not None), self.target]
        return sum(array.nbytes for array in arrays)


def _bin_blocks(partitions: Partitions, binning: _Binning) -> list[Any]:
    """Delayed blocks of rows by position."""
    bin_rows, context = delayed(_bin), shared(binning)
    blocks = []
    for block in blocks_of(len(partitions)):
        first = int(np.searchsorted(partitions.starts, block.start, side="right")) - 1
        last = int(np.searchsorted(partitions.starts, block.stop, side="left"))
        blocks.append(
            bin_rows(
                context,
                block.start,
                block.start - int(partitions.starts[first]),
                block.stop - block.start,
                *partitions.tables[first:last],
            )
        )
    return blocks


def _bin(given: _Binning, start: int, skipped: int, size: int, *tables: pd.DataFrame) -> Block:
    """Bin rows of consecutive partitions."""
    model, needed = given.model, []
    for table in tables:
        here = table.iloc[skipped : skipped + size]
        skipped, size = max(0, skipped - len(table)), size - len(here)
        needed.append(here)
    categories = [name for name, number in zip(given.names, given.metric.is_number, strict=True) if not number]
    rows = joined([part for part in needed if len(part)], categories)
    rows.index = pd.RangeIndex(start, start + len(rows))  # positions, for errors
    people = given.metric.read(rows[given.names])
    y = check_outcomes(rows[given.target], numeric=not model._classify)
    parts = [fill(part, np.ascontiguousarray(people.rows[:, part.column])) for part in given.parts]
    weights = np.full(len(people), 1 / given.n_rows)
    target = model.loss_of(y, people).target
    return Block(
        [part.index for part in parts],
        [part.fraction for part in parts],
        target,
        [slot_shares(part, weights) for part in parts],
    )


def _shares(block: Block) -> list[FloatArray]:
    return block.shares


# -- the objective ---------------------------------------------------------------------------------------------------


class Template(NamedTuple):
    """What all blocks share: layout and loss without rows, and the number of rows."""

    layout: Layout
    loss: Loss
    n_rows: int

    def objective(self, block: Block) -> Objective:
        """The objective of the rows of a block alone."""
        n = block.target.shape[1]
        filled = (
            replace(part, index=index, fraction=fraction)
            for part, index, fraction in zip(self.layout.parts[1:], block.index, block.fraction, strict=True)
        )
        layout = replace(self.layout, parts=[intercept(n), *filled])
        weights = np.full(n, 1 / self.n_rows)
        loss = replace(self.loss, target=block.target)
        return Objective(layout, loss, weights, np.zeros(len(layout.parts)), self.n_rows, n_jobs=1)


View = tuple[tuple[str, tuple[Any, ...]], ...]
"""Methods of `Objective`, with their arguments, that derive another objective from it."""


@dataclass(frozen=True, eq=False)
class DaskObjective(Objective):
    """An `Objective` whose rows are on workers: `layout`, `loss` and `weights` are without rows.

    In place of scores it takes values at slots, from which workers compute scores.

    Attributes
    ----------
    blocks : list of Delayed
        Each a `Block`, in the order of rows.
    template : Template
        Makes the objective of a block, to which the methods in `view` are applied.
    view : tuple
    memory : dict
        The last derivatives, and the scores at which they were computed.
    """

    blocks: list[Any] = field(kw_only=True)
    template: Template = field(kw_only=True)
    view: View = ()
    memory: dict[str, Any] = field(default_factory=dict)

    def scores_at(self, slots: FloatArray) -> FloatArray:
        """The values at slots."""
        return slots

    def mean_loss(self, scores: FloatArray) -> float:
        """Mean loss, without the penalty."""
        return float(self._total(_mean_loss, scores))

    def mean_target(self) -> FloatArray:
        """Mean of the targets."""
        return np.asarray(self._total(_mean_target, None))

    def mean_squared_gradient(self, scores: FloatArray) -> float:
        """Mean of the squared first derivatives, added up over functions."""
        return float(self._total(_squared_slopes, scores))

    def gradient_sums(self, scores: FloatArray) -> FloatArray:
        """Sums of first derivatives per slot, shape (n_functions, n_slots)."""
        return np.asarray(self._derivatives(scores)[0])

    def hessian_sums(self, scores: FloatArray) -> dict[tuple[int, int], FloatArray]:
        """Sums of second derivatives per pair of slots, for each pair of functions once."""
        pairs = [(k, other) for k in range(self.loss.n_functions) for other in range(k + 1)]
        return dict(zip(pairs, self._derivatives(scores)[1:], strict=True))

    def subproblem(self, held: FloatArray, functions: list[int], chosen: list[int]) -> Objective:
        """The same for some functions and parts."""
        empty = Objective.subproblem(replace(self, view=()), np.zeros((self.loss.n_functions, 0)), functions, chosen)
        return self._seen(empty, "subproblem", held, functions, chosen)

    def coarser(self, most: int) -> Objective:
        """The same with at most `most` knots per column."""
        return self._seen(super().coarser(most), "coarser", most)

    def _seen(self, empty: Objective, *step: Any) -> Objective:
        return replace(empty, view=(*self.view, (step[0], step[1:])))  # type: ignore[call-arg]

    def _derivatives(self, scores: FloatArray) -> list[FloatArray]:
        # A step needs first and second derivatives at the same scores: one pass computes both.
        if self.memory.get("at") is not scores:
            self.memory.update(at=scores, sums=self._total(_derivatives, scores))
        return self.memory["sums"]  # type: ignore[no-any-return]

    def _total(self, evaluate: Callable[[Objective, Any], Any], argument: Any) -> Any:
        request = shared(_Request(self.template, self.view, evaluate, argument))
        sums = [delayed(_evaluate)(block, request) for block in self.blocks]
        # In the order of rows, from 0, as in memory: floating-point sums depend on their order.
        total = None
        for i in range(0, len(sums), _BLOCKS_PER_SUM):
            total = delayed(_add)(total, *sums[i : i + _BLOCKS_PER_SUM])
        return compute([total])[0]


@dataclass(frozen=True, eq=False)
class _Request:
    template: Template
    view: View
    evaluate: Callable[[Objective, Any], Any]
    argument: Any


def _evaluate(block: Block, request: _Request) -> Any:
    """Evaluate a request on a block."""
    problem = request.template.objective(block)
    for method, given in request.view:
        problem = getattr(problem, method)(*given)
    return request.evaluate(problem, request.argument)


def _add(total: Any, *sums: Any) -> Any:
    """Add the sums of further blocks to a total."""
    for part in sums:
        if isinstance(part, list):
            total = [a + b for a, b in zip(total or [0.0] * len(part), part, strict=True)]
        else:
            total = (0.0 if total is None else total) + part
    return total


def _mean_loss(problem: Objective, slots: FloatArray) -> float:
    return problem.mean_loss(problem.scores_at(slots))


def _mean_target(problem: Objective, _: None) -> FloatArray:
    return problem.mean_target()


def _squared_slopes(problem: Objective, slots: FloatArray) -> float:
    return problem.mean_squared_gradient(problem.scores_at(slots))


def _derivatives(problem: Objective, slots: FloatArray) -> list[FloatArray]:
    scores = problem.scores_at(slots)
    return [problem.gradient_sums(scores), *problem.hessian_sums(scores).values()]
