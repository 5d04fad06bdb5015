"""Votes of a model for perturbed people, summed over draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray
from likewise.enforce.smoothing.draws import Draws
from likewise.models.votes import Vote

_ROWS_PER_CALL, _CELLS_PER_CALL = 65_536, 2**20


class VoteSums(Protocol):
    """Sums votes over draws. What a person gets depends on the person and the draws, on nothing else."""

    def sums(self, draws: Draws, people: npt.NDArray[np.generic]) -> tuple[FloatArray, FloatArray]:
        """Sums of votes, and of squared votes, over `draws` per person; each (n_people, n_outputs)."""
        ...


@dataclass(frozen=True)
class CalledVotes:
    """Calls the model: works for every model.

    Attributes
    ----------
    vote : Vote
    shared : bool
        Whether a row's votes have the same bits wherever the row stands (`likewise.enforce.smoothing.sharing`). Then
        `vote` is asked about many people at once; otherwise about one person, so that nobody's votes depend on who
        else is asked about.
    """

    vote: Vote
    shared: bool

    def sums(self, draws: Draws, people: npt.NDArray[np.generic]) -> tuple[FloatArray, FloatArray]:
        """Sums of votes, and of squared votes, over `draws` per person."""
        most = min(_ROWS_PER_CALL, _CELLS_PER_CALL // max(1, people.shape[1]))
        per_call = max(1, most // len(draws)) if self.shared else 1
        totals, squares = [], []
        for start in range(0, len(people), per_call):
            rows = [draws.apply(person) for person in people[start : start + per_call]]
            # One person at a time, and row after row in memory: the order of a sum must not depend on how many people
            # share the call, nor on how the model lays out its answer.
            votes = np.ascontiguousarray(self.vote(np.concatenate(rows) if len(rows) > 1 else rows[0]))
            for first in range(0, len(votes), len(draws)):
                own = votes[first : first + len(draws)]
                totals.append(own.sum(axis=0))
                squares.append((own * own).sum(axis=0))
        return np.array(totals), np.array(squares)
