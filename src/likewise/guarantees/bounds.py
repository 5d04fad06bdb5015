"""Bounds: maps from the distance between two people to the difference of their outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
