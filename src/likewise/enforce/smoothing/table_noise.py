"""The promise of noise on a whole table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from likewise._typing import FloatArray
from likewise.enforce.smoothing.noises import Noise, Splitting
from likewise.guarantees.curves import Curve
from likewise.metrics.lp import WeightedLp
from likewise.metrics.tabular import TableMetric


@dataclass(frozen=True, repr=False)
class TableNoise(Curve):
    """Noise on the numbers of a table, keep-or-resample on its categories.

    A category of weight w is kept with probability w and otherwise drawn from a background that does not depend on the
    person, so two different values are told apart with probability w at most. Total variation adds up:
    ``TV <= numbers.bound(D_numeric) + sum of mismatch weights <= D``.

    ``bound(D) = min(1, D)``; the curve of the numeric noise where nothing but numbers can differ.

    Attributes
    ----------
    metric : TableMetric
    numbers : Noise, or None if no numeric column has a positive weight
    is_splitting : bool
        Whether the whole is deterministic.
    """

    metric: TableMetric
    numbers: Noise | None
    is_splitting: bool

    @classmethod
    def for_metric(cls, metric: TableMetric, kind: type[Noise]) -> TableNoise:
        """Return the noise calibrated to `metric`, with `kind` on the numbers."""
        visible = {name: weight for name, weight in metric.numeric.items() if weight > 0}
        if not visible and not any(metric.categorical.values()):
            raise ValueError(
                "weights are all 0: under such a metric only a constant model qualifies. Give at least one column "
                "a positive weight."
            )
        numbers = kind.for_metric(WeightedLp(visible, metric.p)) if visible else None
        return cls(metric, numbers, issubclass(kind, Splitting))

    @property
    def _numbers_alone(self) -> Noise | None:
        mismatches = [*self.metric.categorical.values(), *self.metric.missing.values()]
        return None if any(mismatches) else self.numbers

    def bound(self, distance: npt.ArrayLike) -> FloatArray:
        """Largest total variation between the outputs for two people at `distance`, for any model."""
        return super().bound(distance) if self._numbers_alone is None else self._numbers_alone.bound(distance)

    def highest(self, probability: npt.ArrayLike, distance: npt.ArrayLike) -> FloatArray:
        """Largest probability of an outcome at `distance` from a person for whom it is `probability`."""
        alone = self._numbers_alone
        return super().highest(probability, distance) if alone is None else alone.highest(probability, distance)

    def distance_to_tie(self, top: npt.ArrayLike, other: npt.ArrayLike) -> FloatArray:
        """Smallest distance at which an outcome of probability `other` can catch up with one of `top`."""
        alone = self._numbers_alone
        return super().distance_to_tie(top, other) if alone is None else alone.distance_to_tie(top, other)

    def __repr__(self) -> str:
        kind = "Splitting" if self.is_splitting else type(self.numbers).__name__
        return f"TableNoise({kind}, {self.metric!r})"
