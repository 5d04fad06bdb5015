"""Models of a command: reveal a metric from one, train one within a metric, and measure it on held-out people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from likewise._guarantee_warnings import suppress_guarantee_warnings
from likewise._parallel import threads_for
from likewise._subsample import evenly_spaced
from likewise._typing import FloatArray, IntArray
from likewise.cli.category_shapes import NO_SHAPES, GivenShapes
from likewise.cli.dataset import Dataset, Range
from likewise.exceptions import InvalidInputError, UnprovableError
from likewise.inspection.baselines import MODELS, categorical_columns, table_model
from likewise.io import load_inner
from likewise.kernel.columns import is_numeric
from likewise.metrics.table import TableMetric
from likewise.metrics.units import number
from likewise.metrics.weighted_lp import WeightedLp
from likewise.reveal.empirical import MetricEstimate, estimate_minimal_metric
from likewise.reveal.exchange import MAX_EXCHANGED
from likewise.reveal.linear import minimal_metric
from likewise.reveal.shapes import MOST_COMPARED
from likewise.selection.cross_validation import align_classes, compute_scores

_MOST_PEOPLE = 6000  # distinct people whose pairs are searched for the minimal metric of any model
_MOST_SCORED = 1_000_000  # distinct people whose scores are given
_LEAST_PEOPLE, _MOST_MEASURED = 20, 2000
_NOISE_DRAWS, _NOISE_SHARE = 20_000, 0.95
GUARANTEED, CONSTANT = "with the guarantee", "a constant"


@dataclass(frozen=True)
class Revealed:
    """A metric revealed from a model.

    If it is `exact`, a weight of 0 means that the model does not use the column; otherwise the columns `not_forced`
    have no weight because no pair of these people needs one, and `weights` has the range of each weight.
    """

    metric: TableMetric
    how: str
    exact: bool
    not_forced: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    weights: pd.DataFrame | None = None


def reveal_model(
    X: pd.DataFrame,
    y: npt.NDArray[Any],
    kind: str,
    seed: int,
    *,
    output_range: Range | None = None,
    shapes: GivenShapes = NO_SHAPES,
) -> Revealed:
    """Train a model of a kind and read off its minimal metric: exactly, or on the people in `X`.

    An `output_range` makes it a regression, whose weights are shares of the range.
    """
    given: dict[str, Any] = {"groups": shapes.groups or None, "distances": shapes.distances or None}
    kind = _kind_for(kind, regression=output_range is not None)
    model = table_model(X, kind, "classification" if output_range is None else "regression")
    seeds = {name: seed for name in model.get_params() if name.endswith("random_state")}
    with threads_for(X.size):
        model.set_params(**seeds).fit(X, y)
    try:
        exact: Any = minimal_metric(model, X, output_range=output_range, **given)
        how = f"Revealed exactly from a {kind} model: no smaller distance fits it."
        return Revealed(exact, how, exact=True)
    except UnprovableError:
        some, of = _distinct_people(X, _MOST_PEOPLE)
        asked = f"{MAX_EXCHANGED:,} of them" if len(some) > MAX_EXCHANGED else "people"
        found = estimate_minimal_metric(
            model, some, categorical=categorical_columns(X), output_range=output_range, **given
        )
        how = (
            f"Revealed from a {kind} model: no smaller distance fits all pairs of {of} of the table, and "
            f"{asked} with one column exchanged. For other people it is an estimate."
        )
    return _estimated(found, X, how)


def reveal_scores(
    X: pd.DataFrame, scores: npt.NDArray[Any], output_range: Range | None, shapes: GivenShapes = NO_SHAPES
) -> Revealed:
    """The minimal metric of given scores, on the people in `X`."""
    _check_equal_people(X, scores)
    some, of = _distinct_people(X, MOST_COMPARED if shapes.distances else _MOST_SCORED)
    found = estimate_minimal_metric(
        None,
        some,
        predictions=pd.Series(scores, index=X.index).loc[some.index].to_numpy(dtype=np.float64),
        categorical=categorical_columns(X),
        output_range=output_range,
        groups=shapes.groups or None,
        distances=shapes.distances or None,
    )
    how = (
        f"Revealed from scores: no smaller distance fits all pairs of {of} of the table. For other people it is an "
        "estimate, and weights that these people do not force are not known."
    )
    return _estimated(found, X, how)


def _check_equal_people(X: pd.DataFrame, scores: npt.NDArray[Any]) -> None:
    """Raise if two people who are equal in all columns have different scores."""
    group = X.groupby(list(X.columns), dropna=False, observed=True, sort=False).ngroup().to_numpy()
    order = np.lexsort((scores, group))
    apart = np.diff(scores[order]) * (np.diff(group[order]) == 0)
    worst = int(apart.argmax()) if len(apart) else 0
    if len(apart) and apart[worst] > 1e-9 * max(1.0, float(np.ptp(scores))):
        a, b = sorted(order[worst : worst + 2].tolist())
        raise InvalidInputError(
            f"Equal people must have equal scores, or no metric exists; rows {a + 1} and {b + 1} of the table are "
            f"equal, and their scores differ by {apart[worst]:.3g}. Add the column that tells them apart, or clean the "
            "scores."
        )


def _distinct_people(X: pd.DataFrame, max_people: int) -> tuple[pd.DataFrame, str]:
    """At most `max_people` distinct people, evenly spaced; and their number, in words."""
    distinct = X.drop_duplicates()
    some = distinct.iloc[evenly_spaced(len(distinct), max_people)]
    of = f" of {len(distinct):,}" if len(some) < len(distinct) else ""
    return some, f"{len(some):,}{of} distinct people"


def _estimated(found: MetricEstimate, X: pd.DataFrame, how: str) -> Revealed:
    metric: Any = found.metric
    if isinstance(metric, WeightedLp):
        metric = TableMetric(dict(zip(metric.columns, metric.weights.tolist(), strict=True)))
    if X[list(metric.numeric)].isna().any(axis=None):  # other columns may have blanks too: the most cautious weight
        metric = metric.with_params(missing=dict.fromkeys(metric.numeric, 1.0) | dict(metric.missing))
    return Revealed(metric, how, False, found.not_forced, found.notes, found.weights)


def _kind_for(kind: str, *, regression: bool) -> str:
    return "linear" if regression and kind == "logistic" else kind


def set_to_zero(metric: TableMetric, columns: Sequence[str]) -> TableMetric:
    """Set the weights of columns that must not matter to 0."""
    for name in columns:
        if name not in metric.columns:
            raise InvalidInputError(
                f"--zero must name columns of the table; there is no {name!r} among {metric.columns}."
            )
    return metric.reweighted(dict.fromkeys(columns, 0.0))


def directions(
    rises: Sequence[str],
    falls: Sequence[str],
    X: pd.DataFrame,
    y: npt.NDArray[Any],
    favourable: Any,
    *,
    classify: bool,
) -> dict[str, int]:
    """`monotone` of an estimator, from columns with which the favourable probability, or the number, rises or falls."""
    both = [name for name in rises if name in falls]
    if both:
        raise InvalidInputError(f"--rises and --falls must name different columns; both name {both[0]!r}.")
    signs = dict.fromkeys(rises, 1) | dict.fromkeys(falls, -1)
    unknown = [name for name in signs if name not in X]
    if unknown:
        raise InvalidInputError(f"--rises and --falls must name columns of {[*X]}; there is no {unknown[0]!r}.")
    if not signs or not classify:
        return signs
    classes = [str(label) for label in np.unique(y)]
    if str(favourable) not in classes:
        raise InvalidInputError(
            "--rises and --falls are of the favourable class, which is not known: give --favourable."
        )
    return signs if str(favourable) == classes[-1] else {name: -sign for name, sign in signs.items()}


def inner_model(data: Dataset, name: str) -> Any:
    """The model to project or smooth: an unfitted one of a kind, or a fitted one from a file, frozen."""
    if name in MODELS:
        return table_model(data.X, _kind_for(name, regression=not data.is_classification), data.task)
    if not name.endswith(".skops"):
        raise InvalidInputError(f"--model must be one of {', '.join(MODELS)}, or a .skops file; got {name!r}.")
    return FrozenEstimator(load_inner(name))


def build_estimator(
    method: str, data: Dataset, metric: TableMetric, inner: Any, *, seed: int | None, smoothing: dict[str, Any]
) -> Any:
    """An unfitted estimator within the metric; `smoothing` are parameters of a smoothed one."""
    import likewise

    shared: dict[str, Any] = {"metric": metric} if method == "additive" else {"metric": metric, "random_state": seed}
    if not data.is_classification:
        shared["output_range"] = data.output_range
        smoothing = {name: value for name, value in smoothing.items() if name != "vote"}
    name = {"additive": "Additive", "network": "Lipschitz", "projection": "Projected", "smoothing": "Smoothed"}[method]
    make = getattr(likewise, f"{name}{'Classifier' if data.is_classification else 'Regressor'}")
    if method in ("additive", "network"):
        return make(**shared)
    return make(inner, **shared, **(smoothing if method == "smoothing" else {}))


def build_unconstrained(data: Dataset, metric: TableMetric, name: str, inner: Any) -> dict[str, Any]:
    """Unfitted models without a guarantee, by title: the unconstrained one, and what is projected or smoothed."""
    from likewise.selection.methods import UNCONSTRAINED, build_method, check_problem

    problem = check_problem(data.X, data.y, metric, data.task, output_range=None, n_draws=1, random_state=0)
    found = {"the unconstrained model": build_method(problem, UNCONSTRAINED).estimator}
    if name not in MODELS:
        found[f"{Path(name).name} as it came, no guarantee"] = inner
    elif name != "boosting":
        found[f"{_kind_for(name, regression=not data.is_classification)} on all columns, no guarantee"] = inner
    return found


def parts_of(data: Dataset, share: float) -> tuple[IntArray, IntArray] | None:
    """Positions to train and to measure on: a `share`, or those kept apart; None if there are too few people."""
    parts = hold_out(data.y, share, classify=data.is_classification)
    return parts if parts is None else data.unseen.parts(len(data.y), _MOST_MEASURED) or parts


def fit_and_measure(
    estimator: Any, others: dict[str, Any], data: Dataset, parts: tuple[IntArray, IntArray] | None
) -> tuple[Any, pd.DataFrame | None, str]:
    """Fit an estimator to all people; measure a clone and others, fitted to some people, on the rest.

    Returns the fitted model, the scores, None if there were too few people, and on whom they were measured. The clone
    is within the metric made again from those whom it is fitted to, if that can be.
    """
    X, y, weights = data.X, data.y, data.weights
    scores, measured_on = None, f"Nobody was held out of the {len(y):,} people, so nothing was measured."
    if parts is not None:
        train, test = parts
        own, made, given = clone(estimator), data.unseen.made_by, [*map(_is_given, [estimator, *others.values()])]
        if made is not None:
            own = own.with_metric(made(X.iloc[train], y[train]))
        models = {GUARANTEED: own} | {name: clone(model) for name, model in others.items()}
        with suppress_guarantee_warnings(), threads_for(X.size):
            for model in models.values():
                weigh = {} if weights is None or model is not own else {"sample_weight": weights[train]}
                model.fit(X.iloc[train], y[train], **weigh)
            scores = score_models(models, X.iloc[test], y[test], y[train], classify=data.is_classification)
        within = "" if made is None else f", within the metric made again from these {len(train):,}"
        whose = "The model inside came trained, perhaps on them too. " if any(given) else ""
        measured_on = (
            f"Measured on {len(test):,} held-out people, by a model trained on the other {len(train):,}{within}. "
            f"{whose}The saved model is trained on all {len(y):,}."
        )
        measured_on += "" if weights is None else " Weights count in its fit; scores take everybody alike."
    fitted = estimator.fit(X, y) if weights is None else estimator.fit(X, y, sample_weight=weights)
    return fitted, scores, measured_on


def _is_given(model: Any) -> bool:
    """Whether it is a model that came trained, or is around one."""
    while not isinstance(model, FrozenEstimator) and hasattr(model, "estimator"):
        model = model.estimator
    return isinstance(model, FrozenEstimator)


def hold_out(y: npt.NDArray[Any], share: float, *, classify: bool) -> tuple[IntArray, IntArray] | None:
    """Positions to train and to measure on, stratified by class; None if there are too few people."""
    if not 0 <= share < 1:
        raise InvalidInputError(f"--holdout must be a share of the people, at least 0 and below 1; got {share:g}.")
    n_test = min(int(share * len(y)), _MOST_MEASURED)
    counts = np.unique(y, return_counts=True)[1] if classify else np.array([len(y)])
    if len(y) < _LEAST_PEOPLE or not n_test or counts.min() < 2:
        return None
    strata = y if classify and n_test >= len(counts) else None
    train, test = train_test_split(np.arange(len(y)), test_size=n_test, random_state=0, stratify=strata)
    return train, test


def score_models(
    models: dict[str, Any], X: pd.DataFrame, y: npt.NDArray[Any], y_train: npt.NDArray[Any], *, classify: bool
) -> pd.DataFrame:
    """Scores of fitted models on the people in `X`, and of the best constant for those trained on.

    For classes accuracy and Brier score, otherwise R2 and RMSE; as in `compare`.
    """
    predictions: dict[str, FloatArray] = {}
    classes = None
    if classify:
        classes = np.unique(np.concatenate([y_train, y]))  # a rare class may occur among the held-out people only
        for name, model in models.items():
            predictions[name] = align_classes(np.asarray(model.predict_proba(X)), model.classes_, classes)
        shares = (y_train[:, None] == classes).mean(axis=0)
        predictions[CONSTANT] = np.broadcast_to(shares, (len(y), len(classes)))
    else:
        predictions = {name: np.asarray(model.predict(X), dtype=np.float64) for name, model in models.items()}
        predictions[CONSTANT] = np.full(len(y), y_train.mean())
    columns = {"accuracy": "accuracy", "brier": "Brier score"} if classify else {"r2": "R2", "rmse": "RMSE"}
    scores = {name: compute_scores(predicted, y, classes) for name, predicted in predictions.items()}
    table = pd.DataFrame.from_dict(scores, orient="index")[list(columns)].rename(columns=columns)
    return table.rename_axis("model").reset_index()


def is_no_better_than_constant(scores: pd.DataFrame) -> bool:
    """Whether the constant has as good a proper score as the model with the guarantee."""
    error = scores.set_index("model")["Brier score" if "Brier score" in scores else "RMSE"]
    return bool(error[GUARANTEED] >= error[CONSTANT])


def noise_widths(model: Any, X: pd.DataFrame) -> pd.DataFrame:
    """Per numeric column with a weight: its range, and ``noise``, within which 19 of 20 draws lie."""
    rows, noise = [], getattr(model, "noise_", None)
    if noise is not None:
        draws = noise.sample(_NOISE_DRAWS, np.random.default_rng(0))
        widths = np.quantile(np.abs(draws), _NOISE_SHARE, axis=0)
        for name, width in zip(noise.names or model.encoder_.names, widths, strict=True):
            if width > 0 and is_numeric(X[name]):
                rows.append((name, float(X[name].min()), float(X[name].max()), float(width)))
    return pd.DataFrame(rows, columns=["column", "lowest", "highest", "noise"])


def wider_than_data(widths: pd.DataFrame) -> list[str]:
    """Columns in which the noise is wider than the range of the data."""
    return widths["column"][2 * widths["noise"] > widths["highest"] - widths["lowest"]].tolist()


def format_widths(widths: pd.DataFrame) -> pd.DataFrame:
    """The same as text: years read 2004, and large amounts 120,000."""
    ranges = zip(widths["lowest"], widths["highest"], strict=True)
    return pd.DataFrame(
        {
            "column": widths["column"],
            "people": [f"{number(low, 4)} to {number(high, 4)}" for low, high in ranges],
            "noise": [f"± {number(float(f'{width:.3g}'))}" for width in widths["noise"]],
        }
    )
