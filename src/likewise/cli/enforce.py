"""The command that trains a model within a metric: enforce."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Output, command, say_coverage, then
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from likewise.cli.table_io import Dialect
    from likewise.cli.workflows import Task
    from likewise.metrics.table import TableMetric

# Everything heavy is imported inside the commands: `likewise --help` must answer at once.


@click.command()
@click.argument("table", type=options.TABLE)
@options.target
@options.task
@options.metric
@options.output_range
@options.id_aside
@click.option(
    "--method",
    type=click.Choice(["auto", "additive", "network", "projection", "smoothing"]),
    default="auto",
    show_default=True,
    help="auto compares them all, and takes the best.",
)
@click.option(
    "--model",
    "inner",
    default="boosting",
    show_default=True,
    help=f"What is projected or smoothed: {', '.join(options.MODELS)}, or a scikit-learn model in a .skops file.",
)
@click.option(
    "--noise",
    type=click.Choice(["auto", "splitting", "gaussian", "laplace", "uniform"]),
    show_default="auto",
    help="For smoothing, as are the options to --augment: with --method auto, for its candidates.",
)
@click.option(
    "--vote",
    type=click.Choice(["hard", "soft"]),
    show_default="hard; soft with --method auto",
    help="Only for classes.",
)
@click.option("--epsilon", type=float, show_default="0.01", help="Error of drawing.")
@click.option("--delta", type=float, show_default="0.001", help="Probability that it is larger, per pair.")
@click.option(
    "--draws",
    type=int,
    show_default="by --epsilon; 100 with --method auto",
    help="Evaluations of the model per person, instead of --epsilon.",
)
@click.option(
    "--augment", type=int, show_default="0; 0 and 5 with --method auto", help="Noisy copies of each person to train on."
)
@click.option("--holdout", type=float, default=0.2, show_default=True, help="Share of the people to measure on.")
@click.option("--out", type=options.FILE, default=Path("model.skops"), show_default=True)
@options.force
@click.option("--seed", type=int, default=None, help="For repeatable runs; without it the seed is secret.")
@options.cluster
@command
@options.reads_table
def enforce(
    say: Output,
    table: Path,
    target: str,
    task: Task | None,
    metric_file: Path,
    output_range: tuple[float, float] | None,
    id_column: str | None,
    method: str,
    inner: str,
    noise: str | None,
    vote: str | None,
    epsilon: float | None,
    delta: float | None,
    draws: int | None,
    augment: int | None,
    holdout: float,
    out: Path,
    force: bool,
    seed: int | None,
    cluster: str | None,
    dialect: Dialect,
) -> None:
    """Train a model that provably respects a metric: the best method, or the one asked for.

    Columns of the table that the metric does not name are left out. Some people are held out, and the model is measured
    on them, beside a constant and models without a promise.

    With --method additive, a directory of Parquet files is read in partitions, so it need not fit this machine; with
    --cluster, other machines take the sums. Nobody is held out then.

    Example: likewise enforce loans.csv --target approved --metric metric.toml --method additive --out model.skops
    """
    from likewise.auditing.coverage import measure_coverage
    from likewise.cli.partitions import fit_additive, in_partitions
    from likewise.cli.table_io import hinted
    from likewise.cli.workflows import (
        build_estimator,
        inner_model,
        learn_and_measure,
        load_dataset,
        models_without_promise,
    )
    from likewise.io import check_free, free_name, save_model

    check_free(out, table, metric_file, force=force)
    given = {"noise": noise, "vote": vote, "epsilon": epsilon, "delta": delta, "draws": draws, "augment": augment}
    smoothing: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if smoothing and method not in ("auto", "smoothing"):
        raise InvalidInputError(
            f"--{next(iter(smoothing))} is for --method smoothing or --method auto; got --method {method}."
        )
    if in_partitions(table, cluster):
        with say.busy("Fitting, block by block"):
            model = fit_additive(
                table,
                target,
                metric_file,
                method=method,
                task=task,
                seed=seed,
                cluster=cluster,
                output_range=output_range,
            )
        save_model(model, out)
        guarantee = model.guarantee_
        say(guarantee.statement, statement=guarantee.statement, level=guarantee.level)
        say(
            "\nNobody was held out, so nothing was measured. likewise report measures it on a table of people that "
            "fits this machine."
        )
        say(f"\nWrote {out}", model_file=str(out), epsilon=guarantee.epsilon, delta=guarantee.delta)
        say.finish(then("audit", table, "--model", out))
        return
    data, chosen = load_dataset(
        table,
        target,
        metric_file,
        dialect=dialect,
        task=task,
        note=say.note,
        output_range=output_range,
        id_column=id_column,
        natural=inner.endswith(".skops"),  # a model that was made elsewhere
    )
    plain = inner_model(data, inner)
    if vote is not None and not data.classify:
        raise InvalidInputError(f"--vote is for classes; {target!r} holds numbers, of which the mean is taken.")
    if "draws" in smoothing:
        smoothing["n_draws"] = smoothing.pop("draws")
    if method == "auto":
        estimator = _best_of_all(say, data, chosen, None if inner == "boosting" else plain, seed, smoothing)
    else:
        defaults = {"noise": "auto", "vote": "hard", "epsilon": 0.01, "delta": 1e-3, "n_draws": "auto", "augment": 0}
        smoothing = defaults | smoothing | {"verbose": not say.as_json}
        estimator = build_estimator(method, data, chosen, plain, seed=seed, smoothing=smoothing)
    free = models_without_promise(data, chosen, inner, plain)
    done = learn_and_measure(estimator, free, data, share=holdout)
    if "verbose" in done.model.get_params():
        done.model.set_params(verbose=False)  # who loads it decides what to show
    save_model(done.model, out)
    guarantee = done.model.guarantee_
    say(guarantee.statement, statement=guarantee.statement, level=guarantee.level, task=data.task)
    _say_scores(say, done)
    _say_noise(say, done.model, data.X)
    say_coverage(say, measure_coverage(chosen, data.X))
    say(f"\nWrote {out}", model_file=str(out), epsilon=guarantee.epsilon, delta=guarantee.delta)
    people = hinted(table)
    say.finish(
        then("score", out, people, "--out", free_name("scores.csv")),
        then("audit", people, "--model", out),
        then("report", out, people, "--target", target, "--out", free_name("report.html")),
    )


def _best_of_all(say: Output, data: Any, metric: TableMetric, inner: Any, seed: int | None, smoothing: Any) -> Any:
    """The best method to enforce a metric, not yet fitted, with the seed that was asked for, or a secret one."""
    from sklearn.frozen import FrozenEstimator

    from likewise import compare

    n_draws = smoothing.pop("n_draws", None)
    if n_draws is None and not smoothing.keys().isdisjoint(("epsilon", "delta")):
        smoothing["n_draws"] = "auto"  # as many as the epsilon needs
    if isinstance(inner, FrozenEstimator):
        say.note(
            "The model to project or smooth came ready-made. If it has learned from these people, it looks better in "
            "this comparison than on new people."
        )
    result = compare(
        data.X,
        data.y,
        metric,
        task=data.kind,
        output_range=data.output_range,
        n_draws=100 if n_draws is None else n_draws,
        estimator=inner,
        smoothing=smoothing or None,
        random_state=0 if seed is None else seed,
        verbose=not say.as_json,
    )
    best = result.best()
    say(f"{result}\n", method=best.name, reason=best.reason)
    seeds = {"random_state": seed} if "random_state" in best.estimator.get_params(deep=False) else {}
    return best.estimator.set_params(**seeds)


def _say_scores(say: Output, done: Any) -> None:
    from likewise.cli.evaluation import is_no_better_than_constant

    say(f"\n{done.measured_on}", measured_on=done.measured_on)
    if done.scores is not None:
        say.table(done.scores.round(4), "scores")
        if is_no_better_than_constant(done.scores):
            say.note("On the people held out, the model with the promise is no better than a constant.")


def _say_noise(say: Output, model: Any, X: Any) -> None:
    from likewise.cli.evaluation import noise_widths, shown_widths, wider_than_data

    widths = noise_widths(model, X)
    if widths is None or widths.empty:
        return
    say("\nNoise on each number (19 of 20 draws), beside the people:", widths=widths.to_dict("records"))
    if not say.as_json:
        say(shown_widths(widths).to_string(index=False))
    wide = wider_than_data(widths)
    if wide:
        say.note(f"The noise is wider than the data, and hides nearly all of: {', '.join(wide)}.")
