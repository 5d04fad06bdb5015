"""All pairs of the people of a report: how many are where, and which are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.kernel.metric import BoundMetric

BINS = 50  # cells of the picture, to the right and upwards
TOLERANCE = 1e-9  # a difference above the distance by less than this is a rounding error
_BLOCK = 200  # people who are compared with all others at a time
_LEAST = 0.002  # smallest distance and difference of a pair close to its limit: a fifth of a point
_KEPT = 5
_ALIKE = (0.05, 0.1, 0.2, 0.5, np.inf)  # distances of two people who are alike, the first that anybody has


@dataclass(frozen=True)
class Story:
    """The two people of whom a page tells, at most `within` apart.

    Of all such pairs the one with the largest difference of scores, by the unconstrained model if there is one; of
    those above their distance, if there are any.
    """

    pair: tuple[int, int]
    distance: float
    within: float


@dataclass(frozen=True, eq=False)
class PairScan:
    """All pairs, by distance and difference of scores.

    Attributes
    ----------
    n_pairs : int
    n_bound : int
        Pairs at a distance below 1, which alone are bound.
    n_above : dict from model to int
        Pairs whose scores differ by more than ``D + epsilon``.
    limit : float
        Where both axes of the picture end.
    cells : dict from model to ndarray of shape (2, BINS, BINS)
        Pairs in each cell of the picture, by distance and difference: those within, and those above.
    story : Story
    worst : dict from model to DataFrame
        Pairs furthest above ``D + epsilon``; nobody is in two of them: ``row_a``, ``row_b`` (positions), ``difference``
        and ``distance``.
    closest : DataFrame
        Likewise, pairs that use most of ``min(1, D + epsilon)`` by the last model, with D < 1.
    """

    n_pairs: int
    n_bound: int
    n_above: dict[str, int]
    limit: float
    cells: dict[str, IntArray]
    story: Story
    worst: dict[str, pd.DataFrame]
    closest: pd.DataFrame


def scan_pairs(rows: FloatArray, bound: BoundMetric, shares: Mapping[str, FloatArray], epsilon: float) -> PairScan:
    """Go through all pairs of people.

    Parameters
    ----------
    rows : ndarray of shape (n_people, n_columns)
        At least two people, as `bound` codes them.
    bound : BoundMetric
    shares : dict from model to ndarray of shape (n_people, n_classes)
        Probabilities; or one column, of numbers as shares of their range.
    epsilon : float

    Examples
    --------
    >>> from likewise import TableMetric
    >>> metric = TableMetric({"age": 0.01})
    >>> people = metric.encode_rows(pd.DataFrame({"age": [30, 40, 60]}))
    >>> scan = scan_pairs(people.rows, metric.bind(people.encoder), {"after": np.array([[0.5], [0.65], [0.6]])}, 0.0)
    >>> scan.n_above, scan.story
    ({'after': 1}, Story(pair=(0, 1), distance=0.1, within=0.1))
    >>> scan.closest.round(2)
       row_a  row_b  difference  distance
    0      0      1        0.15       0.1
    """
    n, told = len(rows), next(iter(shares))
    limit = axis_limit(max(_most(outputs) for outputs in shares.values()))
    cells = {name: np.zeros((2, BINS, BINS), dtype=np.int64) for name in shares}
    n_bound, n_above = 0, dict.fromkeys(shares, 0)
    stories = dict.fromkeys(_ALIKE, (-1.0, Story((0, 1), np.inf, np.inf)))
    closest, worst = np.empty((0, 5)), dict.fromkeys(shares, np.empty((0, 5)))
    for start in range(0, n, _BLOCK):
        distances = bound.pairwise(rows[start : start + _BLOCK], rows)
        a, b = np.nonzero(np.arange(start, start + len(distances))[:, None] < np.arange(n))
        distances = distances[a, b]
        a = a + start
        n_bound += int((distances < 1).sum())
        for name, outputs in shares.items():
            gaps = differences(outputs, a, b)
            above = gaps > distances + epsilon + TOLERANCE
            n_above[name] += int(above.sum())
            cells[name] += _cells(distances, gaps, above, limit)
            pairs = np.stack([gaps - distances, a, b, gaps, distances], axis=-1)
            worst[name] = _best([worst[name], pairs[above]])
            if name == told:
                for within, (most, _) in stories.items():
                    far = np.where(distances <= within, gaps + 2 * above, -1)  # those above come first
                    if len(far) and far.max() > most:
                        i = int(far.argmax())
                        stories[within] = (far[i], Story((int(a[i]), int(b[i])), float(distances[i]), within))
        used = gaps / np.minimum(1.0, distances + epsilon + 1e-300)
        pairs[:, 0] = used
        closest = _best([closest, pairs[(distances < 1) & (distances >= _LEAST) & (gaps >= _LEAST)]])
    found = [(most, story) for most, story in stories.values() if most >= 0]
    _, story = next((each for each in found if each[0] >= 2), found[0])
    shown = {name: _disjoint(pairs) for name, pairs in worst.items()}
    return PairScan(n * (n - 1) // 2, n_bound, n_above, limit, cells, story, shown, _disjoint(closest))


def differences(outputs: FloatArray, a: IntArray, b: IntArray) -> FloatArray:
    """What the outputs of pairs of people differ by: in total variation, or as a share of the range."""
    return np.asarray(np.abs(outputs[a] - outputs[b]).sum(axis=1) / (1 if outputs.shape[1] == 1 else 2))


def axis_limit(largest: float) -> float:
    """Return the smallest round number that is at least `largest`, up to 1."""
    return next((round_ for round_ in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75) if largest <= round_), 1.0)


def _most(outputs: FloatArray) -> float:
    """No two people differ by more."""
    return min(1.0, float(np.ptp(outputs, axis=0).sum() / (1 if outputs.shape[1] == 1 else 2)))


def _cells(distances: FloatArray, gaps: FloatArray, above: BoolArray, limit: float) -> IntArray:
    """Count pairs by cell. Pairs further apart than `limit` are outside of the picture."""
    shown = distances <= limit
    column, row = (np.minimum(BINS - 1, (x[shown] / limit * BINS).astype(int)) for x in (distances, gaps))
    places = np.ravel_multi_index((above[shown].astype(int), column, row), (2, BINS, BINS))
    return np.bincount(places, minlength=2 * BINS * BINS).reshape(2, BINS, BINS)


def _best(parts: list[FloatArray]) -> FloatArray:
    """The first rows by their first number, more of them than are shown: nobody is shown twice."""
    rows = np.concatenate(parts)
    return rows[np.argsort(-rows[:, 0], kind="stable")[: 20 * _KEPT]]


def _disjoint(found: FloatArray) -> pd.DataFrame:
    """The first pairs of which nobody is in two."""
    kept: list[tuple[int, int, float, float]] = []
    met = set[float]()
    for _, a, b, gap, distance in found.tolist():
        if len(kept) < _KEPT and not met & {a, b}:
            met |= {a, b}
            kept.append((int(a), int(b), gap, distance))
    return pd.DataFrame(kept, columns=["row_a", "row_b", "difference", "distance"])
