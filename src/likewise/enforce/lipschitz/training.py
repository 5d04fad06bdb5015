"""Training with PyTorch, which nothing else needs: what comes out is arrays.

The packages made for such networks were looked at first. deel-torchlip bounds spectral norms, which is for p = 2
throughout; monotonicnetworks divides or clips rows for p = 1, 2 and infinity. Neither has other p, categories or
missing numbers, and what they share with this is some twenty lines.

On the paper's data, sorted pairs (MaxMin) kept more than ReLU, and dividing rows by their norm inside the forward pass
more than projecting them after each step, which is only done where the limits are of single weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.enforce.lipschitz.inputs import Entries, Inputs
from likewise.enforce.lipschitz.layers import Layers
from likewise.enforce.lipschitz.parameters import Parameters
from likewise.errors import MissingExtraError

Objective = Callable[[Any, Any], Any]
"""Loss of each person, from scores of shape (n, n_outputs) and outcomes of shape (n,), all of them tensors."""

_BATCH = 256
_RATE = 0.01  # of the first step; it falls to 0 as a half cosine
_BETAS = (0.9, 0.99)
_HELD_OUT = 0.1
_FEWEST = 200  # with fewer people, all are trained on: a tenth of them would say too little
_LOOKS = 100  # at the people held out
_PATIENCE = 1 / 3  # of all steps, without a gain


def import_torch() -> Any:
    """PyTorch, or a word on how to get it."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError(
            "Training a 1-Lipschitz network needs PyTorch, which is not installed: pip install 'likewise[torch]'. "
            "Scoring with a trained one does not."
        ) from None
    return torch


def train(
    entries: Entries,
    inputs: Inputs,
    widths: tuple[int, ...],
    objective: Objective,
    *,
    n_steps: int,
    rng: np.random.Generator,
    advance: Callable[[int], None] = lambda steps: None,
) -> Layers:
    """Train a network, and return it as it was when it did best on people held out.

    The same generator gives the same bits: there is one thread, and no randomness but its own.

    Parameters
    ----------
    entries : Entries
    inputs : Inputs
    widths : tuple of int
        Units of each layer, outputs included.
    objective : function
    n_steps : int
    rng : Generator
    advance : function, optional
        Told of each step.
    """
    torch = import_torch()
    with _reproducible(torch):
        parameters = Parameters(torch, inputs, entries, widths, rng)
        order = rng.permutation(len(entries.rows))
        n_held = int(_HELD_OUT * len(order)) if len(order) >= _FEWEST else 0
        held, known = np.sort(order[:n_held]), np.sort(order[n_held:])
        people = parameters.read(entries.rows)
        outcomes = torch.as_tensor(entries.outcomes, dtype=torch.float32)
        shares = torch.as_tensor(entries.weights[held], dtype=torch.float32)

        def losses(chosen: IntArray) -> Any:
            rows = torch.as_tensor(chosen)
            return objective(parameters.scores(*(part[rows] for part in people)), outcomes[rows])

        optimiser = torch.optim.Adam(parameters.all, lr=_RATE, betas=_BETAS)
        batches, every = _batches(entries.weights[known], rng), max(1, n_steps // _LOOKS)
        best, best_step, kept = np.inf, 0, parameters.copy()
        for step in range(1, n_steps + 1):
            optimiser.param_groups[0]["lr"] = _RATE * (1 + np.cos(np.pi * step / n_steps)) / 2
            optimiser.zero_grad()
            losses(known[next(batches)]).mean().backward()
            optimiser.step()
            parameters.project()
            advance(1)
            if n_held and (step % every == 0 or step == n_steps):
                with torch.no_grad():
                    found = float(shares @ losses(held))
                if found < best:
                    best, best_step, kept = found, step, parameters.copy()
                elif step - best_step > _PATIENCE * n_steps:
                    break
        if n_held:
            parameters.restore(kept)
        return parameters.layers()


def _batches(weights: FloatArray, rng: np.random.Generator) -> Iterator[IntArray]:
    """Entries for each step, drawn in passes over all: in each, everyone comes as often as they count, up to one."""
    edges = np.cumsum(weights) / weights.sum()
    n_draws = -(-len(weights) // _BATCH) * _BATCH
    while True:
        at = (np.arange(n_draws) + rng.random()) / n_draws
        drawn = np.minimum(np.searchsorted(edges, at, side="right"), len(edges) - 1)
        yield from rng.permutation(drawn).reshape(-1, _BATCH)


@contextmanager
def _reproducible(torch: Any) -> Iterator[None]:
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    lenient = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(strict, warn_only=lenient)
