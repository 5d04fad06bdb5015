"""Everything a report shows, as plain values: what is not in here is not on the page."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from likewise.guarantees.promise import Level
from likewise.report import checks

Value = float | int | str | None
"""A number in a numeric column, a text in a categorical one, None where it is missing."""


@dataclass(frozen=True)
class Claim:
    """What is promised about the smoothed model.

    Attributes
    ----------
    level : {"exact", "deterministic", "sampled"}
        How firmly: for all pairs with certainty, or for each pair with probability ``1 - delta``.
    noise : str
        Name of the noise, as in the library: "Gaussian", "Splitting", ...
    statement : str
        The promise in full, as `Guarantee.statement` words it. Shown unchanged behind a fold.
    epsilon, delta : float
        Error of sampling (or of the grid), and the probability that a pair exceeds it.
    n_draws : int
        Evaluations of the inner model per person; 0 where there are none to count.
    n_outcomes : int
        Number of classes. With more than two, the scores of the sampled people are of one class only.
    """

    level: Level
    noise: str
    statement: str
    epsilon: float = 0.0
    delta: float = 0.0
    n_draws: int = 0
    n_outcomes: int = 2

    def __post_init__(self) -> None:
        checks.choice("level", self.level, ("exact", "deterministic", "sampled"))
        checks.number("epsilon", self.epsilon, low=0)
        checks.number("delta", self.delta, low=0, high=1)


@dataclass(frozen=True)
class Column:
    """One column of the table of people, and what a difference in it counts.

    Attributes
    ----------
    name : str
        As in the table; any text.
    kind : {"numeric", "categorical"}
    weight : float
        Numeric: the weight inside the power, per unit (to the power p). Categorical: the mismatch weight, in
        [0, 1]. 0 means that the column must not matter.
    unit : str
        Written after an amount, such as "years" or "thousand a month".
    prefix : str
        Written before an amount, such as "$".
    revealed_weight : float, optional
        The weight read off the model before people edited it; None if it was not revealed.
    missing_weight : float, optional
        Mismatch weight between a present and a missing number, added outside the power. None: the metric says
        nothing, so the distance between two such people is undefined unless `weight` is 0. In a categorical
        column a missing value is a category of its own and this field is not used.
    categories : tuple of str
        Values offered in the comparer, in this order. Those that occur among the people are added.
    typical_difference : float, optional
        For a numeric column, a difference that is usual between two people, in units; columns are compared by
        what it counts. None: the mean difference among the sampled people.
    """

    name: str
    kind: Literal["numeric", "categorical"]
    weight: float
    unit: str = ""
    prefix: str = ""
    revealed_weight: float | None = None
    missing_weight: float | None = None
    categories: tuple[str, ...] = ()
    typical_difference: float | None = None

    def __post_init__(self) -> None:
        checks.choice("kind", self.kind, ("numeric", "categorical"))
        high = 1.0 if self.kind == "categorical" else None
        checks.number(f"weight of {self.name!r}", self.weight, low=0, high=high)
        for field, bound in (("revealed_weight", high), ("missing_weight", 1.0), ("typical_difference", None)):
            if (given := getattr(self, field)) is not None:
                checks.number(f"{field} of {self.name!r}", given, low=0, high=bound)


@dataclass(frozen=True)
class Metric:
    """The distance between people.

    ``D = (sum_i w_i |x_i - x'_i|^p)^(1/p) + sum_c w_c [x_c != x'_c]``; for ``p = inf`` the first part is
    ``max_i w_i |x_i - x'_i|``. A distance of 0.01 is one percentage point of score.

    Attributes
    ----------
    columns : tuple of Column
        In the order of the values of each person.
    p : float
        At least 1; may be infinite.
    """

    columns: tuple[Column, ...]
    p: float = 1.0

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError("columns must not be empty: a metric compares people by at least one column.")
        if not self.p >= 1:
            raise ValueError(f"p must be at least 1; got {self.p!r}.")


@dataclass(frozen=True)
class Person:
    """A sampled person.

    Attributes
    ----------
    values : tuple of Value
        One per column of the metric.
    before, after : float, optional
        Probability of the report's outcome by the model before smoothing, and by the smoothed one. None if there
        is no such model; then it is None for everybody.
    name : str
        Shown in the comparer; "Person 7" if empty.
    label : str
        What happened in the data, if known; empty otherwise.
    """

    values: tuple[Value, ...]
    before: float | None = None
    after: float | None = None
    name: str = ""
    label: str = ""

    def __post_init__(self) -> None:
        for field in ("before", "after"):
            if (given := getattr(self, field)) is not None:
                checks.number(f"{field} of a person", given, low=0, high=1)


@dataclass(frozen=True)
class WorstPair:
    """Two people whose scores differ by more than their distance, or come closest to it.

    Attributes
    ----------
    first, second : tuple of Value
        Their rows, one value per column of the metric.
    distance : float
    allowed : float
        Largest difference that the search accepted, usually ``min(1, distance)``.
    actual : float
        Difference of their outputs: total variation over all outcomes.
    names : tuple of two str
        Who they are, if that can be said.
    """

    first: tuple[Value, ...]
    second: tuple[Value, ...]
    distance: float
    allowed: float
    actual: float
    names: tuple[str, str] = ("", "")

    def __post_init__(self) -> None:
        for field in ("distance", "allowed", "actual"):
            checks.number(f"{field} of a pair", getattr(self, field), low=0)


@dataclass(frozen=True)
class Audit:
    """What a search over pairs of people found in one model.

    Attributes
    ----------
    n_people, n_pairs : int
        Whose pairs were searched, and how many.
    n_violations : int
        Pairs whose outputs differ by more than allowed.
    max_excess : float
        Largest difference beyond what is allowed; 0 (or negative) if nothing exceeds it.
    max_ratio : float
        Largest actual difference per distance; infinite if people at distance 0 are treated differently.
    coverage : str
        What was searched and what was not, in words.
    worst : tuple of WorstPair
        The worst first; the page shows the first five.
    """

    n_people: int
    n_pairs: int
    n_violations: int
    max_excess: float
    max_ratio: float
    coverage: str = ""
    worst: tuple[WorstPair, ...] = ()

    def __post_init__(self) -> None:
        for field in ("n_people", "n_pairs", "n_violations"):
            checks.count(field, getattr(self, field))
        checks.number("max_excess", self.max_excess)
        if not self.max_ratio >= 0:
            raise ValueError(f"max_ratio must be a number >= 0 or infinity; got {self.max_ratio!r}.")


@dataclass(frozen=True)
class UtilityPoint:
    """What the smoothed model achieves when all distances are multiplied by a factor.

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

    def __post_init__(self) -> None:
        checks.number("factor", self.factor, low=0)
        if self.factor == 0:
            raise ValueError("factor must be positive; got 0.")
        for field in ("accuracy", "confidence", "ceiling"):
            if (given := getattr(self, field)) is not None:
                checks.number(field, given, low=0, high=1)


@dataclass(frozen=True)
class Utility:
    """Utility against strictness.

    Attributes
    ----------
    points : tuple of UtilityPoint
        In any order.
    baseline_accuracy, baseline_confidence : float, optional
        Of the model before smoothing.
    measured_on : str
        On whom, such as "597 people not used in training".
    """

    points: tuple[UtilityPoint, ...]
    baseline_accuracy: float | None = None
    baseline_confidence: float | None = None
    measured_on: str = ""


@dataclass(frozen=True)
class Group:
    """Accuracy and mean score in one group, before and after smoothing.

    Attributes
    ----------
    column, group : str
        Such as "sex" and "female". Groups of one column should follow each other.
    n : int
        People in it.
    accuracy_before, accuracy_after : float, optional
    score_before, score_after : float, optional
        Mean probability of the report's outcome.
    """

    column: str
    group: str
    n: int
    accuracy_before: float | None = None
    accuracy_after: float | None = None
    score_before: float | None = None
    score_after: float | None = None

    def __post_init__(self) -> None:
        checks.count("n", self.n)
        for field in ("accuracy_before", "accuracy_after", "score_before", "score_after"):
            if (given := getattr(self, field)) is not None:
                checks.number(f"{field} of {self.group!r}", given, low=0, high=1)


@dataclass(frozen=True)
class Limit:
    """Something that is not promised: what, and why."""

    what: str
    why: str


NOT_PROMISED: tuple[Limit, ...] = (
    Limit(
        "A cut-off on the score",
        "The promise is about scores, and about decisions drawn with the score as their chance. A rule such as “yes "
        "above 50 %” jumps: two people on either side of the line get different answers however alike they are.",
    ),
    Limit(
        "That the distance is the right one",
        "Everything is relative to the weights in this report. If they ignore a difference that matters, or count one "
        "that should not, the promise is about the wrong thing. That is for people to discuss.",
    ),
    Limit(
        "What the columns leave out",
        "Two people with the same values are the same person to the model. Errors in the data, missing information and "
        "the history behind it are outside. A weight of 0 hides a column, not what other columns reveal about it.",
    ),
    Limit(
        "Groups",
        "The promise compares two similar people. It says nothing about average outcomes or error rates of groups and "
        "does not replace measuring them.",
    ),
    Limit("Accuracy", "Smoothing changes the model. The stricter the distance, the closer all scores move together."),
)
"""The limits of every promise this library makes, from `docs/limitations.md`."""


@dataclass(frozen=True)
class ReportData:
    """A whole report.

    Attributes
    ----------
    title, subtitle : str
        What the report is about; the data and the model.
    outcome : str
        The outcome that scores are the probability of, as in "loan approved". Usually the favourable one.
    metric : Metric
    version : str
        Of likewise.
    claim : Claim, optional
        None for a model about which nothing is promised; the page says so.
    people : tuple of Person
        A sample, best at most 200: the page looks at all pairs among them while a slider moves.
    n_population : int, optional
        How many people the sample was drawn from.
    audit_before, audit_after : Audit, optional
    utility : Utility, optional
    groups : tuple of Group
    not_promised : tuple of Limit
    date : str
        Shown as given; empty for none, since a rendering never asks the clock.
    """

    title: str
    outcome: str
    metric: Metric
    subtitle: str = ""
    version: str = ""
    claim: Claim | None = None
    people: tuple[Person, ...] = ()
    n_population: int | None = None
    audit_before: Audit | None = None
    audit_after: Audit | None = None
    utility: Utility | None = None
    groups: tuple[Group, ...] = ()
    not_promised: tuple[Limit, ...] = NOT_PROMISED
    date: str = ""

    def __post_init__(self) -> None:
        kinds = [(column.name, column.kind) for column in self.metric.columns]
        for number, person in enumerate(self.people, 1):
            checks.row(f"values of person {number}", person.values, kinds)
        for field in ("before", "after"):
            if len({getattr(person, field) is None for person in self.people}) > 1:
                raise ValueError(f"{field} must be given for all people or for none.")
        for audit in (self.audit_before, self.audit_after):
            for pair in audit.worst if audit else ():
                checks.row("first of a pair", pair.first, kinds)
                checks.row("second of a pair", pair.second, kinds)

    def to_json(self) -> str:
        """Return the data as JSON, with infinities as the text "inf".

        Examples
        --------
        >>> metric = Metric((Column("age", "numeric", 0.01),), p=float("inf"))
        >>> ReportData("Loans", "approved", metric).to_json()[:40]
        '{"title": "Loans", "outcome": "approved"'
        """
        return json.dumps(_without_infinities(asdict(self)), ensure_ascii=False, allow_nan=False)


def _without_infinities(item: Any) -> Any:
    if isinstance(item, dict):
        return {key: _without_infinities(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [_without_infinities(value) for value in item]
    return "inf" if item == float("inf") else item
