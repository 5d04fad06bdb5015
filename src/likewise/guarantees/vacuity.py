"""A promise that says nothing must say so, and so must a weight that nothing can be made of."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from likewise.guarantees.promise import Guarantee, IneffectiveWeightWarning, VacuousGuaranteeWarning
from likewise.metrics.abstract import Metric
from likewise.metrics.people import People

_MOST_EPSILON = 0.5
_MOST_FAR = 0.99
_PAIRS = 2000
_LEAST_REACH = 0.01  # share of a column's own range that its missing weight must leave


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


def warn_if_ineffective(metric: Metric, people: People) -> None:
    """Warn of each column of numbers with a positive weight that the weight of a missing one leaves no use for.

    Someone without the number is at distance m from everybody who has it, so by the triangle inequality two people who
    have it may differ by at most ``2 m`` because of it, whatever its own weight is.
    """
    if not metric.has_weights:
        return
    weights = metric.weights_of(people.coding)
    for i in np.flatnonzero(weights.is_number & weights.matters & ~np.isnan(weights.missing)).tolist():
        known = people.rows[:, i][~np.isnan(people.rows[:, i])]
        scale, missing, name = float(weights.scales[i]), float(weights.missing[i]), people.coding.names[i]
        if len(known) and 2 * missing < _LEAST_REACH * scale * float(np.ptp(known)):
            effect = (
                f"two people may differ by at most {2 * missing:.3g} because of it, less than {_LEAST_REACH:.0%} of "
                "what its weight allows over its range"
                if missing
                else "no model within the metric may use the column at all"
            )
            warnings.warn(
                f"The metric gives {name!r} the weight {scale:.3g}, but a missing {name!r} only {missing:.3g}. "
                f"Everyone is that close to somebody without the number, so by the triangle inequality {effect}. "
                f"Raise the missing weight of {name!r} to at least half of weight times range ({scale / 2:.3g} times "
                "the range of the column), or set the weight to 0.",
                IneffectiveWeightWarning,
                stacklevel=_outside(),
            )


@contextmanager
def said_once() -> Iterator[None]:
    """Fit models inside another one, or for a measurement, without what the model that is kept will say."""
    with warnings.catch_warnings():
        for kind in (VacuousGuaranteeWarning, IneffectiveWeightWarning):
            warnings.simplefilter("ignore", kind)
        yield


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
