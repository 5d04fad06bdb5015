"""A promise that says nothing must say so."""

from __future__ import annotations

import inspect
import warnings

import numpy as np

from likewise.guarantees.promise import Guarantee, VacuousGuaranteeWarning
from likewise.metrics.people import People

_MOST_EPSILON = 0.5
_MOST_FAR = 0.99
_PAIRS = 2000


def warn_if_vacuous(guarantee: Guarantee, people: People) -> None:
    """Warn where the promise allows nearly any difference: by its epsilon, or between nearly all pairs of `people`."""
    if guarantee.epsilon >= _MOST_EPSILON:
        problem = (
            f"The promise says little: outputs may differ by D + {guarantee.epsilon:.3g}, and 1 is the largest "
            f"difference there is. Take more draws than {guarantee.n_draws:,}"
        )
        _warn(
            f"{problem} (n_draws='auto' takes what epsilon needs), or use a metric with fewer columns.",
            f"{problem} (without --draws it takes what --epsilon needs), or use a metric with fewer columns.",
        )
    distances = _some_distances(guarantee, people)
    far = float((distances >= 1).mean())
    if far >= _MOST_FAR:
        factor = float(f"{0.5 / np.median(distances):.1g}")
        problem = f"The promise says nothing about {far:.1%} of the pairs of people"
        rule = (
            "they are at a distance D >= 1, where outputs may differ by everything. Use a metric with smaller weights"
        )
        gain = "half of these pairs are closer than about 0.5."
        _warn(
            f"{problem} in X: {rule}: under metric.scaled({factor:g}), {gain}",
            f"{problem}: {rule}: with all of them times {factor:g}, {gain}",
        )


def _warn(text: str, command_text: str) -> None:
    """Warn where the caller's own code is; the command line has words of its own."""
    warning = VacuousGuaranteeWarning(text)
    warning.command_text = command_text
    warnings.warn(warning, stacklevel=_outside())


def _outside() -> int:
    """How many frames up the caller's own code is."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("likewise."):
        frame, level = frame.f_back, level + 1
    return level


def _some_distances(guarantee: Guarantee, people: People) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Distances of up to `_PAIRS` pairs, the same in every run."""
    n = len(people)
    if n * (n - 1) // 2 <= _PAIRS:
        a, b = np.triu_indices(n, 1)
    else:
        a, b = np.random.default_rng(0).integers(n, size=(2, _PAIRS))
        a, b = a[a != b], b[a != b]
    return guarantee.metric.between(people.take(a), people.take(b))
