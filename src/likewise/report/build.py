"""From a fitted model and a table of people to what the report shows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length

from likewise._rules import in_a_line
from likewise._typing import FloatArray
from likewise.auditing.comparison import Comparison
from likewise.auditing.pricing import Price
from likewise.auditing.reach import measure_reach
from likewise.auditing.violations import Audit, audit
from likewise.auditing.ways import REFERENCE
from likewise.enforce.additive.panels import panels_of
from likewise.enforce.additive.reading import Readable
from likewise.enforce.base import Enforced
from likewise.errors import InvalidInputError
from likewise.guarantees.promise import Guarantee, VacuousGuaranteeWarning
from likewise.metrics.abstract import Metric
from likewise.metrics.coding import as_frame, without_sparse
from likewise.metrics.people import People, spread
from likewise.models.votes import hard_votes, soft_votes
from likewise.report.closest import closest_pairs
from likewise.report.costing import cost_of
from likewise.report.data import Cost, GroupScores, ReportData, check_takes_tables
from likewise.report.groups import groups_of
from likewise.report.words import KINDS

_SEARCHED = 3000  # people among whom all pairs are searched
_EVALUATIONS = 20_000_000  # of a smoothed model, at most: then fewer people are searched
_LEARNED = 6000  # people from whom models are trained anew
_WORST, _REASONS = 5, 3


def build_report(
    model: Any,
    X: pd.DataFrame,
    y: Any,
    *,
    outcome: Any = None,
    revealed: Any = None,
    comparison: Comparison | None = None,
    prices: Price | None = None,
    cv: int = 3,
    verbose: bool = False,
    **words: Any,
) -> ReportData:
    """Measure a model on people with known outcomes.

    Pairs are searched with the model as it is. How good it is, and what groups get, is measured on people held out, by
    models of its kind that are trained anew on folds of these people: so it does not matter whether the model has
    learned from them. Large tables are sampled evenly; the report says how many people each part is about.

    Columns of weight 0 may be absent. If the model wraps another one that was trained on them, it cannot be trained
    anew without them: then nothing is measured, and the report says so.

    Parameters
    ----------
    model : classifier or regressor of likewise
        Fitted with a metric of tables, such as `TableMetric`.
    X, y : table and outcomes
        People, named by the index of the table if it holds text, and otherwise by the row, counted from 0.
    outcome : label, optional
        Whose probability is shown; by default the last class. Of numbers: what is predicted, in words.
    revealed : Metric, optional
        The metric before it was edited.
    comparison, prices : Comparison and Price, optional
        Of the same people, if they are there already; by default made here.
    cv : int, default=3
        Folds.
    verbose : bool, default=False
        Show progress.
    words : str
        ``title``, ``model_name``, ``source``, ``date`` and ``changed`` of `ReportData`.
    """
    guarantee, metric = model.guarantee_, model.guarantee_.metric
    check_takes_tables(metric)
    check_consistent_length(X, y)
    classes = getattr(model, "classes_", None)
    shown, name = (-1, str(outcome or "the prediction")) if classes is None else _outcome(classes, outcome)
    labels = np.asarray(y)
    if classes is not None and not np.isin(labels, classes).all():
        unknown = labels[~np.isin(labels, classes)].tolist()[0]
        raise InvalidInputError(f"y must hold classes of the model, {_listed(classes)}; got {unknown!r}.")
    given = without_sparse(as_frame(X))
    absent = [column for column in model.feature_names_in_ if column not in given.columns]
    needed = [column for column in absent if column in model.needed_columns_]
    if needed:
        raise InvalidInputError(f"X must have the column {needed[0]!r}, which the model needs; it has {list(given)}.")
    table = given[[column for column in model.feature_names_in_ if column not in absent]]
    if not all(isinstance(label, str) for label in table.index):
        table = table.set_axis(range(len(table)))
    learned = np.arange(len(table)) if comparison is not None else spread(len(table), _LEARNED)
    missed = absent if _wraps_another(model) else []
    costing: Any = {"comparison": comparison, "prices": prices, "cv": cv, "verbose": verbose}
    with warnings.catch_warnings():  # the loosest of these promises may well be empty
        warnings.simplefilter("ignore", VacuousGuaranteeWarning)
        cost = None if missed else cost_of(model, table.iloc[learned], labels[learned], **costing)
    people = metric.people(table.iloc[spread(len(table), _searchable(guarantee.n_draws))])
    plain, what = (None, "") if missed else _without_promise(model, table.iloc[learned], labels[learned], cost)
    before = None if plain is None else _ask(plain, people, classes, guarantee.output_range)
    after = _ask(model, people, classes, guarantee.output_range)
    favourable = None if classes is None else classes[shown]
    data = ReportData(
        title=words.pop("title", "How alike people are treated"),
        outcome=name,
        metric=metric,
        people=people,
        guarantee=guarantee,
        revealed=revealed,
        before=before,
        after=after,
        shown=shown,
        output_range=guarantee.output_range,
        audit_before=None if before is None else _audit(people, before, guarantee),
        audit_after=_audit(people, after, guarantee),
        cost=cost,
        missed=tuple(map(str, missed)),
        groups=_groups(table.iloc[learned], labels[learned], metric, cost, classes, shown),
        groups_of="" if cost is None else f"{_n_measured(cost):,} people, each held out once",
        panels=tuple(panels_of(model, favourable)) if isinstance(model, Readable) else (),
        reasons=_reasons(model, people, favourable),
        reach=measure_reach(metric, table) if len(table) > 1 else None,
        kind=_kind(model),
        plain=what,
        n_population=len(table),
        **words,
    )
    return replace(data, closest=closest_pairs(people, data.shares["after"], metric, data.epsilon, _WORST))


def _outcome(classes: npt.NDArray[Any], asked: Any) -> tuple[int, str]:
    """Position and name of the class whose probability is shown."""
    names = [str(label) for label in classes]
    if asked is not None and str(asked) not in names:
        raise InvalidInputError(f"outcome must be one of {_listed(classes)}; got {in_a_line(asked)}.")
    shown = len(names) - 1 if asked is None else names.index(str(asked))
    return shown, names[shown]


def _listed(classes: npt.NDArray[Any]) -> str:
    return ", ".join(str(label) for label in classes)


def _wraps_another(model: Any) -> bool:
    """Whether there is a model inside that is not one of ours, and may read whatever it was trained on."""
    inner = getattr(model, "estimator", None)
    while isinstance(inner, FrozenEstimator):
        inner = inner.estimator
    return _wraps_another(inner) if isinstance(inner, Enforced) else inner is not None


def _searchable(n_draws: int) -> int:
    return int(np.clip(_EVALUATIONS // max(1, n_draws), 100, _SEARCHED))


def _without_promise(model: Any, X: pd.DataFrame, y: npt.NDArray[Any], cost: Cost | None) -> tuple[Any, str]:
    """A model that promises nothing, and what it is: the one inside, or else one that is trained on these people."""
    inner = getattr(model, "estimator_", None)
    if inner is not None:
        return inner, "the model inside, as it was"
    if cost is None:
        return None, ""
    return clone(cost.comparison.estimators[REFERENCE]).fit(X, y), "boosting, trained on the same people"


def _ask(
    model: Any, people: People, classes: npt.NDArray[Any] | None, output_range: tuple[float, float] | None
) -> FloatArray:
    """Probabilities of the classes, or predictions cut to the range that a promise is about."""
    if classes is None:
        assert output_range is not None
        return np.asarray(np.clip(model.predict(people.table), *output_range), dtype=np.float64)
    if hasattr(model, "guarantee_"):
        return np.asarray(model.predict_proba(people.table))
    votes = soft_votes if hasattr(model, "predict_proba") else hard_votes
    return votes(model, classes)(people.table)


def _audit(people: People, answers: FloatArray, guarantee: Guarantee) -> Audit | None:
    if len(people) < 2:
        return None
    return audit(
        None,
        people.table,
        guarantee.metric,
        predictions=answers,
        output_range=guarantee.output_range,
        tolerance=max(guarantee.epsilon, 1e-9),
        n_worst=_WORST,
    )


def _groups(
    table: pd.DataFrame,
    labels: npt.NDArray[Any],
    metric: Metric,
    cost: Cost | None,
    classes: npt.NDArray[Any] | None,
    shown: int,
) -> tuple[GroupScores, ...]:
    """Groups among people held out; none where nobody was."""
    if cost is None:
        return ()
    showings = cost.comparison.showings
    answers = {"before": showings[cost.plain].answers, "after": showings[cost.own].answers}
    return groups_of(table, metric, labels, answers, classes, shown)


def _n_measured(cost: Cost) -> int:
    return int((~np.isnan(cost.comparison.showings[cost.own].losses)).sum())


def _reasons(model: Any, people: People, favourable: Any) -> tuple[tuple[str, ...], ...]:
    """What lowers the score of each person, where the model can say so."""
    if not isinstance(model, Readable):
        return ()
    found = model.reasons(people.table, n=_REASONS, outcome=favourable)
    return tuple(
        tuple(reason.removesuffix(" against the average person") for reason in row if reason)
        for row in found.to_numpy().tolist()
    )


def _kind(model: Any) -> str:
    """How the promise is kept: a key of `KINDS`, by the name of the class."""
    return next((kind for kind in KINDS if type(model).__name__.lower().startswith(kind)), "")
