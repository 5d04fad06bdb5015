"""A fast forward pass for fully connected networks under noise.

For additive noise the first layer is linear in row and noise, ``W1 (x + t) = W1 x + W1 t``, so ``W1 t`` is computed
once for everyone. The sum is computed in float64 and rounded to float32 for the remaining layers, so that noise much
smaller than the value is not lost. No sum overflows: hidden units are cut
to +-2^100, and to 0 below 2^-100. Work is divided into fixed tiles of draws that fit the cache, so results depend
neither on the batch nor on the number of threads.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from likewise._parallel import run_in_threads
from likewise._typing import FloatArray
from likewise.inspection.mlp import ACTIVATIONS, Network
from likewise.smoothing.sampling import Draws, Shift

TILE = 512
_PEOPLE_PER_BLOCK = 32

_KINDS = {"hard": 0, "soft": 1, "value": 2}


@dataclass(frozen=True, eq=False)
class NetworkVotes:
    """Sums of a network's votes over draws, tile by tile; votes of regression are scaled to [0, 1].

    Call it where matrix products are limited to one thread (`likewise._parallel`): it has threads of its own.
    """

    network: Network
    n_jobs: int | None = None

    @cached_property
    def _scaled(self) -> Network:
        return with_outputs_of_one_size(self.network)

    @cached_property
    def _later_layers(self) -> _LaterLayers:
        return _LaterLayers(self._scaled)

    def vote(self, rows: FloatArray) -> FloatArray:
        """Votes for perturbed rows, by the same arithmetic as the sums: a draw has exactly the law they average."""
        z, bias = rows @ self._scaled.weights[0], self._scaled.biases[0][None]
        votes, squares = np.zeros((2, len(rows), self.network.n_outputs))
        for k in range(len(rows)):
            self._later_layers.add_votes(z[k : k + 1], bias, votes[k : k + 1], squares[k : k + 1])
        return votes

    def sums(self, draws: Draws, people: npt.NDArray[np.generic]) -> tuple[FloatArray, FloatArray]:
        """Sums of votes, and of squared votes, over `draws` per person."""
        net, later_layers = self._scaled, self._later_layers
        tiles = [slice(a, min(a + TILE, len(draws))) for a in range(0, len(draws), TILE)]
        parts = np.zeros((2, len(tiles), len(people), net.n_outputs))
        if isinstance(draws, Shift) and draws.keep.ndim == 1:
            shared = np.empty((len(draws), net.weights[0].shape[1]))

            def first_layer(tile: slice) -> None:
                np.matmul(draws.t[tile], net.weights[0], out=shared[tile])
                shared[tile] += net.biases[0]

            run_in_threads(first_layer, tiles, self.n_jobs)
            # One product per person: a joint product may round differently by the number of people.
            shifts = np.stack([np.where(draws.keep, person, 0.0) @ net.weights[0] for person in people])

            def work(item: tuple[int, int]) -> None:
                a, first = item
                block = slice(first, first + _PEOPLE_PER_BLOCK)  # while the tile is in the cache
                later_layers.add_votes(shared[tiles[a]], shifts[block], parts[0, a, block], parts[1, a, block])

            blocks = range(0, len(people), _PEOPLE_PER_BLOCK)
            run_in_threads(work, [(a, first) for a in range(len(tiles)) for first in blocks], self.n_jobs)
        else:
            bias = net.biases[0][None]

            def work_on_rows(first: int) -> None:
                for k in range(first, min(first + _PEOPLE_PER_BLOCK, len(people))):
                    z = draws.apply(people[k]) @ net.weights[0]
                    for a, tile in enumerate(tiles):
                        later_layers.add_votes(z[tile], bias, parts[0, a, k : k + 1], parts[1, a, k : k + 1])

            run_in_threads(work_on_rows, range(0, len(people), _PEOPLE_PER_BLOCK), self.n_jobs)
        total, squares = parts[:, 0].copy()
        for a in range(1, len(tiles)):  # in order, so that the sum does not depend on the threads
            total += parts[0, a]
            squares += parts[1, a]
        return total, squares


class _LaterLayers:
    """The network after its first product, in float32, with buffers per thread."""

    def __init__(self, net: Network) -> None:
        *between, last = (_single(W) for W in net.weights[1:])
        self.weights = tuple(between)
        self.last = np.ascontiguousarray(last.T)
        self.biases = tuple(_single(b) for b in net.biases[1:])
        self.activation, self.kind = ACTIVATIONS[net.activation], _KINDS[net.kind]
        self.limits = net.limits[0], net.limits[1] - net.limits[0]
        self.widths = [W.shape[1] for W in net.weights[:-1]]
        self.buffers = threading.local()

    def add_votes(self, z: FloatArray, shifts: FloatArray, total: FloatArray, squares: FloatArray) -> None:
        """Add the votes of one tile, given the first layer's product `z` and the shift of each person."""
        from likewise.smoothing.kernels import network_votes, output_votes, shifted_layer

        if not hasattr(self.buffers, "raw"):
            self.buffers.raw = tuple(np.empty((TILE, width), np.float32) for width in self.widths)
            self.buffers.active = tuple(np.empty((TILE, width), np.float32) for width in self.widths)
        raw, active, end = self.buffers.raw, self.buffers.active, (self.kind, *self.limits)
        if self.weights:
            network_votes(
                z, shifts, self.activation, self.weights, self.biases, self.last, *end, raw, active, total, squares
            )
            return
        hidden, no_bias = active[0][: len(z)], np.zeros(z.shape[1], np.float32)
        for k, shift in enumerate(shifts):
            shifted_layer(z, shift, self.activation, hidden)
            identity = ACTIVATIONS["identity"]
            output_votes(hidden, no_bias, identity, self.last, self.biases[-1], *end, total[k], squares[k])


def with_outputs_of_one_size(net: Network) -> Network:
    """The same network, with the largest weight out of each hidden unit between 1/2 and 1.

    ``relu(c z) = c relu(z)`` for c > 0, so weights out of a unit can be divided by c, and those into it multiplied.
    Powers of two change no digit. Hidden units then have the size of what they add to the next layer: without this, a
    weight could be too small for float32 though its unit is huge. Other activations are bounded and need no scaling.
    """
    if net.activation not in ("relu", "identity"):
        return net
    weights, biases = [W.copy() for W in net.weights], [b.copy() for b in net.biases]
    for k in range(len(weights) - 2, -1, -1):
        _, exponent = np.frexp(np.abs(weights[k + 1]).max(axis=1))
        weights[k + 1] = np.ldexp(weights[k + 1], -exponent[:, None])
        weights[k], biases[k] = np.ldexp(weights[k], exponent), np.ldexp(biases[k], exponent)
    return replace(net, weights=weights, biases=biases)


def _single(W: FloatArray) -> npt.NDArray[np.float32]:
    """Weights or biases in float32, cut to +-2^100, with 0 for those below 2^-100.

    Training shrinks the weights of idle units to subnormal numbers, which slow a product fourfold.
    """
    return np.clip(np.where(np.abs(W) < 2.0**-100, 0.0, W), -(2.0**100), 2.0**100).astype(np.float32)
