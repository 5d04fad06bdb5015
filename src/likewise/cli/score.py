"""The command that scores people with a model: score."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from likewise.cli import console as options
from likewise.cli.console import Output, command, next_command
from likewise.exceptions import FileError, InvalidInputError


@click.command()
@click.argument("model", type=options.FILE)
@click.argument("table", type=options.FILE)
@click.option(
    "--out",
    type=options.FILE,
    default=Path("scores.parquet"),
    show_default=True,
    help="Parquet or CSV; - is standard output.",
)
@options.force
@click.option("--intervals", is_flag=True, help="Add intervals of the exact scores and certified distances.")
@click.option(
    "--decide",
    is_flag=True,
    help="Add a decision, drawn from the probabilities by a secret key and the row; needs --key-file. An edited row is "
    "a new draw: decide once per person.",
)
@click.option(
    "--key-file", type=options.FILE, help="Secret key for decisions, 16 bytes or more; whoever has it can predict them."
)
@command
@options.scores_in_batches("scores")
def score(
    echo: Output,
    model: Path,
    table: Path,
    out: Path,
    force: bool,
    intervals: bool,
    decide: bool,
    key_file: Path | None,
    batching: dict[str, Any],
) -> None:
    """Score the people in a table of any size. An interrupted run can be resumed by the same command.

    A single - reads CSV from standard input, or writes it to standard output.

    Example: likewise score model.skops loans.csv --id id --out scores.csv
    """
    from likewise.cli.batch_scoring import ScoringJob, score_file
    from likewise.cli.table_io import hinted, is_standard, named
    from likewise.io import check_output_path, load_model

    echo.to_stderr = is_standard(out)
    if echo.to_stderr and echo.as_json:
        raise InvalidInputError("--json and --out - cannot both write to standard output. Give a file as --out.")
    if decide != (key_file is not None):
        raise InvalidInputError("--decide and --key-file go together: decisions are drawn with a secret key.")
    key = read_key(key_file) if key_file else None
    load_model(model)  # refuse a bad file before any work
    if not is_standard(out):
        check_output_path(out, model, table, key_file, force=force)
    job = ScoringJob(model.read_bytes(), intervals, key)
    with _standard_streams(table, out) as (source, target):
        n = score_file(job, source, target, **batching, verbose=not echo.as_json, note=echo.note)
    written = "" if echo.to_stderr else f"\nWrote {out}"
    echo(f"Scored {n:,} people of {named(table)}.{written}", n_people=n, scores_file=str(out))
    echo.finish(next_command("audit", hinted(table), "--model", model))


def read_key(path: Path) -> bytes:
    """Read the secret key for decisions."""
    try:
        key = path.read_bytes()
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror}.") from None
    if len(key) < 16:
        raise FileError(f"{path} must hold a secret of at least 16 bytes; it has {len(key)}. Try: openssl rand 32.")
    return key


@contextmanager
def _standard_streams(table: Path, out: Path) -> Iterator[tuple[Path, Path]]:
    """Temporary files in place of standard input and output. Such a run cannot be resumed."""
    from likewise._writing import atomic_write
    from likewise.cli.table_io import is_standard

    if not is_standard(table) and not is_standard(out):
        yield table, out
        return
    with tempfile.TemporaryDirectory(prefix="likewise-") as place:
        source, target = table, Path(place) / ("scores.csv" if is_standard(out) else out.name)
        if is_standard(table):
            source = Path(place) / "standard input.csv"
            with open(source, "wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield source, target
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Nothing was kept: a run on standard input or output cannot be resumed.") from None
        if is_standard(out):
            with open(target, "rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            with atomic_write(out) as temporary:
                shutil.copyfile(target, temporary)
