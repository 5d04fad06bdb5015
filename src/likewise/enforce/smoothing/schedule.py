"""Votes averaged over draws: a fixed number of them, or as many as each person needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray
from likewise.enforce.smoothing.calls import VoteSums
from likewise.enforce.smoothing.draws import Perturbation
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.intervals import clopper_pearson, empirical_bernstein, subset_margin

Advance = Callable[[int], None]

_N_LOOKS = 16
_ROUND_TO = 256  # looks come at multiples of it, which suits the tiles of `likewise.enforce.smoothing.forward`


def mean_votes(
    votes: VoteSums, people: npt.NDArray[np.generic], perturbation: Perturbation, n_draws: int, *, advance: Advance
) -> FloatArray:
    """Average the votes for each (prepared) person over the first `n_draws` draws."""
    total: FloatArray | float = 0.0
    for _, draws in perturbation.parts([n_draws]):
        total = total + votes.sums(draws, people)[0]
        advance(len(draws) * len(people))
    return np.asarray(total / n_draws)


@dataclass(frozen=True)
class Schedule:
    """When to look whether a person's votes suffice, and how much of delta each look may spend.

    Looks come at ``edges[0] < edges[1] < ...`` draws. At each, an interval is wrong with probability at most its
    share of ``delta / 2``, so all intervals of all looks hold at once with probability ``1 - delta / 2``, whatever
    makes a person stop (`docs/theory.md` §5). The last look spends half; there Hoeffding's inequality alone gives
    an error of ``epsilon / 2``, so everyone stops.

    Attributes
    ----------
    epsilon, delta : float
        Promise per pair. Per person the error in total variation is ``epsilon / 2``, except with ``delta / 2``.
    n_outputs : int
        Classes, or 1 for regression.
    hard : bool
        Whether votes are 0 or 1 (Clopper-Pearson intervals) or in between (empirical Bernstein).
    """

    epsilon: float
    delta: float
    n_outputs: int
    hard: bool

    @property
    def edges(self) -> list[int]:
        """Numbers of draws at which to look; the last is the most that anyone needs."""
        log_sets = float(np.log(2.0**self.n_outputs - 2)) if self.n_outputs > 1 else float(np.log(2))
        last = (log_sets - np.log(self.delta / 4)) / (2 * (self.epsilon / 2) ** 2)
        # The first look at which votes that all agree suffice.
        share = self._early_share / max(1, self.n_outputs if self.n_outputs > 2 else 1)
        first = (np.log(2 / share) if self.hard else 7 / 3 * np.log(4 / share) + 1) / (self.epsilon / 2)
        steps = np.geomspace(min(first, last), last, _N_LOOKS)
        return sorted({int(np.ceil(n / _ROUND_TO * (1 + 1e-12))) * _ROUND_TO for n in steps})

    @property
    def _early_share(self) -> float:
        return self.delta / 4 / (_N_LOOKS - 1)

    def interval(self, mean: FloatArray, squares: FloatArray, n: int, *, last: bool) -> tuple[FloatArray, FloatArray]:
        """Interval for each person and output at a look after `n` draws; `mean` and `squares` are means in [0, 1]."""
        if last:
            margin = subset_margin(n, self.delta / 4, max(2, self.n_outputs))
            return np.clip(mean - margin, 0, 1), np.clip(mean + margin, 0, 1)
        # Two classes have one free probability; otherwise the intervals share (union bound).
        share = self._early_share / (self.n_outputs if self.n_outputs > 2 else 1)
        if self.hard:
            return clopper_pearson(mean, n, share)
        return empirical_bernstein(mean, squares, n, share)

    def suffices(self, mean: FloatArray, lower: FloatArray, upper: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether the total variation between the sampled and the true probabilities is at most epsilon / 2."""
        error = np.maximum(upper - mean, mean - lower)
        variation = error[:, 0] if self.n_outputs == 1 else error.sum(axis=1) / 2
        return np.asarray(variation <= self.epsilon / 2)


def adaptive_votes(
    votes: VoteSums,
    people: npt.NDArray[np.generic],
    perturbation: Perturbation,
    schedule: Schedule,
    *,
    advance: Advance,
) -> Estimate:
    """Average the votes for each (prepared) person over as many draws as the schedule asks for.

    Votes must lie in [0, 1]. When a person stops depends on that person's votes alone, so the result is the same
    in any batch.
    """
    edges, m = schedule.edges, schedule.n_outputs
    total, squares = np.zeros((len(people), m)), np.zeros((len(people), m))
    empty = np.empty((3, len(people), m))
    out = Estimate(empty[0], empty[1], empty[2], np.zeros(len(people), dtype=np.int64))
    active = np.arange(len(people))
    for n, draws in perturbation.parts(edges):
        sums, sums_of_squares = votes.sums(draws, people[active])
        total[active] += sums
        squares[active] += sums_of_squares
        advance(len(draws) * len(active))
        if n not in edges:
            continue
        mean = np.clip(total[active] / n, 0.0, 1.0)
        lower, upper = schedule.interval(mean, squares[active] / n, n, last=n == edges[-1])
        done = schedule.suffices(mean, lower, upper) | (n == edges[-1])
        stopped = active[done]
        out.mean[stopped], out.lower[stopped], out.upper[stopped] = mean[done], lower[done], upper[done]
        out.n_draws[stopped] = n
        advance((edges[-1] - n) * len(stopped))
        active = active[~done]
        if not len(active):
            break
    return out
