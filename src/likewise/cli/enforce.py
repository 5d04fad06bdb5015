"""The command that trains a model within a metric: enforce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Band, Destination, Output, command, echo_coverage, echo_unseen, facts_of, next_command
from likewise.cli.sources import DatasetSource, reads_dataset
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from likewise.cli.dataset import Dataset
    from likewise.metrics.base import Metric
    from likewise.metrics.table import TableMetric

# Everything heavy is imported inside the commands: `likewise --help` must answer at once.

_FOLDS = 3  # to choose a method by; `likewise compare` takes five to report
_MIN_GAIN = 1e-6  # in training loss; less is not worth a line


@options.new_command()
@click.option(
    "--method",
    type=click.Choice(["auto", *options.METHODS]),
    default="auto",
    show_default=True,
    help="auto compares them all and takes the best.",
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
    help="For smoothing, as are the options up to --augment; with --method auto, for its smoothed candidates.",
)
@click.option(
    "--vote",
    type=click.Choice(["hard", "soft"]),
    show_default="hard; soft with --method auto",
    help="Only for a classification.",
)
@click.option("--epsilon", type=float, show_default="0.01", help="Sampling error.")
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
@click.option(
    "--decide",
    is_flag=True,
    help="Guarantee decisions instead of scores, by a cut-off drawn from a band; needs --threshold and --width. The "
    "metric is enforced at width times D, so that decisions are within D.",
)
@options.has_band("With --decide: ")
@click.option(
    "--holdout",
    type=float,
    default=0.2,
    show_default=True,
    help="Share of the people to measure on, unless design kept some apart.",
)
@options.weights
@options.rises
@options.falls
@options.writes(default="model.skops")
@click.option("--seed", type=int, default=None, help="For repeatable runs; by default the seed is secret.")
@options.cluster
@command
@reads_dataset(options.TABLE)
def enforce(
    echo: Output,
    source: DatasetSource,
    method: str,
    inner: str,
    decide: bool,
    band: Band,
    holdout: float,
    weights: str | None,
    rises: Sequence[str],
    falls: Sequence[str],
    to: Destination,
    seed: int | None,
    cluster: str | None,
    **smoothing_options: Any,
) -> None:
    """Train a model that provably respects a metric: by the best method, or a given one.

    Columns of the table that the metric does not name are left out. Some people are held out, and the model is measured
    on them, beside a constant and the unconstrained model; the method is chosen, and a metric that was made from these
    people is made again, without them.

    With --method additive, a directory of Parquet files is read in partitions, so it need not fit into memory; with
    --cluster, other machines do the work. Nobody is held out then.

    Columns that the metric was designed to rise or fall with do so in an additive model, unless --rises or --falls say
    others.

    With --decide, the model is a ThresholdDecision, for likewise decide.

    Example: likewise enforce loans.csv --target approved --metric metric.toml --method additive --out model.skops
    """
    import numpy as np
    from sklearn.frozen import FrozenEstimator

    from likewise._favourable import the_favourable
    from likewise.auditing.coverage import measure_coverage
    from likewise.cli.model_spelling import SpellingOfModel
    from likewise.cli.models import settle_favourable
    from likewise.cli.table_io import hinted, in_partitions, named
    from likewise.cli.training import (
        build_estimator,
        build_unconstrained,
        directions,
        fit_and_measure,
        inner_model,
        is_no_better_than_constant,
        parts_of,
    )
    from likewise.decisions.threshold import ThresholdDecision
    from likewise.io import save_model, unused_path
    from likewise.metric_file import read_metric_file

    if weights is not None and method != "additive":
        raise InvalidInputError(f"--weights is for --method additive; got --method {method}.")
    out = to.path
    to.check(source.table, source.metric_file)
    smoothing = {name: value for name, value in smoothing_options.items() if value is not None}
    if smoothing and method not in ("auto", "smoothing"):
        raise InvalidInputError(
            f"--{next(iter(smoothing))} is for --method smoothing or --method auto; got --method {method}."
        )
    if decide != (band.threshold is not None) or decide != (band.width is not None):
        raise InvalidInputError("--decide, --threshold and --width go together.")
    if in_partitions(source.table, cluster):
        if rises or falls or weights:
            raise InvalidInputError(
                "--rises, --falls and --weights are for tables that fit into memory. Leave them out."
            )
        if decide:
            raise InvalidInputError(
                "--decide is for tables that fit into memory. Enforce the metric scaled by the width (likewise metric "
                "scale), and give --threshold and --width to likewise decide."
            )
        _fit_partitions(echo, source, out, method=method, favourable=band.favourable, cluster=cluster)
        return
    data, metric = source.load(
        echo.note, natural=inner.endswith(".skops"), weights=weights
    )  # a model that was trained elsewhere
    favourable = settle_favourable(echo, band.favourable, data, source.target)
    model = inner_model(data, inner)
    if inner.endswith(".skops"):
        spelling = SpellingOfModel.of(model, list(getattr(model, "feature_names_in_", data.X.columns)))
        X = spelling.applied_to(data.X, source.dialect, named(source.table), echo.note)
        data = replace(data, X=X)
    if "vote" in smoothing and not data.is_classification:
        raise InvalidInputError(f"--vote is for a classification; {source.target!r} is a regression, by the mean.")
    if "draws" in smoothing:
        smoothing["n_draws"] = smoothing.pop("draws")
    if isinstance(model, FrozenEstimator):
        echo.note(
            f"{inner} is projected or smoothed as it came. If it has learned from these people, all that is measured "
            "with it here looks better than on new people."
        )
    strict = metric if band.width is None else _scaled_by(metric, band.width, data)
    data = data if band.width is None else replace(data, unseen=data.unseen.scaled(band.width))
    parts = parts_of(data, holdout)
    if method == "auto":
        trained = data.among(np.arange(len(data.y)) if parts is None else parts[0])
        estimator = _best_estimator(echo, trained, strict, None if inner == "boosting" else model, seed, smoothing)
    else:
        defaults = {"noise": "auto", "vote": "hard", "epsilon": 0.01, "delta": 1e-3, "n_draws": "auto", "augment": 0}
        smoothing = defaults | smoothing | {"verbose": not echo.as_json}
        estimator = build_estimator(method, data, strict, model, seed=seed, smoothing=smoothing)
    if "monotone" in estimator.get_params(deep=False):
        if not rises and not falls:
            made = read_metric_file(source.metric_file).made_with
            rises, falls = ([name for name in made.get(way, ()) if name in data.X] for way in ("rises", "falls"))
        signs = directions(rises, falls, data.X, data.y, favourable, classify=data.is_classification)
        estimator.set_params(monotone=signs or None)
    elif rises or falls:
        raise InvalidInputError(
            "--rises and --falls are for additive models. Leave them out, or give --method additive."
        )
    if decide:
        limits: Any = {"threshold": band.threshold, "width": band.width}
        estimator = ThresholdDecision(estimator, **limits, favourable=the_favourable(favourable, np.unique(data.y)))
    others = build_unconstrained(data, metric, inner, model)
    fitted, scores, measured_on = fit_and_measure(estimator, others, data, parts)
    echo(measured_on, measured_on=measured_on)
    if scores is not None:
        echo.table(scores.round(4), "scores")
        echo_unseen(echo, data.unseen)
    if scores is not None and is_no_better_than_constant(scores):
        raise InvalidInputError(
            "On the held-out people, the model with the guarantee is no better than a constant. Nothing was written. "
            "Loosen the metric (likewise metric scale), or give other columns; --holdout 0 writes it unmeasured."
        )
    if "verbose" in fitted.get_params():
        fitted.set_params(verbose=False)  # whoever loads it decides what to show
    fitted.favourable_ = favourable
    fitted.metric_file_ = source.metric_file.read_text(encoding="utf-8")  # by which a report knows whom it has seen
    save_model(fitted, out)
    echo(f"\n{fitted.guarantee_.statement}", task=data.task)
    _echo_noise(echo, fitted.estimator_ if decide else fitted, data.X)
    _echo_prices(echo, fitted.estimator_ if decide else fitted, data)
    _echo_zeros(echo, metric)
    echo_coverage(echo, measure_coverage(metric, data.X))
    _echo_saved(echo, fitted, out)
    table = hinted(source.table)
    report = [next_command("report", out, table, "--target", source.target, "--out", unused_path("report.html"))]
    report = [] if metric.special else report  # which a report does not take
    if decide:
        echo(f"Decide with it: likewise decide {out} TABLE --round NAME --key-file KEY")
        echo.finish(*report)
        return
    score = next_command("score", out, table, "--out", unused_path("scores.csv"))
    echo.finish(score, next_command("audit", table, "--model", out), *report)


def _scaled_by(metric: TableMetric, width: float, data: Dataset) -> TableMetric:
    """The metric times the width of a band."""
    from likewise.decisions.threshold import ThresholdDecision

    if not data.is_classification:
        raise InvalidInputError("--decide is for a classification; this target is a regression.")
    ThresholdDecision.rules["width"].check("--width", width)
    return metric.scaled(width)


def _fit_partitions(
    echo: Output, source: DatasetSource, out: Path, *, method: str, favourable: str | None, cluster: str | None
) -> None:
    """Train an additive model on a table in partitions."""
    from likewise.additive.estimators import AdditiveClassifier, AdditiveRegressor
    from likewise.cli.dataset import resolve_range
    from likewise.cli.models import class_named
    from likewise.distributed.cluster import connected
    from likewise.distributed.frames import DaskTable, workers_for
    from likewise.io import save_model
    from likewise.kernel.columns import is_numeric
    from likewise.metric_file import read_metric_file

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
    with echo.busy("Fitting, block by block"), connected(cluster or workers_for(source.table)):
        model.fit(source.table, target)
    model.favourable_ = class_named(favourable or file.favourable or None, getattr(model, "classes_", None))
    save_model(model, out)
    echo(model.guarantee_.statement)
    _echo_zeros(echo, model.guarantee_.metric)
    echo(
        "\nNobody was held out, so nothing was measured. likewise report measures the model on a table that fits into "
        "memory."
    )
    _echo_saved(echo, model, out)
    echo.finish(next_command("audit", source.table, "--model", out))


def _echo_saved(echo: Output, model: Any, out: Path) -> None:
    facts = facts_of(model.guarantee_, "statement", "level", "epsilon", "delta")
    echo(f"\nWrote {out}", model_file=str(out), **facts)


def _best_estimator(
    echo: Output, data: Dataset, metric: TableMetric, inner: Any, seed: int | None, smoothing: dict[str, Any]
) -> Any:
    """The unfitted estimator that `compare` recommends on people to train on, with the given seed, or a secret one."""
    from likewise import compare

    n_draws = smoothing.pop("n_draws", None)
    if n_draws is None and not smoothing.keys().isdisjoint(("epsilon", "delta")):
        smoothing["n_draws"] = "auto"  # as many as the epsilon needs
    result = compare(
        data.X,
        data.y,
        metric,
        cv=_FOLDS,
        task=data.task,
        output_range=data.output_range,
        n_draws=100 if n_draws is None else n_draws,
        estimator=inner,
        smoothing=smoothing or None,
        made_by=data.unseen.made_by,
        random_state=0 if seed is None else seed,
        verbose=not echo.as_json,
    )
    best = result.best()
    echo(f"{replace(result, caveat=data.unseen.caveat)}\n", method=best.name, reason=best.reason)
    seeds = {"random_state": seed} if "random_state" in best.estimator.get_params(deep=False) else {}
    return best.estimator.set_params(**seeds)


def _echo_prices(echo: Output, model: Any, data: Dataset) -> None:
    """Print the three weights that hold a scorecard back most."""
    if not hasattr(model, "prices"):
        return
    prices = model.prices(data.X, data.y, cv=None)[["column", "gain if 10% looser"]]
    dearest = prices[prices["gain if 10% looser"] >= _MIN_GAIN][:3]
    echo.facts["prices"] = prices.to_dict("records")
    if len(dearest):
        listed = ", ".join(f"{name} {gain:.2g}" for name, gain in dearest.itertuples(index=False))
        echo(f"\nThe weights that hold the model back most, by the gain in training loss if 10% looser: {listed}.")


def _echo_zeros(echo: Output, metric: Metric) -> None:
    """Print the columns of weight 0, by the reason."""
    from likewise.metrics.zero_weights import list_by_reason

    for title, names in list_by_reason((name, metric.zero_reasons.get(name)) for name in metric.hidden).items():
        echo(f"\n{title}: {', '.join(names)}.")
    echo.facts["zero_reasons"] = dict(metric.zero_reasons)


def _echo_noise(echo: Output, model: Any, X: Any) -> None:
    """Print within what 19 of 20 draws of the noise lie, beside the range of the people."""
    from likewise.cli.training import format_widths, noise_widths, wider_than_data

    widths = noise_widths(model, X)
    if widths.empty:
        return
    echo("\nNoise on each numeric column (19 of 20 draws), beside the range of the people:")
    echo.table(widths, "widths", format_widths(widths))
    if wide := wider_than_data(widths):
        echo.note(f"The noise is wider than the range of the data in: {', '.join(wide)}.")
