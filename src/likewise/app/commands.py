"""The steps of the command line, on tables in files."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.frozen import FrozenEstimator

from likewise._writing import atomic_write
from likewise.app.column_kinds import Faults, Kinds, as_kinds, infer_kinds
from likewise.app.files import load_inner
from likewise.app.held_out import PLAIN, PROMISED, hold_out, measure_models
from likewise.app.metric_files import read_metric
from likewise.app.tables import Dialect, Note, named, no_note, read_table
from likewise.errors import FileError, InvalidInputError, UnprovableError
from likewise.guarantees.promise import VacuousGuaranteeWarning
from likewise.metrics.columns import UNSEEN, CategoricalColumn
from likewise.metrics.tabular import TableMetric
from likewise.models.pipelines import MODELS, categorical_columns, table_model
from likewise.reveal.estimated import estimate_minimal_metric
from likewise.reveal.exact import minimal_metric

_MOST_PEOPLE = 6000  # distinct people whose pairs are searched for the minimal metric of any model
_FEW_KINDS, _MOST_KINDS = 10, 50
_RARE = 0.05  # of the people; values of a target beyond two that are rarer may be mistakes
_TWINS = {"logistic": "linear"}  # of numbers

Task = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class Learnable:
    """A table to learn from: people, outcomes, and what the outcomes are."""

    X: pd.DataFrame
    y: npt.NDArray[Any]
    task: Task
    units: dict[str, str]

    @property
    def classify(self) -> bool:
        """Whether outcomes are kinds rather than numbers."""
        return self.task == "classification"

    @property
    def kind(self) -> Literal["classes", "numbers"]:
        """The same in the words of `compare`."""
        return "classes" if self.classify else "numbers"


@dataclass(frozen=True)
class Revealed:
    """A metric read off a model, and how."""

    metric: TableMetric
    how: str
    model: Any


def people_and_outcomes(
    path: str | Path,
    target: str,
    drop: Sequence[str] = (),
    *,
    dialect: Dialect | None = None,
    task: Task | None = None,
    metric: TableMetric | None = None,
    classes: Sequence[Any] | None = None,
    categorical: Sequence[str] = (),
    id_column: str | None = None,
    name_rows: bool = False,
    natural: bool = False,
    note: Note = no_note,
) -> Learnable:
    """Read a table and split off its target; where a metric is given, its columns only.

    What a column is, the metric says; without one, `categorical` and all values of the column. The column `id_column`
    is left out; with `name_rows` it becomes the index, as "id 17". Outcomes are those of `classes`, if there are any.
    """
    dialect, where = dialect or Dialect(), named(path)
    aside = [] if id_column is None else [id_column]
    kinds = None if metric is None else Kinds.of_metric(metric)
    as_text = [*categorical, *aside] if kinds is None else [*kinds.as_text, *aside]
    given = read_table(path, dialect, note, as_text=as_text, padded=kinds is None)
    for name in (target, *drop, *categorical, *aside):
        if name not in given.columns:
            raise FileError(f"{where} has no column {name!r}; it has {', '.join(map(repr, given.columns))}.")
    given = given.drop(columns=[name for name in drop if name != target])
    if not len(given):
        raise FileError(f"{where} has no rows.")
    if given[target].isna().any():
        rows = np.flatnonzero(given[target].isna())
        raise FileError(
            f"{where}: the target {target!r} is missing in {len(rows):,} of {len(given):,} rows, the first of them row "
            f"{rows[0] + 1}. Drop these first."
        )
    dates: list[str] = []
    people = given.drop(columns=[target, *([] if name_rows else aside)])
    if kinds is None:
        X, dates = infer_kinds(people, dialect, note, categorical=categorical)
    else:
        assert metric is not None
        X = _under(people, metric, kinds, given, path, dialect, note, id_column=id_column, natural=natural)
    if name_rows and id_column is not None:
        X = X.set_axis([f"{id_column} {name}" for name in given[id_column]])
    if not X.shape[1]:
        raise FileError(f"{where} has no column but the target, so there is nothing to predict it from.")
    outcomes = infer_kinds(given[[target]], dialect, note)[0][target]
    if classes is not None:
        outcomes = _as_classes(outcomes, classes)
    elif outcomes.nunique() < 2 and not name_rows:
        raise FileError(
            f"{where}: the target {target!r} is {str(outcomes.iloc[0])!r} for everyone, so there is nothing to learn."
        )
    task = task_of(outcomes, where, task)
    y = outcomes.to_numpy()
    if task == "classification":
        note_rare_outcomes(outcomes, note)
    return Learnable(X, y if task == "classification" else y.astype(np.float64), task, dict.fromkeys(dates, "days"))


def _under(
    people: pd.DataFrame,
    metric: TableMetric,
    kinds: Kinds,
    given: pd.DataFrame,
    path: str | Path,
    dialect: Dialect,
    note: Note,
    *,
    id_column: str | None,
    natural: bool,
) -> pd.DataFrame:
    """The columns that a metric names, as it says; `given` is the whole table."""
    chosen = columns_of(people, metric, path, note, aside=[] if id_column is None else [id_column])
    faults = Faults(None if id_column is None else given[id_column])
    X = as_kinds(chosen, kinds, dialect, faults, note, natural=natural)
    faults.stop(named(path))
    return X


def _as_classes(outcomes: pd.Series[Any], classes: Sequence[Any]) -> pd.Series[Any]:
    """Outcomes as a model has them, where they are the same to a reader; others as they are."""
    known = CategoricalColumn.learn(pd.Series(classes, name=outcomes.name))
    codes = known.encode(outcomes)
    if (codes == UNSEEN).any():
        return outcomes
    return pd.Series(known.decode(codes), index=outcomes.index, name=outcomes.name)


def note_rare_outcomes(outcomes: pd.Series[Any], note: Note) -> None:
    """A line on values of a target beyond two that hardly occur."""
    counts = outcomes.value_counts()
    rare = counts.iloc[2:]
    if len(rare) and rare.sum() < _RARE * len(outcomes):
        shown = ", ".join(f"{str(value)!r} ({count:,})" for value, count in counts.iloc[:5].items())
        note(
            f"The target {str(outcomes.name)!r} has {len(counts)} different values: {shown}. If it should have two, "
            "correct the others, or leave these rows out."
        )


def task_of(target: pd.Series[Any], where: str, asked: Task | None = None) -> Task:
    """Whether a target is one of few kinds or a number: as asked, or by its values where they leave no doubt."""
    n_kinds, name = target.nunique(), target.name
    numbers = pd.api.types.is_numeric_dtype(target.dtype) and not pd.api.types.is_bool_dtype(target.dtype)
    if asked == "regression" and not numbers:
        raise FileError(f"{where}: the target {name!r} must hold numbers for --task regression; it holds text.")
    if asked == "classification" or not numbers:
        if n_kinds > _MOST_KINDS:
            raise FileError(
                f"{where}: the target {name!r} has {n_kinds} different values, too many for kinds of outcomes "
                f"(at most {_MOST_KINDS}). Is it the right column?"
            )
        return "classification"
    if asked == "regression":
        return "regression"
    whole = bool((target % 1 == 0).all())
    if n_kinds <= _FEW_KINDS and (whole or n_kinds <= 2):
        return "classification"
    if n_kinds > _MOST_KINDS or not whole:
        return "regression"
    raise FileError(
        f"{where}: the target {name!r} has {n_kinds} different whole numbers, which could be kinds or a number. Say "
        "--task classification or --task regression."
    )


def columns_of(
    table: pd.DataFrame, metric: TableMetric, path: str | Path, note: Note = no_note, *, aside: Collection[str] = ()
) -> pd.DataFrame:
    """The columns that the metric names, in the order of the table; those `aside` are not missed."""
    where = named(path)
    absent = [n for n in metric.columns if n not in table.columns and n not in metric.hidden and n not in aside]
    if absent:
        raise FileError(f"{where} has no column {absent[0]!r}, which the metric names; it has {list(table.columns)}.")
    others = [str(name) for name in table.columns if name not in metric.columns and name not in aside]
    if others:
        note(f"Left out, since the metric does not name {'it' if len(others) == 1 else 'them'}: {', '.join(others)}.")
    return table[[name for name in table.columns if name in metric.columns]]


def without_empty(X: pd.DataFrame, note: Note) -> pd.DataFrame:
    """Leave out columns without a single value: nothing can be learned from them."""
    empty = [str(name) for name in X.columns if X[name].isna().all()]
    for name in empty:
        note(f"Column {name!r} is entirely empty: it is left out.")
    if len(empty) == X.shape[1]:
        raise FileError("Every column but the target is entirely empty, so there is nothing to predict it from.")
    return X.drop(columns=empty)


def constant_columns(X: pd.DataFrame, note: Note) -> list[str]:
    """Columns in which everyone is alike."""
    found = [str(name) for name in X.columns if X[name].nunique(dropna=False) == 1]
    for name in found:
        note(f"Column {name!r} is the same for everyone: the model cannot use it, and its weight is 0.")
    return found


def restricted(metric: TableMetric, columns: Collection[str]) -> TableMetric:
    """The metric of some of its columns. It is nowhere larger, so a promise under it is one under the metric."""
    return TableMetric(
        {name: weight for name, weight in metric.numeric.items() if name in columns},
        {name: weight for name, weight in metric.categorical.items() if name in columns},
        metric.p,
        missing={name: weight for name, weight in metric.missing.items() if name in columns} or "refuse",
        units={name: unit for name, unit in metric.units.items() if name in columns},
    )


def model_of(X: pd.DataFrame, kind: str, *, regression: bool) -> Any:
    """An unfitted model of a kind of `--model`, or its twin for numbers."""
    return table_model(X, _TWINS.get(kind, kind), "numbers") if regression else table_model(X, kind)


def reveal(
    X: pd.DataFrame,
    y: npt.NDArray[Any],
    kind: str,
    seed: int,
    units: dict[str, str] | None = None,
    *,
    regression: bool = False,
) -> Revealed:
    """Train a model of the given kind and read its minimal metric: exactly, or on the people in `X`."""
    model = model_of(X, kind, regression=regression)
    seeds = {name: seed for name in model.get_params() if name.endswith("random_state")}
    model.set_params(**seeds).fit(X, y)
    output_range = (float(y.min()), float(y.max())) if regression else None
    name = _TWINS.get(kind, kind) if regression else kind
    try:
        found: Any = minimal_metric(model, output_range=output_range)
        how = f"Revealed exactly from a {name} model: no smaller distance fits it."
    except UnprovableError:
        distinct = X.drop_duplicates()
        some = distinct.iloc[np.unique(np.linspace(0, len(distinct) - 1, _MOST_PEOPLE).astype(int))]
        found = estimate_minimal_metric(
            model, some, categorical=categorical_columns(X), output_range=output_range
        ).metric
        of = f" of {len(distinct):,}" if len(some) < len(distinct) else ""
        how = (
            f"Revealed from a {name} model: no smaller distance fits all pairs of {len(some):,}{of} distinct people of "
            "the table. For others it is an estimate."
        )
    if found.takes_tables:
        numeric, mismatch, missing = dict(found.numeric), dict(found.categorical), dict(found.missing)
        if X[list(numeric)].isna().any(axis=None):  # where some are missing, others may be: nothing is known of these
            missing = dict.fromkeys(numeric, 1.0) | missing
    else:
        numeric, mismatch, missing = dict(zip(X.columns, found.weights.tolist(), strict=True)), {}, {}
    return Revealed(TableMetric(numeric, mismatch, missing=missing or "refuse", units=units), how, model)


def edit(metric: TableMetric, zero: Sequence[str], factor: float = 1.0) -> TableMetric:
    """Set the weights of some columns to 0, since they must not matter, and multiply distances by `factor`."""
    for name in zero:
        if name not in metric.columns:
            raise InvalidInputError(
                f"--zero must name columns of the table; there is no {name!r} among {metric.columns}."
            )
    edited = TableMetric(
        {name: 0.0 if name in zero else weight for name, weight in metric.numeric.items()},
        {name: 0.0 if name in zero else weight for name, weight in metric.categorical.items()},
        metric.p,
        missing={name: weight for name, weight in metric.missing.items() if name not in zero} or "refuse",
        units=metric.units,
    )
    return edited if factor == 1 else edited.scaled(factor)


def learnable_under(
    table: str | Path,
    target: str,
    metric_file: str | Path,
    *,
    dialect: Dialect | None,
    task: Task | None,
    note: Note,
    id_column: str | None = None,
    natural: bool = False,
) -> tuple[Learnable, TableMetric]:
    """People and outcomes with the columns of a metric file, and the metric of those that hold something."""
    metric = read_metric(metric_file)
    data = people_and_outcomes(
        table, target, dialect=dialect, task=task, metric=metric, id_column=id_column, natural=natural, note=note
    )
    X = without_empty(data.X, note)
    return replace(data, X=X), restricted(metric, list(X.columns))


def inner_model(data: Learnable, name: str) -> Any:
    """A model to be projected or smoothed: an unfitted one of a kind, or a fitted one from a file, frozen."""
    if name in MODELS:
        return model_of(data.X, name, regression=not data.classify)
    if not name.endswith(".skops"):
        raise InvalidInputError(f"--model must be one of {', '.join(MODELS)}, or a .skops file; got {name!r}.")
    return FrozenEstimator(load_inner(name))


def estimator_by(
    by: str, data: Learnable, metric: TableMetric, inner: Any, *, seed: int | None, smoothing: dict[str, Any]
) -> Any:
    """An unfitted estimator within the metric, by the way asked for; `smoothing` are options of that one."""
    import likewise

    shared: dict[str, Any] = {"metric": metric, "random_state": seed}
    if not data.classify:
        shared["output_range"] = (float(data.y.min()), float(data.y.max()))
        smoothing = {name: value for name, value in smoothing.items() if name != "vote"}
    name = {"additive": "Additive", "network": "Lipschitz", "projection": "Projected", "smoothing": "Smoothed"}[by]
    make = getattr(likewise, f"{name}{'Classifier' if data.classify else 'Regressor'}")
    if by in ("additive", "network"):
        return make(**shared)
    return make(inner, **shared, **(smoothing if by == "smoothing" else {}))


@dataclass(frozen=True, eq=False)
class Enforcement:
    """A fitted model, and what it is worth on people held out (None if there were too few)."""

    model: Any
    scores: pd.DataFrame | None
    measured_on: str


def learn_and_measure(estimator: Any, plain: Any, data: Learnable, *, share: float) -> Enforcement:
    """Fit an estimator within a metric to all people; measure it, fitted to some of them, on the others.

    Parameters
    ----------
    estimator : unfitted estimator of `likewise.enforce`
    plain : unfitted model without a promise
    data : Learnable
    share : float
        Of the people, held out to measure on.
    """
    from sklearn.base import clone

    X, y = data.X, data.y
    parts = hold_out(y, share, classify=data.classify)
    scores, measured_on = None, f"Nobody was held out of the {len(y):,} people, so nothing was measured."
    if parts is not None:
        learn, measure = parts
        models = {PROMISED: clone(estimator), PLAIN: clone(plain)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VacuousGuaranteeWarning)  # it is said once, of the model that is saved
            for model in models.values():
                model.fit(X.iloc[learn], y[learn])
        scores = measure_models(models, X.iloc[measure], y[measure], y[learn], classify=data.classify)
        measured_on = (
            f"Measured on {len(measure):,} people held out, by a model of the other {len(learn):,}. The model that is "
            f"saved has learned from all {len(y):,}."
        )
    return Enforcement(estimator.fit(X, y), scores, measured_on)


def read_key(path: str | Path) -> bytes:
    """Read the secret for decisions."""
    try:
        key = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror}.") from None
    if len(key) < 16:
        raise FileError(f"{path} must hold a secret of at least 16 bytes; it has {len(key)}. Try: openssl rand 32.")
    return key


def date_of(path: str | Path) -> str:
    """When a file was last changed, as people write it; empty for what is no file."""
    try:
        day = datetime.fromtimestamp(Path(path).stat().st_mtime)
    except OSError:
        return ""
    return f"{day.day} {day:%B %Y}"


def write_report(model: Any, X: pd.DataFrame, y: npt.NDArray[Any], path: str | Path, **words: Any) -> None:
    """Measure a model on people with known outcomes, and write the page about it; `words` are of `build_report`."""
    from likewise.report import render
    from likewise.report.build import build_report

    page = render(build_report(model, X, y, **words))
    with atomic_write(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
