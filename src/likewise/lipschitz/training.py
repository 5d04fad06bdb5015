"""Training with PyTorch, which nothing else needs: what comes out is arrays.

The packages made for such networks were looked at first. deel-torchlip bounds spectral norms, which is for p = 2
throughout; monotonicnetworks divides or clips rows for p = 1, 2 and infinity. Neither has other p, categories or
missing numbers, and what they share with this is some twenty lines.

On the paper's data, sorted pairs (MaxMin) kept more than ReLU, and dividing rows by their norm inside the forward pass
more than projecting them after each step, which is only done where the limits are of single weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from likewise._links import LINKS
from likewise._typing import FloatArray, IntArray
from likewise.exceptions import MissingExtraError
from likewise.lipschitz.network import CATEGORY, GAPPY, NUMBER, Entries, Inputs, Layers
from likewise.metrics.base import lp_norm

# Half the score that a hinge asks for between two classes: where "clip" reaches 0 and 1, and the others come close.
_MARGINS = {"clip": 0.5, "logistic": 1.0, "probit": 1.0, "softmax": 1.0}


def classification(loss: str, link: str) -> Objective:
    """Loss of classes, coded from 0; `link` is a key of `LINKS`."""
    torch = import_torch()
    unit, margin = LINKS[link].unit, _MARGINS[link]

    def softmax_log(z: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(unit * z, y.long(), reduction="none")

    def softmax_hinge(z: Any, y: Any) -> Any:
        own = torch.nn.functional.one_hot(y.long(), z.shape[1]).bool()
        others = z.masked_fill(own, -math.inf).amax(dim=1)
        # Half the difference of two such scores moves as one score of two classes does.
        return torch.relu(margin - (z[own] - others) / 2)

    def logistic_log(z: Any, y: Any) -> Any:
        return torch.nn.functional.softplus(-unit * _signed(z, y))

    def probit_log(z: Any, y: Any) -> Any:
        return -torch.special.log_ndtr(unit * _signed(z, y))

    def hinge(z: Any, y: Any) -> Any:
        return torch.relu(margin - _signed(z, y))

    if link == "softmax":
        return softmax_log if loss == "log" else softmax_hinge
    if loss == "hinge":
        return hinge
    return logistic_log if link == "logistic" else probit_log


def squared(z: Any, share: Any) -> Any:
    """Squared error, in units of the output range, for outcomes as shares of it."""
    return (z[:, 0] + 0.5 - share) ** 2


def _signed(z: Any, y: Any) -> Any:
    return (2 * y - 1) * z[:, 0]


class Parameters:
    """Weights that are free up to their norms, in single precision.

    Weights of numbers are held per standard deviation where that is more than 1 in units of the metric, so that steps
    of one size suit strict metrics and loose ones.
    """

    def __init__(
        self, torch: Any, inputs: Inputs, entries: Entries, widths: tuple[int, ...], rng: np.random.Generator
    ) -> None:
        self.torch, self.inputs, self.entries = torch, inputs, entries
        is_code = inputs.kinds == CATEGORY
        self.is_plain = inputs.kinds[~is_code] == NUMBER
        sizes = np.diff(inputs.starts)[is_code] - 1  # the row for what was not seen follows from the others
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.spread = self._tensor(np.maximum(1.0, self._spreads()))[:, None]
        self.reach = self._tensor(inputs.reach[inputs.kinds == GAPPY])[:, None]
        self.half = self._tensor(np.repeat(inputs.reach[is_code] / 2, sizes))[:, None]

        def start(n_in: int, n_out: int, q: float) -> Any:
            values = rng.standard_normal((n_in, n_out))
            norms = 3.0 if np.isinf(q) else np.maximum(lp_norm(values.T, q), 1e-300)
            return self._tensor(values / norms)

        self.numbers = start(len(self.is_plain), widths[0], inputs.q)
        self.absent = self._tensor(np.zeros((len(self.reach), widths[0])))
        self.levels = start(len(self.half), widths[0], np.inf) * self.half
        self.weights = [start(*pair, 1.0) for pair in pairwise(widths)]
        self.biases = [self._tensor(np.zeros(width)) for width in widths]
        self.project()
        self.all = [self.numbers, self.absent, self.levels, *self.weights, *self.biases]
        for parameter in self.all:
            parameter.requires_grad_()

    def read(self, seen: FloatArray) -> tuple[Any, Any, Any]:
        """People as tensors: plain numbers, numbers that may be missing, and rows of the levels of categories."""
        is_code = self.inputs.kinds == CATEGORY
        units = self.inputs.in_units(seen)
        numbers = self._tensor(units[:, ~is_code])
        codes = units[:, is_code].astype(np.int64) + self.offsets[:-1]
        return numbers[:, self.is_plain], numbers[:, ~self.is_plain], self.torch.as_tensor(codes)

    def scores(self, plain: Any, gappy: Any, codes: Any) -> Any:
        """Scores, of shape (n, n_outputs)."""
        torch = self.torch
        W = self._number_weights()
        h = torch.addmm(self.biases[0], plain, W[self.is_plain])
        if gappy.shape[1]:
            adds = gappy.nan_to_num()[:, :, None] * W[~self.is_plain]
            adds = torch.minimum(torch.maximum(adds, self.absent - self.reach), self.absent + self.reach)
            h = h + torch.where(gappy.isnan()[:, :, None], self.absent, adds).sum(dim=1)
        if codes.shape[1]:
            h = h + torch.nn.functional.embedding_bag(codes, self.levels, mode="sum")
        for weights, bias in zip(self.weights, self.biases[1:], strict=True):
            half = h.shape[1] // 2
            a, b, rest = h[:, :half], h[:, half : 2 * half], h[:, 2 * half :]
            h = torch.cat([torch.maximum(a, b), torch.minimum(a, b), rest], dim=1)
            h = torch.addmm(bias, h, self._within(weights, 1.0))
        return h

    def project(self) -> None:
        """Bring back into their limits the weights that are limited one by one."""
        if np.isinf(self.inputs.q):
            self.numbers.data.clamp_(-self.spread, self.spread)
        self.levels.data.clamp_(-self.half, self.half)

    def copy(self) -> list[Any]:
        """The parameters as they are now."""
        return [parameter.detach().clone() for parameter in self.all]

    def restore(self, kept: list[Any]) -> None:
        """Take back parameters that were copied."""
        for parameter, values in zip(self.all, kept, strict=True):
            parameter.data.copy_(values)

    def layers(self) -> Layers:
        """The network as arrays of float64."""
        inputs = self.inputs
        first = np.zeros((int(inputs.starts[-1]), len(self.biases[0])))
        first[inputs.starts[:-1][inputs.is_number]] = _array(self._number_weights())
        first[inputs.starts[:-1][inputs.kinds == GAPPY] + 1] = _array(self.absent)
        levels = _array(self.levels)
        for k, i in enumerate(np.flatnonzero(inputs.kinds == CATEGORY).tolist()):
            values = levels[self.offsets[k] : self.offsets[k + 1]]
            share = np.bincount(self.entries.rows[:, i].astype(np.int64), self.entries.weights, len(values))
            middle = share @ values / share.sum()
            # Who was not there counts as the average of those who were.
            values = np.where(share[:, None] > 0, values, middle)
            first[inputs.slots(i)] = np.vstack([values, np.clip(middle, values.min(axis=0), values.max(axis=0))])
        weights = tuple(_array(self._within(W, 1.0)) for W in self.weights)
        return Layers(inputs, first, weights, tuple(_array(bias) for bias in self.biases))

    def _number_weights(self) -> Any:
        """Weights of numbers in units of the metric."""
        W = self.numbers / self.spread
        return W if np.isinf(self.inputs.q) else self._within(W, self.inputs.q)

    def _within(self, W: Any, q: float) -> Any:
        """Each unit's weights divided by their q-norm, if that is above 1."""
        if not len(W):
            return W
        if q not in (1.0, 2.0):  # powers of numbers above 1 might overflow
            largest = W.detach().abs().amax(dim=0).clamp(min=1e-30)
            return W / (largest * self.torch.linalg.vector_norm(W / largest, q, dim=0)).clamp(min=1.0)
        return W / self.torch.linalg.vector_norm(W, q, dim=0).clamp(min=1.0)

    def _spreads(self) -> FloatArray:
        """Standard deviations of the numbers in units of the metric."""
        units = self.inputs.in_units(self.entries.rows)[:, self.inputs.is_number]
        share = np.where(np.isnan(units), 0.0, self.entries.weights[:, None])
        mean_square = (share * np.nan_to_num(units) ** 2).sum(axis=0)
        return np.asarray(np.sqrt(mean_square / np.maximum(share.sum(axis=0), 1e-300)))

    def _tensor(self, values: Any) -> Any:
        return self.torch.as_tensor(np.asarray(values), dtype=self.torch.float32)


def _array(tensor: Any) -> FloatArray:
    return np.asarray(tensor.detach().numpy(), dtype=np.float64)


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
