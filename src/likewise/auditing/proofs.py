"""What a proof of an upper bound consists of, and what it may take."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import expit

from likewise._typing import FloatArray


@dataclass(frozen=True)
class Limits:
    """What a search may take, and when it ends.

    Attributes
    ----------
    max_seconds : float or None
        Processor time.
    max_boxes : int or None
    tolerance : float
        Found and proven this close are the same.
    """

    max_seconds: float | None
    max_boxes: int | None
    tolerance: float

    def shared(self, n: int) -> Limits:
        """The limits of each of n searches."""
        return Limits(
            None if self.max_seconds is None else self.max_seconds / n,
            None if self.max_boxes is None else max(1, self.max_boxes // n),
            self.tolerance,
        )


@dataclass(frozen=True, eq=False)
class Proof:
    """An upper bound, and pairs that came close to it.

    Attributes
    ----------
    proven : float or None
        None if there is no proof.
    how : str
        How it was proven, or why it was not.
    pairs : list of (ndarray, ndarray)
        Encoded people a and b, to be tried.
    n_boxes : int
    history : tuple of (int, float, float)
        Boxes, found and proven as the search went on.
    """

    proven: float | None
    how: str
    pairs: list[tuple[FloatArray, FloatArray]]
    n_boxes: int = 0
    history: tuple[tuple[int, float, float], ...] = ()


def largest_logistic(d: float, a_low: float, a_high: float, b_high: float) -> float:
    """Largest ``sigma(b) - sigma(a)`` with ``b - a <= d``, ``a_low <= a <= a_high`` and ``b <= b_high``.

    For a given a the best b is ``min(a + d, b_high)``. Up to ``a = b_high - d`` the difference rises until
    ``a = -d / 2`` and falls then; beyond ``b_high - d`` it falls.
    """
    if d <= 0:
        return 0.0
    a = min(max(-d / 2, a_low), a_high)
    if a + d > b_high:
        a = max(a_low, b_high - d)
    return float(max(0.0, expit(min(a + d, b_high)) - expit(a)) * (1 + 2.0**-45) + 2.0**-50)
