"""The steps of the command line, on tables in files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise.app.files import FileError, atomic_write, read_table
from likewise.metrics.tabular import TableMetric
from likewise.models.pipelines import categorical_columns, table_model
from likewise.models.preprocessing import UnprovableError
from likewise.reveal.estimated import estimate_minimal_metric
from likewise.reveal.exact import minimal_metric

_MOST_PEOPLE = 6000  # distinct people whose pairs are searched for the minimal metric of any model


@dataclass(frozen=True)
class Revealed:
    """A metric read off a model, and how."""

    metric: TableMetric
    how: str
    model: Any


def people_and_outcomes(
    path: str | Path, target: str, drop: Sequence[str] = ()
) -> tuple[pd.DataFrame, npt.NDArray[Any]]:
    """Read a table and split off its target."""
    table = read_table(path)
    for name in (target, *drop):
        if name not in table.columns:
            raise FileError(f"{path} has no column {name!r}; it has {', '.join(map(repr, table.columns))}.")
    if not len(table):
        raise FileError(f"{path} has no rows.")
    if table[target].isna().any():
        raise FileError(f"{path}: the target {target!r} is missing in some rows. Drop these first.")
    X = table.drop(columns=[target, *drop])
    if not X.shape[1]:
        raise FileError(f"{path} has no column but the target, so there is nothing to predict it from.")
    if table[target].nunique() > 50:
        raise FileError(
            f"{path}: the target {target!r} has {table[target].nunique()} different values; the command line is for "
            "outcomes of few kinds. Use SmoothedRegressor in Python for numbers."
        )
    return X, table[target].to_numpy()


def columns_of(table: pd.DataFrame, metric: TableMetric, path: str | Path) -> pd.DataFrame:
    """The columns that the metric names, in the order of the table."""
    absent = [name for name in metric.columns if name not in table.columns]
    if absent:
        raise FileError(f"{path} has no column {absent[0]!r}, which the metric names; it has {list(table.columns)}.")
    return table[[name for name in table.columns if name in metric.columns]]


def reveal(X: pd.DataFrame, y: npt.NDArray[Any], kind: str, seed: int, units: dict[str, str] | None = None) -> Revealed:
    """Train a model of the given kind and read its minimal metric: exactly, or on the people in `X`."""
    model = table_model(X, kind)
    seeds = {name: seed for name in model.get_params() if name.endswith("random_state")}
    model.set_params(**seeds).fit(X, y)
    categorical = categorical_columns(X)
    has_missing = bool(X.drop(columns=categorical).isna().any(axis=None))
    missing: Any = "category" if has_missing else "refuse"
    try:
        found: Any = minimal_metric(model)
        how = f"Revealed exactly from a {kind} model: no smaller distance fits it."
    except UnprovableError:
        complete = X if not has_missing else X[~X.drop(columns=categorical).isna().any(axis=1)]
        distinct = complete.drop_duplicates()
        some = distinct.iloc[np.unique(np.linspace(0, len(distinct) - 1, _MOST_PEOPLE).astype(int))]
        found = estimate_minimal_metric(model, some).metric
        how = (
            f"Revealed from a {kind} model: no smaller distance fits all pairs of {len(some):,} distinct people of the "
            "table. For others it is an estimate."
        )
    if found.takes_tables:
        numeric, mismatch = dict(found.numeric), dict(found.categorical)
    else:
        numeric, mismatch = dict(zip(X.columns, found.weights.tolist(), strict=True)), {}
    return Revealed(TableMetric(numeric, mismatch, missing=missing, units=units), how, model)


def edit(metric: TableMetric, zero: Sequence[str]) -> TableMetric:
    """Set the weights of some columns to 0: they must not matter."""
    for name in zero:
        if name not in metric.columns:
            raise ValueError(f"--zero must name columns of the table; there is no {name!r} among {metric.columns}.")
    return TableMetric(
        {name: 0.0 if name in zero else weight for name, weight in metric.numeric.items()},
        {name: 0.0 if name in zero else weight for name, weight in metric.categorical.items()},
        metric.p,
        missing=metric.missing or "refuse",
        units=metric.units,
    )


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
