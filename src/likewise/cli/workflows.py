"""The steps of the command line, on tables in files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.frozen import FrozenEstimator

from likewise._writing import atomic_write
from likewise.cli.column_kinds import Faults, Kinds, as_kinds, infer_kinds
from likewise.cli.evaluation import PROMISED, hold_out, measure_models
from likewise.cli.table_io import Dialect, Note, named, no_note, read_table
from likewise.exceptions import FileError, InvalidInputError, UnprovableError
from likewise.guarantees.guarantee import said_once
from likewise.inspection.baselines import MODELS, categorical_columns, table_model
from likewise.io import load_inner
from likewise.metric_file import MetricFile, read_metric_file
from likewise.metrics.columns import UNSEEN, CategoricalColumn
from likewise.metrics.table import TableMetric
from likewise.reveal.empirical import estimate_minimal_metric
from likewise.reveal.linear import minimal_metric

_MOST_PEOPLE = 6000  # distinct people whose pairs are searched for the minimal metric of any model
_FEW_KINDS, _MOST_KINDS = 10, 50
_RARE = 0.05  # of the people; values of a target beyond two that are rarer may be mistakes
_TWINS = {"logistic": "linear"}  # of numbers

Task = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table to learn from: people, outcomes, what the outcomes are, and the range of numbers."""

    X: pd.DataFrame
    y: npt.NDArray[Any]
    task: Task
    units: dict[str, str]
    output_range: tuple[float, float] | None = None

    @property
    def classify(self) -> bool:
        """Whether outcomes are kinds rather than numbers."""
        return self.task == "classification"

    @property
    def kind(self) -> Literal["classification", "regression"]:
        """The same in the words of `compare`."""
        return "classification" if self.classify else "regression"


@dataclass(frozen=True)
class Revealed:
    """A metric read off a model, and how.

    Where it is `exact`, a weight of 0 says that the model does not use the column; otherwise the columns `not_forced`
    have no weight because these people need none. `notes` say what else was done.
    """

    metric: TableMetric
    how: str
    model: Any
    exact: bool
    not_forced: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


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
) -> Dataset:
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
    return Dataset(X, y if task == "classification" else y.astype(np.float64), task, dict.fromkeys(dates, "days"))


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
        note(f"Column {name!r} is the same for everyone: nothing can be learned about it, and its weight is 0.")
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
    return table_model(X, _TWINS.get(kind, kind), "regression") if regression else table_model(X, kind)


def reveal(
    X: pd.DataFrame,
    y: npt.NDArray[Any],
    kind: str,
    seed: int,
    units: dict[str, str] | None = None,
    *,
    output_range: tuple[float, float] | None = None,
) -> Revealed:
    """Train a model of the given kind and read its minimal metric: exactly, or on the people in `X`.

    An `output_range` is for outcomes that are numbers, and weights are shares of it.
    """
    regression = output_range is not None
    model = model_of(X, kind, regression=regression)
    seeds = {name: seed for name in model.get_params() if name.endswith("random_state")}
    model.set_params(**seeds).fit(X, y)
    name = _TWINS.get(kind, kind) if regression else kind
    try:
        exact: Any = minimal_metric(model, X, output_range=output_range)
        how = f"Revealed exactly from a {name} model: no smaller distance fits it."
        return Revealed(exact.with_params(units=units), how, model, exact=True)
    except UnprovableError:
        distinct = X.drop_duplicates()
        some = distinct.iloc[np.unique(np.linspace(0, len(distinct) - 1, _MOST_PEOPLE).astype(int))]
        found = estimate_minimal_metric(model, some, categorical=categorical_columns(X), output_range=output_range)
        of = f" of {len(distinct):,}" if len(some) < len(distinct) else ""
        how = (
            f"Revealed from a {name} model: no smaller distance fits all pairs of {len(some):,}{of} distinct people of "
            "the table. For others it is an estimate."
        )
    metric: Any = found.metric
    if (
        X[list(metric.numeric)].isna().any(axis=None)
    ):  # where some are missing, others may be: nothing is known of these
        metric = metric.with_params(missing=dict.fromkeys(metric.numeric, 1.0) | dict(metric.missing))
    return Revealed(metric.with_params(units=units), how, model, False, found.not_forced, found.notes)


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
        missing=dict(metric.missing) or "refuse",
        units=metric.units,
    )
    return edited if factor == 1 else edited.scaled(factor)


def load_dataset(
    table: str | Path,
    target: str,
    metric_file: str | Path,
    *,
    dialect: Dialect | None,
    task: Task | None,
    note: Note,
    output_range: tuple[float, float] | None = None,
    id_column: str | None = None,
    natural: bool = False,
) -> tuple[Dataset, TableMetric]:
    """People and outcomes with the columns of a metric file, and the metric of those that hold something.

    `output_range` is what --range asks for; the file may have one too.
    """
    file = read_metric_file(metric_file)
    metric = file.metric
    data = people_and_outcomes(
        table, target, dialect=dialect, task=task, metric=metric, id_column=id_column, natural=natural, note=note
    )
    X = without_empty(data.X, note)
    limits = range_of_outcomes(data, agreed_range(file, output_range, metric_file), metric_file, note)
    return replace(data, X=X, output_range=limits), restricted(metric, list(X.columns))


def agreed_range(
    file: MetricFile, asked: tuple[float, float] | None, metric_file: str | Path
) -> tuple[float, float] | None:
    """The output range of a metric file, or what --range asks for, which must not contradict the file."""
    if asked is not None and not asked[0] < asked[1]:
        raise InvalidInputError(f"--range must be two numbers, the lowest first; got {asked[0]:g} {asked[1]:g}.")
    if None not in (asked, file.output_range) and asked != file.output_range:
        raise InvalidInputError(
            f"--range {_between(asked)} contradicts {metric_file}, whose weights are shares of the range "
            f"{_between(file.output_range)}. Leave --range out, or change [output] range in the file."
        )
    return file.output_range if asked is None else asked


def range_of_outcomes(
    data: Dataset, agreed: tuple[float, float] | None, metric_file: str | Path, note: Note
) -> tuple[float, float] | None:
    """The range of which weights are shares; None for classes."""
    if data.classify:
        if agreed is not None:
            raise InvalidInputError(
                f"The range {_between(agreed)} is for a target that is a number; this one has classes. Leave --range "
                f"out, take [output] out of {metric_file}, or say --task regression."
            )
        return None
    if agreed is None:
        low, high = float(data.y.min()), float(data.y.max())
        note(
            f"{metric_file} has no output range, so that its weights are taken as shares of what is in this table, "
            f"{_between((low, high))}. Say --range {low:g} {high:g}, or write it into the file: [output] range."
        )
        return low, high
    outside = int(((data.y < agreed[0]) | (data.y > agreed[1])).sum())
    if outside:
        note(f"{outside:,} outcomes lie outside the range {_between(agreed)}: predictions are cut to it.")
    return agreed


def range_of_metric(data: Dataset, asked: tuple[float, float] | None) -> tuple[float, float] | None:
    """The range of which the weights of a new metric are to be shares: as asked for, or that of the outcomes."""
    if asked is None:
        return None if data.classify else rounded_range(data.y)
    if data.classify:
        raise InvalidInputError("--range is for a target that is a number; this one has classes. Leave it out.")
    if not asked[0] < asked[1]:
        raise InvalidInputError(f"--range must be two numbers, the lowest first; got {asked[0]:g} {asked[1]:g}.")
    return asked


def rounded_range(y: npt.NDArray[Any]) -> tuple[float, float]:
    """The range of some numbers, rounded outwards to two digits of its width.

    Examples
    --------
    >>> rounded_range(np.array([12.34, 297.8])), rounded_range(np.array([0.113, 0.87]))
    ((10.0, 300.0), (0.11, 0.87))
    """
    low, high = float(y.min()), float(y.max())
    if low == high:
        raise InvalidInputError(f"The target is {low:g} for everyone, so there is nothing to predict. Say --range.")
    digits = 1 - int(np.floor(np.log10(high - low)))
    step = 10.0**-digits
    return round(float(np.floor(low / step)) * step, digits), round(float(np.ceil(high / step)) * step, digits)


def _between(limits: tuple[float, float] | None) -> str:
    low, high = limits or (0.0, 1.0)
    return f"{low:g} to {high:g}"


def inner_model(data: Dataset, name: str) -> Any:
    """A model to be projected or smoothed: an unfitted one of a kind, or a fitted one from a file, frozen."""
    if name in MODELS:
        return model_of(data.X, name, regression=not data.classify)
    if not name.endswith(".skops"):
        raise InvalidInputError(f"--model must be one of {', '.join(MODELS)}, or a .skops file; got {name!r}.")
    return FrozenEstimator(load_inner(name))


def build_estimator(
    method: str, data: Dataset, metric: TableMetric, inner: Any, *, seed: int | None, smoothing: dict[str, Any]
) -> Any:
    """An unfitted estimator within the metric, by the method asked for; `smoothing` are options of that one."""
    import likewise

    shared: dict[str, Any] = {"metric": metric, "random_state": seed}
    if not data.classify:
        shared["output_range"] = data.output_range
        smoothing = {name: value for name, value in smoothing.items() if name != "vote"}
    name = {"additive": "Additive", "network": "Lipschitz", "projection": "Projected", "smoothing": "Smoothed"}[method]
    make = getattr(likewise, f"{name}{'Classifier' if data.classify else 'Regressor'}")
    if method in ("additive", "network"):
        return make(**shared)
    return make(inner, **shared, **(smoothing if method == "smoothing" else {}))


def models_without_promise(data: Dataset, metric: TableMetric, name: str, inner: Any) -> dict[str, Any]:
    """Unfitted models without a promise by what they are: linear, boosting, and what is projected or smoothed."""
    from likewise.selection.methods import REFERENCE, build_method, check_problem, list_columns

    given = check_problem(data.X, data.y, metric, data.kind, None, 1, 0)
    methods = [build_method(given, each) for each in ("linear", REFERENCE)]
    found = {method.title: method.estimator for method in methods if method.estimator is not None}
    if name not in MODELS:
        found[f"{Path(name).name} as it came"] = inner
    elif name != REFERENCE:
        kind = name if data.classify else _TWINS.get(name, name)
        found[f"{kind} with {list_columns(given.hidden)}" if given.hidden else kind] = inner
    return found


@dataclass(frozen=True, eq=False)
class Enforcement:
    """A fitted model, and what it is worth on people held out (None if there were too few)."""

    model: Any
    scores: pd.DataFrame | None
    measured_on: str


def learn_and_measure(estimator: Any, free: dict[str, Any], data: Dataset, *, share: float) -> Enforcement:
    """Fit an estimator within a metric to all people; measure it, fitted to some of them, on the others.

    Parameters
    ----------
    estimator : unfitted estimator that enforces a metric
    free : dict from name to unfitted model without a promise
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
        models = {PROMISED: clone(estimator), **{f"{name}, no promise": clone(model) for name, model in free.items()}}
        with said_once():
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


def write_report(model: Any, X: pd.DataFrame, y: npt.NDArray[Any], path: str | Path, **words: Any) -> None:
    """Measure a model on people with known outcomes, and write the page about it; `words` are of `build_report`."""
    from likewise.report import render
    from likewise.report.build import build_report

    page = render(build_report(model, X, y, **words))
    with atomic_write(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
