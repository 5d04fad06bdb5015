"""Everything a report shows: objects of the library, and what was measured with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.errors import InvalidInputError, InvalidTypeError
from likewise.guarantees.promise import Guarantee
from likewise.metrics.abstract import Metric
from likewise.metrics.columns import UNSEEN
from likewise.metrics.people import People, spread

if TYPE_CHECKING:
    from likewise.auditing.violations import Audit

_SHOWN = 200  # the page looks at all pairs among them while a slider moves


@dataclass(frozen=True)
class UtilityPoint:
    """What a model achieves when all distances are multiplied by a factor.

    Attributes
    ----------
    factor : float
        Above 1 the metric is looser, below 1 stricter; 1 is the metric of the report.
    accuracy : float
    confidence : float
        Mean probability given to the true outcome.
    ceiling : float, optional
        Best mean confidence that any model can reach under the metric on these people.
    """

    factor: float
    accuracy: float
    confidence: float
    ceiling: float | None = None


@dataclass(frozen=True)
class Utility:
    """Utility against strictness.

    Attributes
    ----------
    points : tuple of UtilityPoint
        In any order, at least one.
    before : UtilityPoint, optional
        Of the model before; nothing holds it back, so its factor is infinite.
    measured_on : str
        On whom, such as "597 people not used in training".
    """

    points: tuple[UtilityPoint, ...]
    before: UtilityPoint | None = None
    measured_on: str = ""


@dataclass(frozen=True)
class GroupScores:
    """Accuracy and mean score in one group.

    Attributes
    ----------
    column, group : str
        Such as "sex" and "female". Groups of one column should follow each other.
    n : int
        People in it.
    before, after : tuple of two floats, optional
        Accuracy, and mean probability of the report's outcome.
    """

    column: str
    group: str
    n: int
    before: tuple[float, float] | None = None
    after: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class ReportData:
    """A whole report. "After" is the model that it is about, "before" the one that was made to keep to the metric.

    Attributes
    ----------
    title, subtitle : str
        What the report is about; the data and the model.
    outcome : str
        The outcome that scores are the probability of, as in "loan approved". Usually the favourable one.
    metric : Metric
        Of tables: it must say ``takes_tables``.
    people : People
        Who was measured, as ``metric.people(table)`` codes them. The index of their table names them; a number is
        "Person 7". The page shows a sample of at most 200, spread evenly.
    guarantee : Guarantee, optional
        None for a model about which nothing is promised; the page says so.
    revealed : Metric, optional
        The metric before people edited it.
    before, after : ndarray of shape (n_people,), optional
        Probabilities of the outcome.
    audit_before, audit_after : Audit, optional
        Searches among `people`.
    utility : Utility, optional
    groups : tuple of GroupScores
    n_population : int, optional
        How many people `people` were drawn from.
    n_outcomes : int
        Number of classes. With more than two, `before` and `after` are about one class only.
    date : str
        Shown as given; empty for none, since a rendering never asks the clock.
    """

    title: str
    outcome: str
    metric: Metric
    people: People
    subtitle: str = ""
    guarantee: Guarantee | None = None
    revealed: Metric | None = None
    before: FloatArray | None = None
    after: FloatArray | None = None
    audit_before: Audit | None = None
    audit_after: Audit | None = None
    utility: Utility | None = None
    groups: tuple[GroupScores, ...] = ()
    n_population: int | None = None
    n_outcomes: int = 2
    date: str = ""

    def __post_init__(self) -> None:
        check_takes_tables(self.metric)
        self.metric.weights_of(self.people.coding).check_missing(self.people)
        if (self.people.rows[:, ~self.people.coding.is_number] == UNSEEN).any():
            raise InvalidInputError("people must be coded with all of their categories; use metric.people(table).")
        if self.guarantee is not None and self.guarantee.metric != self.metric:
            raise InvalidInputError(
                f"guarantee must be about the report's metric; it is about {self.guarantee.metric!r}."
            )
        if self.revealed is not None and (
            lost := set(self.people.coding.names) - set(self.revealed.describe()["column"])
        ):
            raise InvalidInputError(f"revealed must weigh every column of the people; it has no {lost.pop()!r}.")
        for name, audit in self.audits.items():
            if audit.metric != self.metric or audit.n_samples != len(self.people):
                raise InvalidInputError(
                    f"audit_{name} must search these people under the report's metric; got {audit!r}."
                )
        for name, scores in self.scores.items():
            if np.shape(scores) != (len(self.people),) or not (np.abs(scores - 0.5) <= 0.5 + 1e-9).all():
                raise InvalidInputError(f"{name} must hold one probability for each of the people; got {scores!r}.")

    @property
    def scores(self) -> dict[str, FloatArray]:
        """`before` and `after`, those that are there."""
        return {name: x for name, x in (("before", self.before), ("after", self.after)) if x is not None}

    @property
    def audits(self) -> dict[str, Audit]:
        """The audits before and after, those that are there."""
        return {name: x for name, x in (("before", self.audit_before), ("after", self.audit_after)) if x is not None}

    @property
    def epsilon(self) -> float:
        """What scores may differ by beyond the distance, as promised."""
        return 0.0 if self.guarantee is None else self.guarantee.epsilon

    @property
    def sample(self) -> IntArray:
        """Positions of the people whom the page shows."""
        return spread(len(self.people), _SHOWN)

    def name(self, position: int) -> str:
        """Who a person is, if the table says so."""
        label = self.people.table.index[position]
        return label if isinstance(label, str) else f"Person {label}"


def check_takes_tables(metric: Metric) -> None:
    """Raise if the metric is not one of tables."""
    if not metric.takes_tables:
        raise InvalidTypeError(
            "A report needs a metric that takes tables, whose columns people can discuss; got "
            f"{metric!r}. Use TableMetric."
        )
