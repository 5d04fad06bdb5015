"""Options that commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
TABLE = click.Path(path_type=Path, allow_dash=True)
"""A file, or a directory of Parquet files."""
MODELS = ("logistic", "forest", "boosting", "network")
TASKS = ("classification", "regression")

force = click.option("--force", is_flag=True, help="Replace a file that is there already; never one that is read.")
target = click.option("--target", required=True, help="Column with the outcome to predict.")
task = click.option(
    "--task", type=click.Choice(TASKS), help="What the target is, where it could be either: kinds or a number."
)

output_range = click.option(
    "--range",
    "output_range",
    type=float,
    nargs=2,
    help="Lowest and highest outcome of a regression; by default as the metric file says.",
)


id_aside = click.option("--id", "id_column", help="Column that names people: it is left out, and names rows in errors.")

cluster = click.option("--cluster", help="Address of a Dask scheduler, such as tcp://127.0.0.1:8786, or local.")


def reads_table(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add how CSV is written, given to the function as one `dialect`."""

    @click.option("--delimiter", default=",", show_default=True, help="Between the columns of a CSV file; 'tab' too.")
    @click.option("--encoding", default="utf-8", show_default=True, help="Of a CSV file, such as latin-1.")
    @click.option("--decimal", default=".", show_default=True, help="Sign before the decimals in a CSV file.")
    @functools.wraps(function)
    def wrapped(*args: Any, delimiter: str, encoding: str, decimal: str, **options: Any) -> Any:
        from likewise.app.tables import Dialect

        return function(*args, dialect=Dialect(delimiter, encoding, decimal), **options)

    return wrapped


metric = click.option("--metric", "metric_file", type=FILE, required=True, help="Metric file (TOML).")
