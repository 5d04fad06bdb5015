"""Warnings of a guarantee that says little, or of a weight that nothing can use."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from likewise._subsample import some_pairs
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People


class VacuousGuaranteeWarning(UserWarning):
    """A guarantee that holds but allows any difference between most people.

    Attributes
    ----------
    command_text : str or None
        The message for the command line.
    """

    command_text: str | None = None


class IneffectiveWeightWarning(UserWarning):
    """A column of positive weight that no model within the metric can use."""


_MAX_EPSILON = 0.5
_MAX_FAR = 0.99  # fraction of pairs
_PAIRS = 2000
_MIN_REACH = 0.01  # fraction of a column's range


def warn_if_vacuous(guarantee: Guarantee, people: People) -> None:
    """Warn if the guarantee allows nearly any difference, by its epsilon or between nearly all pairs of `people`."""
    if guarantee.epsilon >= _MAX_EPSILON:
        problem = (
            f"The guarantee says little: outputs may differ by D + {guarantee.epsilon:.3g}, and 1 is the largest "
            f"possible difference. Take more draws than {guarantee.n_draws:,}"
        )
        warn_vacuous(
            f"{problem} (n_draws='auto' takes as many as epsilon needs), or use a metric with fewer columns.",
            f"{problem} (without --draws it takes as many as --epsilon needs), or use a metric with fewer columns.",
        )
    a, b = some_pairs(len(people), _PAIRS)  # a fixed sample
    distances = guarantee.bound_metric.rebound(people.encoder).between(people.take(a), people.take(b))
    far = float((distances >= 1).mean())
    if far >= _MAX_FAR:
        factor = float(f"{0.5 / np.median(distances):.1g}")
        problem = f"The guarantee says nothing about {far:.1%} of the pairs of people"
        rule = "they are at a distance D >= 1, where outputs may differ by any amount. Use smaller weights"
        gain = "half of these pairs are closer than about 0.5."
        warn_vacuous(
            f"{problem} in X: {rule}: under metric.scaled({factor:g}), {gain}",
            f"{problem}: {rule}: with all of them times {factor:g}, {gain}",
        )


def warn_vacuous(text: str, command_text: str) -> None:
    """Warn that a guarantee says little; the command line has its own advice."""
    warning = VacuousGuaranteeWarning(text)
    warning.command_text = command_text
    warnings.warn(warning, stacklevel=_frames_to_caller())


def warn_if_ineffective(weights: BoundMetric, people: People) -> None:
    """Warn of numeric columns of positive weight whose missing weight leaves (almost) no effect.

    A person without the number is at distance m from everyone who has it, so by the triangle inequality two people who
    have it may differ by at most ``2 m`` because of it, whatever the column's own weight.
    """
    if not weights.has_parts:
        return
    for i in np.flatnonzero(weights.is_number & weights.matters & ~np.isnan(weights.missing)).tolist():
        known = people.rows[:, i][~np.isnan(people.rows[:, i])]
        scale, missing, name = float(weights.scales[i]), float(weights.missing[i]), people.encoder.names[i]
        if len(known) and 2 * missing < _MIN_REACH * scale * float(np.ptp(known)):
            effect = (
                f"two people may differ by at most {2 * missing:.3g} because of it, less than {_MIN_REACH:.0%} of "
                "what its weight allows over its range"
                if missing
                else "no model within the metric can use the column"
            )
            warnings.warn(
                f"The metric gives {name!r} the weight {scale:.3g}, but a missing {name!r} only {missing:.3g}. "
                f"By the triangle inequality, {effect}. "
                f"Raise the missing weight of {name!r} to at least half of weight times range ({scale / 2:.3g} times "
                "the range of the column), or set the weight to 0.",
                IneffectiveWeightWarning,
                stacklevel=_frames_to_caller(),
            )


@contextmanager
def suppress_guarantee_warnings() -> Iterator[None]:
    """Suppress these warnings in auxiliary fits: the final fit repeats them."""
    with warnings.catch_warnings():
        for kind in (VacuousGuaranteeWarning, IneffectiveWeightWarning):
            warnings.simplefilter("ignore", kind)
        yield


def _frames_to_caller() -> int:
    """Number of frames up to the first one outside likewise."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("likewise."):
        frame, level = frame.f_back, level + 1
    return level
