"""What a proof of an upper bound consists of, and what it may take."""

from __future__ import annotations

from dataclasses import dataclass

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
