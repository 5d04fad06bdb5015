"""Bounds: maps from the distance between two people to the difference of their outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import erf, ndtr, ndtri

from likewise._typing import FloatArray
from likewise._validation import check_numbers
from likewise.exceptions import InvalidInputError

# SciPy's special functions are accurate to a few units in the last place; 8 is a safe margin.
_MARGIN = 8 * np.finfo(np.float64).eps

# Outputs are sums of up to a few thousand terms, each rounded to 2^-53 of the largest, so their error is below this:
# a probability stored as 1 may be smaller by this much.
ROUNDING = 2.0**-40


def round_up(value: FloatArray) -> FloatArray:
    """An upper bound on the exact value behind a computed one."""
    return np.asarray(value) * (1 + _MARGIN)


def round_down(value: FloatArray) -> FloatArray:
    """A lower bound on the exact value behind a computed one."""
    return np.asarray(value) * (1 - _MARGIN)


def lead_of(top: FloatArray, other: FloatArray) -> FloatArray:
    """``max(0, top - other)`` of two computed numbers, rounded down."""
    return np.maximum(0.0, round_down(top - other) - _MARGIN * (np.abs(top) + np.abs(other)))


def _check_distance(distance: npt.ArrayLike) -> FloatArray:
    d = check_numbers("distance", distance)
    if not (d >= 0).all():
        raise InvalidInputError("distance must be non-negative.")
    return d


class Bound:
    """A map from the distance between two people to the total variation between their outputs.

    This one is ``bound(D) = min(1, D)``; subclasses are sharper.
    """

    excess: float = 0.0
    """Largest excess of `bound` over the distance."""

    has_log_odds: bool = False
    """Whether `scores` are on an unbounded scale such as log-odds."""

    log_odds_slope: float = np.inf
    """Largest change of the log-odds of any set of outcomes, per distance; infinite if there is no limit."""

    def bound(self, distance: npt.ArrayLike) -> FloatArray:
        """Largest total variation between the outputs for two people at `distance`.

        Never above ``min(1, distance + excess)``; 0 at 0; rounded upwards.
        """
        d = _check_distance(distance)
        return np.where(d == 0, 0.0, np.minimum(round_up(self._curve(d)), np.minimum(d + self.excess, 1.0)))

    def highest(self, probability: npt.ArrayLike, distance: npt.ArrayLike) -> FloatArray:
        """Largest probability of an outcome at `distance` from a person whose probability of it is `probability`."""
        return np.minimum(1.0, round_up(np.asarray(probability) + self.bound(distance)))

    def lowest(self, probability: npt.ArrayLike, distance: npt.ArrayLike) -> FloatArray:
        """Smallest probability of an outcome at `distance` from a person whose probability of it is `probability`."""
        return lead_of(np.asarray(probability, dtype=np.float64), self.bound(distance))

    def odds_ratio(self, distance: npt.ArrayLike) -> FloatArray:
        """Largest ratio of the odds of any set of outcomes for two people at `distance`, rounded upwards."""
        d = _check_distance(distance)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(d == 0, 1.0, round_up(np.exp(self.log_odds_slope * d))) if self.excess == 0 else d + np.inf

    def distance_to_tie(self, top: npt.ArrayLike, other: npt.ArrayLike) -> FloatArray:
        """Smallest distance at which an outcome of probability `other` can tie with one of probability `top`.

        Rounded down; 0 where `top` is not larger. Both are taken as exact: the caller allows for their rounding.
        """
        # One gains what the other loses, and neither moves by more than bound(D).
        lead = np.asarray(top, dtype=np.float64) - np.asarray(other, dtype=np.float64)
        return round_down(self._inverse_curve(round_down(np.clip(lead / 2, 0.0, 1.0))))

    def scores(self, probabilities: FloatArray) -> FloatArray:
        """Scores u of probabilities, (n_samples, n_classes): every ``u_k - u_l`` changes by at most 4 (D + excess).

        Here ``u = 2 h``, since the difference of two probabilities changes by at most twice the total variation.
        """
        return 2 * probabilities

    def _curve(self, distance: FloatArray) -> FloatArray:
        return np.minimum(1.0, distance + self.excess)

    def _inverse_curve(self, variation: FloatArray) -> FloatArray:
        return np.maximum(0.0, variation - self.excess)


@dataclass(frozen=True)
class LoosenedBound(Bound):
    """``bound(D) = min(1, D + excess)``.

    Examples
    --------
    >>> LoosenedBound(0.01).bound([0.1, 2])
    array([0.11, 1.  ])
    """

    excess: float = 0.0


_LEAST = 1e-300  # smaller probabilities count as 0
_MOST = 1 - 2.0**-53  # the largest float below 1
_RELATIVE = 2.0**-40  # above the relative errors of Phi, Phi^-1 and a sum of two scores


class Tanh(Bound):
    """``bound(D) = tanh(D)``: the log-odds of every set of outcomes change by at most 4 D.

    Examples
    --------
    >>> Tanh().bound([0, 0.1, 1]).round(3)
    array([0.   , 0.1  , 0.762])
    >>> Tanh().highest(0.5, 0.1).round(3)  # sigma(0.4)
    np.float64(0.599)
    >>> Tanh().odds_ratio(0.05).round(3)  # exp(0.2)
    np.float64(1.221)
    """

    has_log_odds = True
    log_odds_slope = 4.0

    def highest(self, probability: npt.ArrayLike, distance: npt.ArrayLike) -> FloatArray:
        """``sigma(logit(q) + 4 D)``."""
        q, d = np.asarray(probability, dtype=np.float64), np.asarray(distance, dtype=np.float64)
        share = q / np.where(q > 0, q + (1 - q) * np.exp(-4 * d), 1.0)
        return np.asarray(np.minimum(1.0, round_up(share)))

    def lowest(self, probability: npt.ArrayLike, distance: npt.ArrayLike) -> FloatArray:
        """``sigma(logit(q) - 4 D)``."""
        q, d = np.asarray(probability, dtype=np.float64), np.asarray(distance, dtype=np.float64)
        fallen = q * np.exp(-4 * d)
        return np.asarray(round_down(fallen / np.where(q > 0, fallen + (1 - q), 1.0)))

    def distance_to_tie(self, top: npt.ArrayLike, other: npt.ArrayLike) -> FloatArray:
        """``(log top - log other) / 4``: the log ratio of two outcomes changes by at most 4 D."""
        p, q = _inside(top, other)
        return round_down(lead_of(np.log(p), np.log(q)) / 4)

    def scores(self, probabilities: FloatArray) -> FloatArray:
        """``log h``."""
        return np.asarray(np.log(np.maximum(probabilities, _LEAST)))

    def _curve(self, distance: FloatArray) -> FloatArray:
        return np.asarray(np.tanh(distance))


class Erf(Bound):
    """``bound(D) = erf(sqrt(pi) D / 2)``: ``Phi^-1`` of the probability changes by at most ``sqrt(2 pi) D``.

    Examples
    --------
    >>> Erf().bound([0, 0.1, 1]).round(3)
    array([0.  , 0.1 , 0.79])
    """

    has_log_odds = True

    def highest(self, probability: npt.ArrayLike, distance: npt.ArrayLike) -> FloatArray:
        """``Phi(Phi^-1(q) + sqrt(2 pi) D)``."""
        q, d = np.asarray(probability, dtype=np.float64), np.asarray(distance, dtype=np.float64)
        moved = ndtri(q) + np.sqrt(2 * np.pi) * d
        # In the tails, rounding of the score changes a probability by many units in its last place.
        raised = moved * np.where(moved < 0, 1 - _RELATIVE, 1 + _RELATIVE)
        return np.asarray(np.minimum(1.0, ndtr(raised) * (1 + _RELATIVE)))

    def lowest(self, probability: npt.ArrayLike, distance: npt.ArrayLike) -> FloatArray:
        """``Phi(Phi^-1(q) - sqrt(2 pi) D)``."""
        q, d = np.asarray(probability, dtype=np.float64), np.asarray(distance, dtype=np.float64)
        moved = ndtri(q) - np.sqrt(2 * np.pi) * d
        lowered = moved * np.where(moved < 0, 1 + _RELATIVE, 1 - _RELATIVE)
        return np.asarray(ndtr(lowered) * (1 - _RELATIVE))

    def distance_to_tie(self, top: npt.ArrayLike, other: npt.ArrayLike) -> FloatArray:
        """``(Phi^-1(top) - Phi^-1(other)) / (2 sqrt(2 pi))``."""
        p, q = _inside(top, other)
        return round_down(lead_of(ndtri(p), ndtri(q)) / np.sqrt(8 * np.pi))

    def scores(self, probabilities: FloatArray) -> FloatArray:
        """``-2 z`` and ``2 z``, ``z = Phi^-1(h_1) / sqrt(2 pi)``, from the smaller, more accurate one."""
        low = np.maximum(probabilities.min(axis=1), _LEAST)
        z = ndtri(low) * np.where(probabilities[:, 1] < probabilities[:, 0], 1.0, -1.0) / np.sqrt(2 * np.pi)
        return np.column_stack([-2 * z, 2 * z])

    def _curve(self, distance: FloatArray) -> FloatArray:
        return np.asarray(erf(np.sqrt(np.pi) / 2 * distance))


def _inside(top: npt.ArrayLike, other: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Clip probabilities of 0 and 1, which no finite score has."""
    p, q = np.asarray(top, dtype=np.float64), np.asarray(other, dtype=np.float64)
    return np.clip(p, _LEAST, _MOST), np.clip(q, _LEAST, _MOST)


@dataclass(frozen=True)
class GaussianBound(Erf):
    """``bound(D) = erf(sqrt(pi) D / 2)``: ``Phi^-1(h)`` moves by at most ``D / sigma`` (`docs/theory.md` §10)."""

    # Averages over noise lack the last digits that Phi^-1 needs near 0 and 1, so scores stay on the scale of h.
    has_log_odds = False
    scores = Bound.scores


@dataclass(frozen=True)
class LaplaceBound(Bound):
    """``bound(D) = 1 - exp(-D)``."""

    def _curve(self, distance: FloatArray) -> FloatArray:
        return np.asarray(-np.expm1(-distance))

    def _inverse_curve(self, variation: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(-np.log1p(-variation))


CAP = 1 - 1e-9  # distances from here on may have been capped, in a sum that was rounded


@dataclass(frozen=True)
class BandBound(Bound):
    """``bound(D / W) = (inner.bound(D) + slack) / W``: of decisions by a cut-off from a band of width W.

    Distances are those of the metric divided by W, so that the bound is at most the distance plus `excess`. Where that
    metric is capped (`BoundMetric.caps_at`), a distance of 1 or more may stand for any larger one.
    """

    inner: Bound
    width: float
    slack: float = 0.0
    capped: bool = False

    @property
    def excess(self) -> float:  # type: ignore[override]
        """What the bound may exceed the distance by."""
        return (self.inner.excess + self.slack) / self.width

    def _curve(self, distance: FloatArray) -> FloatArray:
        found = np.minimum(1.0, (self.inner.bound(distance * self.width) + self.slack) / self.width)
        return np.where(distance >= CAP, 1.0, found) if self.capped else found

    def _inverse_curve(self, variation: FloatArray) -> FloatArray:
        found = np.asarray(self.inner._inverse_curve(np.maximum(0.0, variation * self.width - self.slack))) / self.width
        return np.minimum(found, CAP) if self.capped else found
