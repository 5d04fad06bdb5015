"""What a blank must weigh, so that the column it stands in is of use."""

from __future__ import annotations

_AS_GOOD_AS_NOTHING = 1e-9


def usable(scale: float, low: float, high: float) -> float:
    """Least weight of a blank that does not cut a column with numbers between `low` and `high`.

    Two people who have the number can differ by ``2 m`` at most in what the column makes of them, since each of them is
    within m of somebody who has a blank (`docs/theory.md` §13). So m is at least half of ``scale * (high - low)``; 1 is
    enough, as outputs differ by no more.
    """
    return min(1.0, scale * (high - low) / 2)


def stand_in(ends: tuple[float, float] | None) -> float:
    """A weight for a number that counts nothing while its absence does.

    A metric has no such column: what has weight 0 must not matter, by its absence either. With this one, all numbers of
    the column together span 1e-9.
    """
    low, high = ends or (0.0, 1.0)
    return _AS_GOOD_AS_NOTHING / ((high - low) or 1.0)
