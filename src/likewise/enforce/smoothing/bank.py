"""The random draws that every person shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from likewise._typing import FloatArray
from likewise.enforce.smoothing.draws import Draws, Perturbation, Shift
from likewise.enforce.smoothing.noises import Noise

# Draws come in chunks of this size, each from its own seed. It bounds memory, and it is part of the definition
# of the bank: a prediction must not depend on how the work was cut.
CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Bank(Perturbation):
    """Perturbations of people: noise on the features that matter, other people's values on those that must not.

    A person x becomes ``x * noise.visible + t`` for each row t of the bank. For a feature of weight 0, t holds
    values of the training data's column, drawn independently of x, so the model cannot see the person's own.
    Several such columns are drawn together, from one row, so that their combinations are real ones.

    Attributes
    ----------
    noise : Noise
    background : ndarray of shape (n_rows, n_hidden)
        Training values of the columns with weight 0.
    seed : int
        All draws follow from it; the bank itself is never stored.
    """

    noise: Noise
    background: FloatArray
    seed: int

    @property
    def curve(self) -> Noise:
        """That of the noise."""
        return self.noise

    @classmethod
    def from_training_data(cls, noise: Noise, X: FloatArray, seed: int) -> Bank:
        """Make a bank whose background are the columns of `X` that must not matter."""
        return cls(noise, X[:, ~noise.visible].copy(), seed)

    def fresh(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` perturbations with `rng`; shape (n, n_features)."""
        t = self.noise.sample(n, rng)
        hidden = ~self.noise.visible
        if hidden.any():
            t[:, hidden] = self.background[rng.integers(len(self.background), size=n)]
        return t

    def chunks(self, n_draws: int) -> Iterator[FloatArray]:
        """Yield the first `n_draws` draws of the bank, a chunk at a time."""
        for i, start in enumerate(range(0, n_draws, CHUNK)):
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(i,)))
            yield self.fresh(CHUNK, rng)[: n_draws - start]

    def parts(self, edges: list[int]) -> Iterator[tuple[int, Draws]]:
        """Yield the draws up to ``edges[-1]`` in order, cut at every edge and at every chunk."""
        for i, chunk in enumerate(self.chunks(edges[-1])):
            start, stop = i * CHUNK, i * CHUNK + len(chunk)
            cuts = [start, *(edge for edge in edges if start < edge < stop), stop]
            for a, b in pairwise(cuts):
                yield b, Shift(self.noise.visible, chunk[a - start : b - start])

    def prepare(self, rows: FloatArray) -> FloatArray:
        """People with 0 in the columns that must not matter, ready for adding perturbations."""
        return rows if self.noise.visible.all() else np.where(self.noise.visible, rows, 0.0)

    def perturb(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by a fresh draw of their own."""
        return self.prepare(rows) + self.fresh(len(rows), rng)
