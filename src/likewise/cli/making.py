"""Commands that make something out of a table of people: a metric, a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Output, command, then
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from likewise.auditing.coverage import Coverage
    from likewise.cli.table_io import Dialect
    from likewise.cli.workflows import Task
    from likewise.metric_file import MetricComments, MetricFile
    from likewise.metrics.table import TableMetric

# Everything heavy is imported inside the commands: `likewise --help` must answer at once.


@click.command()
@click.argument("table", type=options.FILE)
@options.target
@options.task
@click.option("--model", "kind", type=click.Choice(options.MODELS), default="logistic", show_default=True)
@options.output_range
@click.option("--zero", multiple=True, help="Column that must not matter; may be given several times.")
@click.option("--scale", type=float, default=1.0, help="Multiply every weight: below 1 is stricter.")
@click.option("--normalize", is_flag=True, help="Scale the weights so that half of the pairs are closer than 0.5.")
@click.option("--drop", multiple=True, help="Column to leave out; may be given several times.")
@click.option("--categorical", multiple=True, help="Column of codes, whose numbers are no amounts; several times too.")
@options.id_aside
@click.option("--out", type=options.FILE, default=Path("metric.toml"), show_default=True)
@options.force
@click.option("--seed", type=int, default=0, show_default=True)
@command
@options.reads_table
def metric(
    say: Output,
    table: Path,
    target: str,
    task: Task | None,
    kind: str,
    output_range: tuple[float, float] | None,
    zero: tuple[str, ...],
    scale: float,
    normalize: bool,
    drop: tuple[str, ...],
    categorical: tuple[str, ...],
    id_column: str | None,
    out: Path,
    force: bool,
    seed: int,
    dialect: Dialect,
) -> None:
    """Train a model on a table and reveal the distance between people that it respects.

    Exact for logistic and linear models; otherwise the smallest that fits the people in the table. For a regression,
    weights are shares of the range of outcomes, which the file holds: --range, or the table's own, rounded outwards.

    With --force, the protected columns, units and comments of the file that is replaced are kept. A file with weights
    that people have written is never replaced.

    Example: likewise metric loans.csv --target approved --zero race --id id --out metric.toml
    """
    from likewise.auditing.coverage import measure_coverage
    from likewise.cli.table_io import hinted, note_doubtful
    from likewise.cli.workflows import (
        constant_columns,
        edit,
        people_and_outcomes,
        range_of_metric,
        reveal,
        without_empty,
    )
    from likewise.io import check_free, free_name
    from likewise.metric_file import MetricFile, check_unedited, read_words, without_claim, write_metric

    check_free(out, table, force=force)
    before = check_unedited(out)
    if not 0 < scale < float("inf"):
        raise InvalidInputError(f"--scale must be a positive number; got {scale:g}.")
    data = people_and_outcomes(
        table,
        target,
        drop,
        dialect=dialect,
        task=task,
        categorical=categorical,
        id_column=id_column,
        note=say.note,
    )
    limits = range_of_metric(data, output_range)
    X = without_empty(data.X, say.note)
    note_doubtful(X, say.note)
    alike = constant_columns(X, say.note)
    with say.busy("Training and revealing"):
        revealed = reveal(X, data.y, kind, seed, output_range=limits)
    for note in revealed.notes:
        say.note(note)
    found = MetricFile(revealed.metric, limits, revealed.how, as_written=True)
    if revealed.exact:
        idle = [name for name in revealed.metric.hidden if name not in alike]
        found = replace(found, not_used=tuple(idle), not_forced=tuple(alike))
    else:
        found = replace(found, not_forced=tuple(dict.fromkeys((*revealed.not_forced, *alike))))
    gave = found.meanings()
    kept = [] if before is None else [n for n in before.protected if n in found.metric.columns and n not in zero]
    struck = (*zero, *kept)
    edited = edit(found.metric, (*struck, *alike))
    if normalize:
        median = measure_coverage(edited, X).median
        if median == 0:
            raise InvalidInputError(
                "--normalize needs a metric under which people differ; most pairs are at distance 0."
            )
        scale *= 0.5 / median
    words = None if before is None else read_words(out)
    units = {**data.units, **_say_kept(say, out, edited, kept, words)}
    file = replace(
        found,
        metric=edited.with_params(units=units),
        how=without_claim(revealed.how) if struck else revealed.how,
        protected=struck,
        not_used=tuple(name for name in found.not_used if name not in struck),
        not_forced=tuple(name for name in found.not_forced if name not in struck),
    ).scaled(scale)
    write_metric(file, out, words=words)
    how = [file.how]
    how += [f"Set to 0: {', '.join(struck)}."] if struck else []
    how += [f"Scaled by {scale:.4g}."] if scale != 1 else []
    say(" ".join(how), how=" ".join(how), task=data.task, exact=revealed.exact)
    for name in zero:
        say(f"{name}: set to 0. The model gave it {_given(found, name, gave)}.")
    say.facts |= {
        "before": {name: gave[name] for name in zero},
        "protected": list(file.protected),
        "not_used": list(file.not_used),
        "not_forced": list(file.not_forced),
        "output_range": limits,
    }
    shown, meanings = file.metric.describe(), file.meanings()
    shown["one point"] = [meanings[name] for name in shown["column"]]
    say.table(shown, "metric")
    blanks = [name for name in file.metric.numeric if X[name].isna().any() and name not in file.metric.hidden]
    if blanks:
        said = ", ".join(f"{name} {100 * file.metric.missing[name]:.3g} points" for name in blanks)
        say(f"\nBetween somebody who has the number and somebody who has not: {said}.")
    if limits is not None:
        say(f"\nA point is a hundredth of the range {limits[0]:g} to {limits[1]:g}, which the file holds.")
    _say_reach(say, measure_coverage(file.metric, X))
    say(f"\nWrote {out}", metric_file=str(out))
    same = [hinted(table), "--target", target, "--metric", out]
    say.finish(
        f"edit {out}, then",
        then("compare", *same),
        then("enforce", *same, "--out", free_name("model.skops")),
    )


@click.command()
@click.argument("metric_file", metavar="METRIC", type=options.FILE)
@click.option("--by", "factor", type=float, required=True, help="Factor on all distances: below 1 is stricter.")
@click.option("--out", type=options.FILE, required=True, help="Another metric file.")
@options.force
@command
def scale(say: Output, metric_file: Path, factor: float, out: Path, force: bool) -> None:
    """Multiply all distances of a metric file, and keep everything else that is in it.

    Weights of 0 stay 0, and comments, units, the output range and the list of protected columns stay as they are.

    Example: likewise scale metric.toml --by 0.5 --out stricter.toml
    """
    from likewise._writing import atomic_write
    from likewise.io import check_free
    from likewise.metric_file import check_unedited, scale_text

    check_free(out, metric_file, force=force)
    check_unedited(out)
    if not 0 < factor < float("inf"):
        raise InvalidInputError(f"--by must be a positive number; got {factor:g}.")
    text, file = scale_text(metric_file, factor)
    with atomic_write(out) as temporary:
        temporary.write_text(text, encoding="utf-8")
    say(f"All distances of {metric_file} times {factor:.4g}.", factor=factor, scaled_by=file.scaled_by)
    ended = [name for part in (file.metric.categorical, file.metric.missing) for name, w in part.items() if w == 1]
    if factor > 1 and ended:
        say.note(f"Weights of categories and blanks end at 1, which promises nothing: {', '.join(map(str, ended))}.")
    shown, meanings = file.metric.describe(), file.meanings()
    shown["one point"] = [meanings[name] for name in shown["column"]]
    say.table(shown, "metric")
    say(f"\nWrote {out}", metric_file=str(out))
    say.finish(f"likewise enforce TABLE --target TARGET --metric {out}")


@click.command()
@click.argument("table", type=options.TABLE)
@options.target
@options.task
@options.metric
@options.output_range
@options.id_aside
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
    show_default="auto",
    help="For smoothing, as are the options to --augment: with --by auto, for its candidates.",
)
@click.option(
    "--vote", type=click.Choice(["hard", "soft"]), show_default="hard; soft with --by auto", help="Only for classes."
)
@click.option("--epsilon", type=float, show_default="0.01", help="Error of drawing.")
@click.option("--delta", type=float, show_default="0.001", help="Probability that it is larger, per pair.")
@click.option(
    "--draws",
    type=int,
    show_default="by --epsilon; 100 with --by auto",
    help="Evaluations of the model per person, instead of --epsilon.",
)
@click.option(
    "--augment", type=int, show_default="0; 0 and 5 with --by auto", help="Noisy copies of each person to train on."
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
    by: str,
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
    """Train a model that provably respects a metric: the best way, or the one asked for.

    Columns of the table that the metric does not name are left out. Some people are held out, and the model is measured
    on them, beside a constant and models without a promise.

    With --by additive, a directory of Parquet files is read in partitions, so it need not fit this machine; with
    --cluster, other machines take the sums. Nobody is held out then.

    Example: likewise enforce loans.csv --target approved --metric metric.toml --by additive --out model.skops
    """
    from likewise.auditing.coverage import measure_coverage
    from likewise.cli.partitions import fit_additive, in_partitions
    from likewise.cli.table_io import hinted
    from likewise.cli.workflows import (
        estimator_by,
        inner_model,
        learn_and_measure,
        load_dataset,
        models_without_promise,
    )
    from likewise.io import check_free, free_name, save_model

    check_free(out, table, metric_file, force=force)
    given = {"noise": noise, "vote": vote, "epsilon": epsilon, "delta": delta, "draws": draws, "augment": augment}
    smoothing: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if smoothing and by not in ("auto", "smoothing"):
        raise InvalidInputError(f"--{next(iter(smoothing))} is for --by smoothing or --by auto; got --by {by}.")
    if in_partitions(table, cluster):
        with say.busy("Fitting, block by block"):
            model = fit_additive(
                table,
                target,
                metric_file,
                by=by,
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
    if by == "auto":
        estimator = _best_of_all(say, data, chosen, None if inner == "boosting" else plain, seed, smoothing)
    else:
        defaults = {"noise": "auto", "vote": "hard", "epsilon": 0.01, "delta": 1e-3, "n_draws": "auto", "augment": 0}
        smoothing = defaults | smoothing | {"verbose": not say.as_json}
        estimator = estimator_by(by, data, chosen, plain, seed=seed, smoothing=smoothing)
    free = models_without_promise(data, chosen, inner, plain)
    done = learn_and_measure(estimator, free, data, share=holdout)
    if "verbose" in done.model.get_params():
        done.model.set_params(verbose=False)  # who loads it decides what to show
    save_model(done.model, out)
    guarantee = done.model.guarantee_
    say(guarantee.statement, statement=guarantee.statement, level=guarantee.level, task=data.task)
    _say_scores(say, done)
    _say_noise(say, done.model, data.X)
    _say_reach(say, measure_coverage(chosen, data.X))
    say(f"\nWrote {out}", model_file=str(out), epsilon=guarantee.epsilon, delta=guarantee.delta)
    people = hinted(table)
    say.finish(
        then("score", out, people, "--out", free_name("scores.csv")),
        then("audit", people, "--model", out),
        then("report", out, people, "--target", target, "--out", free_name("report.html")),
    )


def _given(found: MetricFile, name: str, gave: dict[Any, str]) -> str:
    """What a model gave to a column before it was set to 0."""
    if name in found.not_used:
        return "nothing: it does not use it"
    if name in found.not_forced:
        return f"no weight that these people force ({gave[name]})"
    return gave[name] if name in found.metric.categorical else f"1 point per {gave[name]}"


def _best_of_all(say: Output, data: Any, metric: TableMetric, inner: Any, seed: int | None, smoothing: Any) -> Any:
    """The best way to enforce a metric, not yet fitted, with the seed that was asked for, or a secret one."""
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
    say(f"{result}\n", by=best.name, reason=best.reason)
    seeds = {"random_state": seed} if "random_state" in best.estimator.get_params(deep=False) else {}
    return best.estimator.set_params(**seeds)


def _say_kept(
    say: Output, out: Path, metric: TableMetric, kept: list[str], words: MetricComments | None
) -> dict[str, str]:
    """Say what is kept of the file that is replaced; return its units."""
    units = {} if words is None else {name: unit for name, unit in words.units.items() if name in metric.columns}
    n_comments = 0 if words is None else words.n_comments
    parts = [f"{', '.join(kept)} at 0"] if kept else []
    parts += [f"the units of {', '.join(units)}"] if units else []
    parts += [f"{n_comments} comment{'s' * (n_comments > 1)}"] if n_comments else []
    if parts:
        said = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
        facts = {"protected": kept, "units": units, "n_comments": n_comments}
        say(f"Kept of the old {out}: {said}.", kept=facts)
    return units


def _say_reach(say: Output, reach: Coverage) -> None:
    say(f"\n{reach.statement}", bound_share=reach.bound_share, nearest=reach.nearest)
    if reach.is_little:
        say.note(
            f"Nothing is said about {1 - reach.bound_share:.1%} of the pairs, where D >= 1. Smaller weights bind "
            "more of them: likewise scale METRIC --by FACTOR, or likewise metric --normalize."
        )


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
