"""Links from scores to outputs; their bounds are curves of the kernel.

Let ``|z(x) - z(x')| <= D(x, x')`` for all pairs. A link multiplies z by its unit and has a bound for the outputs;
proofs: `docs/theory.md` §11.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr, softmax

from likewise._typing import FloatArray
from likewise.kernel.bounds import Bound, Erf, Tanh, lead_of, round_down


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
    outputs : callable
        Probabilities of all classes from scores of shape (n_samples, n_functions). Those of a person depend on the
        person's scores alone, to the last bit.
    """

    unit: float
    curve: Bound
    score: str
    why: str
    outputs: Callable[[FloatArray], FloatArray]

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


def _of_either_sign(share: Callable[[FloatArray], FloatArray]) -> Callable[[FloatArray], FloatArray]:
    """Both probabilities from the score: one minus the other would lose the digits of a small one."""
    return lambda scores: np.hstack([share(-scores), share(scores)])


def _cut(scores: FloatArray) -> FloatArray:
    second = np.clip(0.5 + scores, 0.0, 1.0)
    return np.hstack([1 - second, second])


LINKS = {
    "logistic": ScoreLink(
        4.0,
        Tanh(),
        "log-odds",
        "log-odds that move by at most 4 D move a probability by tanh(D)",
        _of_either_sign(expit),
    ),
    "softmax": ScoreLink(
        2.0,
        Tanh(),
        "logit",
        "logits that move by at most 2 D move the log-odds of any set of classes by 4 D",
        lambda scores: np.asarray(softmax(scores, axis=1)),
    ),
    "probit": ScoreLink(
        float(np.sqrt(2 * np.pi)),
        Erf(),
        "probit score",
        "its slope is at most 1 where the score moves by D",
        _of_either_sign(ndtr),
    ),
    "clip": ScoreLink(1.0, Bound(), "score", "a score cut to a range moves by no more than before", _cut),
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
