"""Commands that make something out of a table of people: a metric, a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.app import options
from likewise.app.console import Say, command
from likewise.errors import FileError, InvalidInputError

if TYPE_CHECKING:
    from likewise.app.commands import Task
    from likewise.app.tables import Dialect
    from likewise.auditing.reach import Reach
    from likewise.metrics.tabular import TableMetric

# Everything heavy is imported inside the commands: `likewise --help` must answer at once.


@click.command()
@click.argument("table", type=options.FILE)
@options.target
@options.task
@click.option("--model", "kind", type=click.Choice(options.MODELS), default="logistic", show_default=True)
@click.option("--zero", multiple=True, help="Column that must not matter; may be given several times.")
@click.option("--scale", type=float, default=1.0, help="Multiply every weight: below 1 is stricter.")
@click.option("--normalize", is_flag=True, help="Scale the weights so that half of the pairs are closer than 0.5.")
@click.option("--drop", multiple=True, help="Column to leave out, such as a number of the file.")
@click.option("--out", type=options.FILE, default=Path("metric.toml"), show_default=True)
@options.force
@click.option("--seed", type=int, default=0, show_default=True)
@command
@options.reads_table
def metric(
    say: Say,
    table: Path,
    target: str,
    task: Task | None,
    kind: str,
    zero: tuple[str, ...],
    scale: float,
    normalize: bool,
    drop: tuple[str, ...],
    out: Path,
    force: bool,
    seed: int,
    dialect: Dialect,
) -> None:
    """Train a model on a table and reveal the distance between people that it respects.

    Exact for logistic models without missing numbers; otherwise the smallest that fits the people in the table. With
    --force, the units and comments of the file that is replaced are kept.

    Example: likewise metric loans.csv --target approved --zero race --drop id --out metric.toml
    """
    from likewise.app.commands import constant_columns, edit, people_and_outcomes, reveal, without_empty
    from likewise.app.files import check_free
    from likewise.app.metric_files import meanings, write_metric
    from likewise.app.tables import hinted
    from likewise.auditing.reach import measure_reach

    check_free(out, table, force=force)
    if not 0 < scale < float("inf"):
        raise InvalidInputError(f"--scale must be a positive number; got {scale:g}.")
    data = people_and_outcomes(table, target, drop, dialect=dialect, task=task, note=say.note)
    X = without_empty(data.X, say.note)
    alike = constant_columns(X, say.note)
    with say.busy("Training and revealing"):
        revealed = reveal(X, data.y, kind, seed, regression=not data.classify)
    before = meanings(revealed.metric)
    edited = edit(revealed.metric, (*zero, *alike))
    if normalize:
        median = measure_reach(edited, X).median
        if median == 0:
            raise InvalidInputError(
                "--normalize needs a metric under which people differ; most pairs are at distance 0."
            )
        scale *= 0.5 / median
    edited = edit(edited, (), scale)
    how = [_without_claim(revealed.how) if zero or scale != 1 else revealed.how]
    how += [f"Set to 0: {', '.join(zero)}."] if zero else []
    how += [f"Scaled by {scale:.4g}."] if scale != 1 else []
    edited, words = _keep_words(say, edited, out, data.units)
    unused = [name for name in edited.columns if name not in zero and before[name] == "must not matter"]
    unused += [name for name in alike if name not in unused]
    write_metric(edited, out, note="\n".join(how), words=words, unused=unused)
    say(" ".join(how), how=" ".join(how), task=data.task)
    for name in zero:
        given = "nothing: it did not use it" if before[name] == "must not matter" else _worth(edited, name, before)
        say(f"{name}: set to 0. The model gave it {given}.")
    say.facts["before"] = {name: before[name] for name in zero}
    shown = edited.describe()
    shown["one point"] = list(meanings(edited, unused).values())
    say.table(shown, "metric")
    _say_reach(say, measure_reach(edited, X))
    say(f"\nWrote {out}", metric_file=str(out))
    say.finish(
        f"edit {out}, then",
        f"likewise compare {hinted(table)} --target {target} --metric {out}",
        f"likewise enforce {hinted(table)} --target {target} --metric {out}",
    )


@click.command()
@click.argument("table", type=options.TABLE)
@options.target
@options.task
@options.metric
@click.option(
    "--by",
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
    default="auto",
    show_default=True,
    help="For smoothing, as are the options to --augment.",
)
@click.option("--vote", type=click.Choice(["hard", "soft"]), default="hard", show_default=True)
@click.option("--epsilon", type=float, default=0.01, show_default=True, help="Error of drawing.")
@click.option("--delta", type=float, default=1e-3, show_default=True, help="Probability that it is larger, per pair.")
@click.option("--draws", type=int, default=None, help="Evaluations of the model per person, instead of --epsilon.")
@click.option("--augment", type=int, default=0, show_default=True, help="Noisy copies of each person to train on.")
@click.option("--holdout", type=float, default=0.2, show_default=True, help="Share of the people to measure on.")
@click.option("--out", type=options.FILE, default=Path("model.skops"), show_default=True)
@options.force
@click.option("--seed", type=int, default=None, help="For repeatable runs; without it the seed is secret.")
@options.cluster
@command
@options.reads_table
def enforce(
    say: Say,
    table: Path,
    target: str,
    task: Task | None,
    metric_file: Path,
    by: str,
    inner: str,
    noise: str,
    vote: Any,
    epsilon: float,
    delta: float,
    draws: int | None,
    augment: int,
    holdout: float,
    out: Path,
    force: bool,
    seed: int | None,
    cluster: str | None,
    dialect: Dialect,
) -> None:
    """Train a model that provably respects a metric: the best way, or the one asked for.

    Columns of the table that the metric does not name are left out. Some people are held out, and the model is measured
    on them, beside a constant and the model without a promise.

    With --by additive, a directory of Parquet files is read in partitions, so it need not fit this machine; with
    --cluster, other machines take the sums. Nobody is held out then.

    Example: likewise enforce loans.csv --target approved --metric metric.toml --by additive --out model.skops
    """
    from likewise import compare
    from likewise.app.commands import estimator_by, inner_model, learn_and_measure, learnable_under
    from likewise.app.files import check_free, save_model
    from likewise.app.large_tables import fit_additive, in_partitions
    from likewise.app.tables import hinted
    from likewise.auditing.reach import measure_reach

    check_free(out, table, metric_file, force=force)
    if in_partitions(table, cluster):
        with say.busy("Fitting, block by block"):
            model = fit_additive(table, target, metric_file, by=by, task=task, seed=seed, cluster=cluster)
        save_model(model, out)
        guarantee = model.guarantee_
        say(guarantee.statement, statement=guarantee.statement, level=guarantee.level)
        say("\nNobody was held out, so nothing was measured: the report measures on people it has not seen.")
        say(f"\nWrote {out}", model_file=str(out), epsilon=guarantee.epsilon, delta=guarantee.delta)
        say.finish(
            f"likewise report {out} PEOPLE_IT_HAS_NOT_SEEN.csv --target {target}",
            f"likewise audit {table} --model {out}",
        )
        return
    data, chosen = learnable_under(table, target, metric_file, dialect=dialect, task=task, note=say.note)
    plain = inner_model(data, inner)
    if by == "auto":
        result = compare(data.X, data.y, chosen, task=data.kind, n_draws=draws or 100, verbose=not say.as_json)
        best = result.best()
        say(f"{result}\n", by=best.name, reason=best.reason)
        estimator = best.estimator
    else:
        smoothing = {
            "noise": noise,
            "vote": vote,
            "epsilon": epsilon,
            "delta": delta,
            "n_draws": "auto" if draws is None else draws,
            "augment": augment,
            "verbose": not say.as_json,
        }
        estimator = estimator_by(by, data, chosen, plain, seed=seed, smoothing=smoothing)
    done = learn_and_measure(estimator, plain, data, share=holdout)
    if "verbose" in done.model.get_params():
        done.model.set_params(verbose=False)  # who loads it decides what to show
    save_model(done.model, out)
    guarantee = done.model.guarantee_
    say(guarantee.statement, statement=guarantee.statement, level=guarantee.level, task=data.task)
    _say_scores(say, done)
    _say_noise(say, done.model, data.X)
    _say_reach(say, measure_reach(chosen, data.X))
    say(f"\nWrote {out}", model_file=str(out), epsilon=guarantee.epsilon, delta=guarantee.delta)
    say.finish(
        f"likewise score {out} NEW_PEOPLE.csv --out scores.csv",
        f"likewise audit {hinted(table)} --model {out}",
        f"likewise report {out} {hinted(table)} --target {target}",
    )


def _without_claim(how: str) -> str:
    """How a metric was revealed, once it is edited: that nothing smaller fits was said of the weights before."""
    return f"{how.split(':')[0]}, and edited since: the model itself may exceed this distance."


def _worth(metric: TableMetric, name: str, before: dict[str, str]) -> str:
    return before[name] if name in metric.categorical else f"1 point per {before[name]}"


def _keep_words(say: Say, metric: TableMetric, out: Path, units: dict[str, str]) -> tuple[TableMetric, Any]:
    """Units and comments of the file that is replaced, if there is one; and say what is kept."""
    from likewise.app.metric_files import Words, read_metric, read_words
    from likewise.metrics.tabular import TableMetric

    words, zeros = Words(), list[str]()
    if out.exists():
        try:
            words = read_words(out)
            old = read_metric(out)
        except FileError as error:
            say.note(f"Nothing is kept of the old file: {error}")
        else:
            weights = {**metric.numeric, **metric.categorical}
            zeros = [n for n in old.columns if not {**old.numeric, **old.categorical}[n] and weights.get(n)]
    kept = {name: unit for name, unit in words.units.items() if name in metric.columns}
    parts = [f"the units of {', '.join(kept)}"] if kept else []
    parts += [f"{words.n_comments} comment{'s' * (words.n_comments > 1)}"] if words.n_comments else []
    if parts:
        say(f"Kept of the old {out}: {' and '.join(parts)}.", kept={"units": kept, "n_comments": words.n_comments})
    if zeros:
        say.note(
            f"The old {out} had a weight of 0 for {', '.join(zeros)}; this one has not. To keep it: "
            f"{' '.join(f'--zero {name}' for name in zeros)}."
        )
    missing: Any = metric.missing or "refuse"
    return TableMetric(metric.numeric, metric.categorical, metric.p, missing=missing, units={**units, **kept}), words


def _say_reach(say: Say, reach: Reach) -> None:
    say(f"\n{reach.statement}", bound_share=reach.bound_share, nearest=reach.nearest)
    if reach.is_little:
        say.note(
            f"Nothing is said about {1 - reach.bound_share:.1%} of the pairs, where D >= 1. Smaller weights bind "
            "more of them: likewise metric --normalize, or --scale."
        )


def _say_scores(say: Say, done: Any) -> None:
    from likewise.app.held_out import is_no_better_than_constant

    say(f"\n{done.measured_on}", measured_on=done.measured_on)
    if done.scores is not None:
        say.table(done.scores.round(4), "scores")
        if is_no_better_than_constant(done.scores):
            say.note("On the people held out, the model with the promise is no better than a constant.")


def _say_noise(say: Say, model: Any, X: Any) -> None:
    from likewise.app.noise_widths import noise_widths, shown_widths, wider_than_data

    widths = noise_widths(model, X)
    if widths is None or widths.empty:
        return
    say("\nNoise on each number (19 of 20 draws), beside the people:", widths=widths.to_dict("records"))
    if not say.as_json:
        say(shown_widths(widths).to_string(index=False))
    wide = wider_than_data(widths)
    if wide:
        say.note(f"The noise is wider than the data, and hides nearly all of: {', '.join(wide)}.")
