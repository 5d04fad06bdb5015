"""The command line on tables in partitions, which need not fit into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from likewise.additive.estimators import AdditiveClassifier, AdditiveRegressor
from likewise.cli.dataset import DatasetSource, resolve_range
from likewise.cli.table_io import kind_of
from likewise.distributed.cluster import connected
from likewise.distributed.frames import DaskTable, workers_for
from likewise.exceptions import FileError, InvalidInputError
from likewise.metric_file import read_metric_file
from likewise.metrics.columns import is_numeric


def in_partitions(table: Path, cluster: str | None) -> bool:
    """Whether a table is to be read in partitions: a directory, or whatever a cluster works on."""
    if table.is_dir():
        return True
    if cluster is not None and kind_of(table) != "parquet":
        raise FileError(f"--cluster needs a table in Parquet files, which are read in partitions; got {table}.")
    return cluster is not None


def fit_additive(source: DatasetSource, *, method: str, cluster: str | None) -> Any:
    """Fit an additive model to a table in partitions."""
    if method != "additive":
        raise InvalidInputError(
            f"--method must be additive for a table in partitions, as no other method works there; got {method!r}."
        )
    target, task = source.target, source.task
    people = DaskTable.of(source.table)
    people.check_columns([target], "the --target")
    if task is None and is_numeric(people.frame.dtypes[target]):
        raise InvalidInputError(
            f"--task must say what the target {target!r} is, classification or regression: its numbers could be either."
        )
    file = read_metric_file(source.metric_file)
    limits = resolve_range(file, source.output_range, source.metric_file)
    if task == "regression":
        model: Any = AdditiveRegressor(file.metric, output_range=limits)
    elif limits is not None:
        raise InvalidInputError(f"An output range is for --task regression; {target!r} has classes. Leave it out.")
    else:
        model = AdditiveClassifier(file.metric)
    with connected(cluster or workers_for(source.table)):
        return model.fit(source.table, target)
