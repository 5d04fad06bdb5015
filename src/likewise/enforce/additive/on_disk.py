"""The objective of a fit to people who are in files, block by block: workers take sums, and they are added in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likewise._threads import single_threaded_blas
from likewise._typing import FloatArray, IntArray
from likewise.enforce.additive.bins import Part, intercept
from likewise.enforce.additive.fitting import Objective
from likewise.enforce.additive.layout import Layout
from likewise.enforce.additive.losses import Loss
from likewise.partitions.scratch import write_whole
from likewise.partitions.workforce import Workforce

View = tuple[tuple[str, tuple[Any, ...]], ...]
"""Methods of `Objective`, with their arguments, that make another one of it: who is left out, and what is held."""


class Ground(NamedTuple):
    """What all blocks share: variables and loss, without people."""

    layout: Layout
    loss: Loss


@dataclass(frozen=True, eq=False)
class FiledObjective(Objective):
    """As `Objective`, of which `layout`, `loss` and `weights` are without people here.

    In place of scores stand the values at slots from which workers compute them.

    Attributes
    ----------
    files : tuple of str
        One for each block of people, in their order.
    ground : Ground
        What a worker puts the people of a block into; `view` is then applied to it.
    work : Workforce
    view : tuple
    memory : dict
        The last derivatives, and where they were taken.
    """

    files: tuple[str, ...] = field(kw_only=True)
    ground: Ground = field(kw_only=True)
    work: Workforce = field(kw_only=True)
    view: View = ()
    memory: dict[str, Any] = field(default_factory=dict)

    def scores_at(self, slots: FloatArray) -> FloatArray:
        """The values at slots themselves."""
        return slots

    def mean_loss(self, scores: FloatArray) -> float:
        """Mean loss, without the penalty."""
        return float(self._total(_mean_loss, scores))

    def mean_target(self) -> FloatArray:
        """Mean of what is aimed at."""
        return np.asarray(self._total(_mean_target, None))

    def fold_shares(self, n_folds: int) -> FloatArray:
        """Weight of the people in each fold."""
        return np.asarray(self._total(_fold_shares, n_folds))

    def slope_sums(self, scores: FloatArray) -> FloatArray:
        """Sums of first derivatives per slot, shape (n_functions, n_slots)."""
        return np.asarray(self._derivatives(scores)[0])

    def bend_sums(self, scores: FloatArray) -> dict[tuple[int, int], FloatArray]:
        """Sums of second derivatives per pair of slots, for each pair of functions once."""
        pairs = [(k, other) for k in range(self.loss.n_functions) for other in range(k + 1)]
        return dict(zip(pairs, self._derivatives(scores)[1:], strict=True))

    def only(self, fold: int) -> Objective:
        """The same for the people in a fold alone."""
        return self._seen(self, "only", fold)

    def without(self, fold: int, left: float) -> Objective:
        """The same without the people in a fold."""
        return self._seen(self, "without", fold, left)

    def facing(self, held: FloatArray, k: int, chosen: list[int]) -> Objective:
        """The same for function k in some parts alone."""
        nobody = Objective.facing(replace(self, view=()), np.zeros((self.loss.n_functions, 0)), k, chosen)
        return self._seen(nobody, "facing", held, k, chosen)

    def coarser(self, most: int) -> Objective:
        """The same with at most so many knots per column."""
        return self._seen(super().coarser(most), "coarser", most)

    def _seen(self, nobody: Objective, *step: Any) -> Objective:
        return replace(nobody, view=(*self.view, (step[0], step[1:])))  # type: ignore[call-arg]

    def _derivatives(self, scores: FloatArray) -> list[FloatArray]:
        # A step asks for first and second derivatives at the same scores, one after the other: one pass gives both.
        if self.memory.get("at") is not scores:
            self.memory.update(at=scores, sums=self._total(_derivatives, scores))
        return self.memory["sums"]  # type: ignore[no-any-return]

    def _total(self, ask: Callable[[Objective, Any], Any], argument: Any) -> Any:
        answer = partial(_answer, self.ground, self.view, self.work.n_jobs, ask, argument)
        return reduce(_plus, self.work.map(answer, self.files), 0.0)


def _plus(total: Any, part: Any) -> Any:
    """Add what one more block says; sums start at 0, as they do in memory."""
    if isinstance(part, list):
        return [a + b for a, b in zip(total or [0.0] * len(part), part, strict=True)]
    return total + part


def _answer(
    ground: Ground, view: View, n_jobs: int | None, ask: Callable[[Objective, Any], Any], argument: Any, file: str
) -> Any:
    """What a worker says about a block of people."""
    with single_threaded_blas():
        problem = read_block(ground, file, n_jobs)
        for method, given in view:
            problem = getattr(problem, method)(*given)
        return ask(problem, argument)


def _mean_loss(problem: Objective, slots: FloatArray) -> float:
    return problem.mean_loss(problem.scores_at(slots))


def _mean_target(problem: Objective, _: None) -> FloatArray:
    return problem.mean_target()


def _fold_shares(problem: Objective, n_folds: int) -> FloatArray:
    return problem.fold_shares(n_folds)


def _derivatives(problem: Objective, slots: FloatArray) -> list[FloatArray]:
    scores = problem.scores_at(slots)
    return [problem.slope_sums(scores), *problem.bend_sums(scores).values()]


def write_block(file: Path, parts: list[Part], target: FloatArray, weights: FloatArray, folds: IntArray) -> None:
    """Put the people of a block in a file."""
    arrays: dict[str, Any] = {"target": target, "weights": weights, "folds": folds}
    for j, part in enumerate(parts):
        arrays[f"index_{j}"] = part.index
        if part.fraction is not None:
            arrays[f"fraction_{j}"] = part.fraction
    write_whole(file, arrays)


def read_block(ground: Ground, file: str, n_jobs: int | None) -> Objective:
    """The objective of the people in a file alone."""
    arrays = _arrays(file)
    parts = [intercept(len(arrays["weights"]))]
    for j, part in enumerate(ground.layout.parts[1:]):
        fraction = None if part.fraction is None else arrays[f"fraction_{j}"]
        parts.append(replace(part, index=arrays[f"index_{j}"], fraction=fraction))
    layout, loss = replace(ground.layout, parts=parts), replace(ground.loss, target=arrays["target"])
    return Objective(layout, loss, arrays["weights"], 0.0, n_jobs=n_jobs, folds=arrays["folds"])


@lru_cache(maxsize=1)
def _arrays(file: str) -> dict[str, Any]:
    with np.load(file) as stored:
        return {name: stored[name] for name in stored.files}
