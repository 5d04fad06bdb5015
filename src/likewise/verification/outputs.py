"""From limits of scores over a box of people to the largest difference of outputs (`docs/theory.md` §15).

Scores enter through *directions*, linear functions of them: the score itself, sums over sets of classes, or differences
of two logits. A box has an upper limit of each for the first person, for the second, and for the change between them.
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.special import softmax

from likewise._typing import FloatArray, IntArray
from likewise.exceptions import UnprovableError
from likewise.inspection.additive_scores import LOGIT

MOST_CLASSES = 6  # whose sets are looked at one by one
_LARGEST = 300.0  # limits whose exponentials are finite, and whose rounding is far below that of a proof


class Outputs:
    """Outputs of some scores.

    Parameters
    ----------
    link : {"identity", "logistic", "softmax"}
        Several scores behind "identity" are probabilities of classes.
    n_scores : int
    """

    def __init__(self, link: str, n_scores: int) -> None:
        self.link, self.n_scores = link, n_scores

    @cached_property
    def directions(self) -> FloatArray:
        """What has to be limited, shape (n_directions, n_scores)."""
        m = self.n_scores
        if self.link == "softmax":
            return np.asarray(np.eye(m)[self._pairs[0]] - np.eye(m)[self._pairs[1]])
        if m == 1:
            return np.ones((1, 1))
        if m > MOST_CLASSES:
            raise UnprovableError(f"a forest of {m} classes has too many sets of classes")
        return np.array([np.isin(np.arange(m), each) for each in sets_of(m)], dtype=np.float64)

    @cached_property
    def _pairs(self) -> tuple[IntArray, IntArray]:
        first, second = np.nonzero(~np.eye(self.n_scores, dtype=bool))
        return first.astype(np.int64), second.astype(np.int64)

    @property
    def joint(self) -> bool:
        """Whether limits of both people are used, beside those of the change."""
        return self.link == "logistic" or (self.link == "softmax" and self.n_scores <= MOST_CLASSES)

    def largest(self, change: FloatArray, one: FloatArray | None = None, other: FloatArray | None = None) -> FloatArray:
        """Largest differences for upper limits of the directions, each of shape (n, n_directions).

        Without limits of the two people it is what the change alone allows.
        """
        if self.link == "identity":
            return np.asarray(change.max(axis=1))
        if one is None or other is None or not self.joint:
            # The odds of any set of classes move by the largest difference of two logits at most.
            return np.asarray(np.tanh(np.maximum(change.max(axis=1), 0.0) / 4))
        alone = self.largest(change)
        limits = np.stack([one, other, change])
        fine = np.flatnonzero((limits <= _LARGEST).all(axis=(0, 2)))
        square = np.zeros((3, len(fine), self.n_scores, self.n_scores))
        square[:, :, self._pairs[0], self._pairs[1]] = np.maximum(limits[:, fine], -_LARGEST)  # higher limits hold, too
        alone[fine] = np.fmin(alone[fine], largest_variation(*square))
        return alone


def softmax_of_rows(scores: FloatArray) -> FloatArray:
    """Probabilities of classes, one row for each person."""
    return np.asarray(softmax(scores, axis=1))


def sets_of(m: int) -> list[tuple[int, ...]]:
    """All sets of classes but none and all: TV is the largest difference of the probability of one of them."""
    return [each for size in range(1, m) for each in combinations(range(m), size)]


def largest_variation(one: FloatArray, other: FloatArray, change: FloatArray) -> FloatArray:
    """Upper bounds of the total variation of two softmax outputs, by limits on differences of scores.

    For each set A of classes the log-odds of A are limited for both people, and so is their change: with the shares q
    within A and r outside it, it is ``log sum_k q_k / sum_l r_l exp(change_l - change_k)``.

    Parameters
    ----------
    one, other, change : ndarray of shape (n, m, m)
        ``score_k - score_l`` is at most ``[:, k, l]``, for either person and for the change from one to the other.
    """
    m = one.shape[1]
    best = np.zeros(len(one))
    for inside in map(list, sets_of(m)):
        outside = [k for k in range(m) if k not in inside]
        rows, columns = np.ix_(inside, outside)
        own, its, back, rise = (each[:, rows, columns] for each in (one, other, np.swapaxes(one, 1, 2), change))
        least = np.log((1 / np.exp(back).sum(axis=2)).sum(axis=1))
        most = np.log((1 / np.exp(-own).sum(axis=2)).sum(axis=1))
        top = np.log((1 / np.exp(-its).sum(axis=2)).sum(axis=1))
        least_outside = -_most_mean(-np.exp(-rise), one, outside)
        d = np.log(_most_mean(1 / least_outside[:, None], one, inside)[:, 0])
        best = np.maximum(best, LOGIT.rise(d, least, most, top))
    return best


def _most_mean(values: FloatArray, limits: FloatArray, members: list[int]) -> FloatArray:
    """Largest mean of values (n, n_rows, n_members) over classes, weighted by any shares that they can have."""
    rows, columns = np.ix_(members, members)
    own = limits[:, rows, columns]
    low, high = 1 / np.exp(np.swapaxes(own, 1, 2)).sum(axis=2), 1 / np.exp(-own).sum(axis=2)
    order = np.argsort(-values, axis=2)
    sorted_values = np.take_along_axis(values, order, axis=2)
    floor, room = (np.take_along_axis(np.broadcast_to(each[:, None], values.shape), order, axis=2)
                   for each in (low, high - low))  # fmt: skip
    left = np.maximum(0.0, 1 - low.sum(axis=1))[:, None, None]
    before = np.cumsum(room, axis=2) - room
    return np.asarray(((floor + np.clip(left - before, 0.0, room)) * sorted_values).sum(axis=2))
