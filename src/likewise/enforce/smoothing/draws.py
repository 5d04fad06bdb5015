"""What perturbs people: sets of draws that turn a person into rows for the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from likewise._frozen import Frozen
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.enforce.smoothing.noises import Noise
from likewise.guarantees.curves import Curve

Seen = npt.NDArray[np.float64] | npt.NDArray[np.int64]
"""What the draws see of people, one row each."""


class Draws(Protocol):
    """Some draws of a perturbation, the same for everyone."""

    def __len__(self) -> int: ...

    def apply(self, person: Seen) -> FloatArray:
        """Perturb one person, a row of `Perturbation.corners`; shape (n_draws, n_features)."""
        ...


class Perturbation(Frozen, ABC):
    """A kind of noise, ready for use: all its draws follow from what `fit` has stored."""

    noise: Noise | None
    """On the numbers, if any of them matters."""

    @property
    @abstractmethod
    def curve(self) -> Curve:
        """How far the laws of two perturbed people can be apart."""

    @property
    def n_fixed(self) -> int | None:
        """How many draws there are, if nothing is random; else None."""
        return None

    @abstractmethod
    def prepare(self, rows: FloatArray) -> FloatArray:
        """Reduce people to what the draws may see of them: two people with equal rows here get equal votes."""

    def corners(self, seen: FloatArray) -> tuple[Seen, IntArray, FloatArray]:
        """Rows to score, whose they are, and in which shares; one each, unless someone is between points of a grid.

        Returns
        -------
        rows : ndarray of shape (n_rows, n_seen)
        owner : ndarray of shape (n_rows,)
            Positions among the people, ascending.
        share : ndarray of shape (n_rows,)
            Adding up to 1 for each person.
        """
        return seen, np.arange(len(seen)), np.ones(len(seen))

    @abstractmethod
    def parts(self, edges: list[int]) -> Iterator[tuple[int, Draws]]:
        """Yield the draws up to ``edges[-1]`` in order, cut at every edge; each with the number of its last draw."""

    def landmarks(self, n_columns: int) -> list[FloatArray]:
        """Numbers, per column of coded people, at which a cell ends, as far as there are any."""
        return [np.empty(0)] * n_columns

    @abstractmethod
    def perturb(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by a draw of their own; shape (n_samples, n_features)."""


@dataclass(frozen=True, eq=False)
class Shift:
    """Draws of the form ``x * keep + t``: noise on what is kept, other people's values in place of what is not.

    Attributes
    ----------
    keep : ndarray of bool, shape (n_features,) or (n_draws, n_features)
        Whether the person's own value stays. Where it does not, it never reaches the model.
    t : ndarray of shape (n_draws, n_features)
        What is added.
    """

    keep: BoolArray
    t: FloatArray

    def __len__(self) -> int:
        return len(self.t)

    def apply(self, person: Seen) -> FloatArray:
        """Perturb one person."""
        return np.where(self.keep, person, 0.0) + self.t
