"""One best-first search over boxes of people, for models of every kind."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from likewise.kernel.proof import Searched

_MOST_KEPT = 200_000  # boxes whose bound is still open

Bounded = tuple[float, Any]
"""A bound, and the box that it is of; no box where nothing is left to be cut."""


@dataclass(frozen=True)
class Limits:
    """When a search ends.

    Attributes
    ----------
    max_seconds : float or None
        Processor time.
    max_boxes : int or None
    tolerance : float
        The search ends when the values found and proven are half as close.
    tell : callable, optional
        Called with the values found and proven as a search goes on.
    """

    max_seconds: float | None
    max_boxes: int | None
    tolerance: float
    tell: Callable[[float, float], None] = lambda found, proven: None

    @property
    def gap(self) -> float:
        """Boxes are not cut for less: the other half is for rounding, and for outputs that are not quite the scores."""
        return self.tolerance / 2

    @property
    def half(self) -> Limits:
        """Those of each of two searches."""
        seconds = None if self.max_seconds is None else self.max_seconds / 2
        return replace(self, max_seconds=seconds, max_boxes=self.max_boxes and max(1, self.max_boxes // 2))


class Boxes(Protocol):
    """Boxes of pairs of people, with a bound for each.

    Attributes
    ----------
    found : float
        The largest difference found at a point so far.
    n_boxes : int
        Boxes bounded so far.
    """

    found: float
    n_boxes: int

    def first(self) -> list[Bounded]:
        """Boxes that hold every pair."""

    def cut(self, boxes: Sequence[Bounded]) -> list[list[Bounded]]:
        """Parts of each box that hold all its pairs; none if it cannot be cut."""


def search_boxes(boxes: Boxes, limits: Limits, *, at_once: int = 1) -> Searched:
    """Cut the boxes with the largest bounds until found and proven are close, or the limits are reached.

    The largest bound of all boxes that are left, or were left out, holds whenever the search ends.

    Parameters
    ----------
    at_once : int
        Boxes that are cut together.
    """
    begun, gap, count = time.process_time(), limits.gap, 0
    heap: list[tuple[float, int, Any]] = []
    history: list[tuple[int, float, float]] = []
    done = -np.inf  # the largest bound of what is not cut any further; not what was found, so that a wrong bound shows
    parts, stopped = [(np.inf, boxes.first())], False
    while True:
        for most, each in parts:
            if not each:
                done = max(done, most)
            for value, box in each:
                value = min(value, most)  # a part is within the whole
                if box is None or value <= boxes.found + gap:
                    done = max(done, value)
                else:
                    heapq.heappush(heap, (-value, count, box))
                    count += 1
        top = -heap[0][0] if heap else -np.inf
        bound = max(top, done)
        if not history or bound < history[-1][2] or boxes.found > history[-1][1]:
            history.append((boxes.n_boxes, boxes.found, bound))
        limits.tell(boxes.found, bound)
        if not heap or top <= max(boxes.found + gap, done):
            break
        stopped = limits.max_boxes is not None and boxes.n_boxes >= limits.max_boxes
        stopped |= limits.max_seconds is not None and time.process_time() - begun > limits.max_seconds
        stopped |= len(heap) > _MOST_KEPT
        if stopped:
            break
        taken = [heapq.heappop(heap) for _ in range(min(at_once, len(heap)))]
        chosen = [(-negative, box) for negative, _, box in taken]
        parts = list(zip([value for value, _ in chosen], boxes.cut(chosen), strict=True))
    return Searched(boxes.found, bound, boxes.n_boxes, tuple(history), stopped)
