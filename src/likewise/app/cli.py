"""The command line: the same words as the Python interface, on tables in files."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import pandas as pd

# Everything heavy is imported inside the commands: `likewise --help` must answer at once.

_MODELS = ("logistic", "forest", "boosting", "network")
_FILE = click.Path(path_type=Path, dir_okay=False)
_DIRECTORY = click.Path(path_type=Path, file_okay=False)


class _Say:
    """Where results go: words for people, or one JSON document for machines."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.facts: dict[str, Any] = {}

    def __call__(self, text: str, **facts: Any) -> None:
        self.facts |= facts
        if not self.as_json:
            click.echo(text)

    def busy(self, doing: str) -> AbstractContextManager[Any]:
        from likewise._progress import progress_bar

        return progress_bar(doing, None, show=not self.as_json)

    def table(self, frame: pd.DataFrame, name: str) -> None:
        self.facts[name] = json.loads(frame.to_json(orient="records"))
        if not self.as_json:
            click.echo(frame.to_string(index=False))

    def finish(self, *try_next: str) -> None:
        if self.as_json:
            click.echo(json.dumps(self.facts, indent=2))
        elif try_next:
            click.echo("\nNext: " + "\n      ".join(try_next))


def _command(function: Callable[..., Any]) -> Callable[..., Any]:
    """One clear line for a user's mistake (exit 2), and no half-written file after Ctrl-C (exit 130)."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of words.")
    @functools.wraps(function)
    def wrapped(as_json: bool, **options: Any) -> Any:
        say = _Say(as_json)
        try:
            return function(say, **options)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not break into the way out
            click.echo("Stopped. Nothing was half-written.", err=True)
            sys.exit(130)
        except (ValueError, TypeError, OSError) as error:
            if os.environ.get("LIKEWISE_DEBUG"):
                raise
            click.echo(f"Error: {' '.join(str(error).split())}", err=True)
            sys.exit(2)

    return wrapped


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="likewise")
def main() -> None:
    """Individual fairness with guarantees: similar people are treated similarly.

    Reveal the distance between people that a model respects, discuss and edit it, smooth any model so that it
    provably respects it, and audit every pair.
    """


@main.command()
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("likewise-demo"), show_default=True
)
@_command
def demo(say: _Say, out: Path) -> None:
    """Do the main job on 1,989 mortgage applications from Boston.

    Example: likewise demo --out likewise-demo
    """
    from likewise.app.demo import run

    run(say, out)


@main.command()
@click.argument("table", type=_FILE)
@click.option("--target", required=True, help="Column with the outcome to predict.")
@click.option("--model", "kind", type=click.Choice(_MODELS), default="logistic", show_default=True)
@click.option("--zero", multiple=True, help="Column that must not matter; may be given several times.")
@click.option("--drop", multiple=True, help="Column to leave out, such as a number of the file.")
@click.option("--out", type=_FILE, default=Path("metric.toml"), show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@_command
def metric(
    say: _Say, table: Path, target: str, kind: str, zero: tuple[str, ...], drop: tuple[str, ...], out: Path, seed: int
) -> None:
    """Train a model on a table and reveal the distance between people that it respects.

    Exact for logistic models without missing numbers; otherwise the smallest that fits the people in the table.

    Example: likewise metric loans.csv --target approved --zero race --out metric.toml
    """
    from likewise.app.commands import edit, people_and_outcomes, reveal
    from likewise.app.files import write_metric

    X, y = people_and_outcomes(table, target, drop)
    with say.busy("Training and revealing"):
        revealed = reveal(X, y, kind, seed)
    edited = edit(revealed.metric, zero)
    write_metric(edited, out, note=f"{revealed.how} Edited: {', '.join(zero)} set to 0." if zero else revealed.how)
    say(revealed.how, how=revealed.how)
    say.table(edited.describe(), "metric")
    say(f"\nWrote {out}", metric_file=str(out))
    say.finish(
        f"edit {out}, then",
        f"likewise smooth {table} --target {target} --metric {out} --model {kind}",
    )


@main.command()
@click.argument("table", type=_FILE)
@click.option("--target", required=True, help="Column with the outcome to predict.")
@click.option("--metric", "metric_file", type=_FILE, required=True, help="Metric file (TOML).")
@click.option("--model", "kind", type=click.Choice(_MODELS), default="boosting", show_default=True)
@click.option(
    "--noise",
    type=click.Choice(["auto", "splitting", "gaussian", "laplace", "uniform"]),
    default="auto",
    show_default=True,
)
@click.option("--vote", type=click.Choice(["hard", "soft"]), default="hard", show_default=True)
@click.option("--epsilon", type=float, default=0.01, show_default=True, help="Error of drawing.")
@click.option("--delta", type=float, default=1e-3, show_default=True, help="Probability that it is larger, per pair.")
@click.option("--draws", type=int, default=None, help="Evaluations of the model per person, instead of --epsilon.")
@click.option("--augment", type=int, default=0, show_default=True, help="Noisy copies of each person to train on.")
@click.option("--out", type=_FILE, default=Path("model.skops"), show_default=True)
@click.option("--seed", type=int, default=None, help="For repeatable runs; without it the seed is secret.")
@_command
def smooth(
    say: _Say,
    table: Path,
    target: str,
    metric_file: Path,
    kind: str,
    noise: str,
    vote: Any,
    epsilon: float,
    delta: float,
    draws: int | None,
    augment: int,
    out: Path,
    seed: int | None,
) -> None:
    """Train a model and smooth it, so that it provably respects a metric.

    Columns of the table that the metric does not name are left out.

    Example: likewise smooth loans.csv --target approved --metric metric.toml --out model.skops
    """
    from likewise import SmoothedClassifier
    from likewise.app.commands import columns_of, people_and_outcomes
    from likewise.app.files import read_metric, save_model
    from likewise.models.pipelines import table_model

    chosen = read_metric(metric_file)
    X, y = people_and_outcomes(table, target)
    X = columns_of(X, chosen, table)
    model = SmoothedClassifier(
        table_model(X, kind),
        metric=chosen,
        noise=noise,
        vote=vote,
        epsilon=epsilon,
        delta=delta,
        n_draws="auto" if draws is None else draws,
        augment=augment,
        random_state=seed,
        verbose=not say.as_json,
    ).fit(X, y)
    save_model(model.set_params(verbose=False), out)  # who loads it decides what to show
    guarantee = model.guarantee_
    say(guarantee.statement, statement=guarantee.statement, level=guarantee.level)
    say(f"\nWrote {out}", model_file=str(out), epsilon=guarantee.epsilon, delta=guarantee.delta)
    say.finish(
        f"likewise score {out} {table} --out scores.parquet",
        f"likewise audit {table} --metric {metric_file} --model {out}",
        f"likewise report {out} {table} --target {target}",
    )


@main.command()
@click.argument("model", type=_FILE)
@click.argument("table", type=_FILE)
@click.option("--out", type=_FILE, default=Path("scores.parquet"), show_default=True)
@click.option("--keep", multiple=True, help="Column of the table to repeat beside the scores.")
@click.option("--intervals", is_flag=True, help="Add what is certain about each person.")
@click.option("--decide", is_flag=True, help="Add a decision, drawn from the probabilities; needs --key-file.")
@click.option("--key-file", type=_FILE, help="Secret for decisions, 16 bytes or more: who has it can foresee them.")
@click.option("--batch", type=click.IntRange(1), default=20_000, show_default=True, help="People at a time.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes on this machine.")
@click.option("--cluster", help="Address of a Dask scheduler, such as tcp://127.0.0.1:8786.")
@_command
def score(
    say: _Say,
    model: Path,
    table: Path,
    out: Path,
    keep: tuple[str, ...],
    intervals: bool,
    decide: bool,
    key_file: Path | None,
    batch: int,
    jobs: int,
    cluster: str | None,
) -> None:
    """Score the people in a table of any size. An interrupted run goes on where it stopped.

    Example: likewise score model.skops applicants.parquet --keep id --out scores.parquet
    """
    from likewise.app.commands import read_key
    from likewise.app.files import load_model
    from likewise.app.scale import Order, score_file

    load_model(model)  # refuse a bad file before any work
    if decide != (key_file is not None):
        raise ValueError("--decide and --key-file go together: decisions are drawn with a secret key.")
    order = Order(model.read_bytes(), intervals, read_key(key_file) if key_file else None)
    n = score_file(order, table, out, keep=keep, batch_rows=batch, jobs=jobs, cluster=cluster, verbose=not say.as_json)
    say(f"Scored {n:,} people.\nWrote {out}", n_people=n, scores_file=str(out))
    say.finish(f"likewise audit {table} --metric metric.toml --model {model}")


@main.command()
@click.argument("table", type=_FILE)
@click.option("--metric", "metric_file", type=_FILE, required=True, help="Metric file (TOML).")
@click.option("--model", "model_file", type=_FILE, help="Model file to ask.")
@click.option("--scores", help="Or: column of the table with scores between 0 and 1 of any other system.")
@click.option("--worst", type=click.IntRange(1), default=10, show_default=True, help="How many pairs to list.")
@click.option("--max-excess", type=float, help="Exit 1 if a pair exceeds its distance by more than this.")
@click.option("--out", type=_FILE, help="Write the worst pairs as CSV.")
@_command
def audit(
    say: _Say,
    table: Path,
    metric_file: Path,
    model_file: Path | None,
    scores: str | None,
    worst: int,
    max_excess: float | None,
    out: Path | None,
) -> None:
    """Search all pairs of people for scores that differ by more than the people do.

    Example: likewise audit loans.csv --metric metric.toml --scores score --max-excess 0
    """
    from likewise import audit as search
    from likewise.app.commands import columns_of
    from likewise.app.files import atomic_write, load_model, read_metric, read_table

    if (model_file is None) == (scores is None):
        raise ValueError("Give either --model (a file) or --scores (a column of the table).")
    if max_excess is not None and not max_excess >= 0:
        raise ValueError(f"--max-excess must not be negative; got {max_excess}.")
    chosen = read_metric(metric_file)
    people = read_table(table)
    X = columns_of(people, chosen, table)
    model = None if model_file is None else load_model(model_file)
    given = None
    slack = 0.0 if model is None else model.guarantee_.epsilon
    if scores is not None:
        if scores not in people.columns:
            raise ValueError(f"{table} has no column {scores!r}; it has {list(people.columns)}.")
        given = people[scores]
    allowed = max(1e-9, slack) if max_excess is None else max(1e-9, max_excess)
    with say.busy("Searching all pairs"):
        found = search(model, X, chosen, predictions=given, tolerance=allowed, n_worst=worst)
    say(
        found.coverage,
        coverage=found.coverage,
        n_pairs=found.n_pairs,
        n_violations=found.n_violations,
        max_excess=found.max_excess,
        max_ratio=None if found.max_ratio != found.max_ratio else min(found.max_ratio, 1e308),
    )
    if found.n_violations:
        say("\nThe worst pairs (row_a and row_b count rows of the table from 0):")
        say.table(found.violations.drop(columns="n_pairs"), "worst")
    if out is not None:
        with atomic_write(out) as temporary:
            found.violations.to_csv(temporary, index=False)
        say(f"\nWrote {out}", worst_file=str(out))
    say.finish()
    if max_excess is not None and found.n_violations:
        sys.exit(1)


@main.command()
@click.argument("model", type=_FILE)
@click.argument("table", type=_FILE)
@click.option("--target", required=True, help="Column with the known outcome.")
@click.option("--outcome", help="Value of the target whose probability is shown; the last one by default.")
@click.option("--title", default="How alike people are treated", show_default=True)
@click.option("--out", type=_FILE, default=Path("report.html"), show_default=True)
@_command
def report(say: _Say, model: Path, table: Path, target: str, outcome: str | None, title: str, out: Path) -> None:
    """Write an offline page that explains a smoothed model to people who are not engineers.

    Example: likewise report model.skops loans.csv --target approved --out report.html
    """
    from likewise.app.commands import columns_of, people_and_outcomes, write_report
    from likewise.app.files import load_model

    smoothed = load_model(model)
    X, y = people_and_outcomes(table, target)
    metric = smoothed.guarantee_.metric
    with say.busy("Measuring"):
        write_report(
            smoothed,
            columns_of(X, metric, table),
            y,
            out,
            outcome=outcome,
            title=title,
            subtitle=f"{table.name}, {target}",
        )
    say(f"Wrote {out}", report_file=str(out))
    say.finish(f"open {out} in a browser")


@main.command()
@click.argument("datasets", nargs=-1)
@click.option("--quick", is_flag=True, help="Fewer people and one seed: minutes instead of an hour.")
@click.option("--rows", type=click.IntRange(2), help="At most that many test people per data set.")
@click.option("--out", type=_DIRECTORY, default=Path("reproduced"), show_default=True)
@_command
def reproduce(say: _Say, datasets: tuple[str, ...], quick: bool, rows: int | None, out: Path) -> None:
    """Run the experiments of the paper that likewise implements: adult, compas, ssl, seizure.

    Example: likewise reproduce adult compas --quick
    """
    from likewise.experiments import DATASETS
    from likewise.experiments import reproduce as run

    run(datasets or DATASETS, quick=quick, rows=rows, out=out, verbose=not say.as_json)
    say(f"Wrote {out}", directory=str(out))
    say.finish()
