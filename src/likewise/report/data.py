"""Everything a report shows: objects of the library, and what was measured with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from likewise._subsample import evenly_spaced
from likewise._typing import FloatArray, IntArray
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.columns import UNSEEN
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.metrics.base import Metric
from likewise.metrics.table import TableMetric
from likewise.pairs.model_outputs import as_shares
from likewise.report.pairs import PairScan, Story, scan_pairs

if TYPE_CHECKING:
    from likewise.auditing.coverage import Coverage
    from likewise.auditing.effect import Effect
    from likewise.auditing.file_review import FileReview
    from likewise.auditing.group_audit import GroupAudit
    from likewise.auditing.group_gaps import GroupGaps
    from likewise.decisions.costs import DecisionCosts
    from likewise.design.frontier import MetricFrontier
    from likewise.scorecard.display import Panel
    from likewise.selection.compare import Comparison
    from likewise.selection.tradeoff import Tradeoff

_SHOWN = 200  # the page counts all pairs of them while a slider moves


@dataclass(frozen=True, eq=False)
class Cost:
    """What the guarantee costs, on held-out people.

    Attributes
    ----------
    comparison : Comparison
        Of this model and others, on the people of the report.
    method : str
        The method of the comparison that is this model.
    is_prefit : bool
        Whether the wrapped model was already fitted: it may have been trained on the people it is measured on.
    tradeoff : Tradeoff, optional
        The same under stricter and looser metrics.
    people : PeopleCost, optional
        The same in people.
    metric_saw : bool, optional
        Whether the metric was made from these people, so that the cost is understated; None if it is not known.
    """

    comparison: Comparison
    method: str
    is_prefit: bool = False
    tradeoff: Tradeoff | None = None
    people: PeopleCost | None = None
    metric_saw: bool | None = None

    def __post_init__(self) -> None:
        if self.method not in self.comparison.results:
            raise InvalidInputError(f"method must be one of the comparison; got {self.method!r}.")


@dataclass(frozen=True)
class PeopleCost:
    """How many people the guarantee costs something, as `people_cost` counts them. All are shares.

    Attributes
    ----------
    other : float or None
        People whose decision is not that of the unconstrained model; None for numbers.
    wrong : mapping from method to float
        People whose decision is not their outcome; for numbers, pairs that are ranked in the wrong order.
    error : float
        Standard error of the difference between this model and the unconstrained one in `wrong`.
    rate : float or None
        Of two classes, people who had the outcome, to as many of whom it is given.
    """

    other: float | None
    wrong: Mapping[str, float]
    error: float
    rate: float | None = None


@dataclass(frozen=True)
class GroupFigures:
    """What a model gives one group.

    Attributes
    ----------
    mean : float
        Probability of the report's outcome, or prediction.
    rate : float or None
        Share of the people who get that decision, as in `PeopleCost`; None for numbers.
    error : float
        Share whose decision is not their outcome; for numbers the root of the mean squared error.
    """

    mean: float
    rate: float | None
    error: float


@dataclass(frozen=True)
class GroupScores:
    """One group, as measured on held-out people.

    Attributes
    ----------
    column, group : str
        Such as "sex" and "female". Groups of one column should follow each other.
    n : int
        People in it who were measured.
    actual : float
        Share of them with the outcome, or its mean.
    before, after : GroupFigures, optional
        Of the unconstrained model, and of the model of the report.
    """

    column: str
    group: str
    n: int
    actual: float
    before: GroupFigures | None = None
    after: GroupFigures | None = None


@dataclass(frozen=True, eq=False)
class ReviewedFiles:
    """A review of files, and the pairs of it that are shown.

    Attributes
    ----------
    found : FileReview
    people : People or None
        The denied people with most comparators, each followed by the closest comparator; None if there are none.
    outputs : ndarray of shape (n_people,) or (n_people, n_classes), or None
        What the report's model gives them, as `ReportData.after`.
    """

    found: FileReview
    people: People | None = None
    outputs: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class HiddenColumn:
    """What was measured of a column of weight 0.

    Attributes
    ----------
    name : str
    effect : Effect or None
        Of exchanging the column alone.
    no_effect : str
        Why there is none, in a sentence.
    gaps : GroupGaps or None
        Of groups by its values, among the people who were searched.
    no_gaps : str
        Why there are none, in a sentence.
    """

    name: str
    effect: Effect | None = None
    no_effect: str = ""
    gaps: GroupGaps | None = None
    no_gaps: str = ""


@dataclass(frozen=True, eq=False)
class ReportData:
    """A whole report. "After" is the model that it is about, "before" the unconstrained one.

    Attributes
    ----------
    title : str
    outcome : str
        What scores are the probability of, as in "loan approved", usually the favourable outcome; or the number that
        is predicted.
    metric : Metric
        A `TableMetric`.
    people : People
        Among whom pairs are searched, as ``metric.encode_rows(table)`` codes them. The index of their table names them;
        a number is "row 7". The page lets one choose among a sample of about 200, spread evenly.
    guarantee : Guarantee, optional
        None for a model without one; the page says so.
    before, after : ndarray of shape (n_people,) or (n_people, n_classes), optional
        Probabilities of the outcome, or of every class; or predictions, within `output_range`.
    shown : int
        Position of the outcome among the classes.
    output_range : tuple of float, optional
        Of numbers; a point is a hundredth of its width.
    frontier : MetricFrontier, optional
        What the metric was designed on.
    cost : Cost, optional
    missed : tuple of str
        Absent columns, without which nothing could be measured.
    groups : tuple of GroupScores
    groups_of : str
        On whom they were measured.
    panels : tuple of Panel
        The shapes of a scorecard.
    reasons : tuple of tuples of str
        For each of the `people`, the main reasons for their score.
    reach : Coverage, optional
        How many pairs the metric constrains.
    decisions : DecisionCosts, optional
        Of a plain threshold (width 0) and a soft one, under `metric`; for two classes. The threshold is that of the
        model, or the median score.
    review : ReviewedFiles, optional
        Denied people beside approved ones who are no better qualified.
    hidden : tuple of HiddenColumn
        Columns of weight 0, of a model of another system or of scores alone.
    group_audit : GroupAudit, optional
        Of groups by these columns, among the people who were searched.
    made : tuple of (str, str)
        How the page was made: what, and its value, such as the SHA-256 of the table.
    kind : str
        Key of `text.KINDS`; empty where the method is not known.
    classes : tuple of str
        Names of the classes, in the order of the columns of `before` and `after`.
    model_name, source, date : str
        The model's file, the table, and the date of the data, shown as they are.
    n_population : int, optional
        How many people `people` were drawn from.
    """

    title: str
    outcome: str
    metric: Metric
    people: People
    guarantee: Guarantee | None = None
    before: FloatArray | None = None
    after: FloatArray | None = None
    shown: int = -1
    output_range: tuple[float, float] | None = None
    frontier: MetricFrontier | None = None
    cost: Cost | None = None
    missed: tuple[str, ...] = ()
    groups: tuple[GroupScores, ...] = ()
    groups_of: str = ""
    panels: tuple[Panel, ...] = ()
    reasons: tuple[tuple[str, ...], ...] = ()
    reach: Coverage | None = None
    decisions: DecisionCosts | None = None
    review: ReviewedFiles | None = None
    hidden: tuple[HiddenColumn, ...] = ()
    group_audit: GroupAudit | None = None
    made: tuple[tuple[str, str], ...] = ()
    kind: str = ""
    classes: tuple[str, ...] = ()
    model_name: str = ""
    source: str = ""
    date: str = ""
    n_population: int | None = None

    @cached_property
    def bound(self) -> BoundMetric:
        """The metric of the people."""
        return self.metric.bind(self.people.encoder)

    def bound_for(self, people: People) -> BoundMetric:
        """The metric of these people, or of others."""
        return self.bound if people is self.people else self.metric.bind(people.encoder)

    def __post_init__(self) -> None:
        check_table_metric(self.metric)
        self.bound.check_people(self.people)
        if (self.people.rows[:, ~self.people.encoder.is_number] == UNSEEN).any():
            raise InvalidInputError("people must be coded with all of their categories; use metric.encode_rows(table).")
        if self.guarantee is not None and not self.guarantee.bound_metric.is_of(self.metric):
            raise InvalidInputError(
                f"guarantee must be about the report's metric; it is about {self.guarantee.metric!r}."
            )
        for name, shares in self.shares.items():
            if len(shares) != len(self.people) or not (np.abs(shares - 0.5) <= 0.5 + 1e-9).all():
                what = "probability" if self.output_range is None else f"number within {self.output_range}"
                raise InvalidInputError(f"{name} must hold one {what} for each of the people.")
        if self.reasons and len(self.reasons) != len(self.people):
            raise InvalidInputError(f"reasons must be of each of the {len(self.people)} people.")

    @property
    def shares(self) -> dict[str, FloatArray]:
        """Outputs `before` and `after`, where given: probabilities, or predictions as shares of their range.

        For several classes, the total variation is half the sum of differences.
        """
        given = (("before", self.before), ("after", self.after))
        return {name: self.shares_of(outputs) for name, outputs in given if outputs is not None}

    def shares_of(self, outputs: FloatArray) -> FloatArray:
        """Outputs as in `shares`; shape (n_people, n_outputs)."""
        columns = np.asarray(outputs, dtype=np.float64)
        shares = as_shares(columns if columns.ndim == 2 else columns[:, None], self.output_range)
        return shares[:, [self.shown]] if shares.shape[1] == 2 else shares

    @property
    def epsilon(self) -> float:
        """Epsilon of the guarantee: the allowed excess over the distance."""
        return 0.0 if self.guarantee is None else self.guarantee.epsilon

    @property
    def sample(self) -> IntArray:
        """Positions of the people among whom a reader can choose, with the two of whom the page tells."""
        told = [] if self.story is None else list(self.story.pair)
        return np.union1d(evenly_spaced(len(self.people), _SHOWN), told).astype(np.intp)

    @cached_property
    def scan(self) -> PairScan | None:
        """All pairs of the people by distance and difference of scores; None without pairs or scores."""
        if len(self.people) < 2 or not self.shares:
            return None
        return scan_pairs(self.people.rows, self.bound, self.shares, self.epsilon)

    @property
    def mean_distance(self) -> float:
        """Mean distance of two of the people, drawn at random."""
        rows = self.people.rows
        return float(self.bound.pairwise(rows, rows).mean()) if len(rows) else 0.0

    @property
    def story(self) -> Story | None:
        """The two people of whom the page tells; None without pairs or scores."""
        return None if self.scan is None else self.scan.story

    def name(self, position: int, people: People | None = None) -> str:
        """The index label of a person, or the row."""
        label = (people or self.people).table.index[position]
        return label if isinstance(label, str) else f"row {label}"


def check_table_metric(metric: Metric) -> None:
    """Raise if the metric is not a `TableMetric`."""
    if not isinstance(metric, TableMetric):
        raise InvalidTypeError(
            "A report needs a metric that takes tables, whose columns people can discuss; got "
            f"{metric!r}. Use TableMetric."
        )
