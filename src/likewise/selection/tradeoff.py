"""What a stricter or looser metric costs: one method under scaled metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from likewise._frozen import Frozen
from likewise._validation import BOOL, check_positive, short_repr
from likewise.base import ConstrainedEstimator
from likewise.exceptions import InvalidInputError
from likewise.inspection.baselines import Task
from likewise.metrics.base import Metric
from likewise.selection.compare import (
    Comparison,
    Recommendation,
    as_html,
    as_table,
    as_text,
    beats_constant,
    caveat_of,
    measure_all,
    measured_on,
)
from likewise.selection.cross_validation import SCORES, CVResult, Fold, make_folds
from likewise.selection.methods import (
    CONSTANT,
    UNCONSTRAINED,
    LearningProblem,
    Method,
    build_method,
    check_problem,
    custom_method,
)


@dataclass(frozen=True, eq=False, repr=False)
class Tradeoff(Frozen):
    """Result of `tradeoff`.

    Attributes
    ----------
    title : str
        Of the method.
    results : dict from scale to CVResult
        Under ``metric.scaled(scale)``, the strictest first.
    constant, unconstrained : CVResult
        The base rate or mean, and the unconstrained model of `compare`.
    folds : tuple of Fold
        The same for all models.
    task : {"classification", "regression"}
    metric : Metric
        At scale 1.
    caveat : str
        As of a `Comparison`.
    """

    title: str
    results: dict[float, CVResult]
    constant: CVResult
    unconstrained: CVResult
    folds: tuple[Fold, ...]
    task: Task
    metric: Metric
    caveat: str = ""

    @property
    def table(self) -> pd.DataFrame:
        """One row per scale, with the columns of `Comparison.table`."""
        return as_table({scale: result.row for scale, result in self.results.items()}, self.task, "scale")

    @property
    def matching_scale(self) -> float | None:
        """The strictest measured scale at which the method is as good as the unconstrained model; None if it never is.

        By the proper score. None, too, if the unconstrained model is not better than a constant by two standard errors.
        """
        name = SCORES[self.task][0].name
        if not beats_constant(self.unconstrained, self.constant):
            return None
        limit = self.unconstrained.row[name]
        return min((scale for scale, result in self.results.items() if result.row[name] <= limit), default=None)

    @property
    def conclusion(self) -> str:
        """How strict a metric one can afford, in words."""
        score, scale = SCORES[self.task][0], self.matching_scale
        free, constant = (score.format(result.row[score.name]) for result in (self.unconstrained, self.constant))
        if not beats_constant(self.unconstrained, self.constant):
            return (
                f"The unconstrained model ({score.title} {free}) is not measurably better than a constant "
                f"({constant}): these people cannot show what a stricter metric costs."
            )
        as_good = f"as good as that of the unconstrained model ({free}; a constant has {constant})."
        if scale is None:
            return f"Under none of these metrics is the {score.title} {as_good}"
        if scale == min(self.results):
            return f"Already under the strictest of these metrics, x {scale:g}, the {score.title} is {as_good}"
        return f"x {scale:g} is the strictest of these metrics under which the {score.title} is {as_good}"

    def __str__(self) -> str:
        return as_text(self._all_rows(), self.task, *self._words())

    def _repr_html_(self) -> str:
        return as_html(self._all_rows(), self.task, f"{self.title} under stricter and looser metrics", *self._words())

    def _words(self) -> tuple[str, str]:
        """Who was measured, and what follows."""
        return measured_on(self.folds), f"{self.conclusion} {self.caveat}".rstrip()

    def __repr__(self) -> str:
        return f"<Tradeoff of {self.title} at {', '.join(f'x {scale:g}' for scale in self.results)}>"

    def _all_rows(self) -> pd.DataFrame:
        """The constant, the scales, and the unconstrained model."""
        table = self.table
        table["title"] = [_title_at(self.title, scale) for scale in table.index]
        ends = as_table({CONSTANT: self.constant.row, UNCONSTRAINED: self.unconstrained.row}, self.task)
        return pd.concat([ends[:1], table, ends[1:]]).rename_axis("model")


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
    comparison: Comparison | None = None,
    made_by: Callable[[Any, Any], Metric] | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> Tradeoff:
    """Measure one method under stricter and looser metrics, beside a constant and the unconstrained model.

    At scale s all distances are s times as large (up to 1 between categories): below 1 the metric is stricter, above 1
    looser. All models are fitted on the same folds and measured on held-out people.

    Parameters
    ----------
    X, y, metric, cv, task, output_range, n_people, n_draws, made_by, random_state, verbose
        As for `compare`.
    scales : sequence of float, default=(1/4, 1/2, 1, 2, 4)
        Multiples of the metric.
    method : str, Recommendation or (name, estimator), default="additive"
        A method of `compare`; what `Comparison.best` returned; or an estimator of your own that enforces a metric.
    comparison : Comparison, optional
        What `compare` returned for the same people and metric. Its folds, with the metrics that were made in them, are
        used instead of `cv` and `made_by`, and the models that it has measured are not fitted again.

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
    >>> result.matching_scale is None
    True
    """
    BOOL.check("verbose", verbose)
    problem = check_problem(X, y, metric, task, output_range, n_draws, random_state)
    factors = _check_scales(scales)
    known: dict[Any, CVResult] = {}
    if comparison is None:
        folds = make_folds(problem, cv, n_people, made_by, verbose=verbose)
    else:
        _check_comparison(comparison, problem)
        folds, known = comparison.folds, {name: comparison.results[name] for name in (CONSTANT, UNCONSTRAINED)}
        name, estimator = _named_estimator(method)
        if estimator is not None and comparison.estimators.get(name) is estimator:  # the very same
            known[1.0] = comparison.results[name]
    jobs: dict[Any, tuple[Method, LearningProblem, str]] = {}
    for name in (CONSTANT, UNCONSTRAINED):
        built = build_method(problem, name)
        jobs[name] = built, problem, built.title
    for factor in factors:
        scaled = problem.scaled(factor)
        built = _build_method(scaled, method)
        jobs[factor] = built, scaled, _title_at(built.title, factor)
    new = {key: job for key, job in jobs.items() if key not in known}
    known |= zip(new, measure_all([*new.values()], folds, verbose), strict=True)
    results = {factor: known[factor] for factor in factors}
    ends = known[CONSTANT], known[UNCONSTRAINED]
    return Tradeoff(built.title, results, *ends, folds, problem.task, problem.metric, caveat_of(folds))


def _title_at(title: str, scale: float) -> str:
    return f"{title}, x {scale:g}"


def _check_scales(scales: Any) -> list[float]:
    is_list = isinstance(scales, (Sequence, np.ndarray)) and not isinstance(scales, str) and np.iterable(scales)
    if not is_list or not len(scales):
        raise InvalidInputError(f"scales must be a list of positive numbers; got {short_repr(scales)}.")
    return sorted({check_positive("scales", scale, hint="1 is the metric itself.") for scale in scales})


def _check_comparison(comparison: Any, problem: LearningProblem) -> None:
    if (
        not isinstance(comparison, Comparison)
        or (comparison.metric, comparison.task) != (problem.metric, problem.task)
        or len(comparison.results[CONSTANT].losses) != len(problem.y)
    ):
        raise InvalidInputError(
            f"comparison must be what compare returned for these {len(problem.y):,} people and this metric; got "
            f"{short_repr(comparison)}. Leave it out to measure everything."
        )


def _named_estimator(method: Any) -> tuple[str, Any]:
    """Name and estimator of a method; None for one that is given by name only."""
    if isinstance(method, Recommendation):
        return method.name, method.estimator
    if isinstance(method, str):
        return method, None
    if isinstance(method, tuple) and len(method) == 2:
        return method
    raise InvalidInputError(
        f"method must be a name, what Comparison.best returned, or a pair (name, estimator); got {short_repr(method)}."
    )


def _build_method(problem: LearningProblem, method: Any) -> Method:
    """The method for this metric; one that does not apply is an error here."""
    name, estimator = _named_estimator(method)
    built = build_method(problem, name) if estimator is None else custom_method(problem, name, estimator)
    if built.name == CONSTANT:
        raise InvalidInputError("method must not be the constant, which costs the same under every metric.")
    if built.estimator is None:
        raise InvalidInputError(f"method cannot be {built.name!r}: {built.why_not}.")
    if not isinstance(built.estimator, ConstrainedEstimator):
        raise InvalidInputError(f"method must be one that enforces a metric; {built.name!r} has no guarantee.")
    return replace(built, may_fail=False)
