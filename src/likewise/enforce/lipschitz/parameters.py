"""A network in training: its parameters as tensors, and the limits on them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise.enforce.lipschitz.inputs import CATEGORY, GAPPY, NUMBER, Entries, Inputs
from likewise.enforce.lipschitz.layers import Layers
from likewise.metrics.distance import lp_norm


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
