"""The smallest e with ``TV <= D + e`` for all people of a domain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from likewise._typing import FloatArray
from likewise.auditing.coordinate_ascent import PairSearch
from likewise.auditing.exchange import shown_pair
from likewise.kernel.proof import Proof, against
from likewise.metrics.base import Metric
from likewise.verification.base import InputSpace
from likewise.verification.search import Limits
from likewise.verification.upper_bound import prove_excess

_DRAWN = 24  # of the pairs drawn from the domain, from which a search starts


class Proved:
    """What a proof says, as of its result."""

    proof: Proof

    @property
    def proven(self) -> float | None:
        """No two such people of the domain exceed it; None if there is no proof."""
        return self.proof.proven

    @property
    def how(self) -> str:
        """How it was proven, or why it was not."""
        return self.proof.how


@dataclass(frozen=True, eq=False)
class Excess(Proved):
    """The smallest e with ``TV <= D + e`` for all people of a domain, between two numbers.

    Attributes
    ----------
    found : float
        ``difference - distance`` of `pair`; at least 0, as everybody is at distance 0 from themselves.
    pair : DataFrame of two rows or None
        None if no pair was found whose outputs exceed the distance.
    difference, distance : float
        Of the pair; 0 if there is none.
    proof : Proof
    proven : float or None
        ``TV <= D + proven`` for all people of the domain.
    searched : str
        What was searched for the worst pair, with counts.
    """

    found: float
    pair: pd.DataFrame | None
    difference: float
    distance: float
    proof: Proof
    searched: str


def smallest_excess(
    space: InputSpace, metric: Metric, limits: Limits, n_queries: int, rng: np.random.Generator
) -> Excess:
    """The smallest e with ``TV <= D + e`` for all people of the domain."""
    everything, bound = list(range(len(space.names))), space.bind(metric)

    def distance(a: FloatArray, b: FloatArray) -> FloatArray:
        return bound.between(space.for_metric(bound, a), space.for_metric(bound, b))

    def objective(a: FloatArray, b: FloatArray) -> FloatArray:
        return space.differences(a, b) - distance(a, b)

    proof = prove_excess(space, bound, limits)
    search = PairSearch(space, everything, objective, n_queries, rng)
    value, p, q, searched = search.worst_pair(proof_pairs(space, proof), _DRAWN)
    if not value > 0:
        return Excess(0.0, None, 0.0, 0.0, proof, searched)
    found = float(objective(p[None], q[None])[0])
    proof = against(proof, found)
    shown = shown_pair(space, p, q)
    gap, away = float(space.differences(p[None], q[None])[0]), float(distance(p[None], q[None])[0])
    return Excess(max(0.0, found), shown, gap, away, proof, searched)


def proof_pairs(space: InputSpace, proof: Proof) -> tuple[FloatArray, FloatArray]:
    """The pairs of a proof, as encoded people a and b."""
    pairs = np.array(proof.pairs).reshape(-1, 2, space.rows.shape[1])
    return pairs[:, 0], pairs[:, 1]
