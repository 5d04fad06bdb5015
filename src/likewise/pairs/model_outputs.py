"""Outputs of a model for people, in a form that is cheap to compare."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier, is_regressor

from likewise._favourable import Direction
from likewise._typing import FloatArray, IntArray
from likewise._validation import check_numbers, check_output_range
from likewise.ask import Ask
from likewise.exceptions import InvalidInputError
from likewise.kernel.schema import People
from likewise.metrics.units import number
from likewise.pairs.points import Points

_UPWARDS = Context(prec=4, rounding=ROUND_CEILING)


@dataclass(frozen=True)
class OutputLabels:
    """What the outputs mean, so that they can be shown as the model gave them.

    Attributes
    ----------
    are_probabilities : bool
    classes : list, optional
        Names of the classes, where outputs are probabilities and the classes are named.
    limits : tuple of float, optional
        Lowest and highest number; outputs are shares of this range.
    """

    are_probabilities: bool = True
    classes: list[Any] | None = None
    limits: tuple[float, float] | None = None

    @classmethod
    def of_range(cls, limits: tuple[float, float] | None) -> OutputLabels:
        """Labels of numbers within `limits`; None for probabilities."""
        return cls(limits is None, limits=limits)

    @property
    def are_shares(self) -> bool:
        """Whether no two outputs differ by more than 1."""
        return self.are_probabilities or self.limits is not None

    @classmethod
    def of(
        cls, model: Any, predictions: Any, output_range: tuple[float, float] | None, *, probable: bool
    ) -> OutputLabels:
        """Labels of a model's outputs, or of given predictions."""
        if not probable:
            own = getattr(getattr(model, "guarantee_", None), "output_range", None) if predictions is None else None
            return cls(False, limits=own if output_range is None else output_range)
        if predictions is None:
            classes = getattr(model, "classes_", None)
        else:
            columns = getattr(predictions, "columns", ())
            classes = list(columns) if len(columns) > 1 else None
        return cls(True, None if classes is None else np.asarray(classes).tolist())

    @classmethod
    def shown(
        cls, model: Any, output_range: tuple[float, float] | None, outputs: FloatArray, *, probable: bool
    ) -> OutputLabels:
        """Labels of the outputs of a model: numbers between 0 and 1 are probabilities, but those of a regression."""
        inside = bool(((outputs >= 0) & (outputs <= 1)).all()) and output_range is None and not _is_regressor(model)
        return cls.of(model, None, output_range, probable=probable or inside)

    @property
    def factor(self) -> float:
        """What a difference is multiplied by to be shown: 100 for points of a probability, else the output range."""
        low, high = self.limits or (0.0, 1.0)
        return 100.0 if self.are_probabilities else high - low

    @property
    def statement(self) -> str:
        """The unit of numbers, or whose probability scores are, in a sentence; empty for others."""
        if self.are_probabilities:
            two = self.classes is not None and len(self.classes) == 2
            return f"Scores are probabilities of '{self.classes[-1]}'." if two and self.classes else ""
        if self.limits is None:
            return "Differences are in the unit of the scores, which have no range: a distance of 1 allows 1."
        low, high = self.limits
        return (
            f"Differences and distances are in the unit of the scores, from {number(low)} to {number(high)}: a weight "
            f"of 1 is a distance of {number(high - low)}."
        )

    def written(self, difference: float, digits: int = 4) -> str:
        """A difference of outputs, or a distance: in points of a probability, or in the unit of the scores.

        Examples
        --------
        >>> OutputLabels().written(0.08), OutputLabels(False, limits=(300, 850)).written(0.08)
        ('8 points', '44')
        """
        return self._with_unit(number(self.factor * difference, digits))

    def between(self, low: float, high: float) -> str:
        """Two ends of an interval, the unit once.

        Examples
        --------
        >>> OutputLabels().between(0.01, 0.08), OutputLabels(False, limits=(300, 850)).between(0.01, 0.08)
        ('1 to 8 points', '5.5 to 44')
        """
        return f"{number(self.factor * low, 4)} to {self.written(high)}"

    def at_most(self, bound: float) -> str:
        """A bound on differences, rounded up.

        Examples
        --------
        >>> OutputLabels().at_most(0.12340001), OutputLabels(False, limits=(0, 1000)).at_most(12.3450001)
        ('12.35 points', '12,350')
        """
        return self._with_unit(number(float(_UPWARDS.multiply(Decimal(repr(float(bound))), Decimal(self.factor)))))

    def _with_unit(self, text: str) -> str:
        return f"{text} {'point' if text == '1' else 'points'}" if self.are_probabilities else text

    def in_units(self, table: pd.DataFrame, *columns: str) -> pd.DataFrame:
        """A table whose columns of differences are in the unit of the scores; those of probabilities stay."""
        return table if self.are_probabilities else table.assign(**{c: table[c] * self.factor for c in columns})

    def pairs(self, a: FloatArray, b: FloatArray) -> pd.DataFrame:
        """Scores ``score_a`` and ``score_b`` of pairs of people, from their outputs of shape (n_pairs, n_outputs).

        With several classes, of the class whose probabilities differ most. ``outcome`` names the class, if it has a
        name.
        """
        if a.shape[1] > 1:  # probability_outputs has divided by 2
            largest = np.abs(a - b).argmax(axis=1)[:, None]
            a, b = 2 * np.take_along_axis(a, largest, 1), 2 * np.take_along_axis(b, largest, 1)
            outcomes = [k if self.classes is None else self.classes[k] for k in largest[:, 0].tolist()]
        else:
            outcomes = [None if self.classes is None else self.classes[-1]] * len(a)
        low, high = self.limits or (0.0, 1.0)
        scores = {f"score_{side}": low + (high - low) * each[:, 0] for side, each in (("a", a), ("b", b))}
        return pd.DataFrame(scores | {"outcome": pd.Series(outcomes, dtype=object)})


@dataclass(frozen=True, eq=False)
class ModelOutputs:
    """People, with a model's outputs in a form that is cheap to compare.

    Attributes
    ----------
    points : Points
    outputs : ndarray of shape (n_samples, n_outputs)
        ``unit * sum_k |outputs[a, k] - outputs[b, k]|`` is the difference between the people a and b: total
        variation of class probabilities, or absolute difference of predictions. The sum is at most 1.
    unit : float
        A power of two, so that dividing by it loses no digit. 1 for probabilities.
    labels : OutputLabels
    """

    points: Points
    outputs: FloatArray
    unit: float
    labels: OutputLabels = OutputLabels()

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        points: Points,
        predictions: Any = None,
        output_range: tuple[float, float] | None = None,
    ) -> ModelOutputs:
        """Outputs of `model` for `X`, or `predictions`; differences are in units of the width of `output_range`."""
        outputs, probable = outputs_of(model, X, points.people, predictions, output_range)
        unit = 1.0 if probable else power_of_two_unit(float(np.ptp(outputs)))
        labels = OutputLabels.of(model, predictions, output_range, probable=probable)
        if predictions is None and labels.limits is None:
            labels = OutputLabels.shown(model, None, outputs, probable=probable)
        return cls(points, outputs / unit, unit, labels)

    def direction(self, favourable: Any) -> Direction:
        """Which of two of the outputs is better for a person."""
        return Direction.of(favourable, self.labels.classes, self.outputs.shape[1])

    def differences(self, a: IntArray, b: IntArray) -> FloatArray:
        """Differences of outputs between the people a and b."""
        return np.asarray(self.unit * np.abs(self.outputs[a] - self.outputs[b]).sum(axis=1))


def outputs_of(
    model: Any, X: Any, people: People, predictions: Any, output_range: tuple[float, float] | None
) -> tuple[FloatArray, bool]:
    """Outputs of `model` for `X`, or `predictions`; and whether they are probabilities."""
    if predictions is None:
        return asked_outputs(Ask.of(model, X, people.encoder), output_range)
    return given_outputs(predictions, len(people), output_range)


def power_of_two_unit(spread: float) -> float:
    """The smallest power of two that is at least `spread`; 1 for 0."""
    return float(np.exp2(np.ceil(np.log2(spread)))) if spread > 0 else 1.0


def asked_outputs(
    ask: Ask,
    output_range: tuple[float, float] | None = None,
    rows: FloatArray | None = None,
    exchanged: tuple[int, IntArray, IntArray] | None = None,
) -> tuple[FloatArray, bool]:
    """Outputs of people as given, of encoded `rows`, or with values `exchanged`; and whether they are probabilities."""
    if exchanged is not None:
        values, n_samples = ask.exchanged(*exchanged), len(exchanged[1])
    else:
        values, n_samples = (ask.answers(), len(ask.people)) if rows is None else (ask.about(rows), len(rows))
    return answered_outputs(ask.model, values, n_samples, output_range, getattr(ask.model, "classes_", None))


def answered_outputs(
    model: Any, values: Any, n_samples: int, output_range: tuple[float, float] | None = None, classes: Any = None
) -> tuple[FloatArray, bool]:
    """Outputs from a model's answers, shape (n_samples, n_outputs), and whether they are probabilities.

    Numbers are in units of the width of `output_range`, if there is one. `classes` are the possible labels of a model
    that predicts labels; None takes those that occur.
    """
    if values.ndim not in (1, 2) or len(values) != n_samples:
        raise InvalidInputError(
            f"The model must return one output per row: {n_samples} rows gave an array of shape {values.shape}."
        )
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]  # probabilities of one class, labels, or numbers
    probable = hasattr(model, "predict_proba") or values.ndim == 2
    if not probable and (is_classifier_like(model) or values.dtype.kind not in "biuf"):
        labels = np.unique(values) if classes is None else np.asarray(classes)
        values, probable = values[:, None] == labels, True
    values = check_numbers("The model's answers", values)
    if probable:
        _check_probabilities(values, "The model's answers", "Let it return one number per row for other scores.")
        return probability_outputs(values), True
    if not np.isfinite(values).all():
        raise InvalidInputError("The model predicted NaN or infinity; its predictions must be finite numbers.")
    guarantee = getattr(model, "guarantee_", None)
    limits = getattr(guarantee, "output_range", None) if output_range is None else output_range
    return as_shares(values, limits)[:, None], False


def is_classifier_like(model: Any) -> bool:
    """Whether scikit-learn takes the model for a classifier; False for functions and other objects."""
    return hasattr(model, "__sklearn_tags__") and is_classifier(model)


def _is_regressor(model: Any) -> bool:
    return hasattr(model, "__sklearn_tags__") and is_regressor(model)


def given_outputs(
    predictions: Any, n_samples: int, output_range: tuple[float, float] | None = None
) -> tuple[FloatArray, bool]:
    """Predictions of an outside system in the same form."""
    values = check_numbers("predictions", predictions)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or len(values) != n_samples:
        raise InvalidInputError(
            f"predictions must have one entry per row of X ({n_samples}); got an array of shape {values.shape}."
        )
    if output_range is not None:
        low, high = check_output_range(output_range)
        wrong = ~((values >= low) & (values <= high))
        if values.ndim != 1 or wrong.any():
            example = f"{values[wrong][0]:g}" if wrong.any() else f"shape {values.shape}"
            raise InvalidInputError(
                f"predictions must be one number per row in output_range, {output_range}; got {example}."
            ).in_commands(f"Scores must lie within --range {low:g} {high:g}; got {example}. Give a wider --range.")
        return as_shares(values, output_range)[:, None], False
    _check_probabilities(values, "predictions", "For other predictions give output_range=(lowest, highest).")
    return probability_outputs(values), True


def as_shares(values: FloatArray, output_range: tuple[float, float] | None) -> FloatArray:
    """Values as shares of the output range; without one, unchanged."""
    if output_range is None:
        return values
    low, high = check_output_range(output_range)
    return np.asarray((values - low) / (high - low))


def _check_probabilities(values: FloatArray, what: str, hint: str) -> None:
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        got = f"{values[wrong][0]:g}"
        raise InvalidInputError(f"{what} must be probabilities within [0, 1]; got {got}. {hint}").in_commands(
            f"Scores must be probabilities within 0 and 1; got {got}. For other scores give --range LOWEST HIGHEST."
        )
    if values.ndim == 2:
        sums = values.sum(axis=1)
        off = np.flatnonzero(np.abs(sums - 1) > 1e-5)
        if off.size:
            raise InvalidInputError(
                f"{what} must sum to 1 over the classes in each row; row {off[0]} sums to {sums[off[0]]:g}. {hint}"
            )


def probability_outputs(values: FloatArray) -> FloatArray:
    """Numbers whose absolute differences add up to the total variation between probabilities."""
    if values.ndim == 1:
        return values[:, None]
    if values.shape[1] == 2:  # |p - p'| is the same for both classes
        return values[:, 1:]
    return values / 2  # TV = 1/2 sum_k |p_k - p'_k|
