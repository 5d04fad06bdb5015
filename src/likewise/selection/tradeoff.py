"""What a stricter or looser metric costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from likewise._frozen import Frozen
from likewise._progress import progress_bar
from likewise._validation import TRUTH, check_positive, in_a_line
from likewise.base import ConstrainedEstimator
from likewise.exceptions import InvalidInputError
from likewise.inspection.baselines import Task
from likewise.metrics.base import Metric
from likewise.selection.compare import Recommendation, as_html, as_table, as_text, measured_on
from likewise.selection.cross_validation import SCORES, CVResult, Fold, make_folds, show
from likewise.selection.methods import (
    CONSTANT,
    REFERENCE,
    LearningTask,
    Method,
    build_method,
    own_method,
    read_learning_task,
)


@dataclass(frozen=True, eq=False, repr=False)
class Tradeoff(Frozen):
    """What one method keeps under stricter and looser metrics.

    Attributes
    ----------
    title : str
        Of the method.
    showings : dict from scale to Showing
        Under ``metric.scaled(scale)``, the strictest first.
    constant : Showing
        The constant that every metric allows.
    without_promise : dict from method to Showing
        Models without a promise: a linear one without the columns of weight 0, and boosting with them.
    folds : tuple of Fold
        The same for everything.
    task : {"classification", "regression"}
    metric : Metric
        At scale 1.
    """

    title: str
    showings: dict[float, CVResult]
    constant: CVResult
    without_promise: dict[str, CVResult]
    folds: tuple[Fold, ...]
    task: Task
    metric: Metric

    @property
    def table(self) -> pd.DataFrame:
        """One row per scale, with the columns of `Comparison.table`."""
        return as_table({scale: showing.row for scale, showing in self.showings.items()}, self.task, "scale")

    @property
    def reference(self) -> CVResult:
        """The best of the models without a promise, by the proper score."""
        name = SCORES[self.task][0].name
        return min(self.without_promise.values(), key=lambda showing: float(showing.row[name]))

    @property
    def beside(self) -> pd.DataFrame:
        """The same of the constant and of the models without a promise."""
        others = {name: showing.row for name, showing in self.without_promise.items()}
        return as_table({CONSTANT: self.constant.row} | others, self.task)

    @property
    def meets(self) -> float | None:
        """The strictest of the scales at which the method is as good as the best model without a promise.

        By the proper score; None if it never is.
        """
        name = SCORES[self.task][0].name
        limit = self.reference.row[name]
        return min((scale for scale, showing in self.showings.items() if showing.row[name] <= limit), default=None)

    @property
    def conclusion(self) -> str:
        """How strict one can afford to be, in words."""
        measure = SCORES[self.task][0]
        title, name, best = measure.title, measure.name, self.reference.row
        beside = (
            f"of the best model without a promise, {best['title']} ({measure.in_words(best[name])}; a constant has "
            f"{measure.in_words(self.constant.row[name])})."
        )
        if self.meets is None:
            return f"Under none of these metrics is the {title} as good as that {beside}"
        found = f"x {self.meets:g} is the strictest of these metrics"
        if self.meets == min(self.showings):
            found = f"Already under the strictest of these metrics, x {self.meets:g},"
            return f"{found} the {title} is as good as that {beside}"
        return f"{found} under which the {title} is as good as that {beside}"

    def __str__(self) -> str:
        return as_text(self._rows(), self.task, measured_on(self.folds), self.conclusion)

    def _repr_html_(self) -> str:
        title = f"{self.title} under stricter and looser metrics"
        return as_html(self._rows(), self.task, title, measured_on(self.folds), self.conclusion)

    def __repr__(self) -> str:
        return f"<Tradeoff of {self.title} at {', '.join(f'x {scale:g}' for scale in self.showings)}>"

    def _rows(self) -> pd.DataFrame:
        """The constant, the scales and the models without a promise, under one another."""
        table, beside = self.table, self.beside
        table["title"] = [f"{self.title}, x {scale:g}" for scale in table.index]
        return pd.concat([beside[:1], table, beside[1:]]).rename_axis("model")


def tradeoff(
    X: Any,
    y: Any,
    metric: Metric,
    scales: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 4.0),
    *,
    method: Any = "additive",
    cv: Any = 5,
    task: Literal["auto", "classification", "regression"] = "auto",
    output_range: tuple[float, float] | None = None,
    n_people: int = 1000,
    n_draws: int = 200,
    random_state: int = 0,
    verbose: bool = False,
) -> Tradeoff:
    """Measure one method under stricter and looser metrics, beside models without a promise and a constant.

    At scale s all distances are s times as large (up to 1 between categories): below 1 the promise is stricter, above 1
    looser. All models are fitted on the same folds and measured on the people held out.

    Parameters
    ----------
    X, y, metric, cv, task, output_range, n_people, n_draws, random_state, verbose
        As for `compare`.
    scales : sequence of float, default=(1/4, 1/2, 1, 2, 4)
        Multiples of the metric.
    method : str, Recommendation or (name, estimator), default="additive"
        A method of `compare`; what `Comparison.best` returned; or an estimator of your own that enforces a metric.

    Returns
    -------
    Tradeoff

    Examples
    --------
    >>> from likewise import WeightedLp
    >>> from likewise.dummy import ConstantClassifier
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> result = tradeoff(X, np.arange(60) // 30, WeightedLp([0.8]), method=("same", ConstantClassifier()), cv=3)
    >>> result.table["brier"].round(2).to_dict()
    {0.25: 0.25, 0.5: 0.25, 1.0: 0.25, 2.0: 0.25, 4.0: 0.25}
    >>> result.meets is None
    True
    """
    TRUTH.check("verbose", verbose)
    given = read_learning_task(X, y, metric, task, output_range, n_draws, random_state)
    factors = _check_scales(scales)
    methods = {factor: _method_under(given.under(metric.scaled(factor)), method) for factor in factors}
    folds = make_folds(given, cv, n_people)
    free = [
        method
        for method in (build_method(given, name) for name in ("linear", REFERENCE))
        if method.estimator is not None
    ]
    with progress_bar("Pricing", (len(factors) + 1 + len(free)) * len(folds), show=verbose) as advance:
        showings = {
            factor: show(one, given.under(metric.scaled(factor)), folds, advance) for factor, one in methods.items()
        }
        constant = show(build_method(given, CONSTANT), given, folds, advance)
        without_promise = {method.name: show(method, given, folds, advance) for method in free}
    return Tradeoff(methods[factors[0]].title, showings, constant, without_promise, folds, given.task, given.metric)


def _check_scales(scales: Any) -> list[float]:
    listed = isinstance(scales, (Sequence, np.ndarray)) and not isinstance(scales, str) and np.iterable(scales)
    if not listed or not len(scales):
        raise InvalidInputError(f"scales must be a list of positive numbers; got {in_a_line(scales)}.")
    return sorted({check_positive("scales", scale, cure="1 is the metric itself.") for scale in scales})


def _method_under(given: LearningTask, asked: Any) -> Method:
    """The method for this metric; one that does not apply is an error here."""
    if isinstance(asked, Recommendation):
        method = own_method(given, asked.name, asked.estimator)
    elif isinstance(asked, str):
        method = build_method(given, asked)
    elif isinstance(asked, tuple) and len(asked) == 2:
        method = own_method(given, *asked)
    else:
        raise InvalidInputError(
            f"method must be a name, what best() returned, or a pair (name, estimator); got {in_a_line(asked)}."
        )
    if method.name == CONSTANT:
        raise InvalidInputError("method must not be the constant: it costs the same under every metric.")
    if method.estimator is None:
        raise InvalidInputError(f"method cannot be {method.name!r}: {method.why_not}.")
    if not isinstance(method.estimator, ConstrainedEstimator):
        raise InvalidInputError(f"method must be one that enforces a metric; {method.name!r} promises nothing.")
    return replace(method, may_fail=False)
