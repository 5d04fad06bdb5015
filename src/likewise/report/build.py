"""Measure a fitted model on a table of people, for its report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length

from likewise._favourable import Direction, given_or_stored, known_favourable
from likewise._fit_validation import model_columns
from likewise._guarantee_warnings import suppress_guarantee_warnings
from likewise._subsample import evenly_spaced
from likewise._typing import FloatArray
from likewise._validation import short_repr
from likewise.additive.scorecard_mixin import ScorecardMixin
from likewise.ask import answers, as_taken
from likewise.auditing.coverage import measure_coverage
from likewise.auditing.file_review import FileReview
from likewise.base import ConstrainedEstimator
from likewise.decisions.costs import DecisionCosts, costs_of_scores
from likewise.decisions.threshold import ThresholdDecision
from likewise.design.frontier import MetricFrontier
from likewise.exceptions import InvalidInputError
from likewise.inspection.prediction import hard_votes, soft_votes
from likewise.kernel.schema import People, as_frame, without_sparse
from likewise.metrics.base import Metric
from likewise.report.data import Cost, GroupScores, ReportData, ReviewedFiles, check_table_metric
from likewise.report.hidden import audit_hidden, measure_hidden
from likewise.report.people import decide, people_cost
from likewise.report.tables import groups_of
from likewise.report.text import KINDS
from likewise.scorecard.display import panels_of
from likewise.selection.compare import Comparison, compare
from likewise.selection.methods import UNCONSTRAINED
from likewise.selection.tradeoff import Tradeoff
from likewise.selection.tradeoff import tradeoff as measure_tradeoff
from likewise.verification.domain import Domain

OWN, INNER = "this model", "the model inside"
_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
_SEARCHED_COST = 500  # people of a fold among whom pairs are searched
_DRAWS, _STEPS = 60, 1000  # most draws and training steps of retrained models


def cost_of(
    model: Any,
    X: pd.DataFrame,
    y: npt.NDArray[Any],
    shown: int = -1,
    *,
    comparison: Comparison | None = None,
    tradeoff: Tradeoff | None = None,
    made_by: Callable[[Any, Any], Metric] | None = None,
    cv: int = 3,
    verbose: bool = False,
) -> Cost | None:
    """Cross-validate models of the same kind as `model`, and others; None if there are too few people.

    Penalties of a scorecard are chosen anew in each fold; draws and training steps are limited.
    """
    metric, classes = model.guarantee_.metric, getattr(model, "classes_", None)
    fewest = len(y) if classes is None else min(int((y == label).sum()) for label in classes)
    if fewest < max(cv, 2):
        return None
    method, inner = (OWN, _quick(model)), getattr(model, "estimator", None)
    shared: Any = {
        "cv": cv,
        "task": "regression" if classes is None else "classification",
        "output_range": model.guarantee_.output_range,
        "n_people": _SEARCHED_COST,
        "verbose": verbose,
    }
    if comparison is None:
        beside = [] if inner is None else [(INNER, inner)]
        comparison = compare(X, y, metric, methods=[method, *beside], made_by=made_by, **shared)
    method_name = next((name for name, one in comparison.estimators.items() if type(one) is type(model)), None)
    if method_name is None or len(comparison.results[method_name].losses) != len(y):
        raise InvalidInputError(
            f"comparison must be of these {len(y):,} people, with a {type(model).__name__} among the methods. Leave it "
            "out to have it computed here."
        )
    if tradeoff is None:
        method = (method_name, comparison.estimators[method_name])
        tradeoff = measure_tradeoff(X, y, metric, _SCALES, method=method, comparison=comparison, **shared)
    is_prefit = isinstance(inner, FrozenEstimator)
    return Cost(comparison, method_name, is_prefit, tradeoff, people_cost(comparison, method_name, y, classes, shown))


def _quick(model: Any) -> Any:
    """An unfitted clone with few draws and training steps, and nothing that was found for single columns."""
    parameters, changes = model.get_params(deep=False), dict[str, Any]()
    for name in ("penalty", "max_knots"):
        if isinstance(parameters.get(name), Mapping):  # of a designed card: found with those who are held out here
            changes[name] = type(model)().get_params(deep=False)[name]
    if "n_draws" in parameters and model.guarantee_.n_draws:
        changes["n_draws"] = int(np.clip(model.guarantee_.n_draws, 1, _DRAWS))
    if isinstance(parameters.get("n_steps"), int):
        changes["n_steps"] = min(_STEPS, parameters["n_steps"])
    if "verbose" in parameters:
        changes["verbose"] = False
    return clone(model).set_params(**changes)


_SEARCHED = 3000  # people among whom all pairs are searched
_EVALUATIONS = 20_000_000  # most evaluations of a smoothed model; beyond, fewer people are searched
_LEARNED = 6000  # people on whom models are retrained
_WORST, _REASONS = 5, 3
_WIDTH, _NEAR = 0.1, 0.02  # of the decisions that are shown for a model of scores


def build_report(
    model: Any,
    X: pd.DataFrame,
    y: Any,
    *,
    outcome: Any = None,
    frontier: MetricFrontier | None = None,
    comparison: Comparison | None = None,
    tradeoff: Tradeoff | None = None,
    review: FileReview | None = None,
    seen: bool | None = None,
    made_by: Callable[[Any, Any], Metric] | None = None,
    cv: int = 3,
    verbose: bool = False,
    **words: Any,
) -> ReportData:
    """Measure a model on people with known outcomes.

    Pairs are searched with the model itself. Scores and groups are cross-validated by models of its kind, so the
    people may be those that the model was trained on. It is compared with the unconstrained model of `compare`, whose
    pairs are of people that it was not trained on. Large tables are sampled evenly, and
    the report says how many people each part is about.

    Columns of weight 0 may be absent. If the model wraps another one that was trained on them, it cannot be trained
    again without them: then nothing is measured, and the report says so.

    Parameters
    ----------
    model : classifier or regressor of likewise
        Fitted with a metric of tables, such as `TableMetric`.
    X, y : table and outcomes
        People, named by the index of the table if it holds text, and otherwise by the row, counted from 1.
    outcome : label, optional
        Class whose probability is shown; by default the favourable one, if its word is known, or else the
        last. For a regression, a name for what is predicted.
    frontier : MetricFrontier, optional
        What `design_metric` returned, if the metric was designed.
    comparison, tradeoff : Comparison and Tradeoff, optional
        Of the same people; by default computed here.
    review : FileReview, optional
        Of decisions about the same people.
    seen : bool, optional
        Whether the metric was made from these people, so that what it costs is understated; None if that is not known.
    made_by : callable, optional
        As in `compare`: makes the metric again in each fold, so that what it costs is not understated.
    cv : int, default=3
        Folds.
    verbose : bool, default=False
        Show progress.
    words : str
        ``title``, ``model_name``, ``source`` and ``date`` of `ReportData`.
    """
    guarantee, metric = model.guarantee_, model.guarantee_.metric
    check_table_metric(metric)
    check_consistent_length(X, y)
    classes = getattr(model, "classes_", None)
    shown, name = (-1, str(outcome or "the prediction")) if classes is None else shown_outcome(model, classes, outcome)
    labels = np.asarray(y)
    if classes is not None and not np.isin(labels, classes).all():
        unknown = labels[~np.isin(labels, classes)].tolist()[0]
        raise InvalidInputError(f"y must hold classes of the model, {_listed(classes)}; got {unknown!r}.")
    frame = without_sparse(as_frame(X))
    absent = [column for column in model.feature_names_in_ if column not in frame.columns]
    needed = [column for column in absent if column in model.required_features_]
    if needed:
        raise InvalidInputError(f"X must have the column {needed[0]!r}, which the model needs; it has {list(frame)}.")
    table = _with_names(frame[model_columns(model, frame)])
    learned = np.arange(len(table)) if comparison is not None else evenly_spaced(len(table), _LEARNED)
    missed = absent if _wraps_another(model) else []
    costing: Any = {"comparison": comparison, "tradeoff": tradeoff, "made_by": made_by, "cv": cv, "verbose": verbose}
    with suppress_guarantee_warnings():  # under the loosest metric, guarantees may be vacuous
        cost = None if missed else cost_of(model, table.iloc[learned], labels[learned], shown, **costing)
    unconstrained, unseen = None, np.arange(len(table))
    if cost is not None:
        cost = replace(cost, metric_saw=seen if cost.comparison.caveat else False)
        unconstrained = cost.comparison.results[UNCONSTRAINED].model
        unseen = np.setdiff1d(unseen, learned[cost.comparison.folds[0].train])
    people = metric.encode_rows(table.iloc[unseen[evenly_spaced(len(unseen), _searchable(guarantee.n_draws))]])
    before = None if unconstrained is None else _predict(unconstrained, people, classes, guarantee.output_range)
    after = _predict(model, people, classes, guarantee.output_range)
    favourable = None if classes is None else classes[shown]
    return ReportData(
        title=words.pop("title", "How alike people are treated"),
        outcome=name,
        metric=metric,
        people=people,
        guarantee=guarantee,
        frontier=frontier,
        before=before,
        after=after,
        shown=shown,
        output_range=guarantee.output_range,
        cost=cost,
        missed=tuple(map(str, missed)),
        groups=_groups(table.iloc[learned], labels[learned], metric, cost, classes, shown),
        groups_of="" if cost is None else f"{_n_measured(cost):,} people, each held out once",
        panels=tuple(panels_of(model, favourable)) if isinstance(model, ScorecardMixin) else (),
        reasons=_reasons(model, people),
        reach=measure_coverage(metric, table) if len(table) > 1 else None,
        decisions=_decisions(model, people, after, shown),
        review=_reviewed(review, table, metric, lambda some: _predict(model, some, classes, guarantee.output_range)),
        kind=_kind(model),
        classes=() if classes is None else tuple(map(str, classes)),
        n_population=len(table),
        **words,
    )


def build_scores_report(
    X: pd.DataFrame,
    scores: Any,
    metric: Metric,
    *,
    outcome: str = "the score",
    output_range: tuple[float, float] | None = None,
    review: FileReview | None = None,
    model: Any = None,
    asked: Any = None,
    domain: Domain | None = None,
    favourable: Any = None,
    **words: Any,
) -> ReportData:
    """Report on the scores of another system: the distance, pairs of the given people, and what columns of weight 0 do.

    There is no guarantee, and nothing is cross-validated: what the distance would cost and decisions are left out. How
    much exchanging a column of weight 0 alone can change is measured where the model is given.

    Parameters
    ----------
    X : table
        People, named as in `build_report`.
    scores : array-like of shape (n_samples,)
        Probabilities, or numbers within `output_range`.
    metric : Metric
        Of tables, such as `TableMetric`.
    outcome : str
        What is scored.
    output_range : tuple of float, optional
        Lowest and highest score, if these are no probabilities.
    review : FileReview, optional
        Of decisions about the same people.
    model : model or function, optional
        What gave the scores.
    asked : table, optional
        The people as the model takes them; `X` if not given.
    domain : Domain, optional
        Of everybody whom the model may be asked about; learned from `asked` if not given.
    favourable : class label, "high" or "low", optional
        As in `effect`.
    words : str
        As in `build_report`, and ``made`` of `ReportData`.
    """
    check_table_metric(metric)
    check_consistent_length(X, scores)
    table = _with_names(without_sparse(as_frame(X)))
    chosen, answers = evenly_spaced(len(table), _SEARCHED), np.asarray(scores, dtype=np.float64)
    people, after = metric.encode_rows(table.iloc[chosen]), answers[chosen]
    taken = None if model is None else as_frame(X if asked is None else asked)
    classes = np.asarray(getattr(model, "classes_", ())).tolist()
    classes.sort(key=lambda label: str(label) == outcome)  # of two, `scores` are probabilities of the outcome
    favourable = given_or_stored(favourable, model)
    end = Direction.of(favourable, classes or None).end
    return ReportData(
        title=words.pop("title", "How alike people are treated"),
        outcome=outcome,
        metric=metric,
        people=people,
        after=after,
        output_range=output_range,
        reach=measure_coverage(metric, table) if len(table) > 1 else None,
        review=_reviewed(review, table, metric, answers),
        hidden=measure_hidden(model, taken, domain, people.table, after, metric, output_range, favourable, end),
        group_audit=audit_hidden(people.table, after, metric, output_range, end),
        n_population=len(table),
        **words,
    )


def _with_names(table: pd.DataFrame) -> pd.DataFrame:
    """The table with people's names as its index, or their rows, counted from 1, if some have none."""
    named = all(isinstance(label, str) for label in table.index)
    return table if named else table.set_axis([f"row {k}" for k in range(1, len(table) + 1)])


def _reviewed(review: FileReview | None, table: pd.DataFrame, metric: Metric, answers: Any) -> ReviewedFiles | None:
    """The first files of a review; `answers` are of the whole table, or a function of people."""
    if review is None:
        return None
    if not isinstance(review, FileReview) or review.n_denied + review.n_approved != len(table):
        raise InvalidInputError(
            f"review must be what review_files returned for these {len(table):,} people; got {short_repr(review)}."
        )
    rows = review.files[["row", "comparator"]].head(_WORST).to_numpy().ravel()
    if not len(rows):
        return ReviewedFiles(review)
    people = metric.encode_rows(table.iloc[rows])
    return ReviewedFiles(review, people, answers(people) if callable(answers) else answers[rows])


def shown_outcome(model: Any, classes: npt.NDArray[Any], outcome: Any) -> tuple[int, str]:
    """Position and name of the class whose probability is shown."""
    names = [str(label) for label in classes]
    if outcome is not None and str(outcome) not in names:
        raise InvalidInputError(f"outcome must be one of {_listed(classes)}; got {short_repr(outcome)}.")
    known = {known_favourable(pair) for pair in combinations(classes.tolist(), 2)} - {None}
    named = next(
        each
        for each in (outcome, given_or_stored(None, model), *(known if len(known) == 1 else ()), names[-1])
        if each is not None
    )
    shown = names.index(str(named))
    return shown, names[shown]


def _listed(classes: npt.NDArray[Any]) -> str:
    return ", ".join(str(label) for label in classes)


def _wraps_another(model: Any) -> bool:
    """Whether it wraps a model of another library, which may read any column that it was trained on."""
    inner = getattr(model, "estimator", None)
    while isinstance(inner, FrozenEstimator):
        inner = inner.estimator
    return _wraps_another(inner) if isinstance(inner, ConstrainedEstimator) else inner is not None


def _searchable(n_draws: int) -> int:
    return int(np.clip(_EVALUATIONS // max(1, n_draws), 100, _SEARCHED))


def _predict(
    model: Any, people: People, classes: npt.NDArray[Any] | None, output_range: tuple[float, float] | None
) -> FloatArray:
    """Probabilities of the classes, or predictions clipped to the output range."""
    if classes is None:
        assert output_range is not None
        numbers = answers(model, as_taken(model, people.table), "predict")
        return np.asarray(np.clip(numbers, *output_range), dtype=np.float64)
    if hasattr(model, "guarantee_"):
        return answers(model, people.table, "predict_proba")
    votes = soft_votes if hasattr(model, "predict_proba") else hard_votes
    return votes(model, classes)(people.table)


def _decisions(model: Any, people: People, after: FloatArray, shown: int) -> DecisionCosts | None:
    """Near pairs decided differently by a plain threshold and by a soft one; None without near pairs of two classes."""
    if after.ndim != 2 or after.shape[1] != 2 or len(people) < 2:
        return None
    guarantee, scores, width = model.guarantee_, after[:, shown], _WIDTH
    threshold = float(np.clip(np.median(scores).round(2), 0.01, 0.99))
    if isinstance(model, ThresholdDecision):
        threshold, width = float(model.scorer_.thresholds[0]), model.scorer_.width
        scores = model.band(people.table)["score"].to_numpy()
    found = costs_of_scores(scores, people.table, guarantee.metric, guarantee, threshold, np.array([0.0, width]), _NEAR)
    if isinstance(model, ThresholdDecision):  # its guarantee is about decisions already
        found = replace(found, table=found.table.assign(guarantee=[1.0, float(guarantee.bound(_NEAR))]))
    return found if found.n_near_pairs else None


def _groups(
    table: pd.DataFrame,
    labels: npt.NDArray[Any],
    metric: Metric,
    cost: Cost | None,
    classes: npt.NDArray[Any] | None,
    shown: int,
) -> tuple[GroupScores, ...]:
    """Groups of held-out people; none if nobody was held out."""
    if cost is None:
        return ()
    comparison = cost.comparison
    results = {"before": comparison.results[UNCONSTRAINED], "after": comparison.results[cost.method]}
    answers = {name: found.predictions for name, found in results.items()}
    decided = {
        name: found.predictions if classes is None else decide(found, labels, classes, comparison.folds)
        for name, found in results.items()
    }
    return groups_of(table, metric, labels, answers, decided, classes, shown)


def _n_measured(cost: Cost) -> int:
    return int((~np.isnan(cost.comparison.results[cost.method].losses)).sum())


def _reasons(model: Any, people: People) -> tuple[tuple[str, ...], ...]:
    """Reasons for each person's score, if the model can give them."""
    if not isinstance(model, ScorecardMixin):
        return ()
    found = model.reasons(people.table, n=_REASONS).drop(columns="outcome")
    return tuple(
        tuple(reason.removesuffix(" against the average person") for reason in row if reason)
        for row in found.to_numpy().tolist()
    )


def _kind(model: Any) -> str:
    """Key of `KINDS`, by the name of the class."""
    return next((kind for kind in KINDS if type(model).__name__.lower().startswith(kind)), "")
