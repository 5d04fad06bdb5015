"""Links from scores to outputs, with bounds on the outputs.

Let ``|z(x) - z(x')| <= D(x, x')`` for all pairs. A link multiplies z by its unit and has a bound for the outputs;
proofs: `docs/theory.md` §11.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import erf, ndtr, ndtri

from likewise._typing import FloatArray
from likewise.guarantees.bounds import Bound, lead_of, round_down, round_up

_LEAST = 1e-300  # smaller probabilities count as 0
_MOST = 1 - 2.0**-53  # the largest float below 1
_ROUNDING = 2.0**-40  # above the relative errors of Phi, Phi^-1 and a sum of two scores


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
        raised = moved * np.where(moved < 0, 1 - _ROUNDING, 1 + _ROUNDING)
        return np.asarray(np.minimum(1.0, ndtr(raised) * (1 + _ROUNDING)))

    def lowest(self, probability: npt.ArrayLike, distance: npt.ArrayLike) -> FloatArray:
        """``Phi(Phi^-1(q) - sqrt(2 pi) D)``."""
        q, d = np.asarray(probability, dtype=np.float64), np.asarray(distance, dtype=np.float64)
        moved = ndtri(q) - np.sqrt(2 * np.pi) * d
        lowered = moved * np.where(moved < 0, 1 + _ROUNDING, 1 - _ROUNDING)
        return np.asarray(ndtr(lowered) * (1 - _ROUNDING))

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


@dataclass(frozen=True)
class ScoreLink:
    """A link from scores to outputs.

    Attributes
    ----------
    unit : float
        The fitted score changes by at most ``unit * D``.
    curve : Bound
    score : str
        Name of the score.
    why : str
        Why the bound holds, in words.
    """

    unit: float
    curve: Bound
    score: str
    why: str

    def distance_to_tie(self, scores: FloatArray, error: float) -> FloatArray:
        """Distance within which the most likely class cannot change, rounded down; shape (n_samples,).

        For two classes the sign of one score decides, for several the largest score. Scores are more accurate than
        probabilities near 0 or 1.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_functions)
            In units of `unit`.
        error : float
            Bound on the rounding error of a score.
        """
        if scores.shape[1] == 1:
            lead = np.abs(scores[:, 0])
        else:  # both may change, one up and one down
            second, first = np.partition(scores, -2, axis=1)[:, -2:].T
            lead = (first - second) / 2
        return round_down(lead_of(lead, np.asarray(error)) / self.unit)


LINK_CELLS = 60  # values of plain work that one score counts for: its exponential is taken by itself

LINKS = {
    "logistic": ScoreLink(4.0, Tanh(), "log-odds", "log-odds that move by at most 4 D move a probability by tanh(D)"),
    "softmax": ScoreLink(
        2.0, Tanh(), "logit", "logits that move by at most 2 D move the log-odds of any set of classes by 4 D"
    ),
    "probit": ScoreLink(
        float(np.sqrt(2 * np.pi)), Erf(), "probit score", "its slope is at most 1 where the score moves by D"
    ),
    "clip": ScoreLink(1.0, Bound(), "score", "a score cut to a range moves by no more than before"),
}


def to_unit_range(values: npt.ArrayLike, output_range: tuple[float, float]) -> FloatArray:
    """Scale values from `output_range` to [0, 1], clipped.

    Examples
    --------
    >>> to_unit_range([-1, 5, 20], (0, 10)).tolist()
    [0.0, 0.5, 1.0]
    """
    low, high = output_range
    return np.clip((np.asarray(values, dtype=np.float64) - low) / (high - low), 0.0, 1.0)


def from_unit_range(shares: FloatArray, output_range: tuple[float, float]) -> FloatArray:
    """Scale values from [0, 1] to `output_range`, clipped against rounding.

    Examples
    --------
    >>> from_unit_range(np.array([0.0, 0.5]), (0, 10)).tolist()
    [0.0, 5.0]
    """
    low, high = output_range
    return np.clip(low + (high - low) * shares, low, high)


def _inside(top: npt.ArrayLike, other: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Clip probabilities of 0 and 1, which no finite score has."""
    p, q = np.asarray(top, dtype=np.float64), np.asarray(other, dtype=np.float64)
    return np.clip(p, _LEAST, _MOST), np.clip(q, _LEAST, _MOST)
