"""Training of 1-Lipschitz networks with PyTorch; the result is arrays.

deel-torchlip bounds spectral norms, which is for p = 2 throughout; monotonicnetworks divides or clips rows for p = 1, 2
and infinity. Neither has other p, categories or missing numbers.

On the paper's data, sorted pairs (MaxMin) were more accurate than ReLU, and dividing rows by their norm inside the
forward pass more accurate than projecting after each step, which is done only for limits of single weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.exceptions import MissingExtraError
from likewise.kernel.distance import lp_norm
from likewise.kernel.evidence import CATEGORY, NULLABLE, NUMBER, InputColumns, Layers
from likewise.kernel.links import LINKS
from likewise.lipschitz.network import WeightedSamples

# Margin of the hinge loss, half the difference of scores of two classes: "clip" reaches 0 and 1 there.
_MARGINS = {"clip": 0.5, "logistic": 1.0, "probit": 1.0, "softmax": 1.0}


LossFunction = Callable[[Any, Any], Any]
"""Loss per row, from scores of shape (n, n_outputs) and targets of shape (n,), all of them tensors."""


def classification_loss(loss: str, link: str) -> LossFunction:
    """Loss for class codes from 0; `link` is a key of `LINKS`."""
    torch = import_torch()
    unit, margin = LINKS[link].unit, _MARGINS[link]

    def lead(z: Any, y: Any) -> Any:
        """By how much the own class is ahead, with the slope of one score."""
        if link != "softmax":
            return (2 * y - 1) * z[:, 0]
        own = torch.nn.functional.one_hot(y.long(), z.shape[1]).bool()
        return (z[own] - z.masked_fill(own, -math.inf).amax(dim=1)) / 2

    if loss == "hinge":
        return lambda z, y: torch.relu(margin - lead(z, y))
    return {
        "softmax": lambda z, y: torch.nn.functional.cross_entropy(unit * z, y.long(), reduction="none"),
        "logistic": lambda z, y: torch.nn.functional.softplus(-unit * lead(z, y)),
        "probit": lambda z, y: -torch.special.log_ndtr(unit * lead(z, y)),
    }[link]


def squared_loss(z: Any, y: Any) -> Any:
    """Squared error, for targets scaled to [0, 1]."""
    return (z[:, 0] + 0.5 - y) ** 2


class Parameters:
    """Weights before normalisation, in single precision.

    Weights of numbers are per standard deviation, where that exceeds 1 in units of the metric, so that one learning
    rate suits strict and loose metrics.
    """

    def __init__(
        self,
        torch: Any,
        inputs: InputColumns,
        samples: WeightedSamples,
        widths: tuple[int, ...],
        rng: np.random.Generator,
    ) -> None:
        self.torch, self.inputs, self.samples = torch, inputs, samples
        is_category = inputs.kinds == CATEGORY
        self.is_plain = inputs.kinds[~is_category] == NUMBER
        sizes = np.diff(inputs.starts)[is_category] - 1  # the row for unseen levels is derived from the others
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.deviations = self._tensor(np.maximum(1.0, self._deviations()))[:, None]
        self.missing_limits = self._tensor(inputs.mismatch[inputs.kinds == NULLABLE])[:, None]
        self.level_limits = self._tensor(np.repeat(inputs.mismatch[is_category] / 2, sizes))[:, None]

        def start(n_in: int, n_out: int, q: float) -> Any:
            values = rng.standard_normal((n_in, n_out))
            norms = 3.0 if np.isinf(q) else np.maximum(lp_norm(values.T, q), 1e-300)
            return self._tensor(values / norms)

        self.numbers = start(len(self.is_plain), widths[0], inputs.q)
        self.missing_values = self._tensor(np.zeros((len(self.missing_limits), widths[0])))
        self.levels = start(len(self.level_limits), widths[0], np.inf) * self.level_limits
        self.weights = [start(*pair, 1.0) for pair in pairwise(widths)]
        self.biases = [self._tensor(np.zeros(width)) for width in widths]
        self.project()
        self.all = [self.numbers, self.missing_values, self.levels, *self.weights, *self.biases]
        for parameter in self.all:
            parameter.requires_grad_()

    def to_tensors(self, rows: FloatArray) -> tuple[Any, Any, Any]:
        """Plain numbers, numbers that may be missing, and indices of category levels."""
        is_category = self.inputs.kinds == CATEGORY
        units = self.inputs.to_metric_units(rows)
        numbers = self._tensor(units[:, ~is_category])
        codes = units[:, is_category].astype(np.int64) + self.offsets[:-1]
        return numbers[:, self.is_plain], numbers[:, ~self.is_plain], self.torch.as_tensor(codes)

    def scores(self, plain: Any, nullable: Any, codes: Any) -> Any:
        """Scores, of shape (n, n_outputs)."""
        torch = self.torch
        W = self._number_weights()
        h = torch.addmm(self.biases[0], plain, W[self.is_plain])
        if nullable.shape[1]:
            terms = nullable.nan_to_num()[:, :, None] * W[~self.is_plain]
            low, high = self.missing_values - self.missing_limits, self.missing_values + self.missing_limits
            terms = torch.minimum(torch.maximum(terms, low), high)
            h = h + torch.where(nullable.isnan()[:, :, None], self.missing_values, terms).sum(dim=1)
        if codes.shape[1]:
            h = h + torch.nn.functional.embedding_bag(codes, self.levels, mode="sum")
        for weights, bias in zip(self.weights, self.biases[1:], strict=True):
            half = h.shape[1] // 2
            a, b, rest = h[:, :half], h[:, half : 2 * half], h[:, 2 * half :]
            h = torch.cat([torch.maximum(a, b), torch.minimum(a, b), rest], dim=1)
            h = torch.addmm(bias, h, self._within(weights, 1.0))
        return h

    def project(self) -> None:
        """Clip the weights whose limits are elementwise."""
        if np.isinf(self.inputs.q):
            self.numbers.data.clamp_(-self.deviations, self.deviations)
        self.levels.data.clamp_(-self.level_limits, self.level_limits)

    def copy(self) -> list[Any]:
        """Copies of all parameters."""
        return [parameter.detach().clone() for parameter in self.all]

    def restore(self, kept: list[Any]) -> None:
        """Restore parameters from copies."""
        for parameter, values in zip(self.all, kept, strict=True):
            parameter.data.copy_(values)

    def layers(self) -> Layers:
        """The network as arrays of float64."""
        inputs = self.inputs
        first = np.zeros((int(inputs.starts[-1]), len(self.biases[0])))
        first[inputs.starts[:-1][inputs.is_number]] = _array(self._number_weights())
        first[inputs.starts[:-1][inputs.kinds == NULLABLE] + 1] = _array(self.missing_values)
        levels = _array(self.levels)
        for k, i in enumerate(np.flatnonzero(inputs.kinds == CATEGORY).tolist()):
            values = levels[self.offsets[k] : self.offsets[k + 1]]
            share = np.bincount(self.samples.rows[:, i].astype(np.int64), self.samples.weights, len(values))
            middle = share @ values / share.sum()
            # Unobserved levels get the mean effect.
            values = np.where(share[:, None] > 0, values, middle)
            first[inputs.rows_of(i)] = np.vstack([values, np.clip(middle, values.min(axis=0), values.max(axis=0))])
        weights = tuple(_array(self._within(W, 1.0)) for W in self.weights)
        return Layers(inputs, first, weights, tuple(_array(bias) for bias in self.biases))

    def _number_weights(self) -> Any:
        """Weights of numbers, per unit of the metric."""
        W = self.numbers / self.deviations
        return W if np.isinf(self.inputs.q) else self._within(W, self.inputs.q)

    def _within(self, W: Any, q: float) -> Any:
        """Divide each unit's weights by their q-norm, if that exceeds 1."""
        if not len(W):
            return W
        if q not in (1.0, 2.0):  # powers of numbers above 1 might overflow
            largest = W.detach().abs().amax(dim=0).clamp(min=1e-30)
            return W / (largest * self.torch.linalg.vector_norm(W / largest, q, dim=0)).clamp(min=1.0)
        return W / self.torch.linalg.vector_norm(W, q, dim=0).clamp(min=1.0)

    def _deviations(self) -> FloatArray:
        """Standard deviations of the numbers, in units of the metric."""
        units = self.inputs.to_metric_units(self.samples.rows)[:, self.inputs.is_number]
        share = np.where(np.isnan(units), 0.0, self.samples.weights[:, None])
        mean_square = (share * np.nan_to_num(units) ** 2).sum(axis=0)
        return np.asarray(np.sqrt(mean_square / np.maximum(share.sum(axis=0), 1e-300)))

    def _tensor(self, values: Any) -> Any:
        return self.torch.as_tensor(np.asarray(values), dtype=self.torch.float32)


def _array(tensor: Any) -> FloatArray:
    return np.asarray(tensor.detach().numpy(), dtype=np.float64)


_BATCH_SIZE = 256
_LEARNING_RATE = 0.01  # of the first step; it decays to 0 as a half cosine
_BETAS = (0.9, 0.99)
_VALIDATION_FRACTION = 0.1
_MIN_VALIDATED = 200  # with fewer rows, all are trained on: a tenth of them would say too little
_N_VALIDATIONS = 100
_PATIENCE = 1 / 3  # fraction of all steps without improvement


def import_torch() -> Any:
    """Import PyTorch, or raise with the command that installs it."""
    try:
        import torch
    except ImportError:
        raise MissingExtraError(
            "Training a 1-Lipschitz network needs PyTorch, which is not installed: pip install 'likewise[torch]'. "
            "Scoring with a trained one does not."
        ) from None
    return torch


def train(
    samples: WeightedSamples,
    inputs: InputColumns,
    widths: tuple[int, ...],
    loss: LossFunction,
    *,
    n_steps: int,
    rng: np.random.Generator,
    advance: Callable[[int], None] = lambda steps: None,
) -> Layers:
    """Train a network, and return it as of its lowest validation loss.

    `widths` are the units of each layer, outputs included. The same `rng` gives the same bits: training has one thread
    and no other source of randomness.
    """
    torch = import_torch()
    with _reproducible(torch):
        parameters = Parameters(torch, inputs, samples, widths, rng)
        order = rng.permutation(len(samples.rows))
        n_held_out = int(_VALIDATION_FRACTION * len(order)) if len(order) >= _MIN_VALIDATED else 0
        validation, training = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
        tensors = parameters.to_tensors(samples.rows)
        targets = torch.as_tensor(samples.targets, dtype=torch.float32)
        validation_weights = torch.as_tensor(samples.weights[validation], dtype=torch.float32)

        def losses(chosen: IntArray) -> Any:
            rows = torch.as_tensor(chosen)
            return loss(parameters.scores(*(part[rows] for part in tensors)), targets[rows])

        optimiser = torch.optim.Adam(parameters.all, lr=_LEARNING_RATE, betas=_BETAS)
        batches = _batches(samples.weights[training], rng)
        every = max(1, n_steps // _N_VALIDATIONS)
        best, best_step, kept = np.inf, 0, parameters.copy()
        for step in range(1, n_steps + 1):
            optimiser.param_groups[0]["lr"] = _LEARNING_RATE * (1 + np.cos(np.pi * step / n_steps)) / 2
            optimiser.zero_grad()
            losses(training[next(batches)]).mean().backward()
            optimiser.step()
            parameters.project()
            advance(1)
            if n_held_out and (step % every == 0 or step == n_steps):
                with torch.no_grad():
                    current = float(validation_weights @ losses(validation))
                if current < best:
                    best, best_step, kept = current, step, parameters.copy()
                elif step - best_step > _PATIENCE * n_steps:
                    break
        if n_held_out:
            parameters.restore(kept)
        return parameters.layers()


def _batches(weights: FloatArray, rng: np.random.Generator) -> Iterator[IntArray]:
    """Indices for each step, by systematic sampling: in each pass, rows occur in proportion to their weights."""
    edges = np.cumsum(weights) / weights.sum()
    n_draws = -(-len(weights) // _BATCH_SIZE) * _BATCH_SIZE
    while True:
        at = (np.arange(n_draws) + rng.random()) / n_draws
        drawn = np.minimum(np.searchsorted(edges, at, side="right"), len(edges) - 1)
        yield from rng.permutation(drawn).reshape(-1, _BATCH_SIZE)


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
