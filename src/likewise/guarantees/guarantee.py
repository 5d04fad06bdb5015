"""A promise that says nothing must say so, and so must a weight that nothing can be made of."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from likewise._html import folded, grid, panel, words
from likewise._typing import FloatArray
from likewise.guarantees.bounds import Bound
from likewise.metrics.base import Metric
from likewise.metrics.encoders import People

Level = Literal["exact", "deterministic", "sampled"]


class VacuousGuaranteeWarning(UserWarning):
    """A promise that holds, and says nothing about most people; the message has the cure.

    Attributes
    ----------
    command_text : str or None
        The same for people at the command line.
    """

    command_text: str | None = None


class IneffectiveWeightWarning(UserWarning):
    """A column with a positive weight that no model within the metric may use; the message has the cure."""


@dataclass(frozen=True, repr=False)
class Guarantee:
    """What is promised about a model.

    For two people at distance D, the outputs differ by at most ``bound(D)``, ``= curve.bound(D) + slack``, with
    probability at least ``1 - delta`` over the draws made in `fit`; at the levels "exact" and "deterministic" with
    certainty. Outputs are class probabilities, compared by total variation, or predictions, compared by absolute
    difference in units of `output_range`.

    Attributes
    ----------
    metric : Metric
        The distance between people.
    curve : Curve
        From a distance to the largest difference of the model's own outputs. `decide` follows it, without slack.
    level : {"exact", "deterministic", "sampled"}
    basis : str
        Why it holds, in words: a formula, a grid, draws, or the construction of the model.
    slack : float
        Error of sampling the outputs; 0 where they are computed.
    delta : float
        Probability, per pair, that the error of sampling is larger.
    n_draws : int
        Evaluations of an inner model per person, at most; 0 where there are none to count.
    output_range : tuple of float, or None
        For regression: predictions lie in it.
    """

    metric: Metric
    curve: Bound
    level: Level
    basis: str
    slack: float = 0.0
    delta: float = 0.0
    n_draws: int = 0
    output_range: tuple[float, float] | None = None

    @property
    def epsilon(self) -> float:
        """What the outputs of two people may differ by beyond their distance, in units of the range."""
        return self.curve.excess + self.slack

    def bound(self, distance: npt.ArrayLike) -> FloatArray:
        """Largest difference of outputs promised for two people at `distance`.

        For class probabilities: total variation, at most 1. For regression: in units of the output.
        """
        share = np.minimum(1.0, self.curve.bound(distance) + self.slack)
        low, high = self.output_range or (0.0, 1.0)
        return share * (high - low)

    def __repr__(self) -> str:
        return f"<Guarantee: {self.level}, at most {self._size} under {self.metric!r}>"

    def _repr_html_(self) -> str:
        people, outputs = ([0.01, 0.05, 0.1, 0.25, 0.5, 1.0], "outputs differ by at most")
        rows = [(f"{D:g}", f"{bound:.4g}") for D, bound in zip(people, self.bound(people), strict=True)]
        first, *rest = self.statement.splitlines()
        return panel(
            f"Outputs of two people differ by at most {self._size}. Level: {self.level}",
            grid(["people at distance D", outputs], rows, left=0),
            words("\n".join(rest), quiet=True),
            folded("The whole promise", first),
            self.metric._repr_html_(),
        )

    @property
    def _size(self) -> str:
        return f"D(x, x') + {self.epsilon:.3g}" if self.epsilon else "D(x, x')"

    @property
    def statement(self) -> str:
        """The promise in plain language, with what is not covered."""
        if self.output_range is None:
            what, unit = "class probabilities", "in total variation"
            covered = "predict_proba; and decide, which draws outcomes from the model's probabilities"
            argmax = "predict (the most likely class jumps where two classes tie), "
        else:
            low, high = self.output_range
            what, covered, argmax = "predictions", "predict; and the mean of what decide gives", ""
            unit = f"times {high - low:g}, the width of the output range"
        return (
            f"For two people x and x', the {what} differ by at most {self._size} {unit}, "
            f"where D is {self.metric.definition}; guarantee_.bound has the sharper curve. {self.basis}\n"
            f"Covered: {covered}{', without error of sampling' if self.slack else ''}. Level: {self.level}.\n"
            f"Not covered: {argmax}information that is not among the features, differences between groups, "
            "the accuracy of the model, and whether the metric is the right one."
        )


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
    weights = metric.known_weights(people.encoder)
    if weights is None:
        return
    for i in np.flatnonzero(weights.is_number & weights.matters & ~np.isnan(weights.missing)).tolist():
        known = people.rows[:, i][~np.isnan(people.rows[:, i])]
        scale, missing, name = float(weights.scales[i]), float(weights.missing[i]), people.encoder.names[i]
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
