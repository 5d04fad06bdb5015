"""What perturbs people: sets of draws that turn a person into rows for the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray


class Draws(Protocol):
    """Some draws of a perturbation, the same for everyone."""

    def __len__(self) -> int: ...

    def apply(self, person: npt.NDArray[np.generic]) -> FloatArray:
        """Perturb one person, as prepared by `Perturbation.prepare`; shape (n_draws, n_features)."""
        ...


class Perturbation(Protocol):
    """A kind of noise, ready for use: all its draws follow from what `fit` has stored."""

    def prepare(self, X: FloatArray) -> npt.NDArray[np.generic]:
        """Reduce people to what the draws may see of them.

        Two people with equal rows here get equal votes, so each distinct row is scored once.
        """
        ...

    def parts(self, edges: list[int]) -> Iterator[tuple[int, Draws]]:
        """Yield the draws up to ``edges[-1]`` in order, cut at every edge; each with the number of its last draw."""
        ...

    def perturb(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by a draw of their own; shape (n_samples, n_features)."""
        ...


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

    keep: npt.NDArray[np.bool_]
    t: FloatArray

    def __len__(self) -> int:
        return len(self.t)

    def apply(self, person: npt.NDArray[np.generic]) -> FloatArray:
        """Perturb one person."""
        return np.where(self.keep, person, 0.0) + self.t
