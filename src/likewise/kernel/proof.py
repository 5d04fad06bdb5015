"""What is proven about everybody of a domain: sealed like a guarantee, and made by the rules of this module alone.

A guarantee follows from how a model is built. A proof comes from looking at all people of a domain, by a formula or by
a search over boxes of them, and says how far two of them can be apart. Its evidence is checked here, whoever has it: a
number that cannot be what it claims raises `UnprovableError`. The formulas are those of `docs/theory.md` §15.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from likewise._typing import BoolArray, FloatArray
from likewise.exceptions import UnprovableError

SEAL = object()  # of the rules below
_OUTWARDS, _LEAST = 1 + 2.0**-40, 2.0**-45  # more than the rounding errors of long sums, links and differences

Pairs = Sequence[tuple[FloatArray, FloatArray]]


class People(Protocol):
    """The encoded people of a domain."""

    def holds(self, rows: FloatArray) -> BoolArray:
        """Which encoded people are in the domain."""


@dataclass(frozen=True, eq=False)
class Claim:
    """What is bounded: by how much two people of a domain who differ in some columns alone can be apart.

    Attributes
    ----------
    people : People
    columns : tuple of int
        Columns of encoded people in which the two may differ.
    shares : bool
        Whether differences are shares, which cannot be above 1: total variations, or shares of an output range.
    unit : float
        Relative error of the model's own outputs.
    """

    people: People
    columns: tuple[int, ...]
    shares: bool
    unit: float = 0.0


@dataclass(frozen=True)
class Searched:
    """What a search over boxes of people came to.

    Attributes
    ----------
    found : float
        The largest difference at a point; -inf if there is none.
    bound : float
        The largest bound of all boxes that were left, or left out; -inf if nobody is in any.
    n_boxes : int
        Boxes that were bounded.
    history : tuple of (int, float, float)
        Boxes, found and bound, each time one of them improved.
    stopped : bool
        Whether the limits ended the search, so that higher ones could bring the bound down.
    """

    found: float
    bound: float
    n_boxes: int
    history: tuple[tuple[int, float, float], ...]
    stopped: bool


def at_most(searched: Searched, size: float | None) -> Searched:
    """A search whose bound is lowered to that of a formula, where this is closer."""
    return searched if size is None or searched.bound <= size else replace(searched, bound=size)


@dataclass(frozen=True, eq=False)
class Proof:
    """An upper bound for everybody of a domain, or the reason why there is none.

    Attributes
    ----------
    proven : float or None
        Nobody is further apart, rounding included; None if nothing is proven.
    how : str
        How it was proven, or why it was not.
    pairs : tuple of (ndarray, ndarray)
        Encoded people a and b of the domain who may come close to it.
    n_boxes : int
    history : tuple of (int, float, float)
        As of `Searched`.
    stopped : bool
    """

    proven: float | None
    how: str
    pairs: tuple[tuple[FloatArray, FloatArray], ...] = ()
    n_boxes: int = 0
    history: tuple[tuple[int, float, float], ...] = ()
    stopped: bool = False
    seal: InitVar[object] = None

    def __post_init__(self, seal: object) -> None:
        if seal is not SEAL:
            raise UnprovableError(
                "A proof comes out of a rule (likewise.kernel.proof), from evidence; none is made by hand. Use effect."
            )


def _need(holds: object, what: str) -> None:
    """Refuse evidence that proves nothing; NaN compares as false, so it is refused everywhere."""
    if not holds:
        raise UnprovableError(f"nothing follows: {what}")


def by_formula(claim: Claim, size: float, how: str, pairs: Pairs = ()) -> Proof:
    """Nobody is further apart than the number that a formula, or trying everybody, gives (§15, "Additive models")."""
    _need(0 <= size < np.inf, f"a difference of {size} is none.")
    return Proof(_outwards(claim, size), _said(how), _checked(claim, pairs), seal=SEAL)


def by_boxes(claim: Claim, searched: Searched, how: str, pairs: Pairs = ()) -> Proof:
    """``max over people <= max over boxes of their bounds``: boxes that hold everybody were bounded one by one (§15).

    What was found at a point is no evidence for the bound, but can speak against it: a bound below it is none.
    """
    found, bound, n_boxes, history = searched.found, searched.bound, searched.n_boxes, searched.history
    _need(found < np.inf and bound < np.inf and n_boxes > 0, f"a bound of {bound} over {n_boxes} boxes is none.")
    steady = (m <= n and p <= q and t >= u for (m, p, t), (n, q, u) in pairwise([*history, (n_boxes, found, bound)]))
    _need(all(steady), "a bound rose, or what was found fell, as the search went on.")
    people, size = _checked(claim, pairs), _outwards(claim, bound)
    return against(Proof(size, _said(how), people, n_boxes, history, searched.stopped, seal=SEAL), found)


def unproven(reason: str) -> Proof:
    """Nothing is proven, for a reason."""
    return Proof(None, _said(reason), seal=SEAL)


def noted(proof: Proof, more: str) -> Proof:
    """The same proof, which says more of how it was made."""
    return replace(proof, how=_said(proof.how + more), seal=SEAL)


def against(proof: Proof, found: float) -> Proof:
    """The proof, unless two people of the domain are further apart: the model is then not what was read off it."""
    _need(isinstance(proof, Proof) and found == found, f"{found!r} cannot be held against {proof!r}.")
    if proof.proven is None or found <= proof.proven:
        return proof
    return unproven("its own answers exceed what follows from its parts; please report this")


def _outwards(claim: Claim, size: float) -> float:
    """A bound with room for the rounding of the numbers it was computed from, and of the model's own outputs."""
    _need(claim.columns and 0 <= claim.unit < 1, "it says of no column in which two people may differ.")
    size = max(0.0, size)
    proven = size * _OUTWARDS + _LEAST + 8 * claim.unit * max(1.0, size)
    return min(1.0, proven) if claim.shares else proven


def _said(how: str) -> str:
    _need(isinstance(how, str) and how.strip(), "it does not say how, or why not.")
    return how


def _checked(claim: Claim, pairs: Pairs) -> tuple[tuple[FloatArray, FloatArray], ...]:
    """Pairs of people of the domain who differ in the columns alone."""
    for a, b in pairs:
        one, other = np.delete(np.stack([a, b]), claim.columns, axis=1)
        _need(np.array_equal(one, other, equal_nan=True), "two people differ in other columns, too.")
        _need(claim.people.holds(np.stack([a, b])).all(), "somebody is not of the domain.")
    return tuple(pairs)
