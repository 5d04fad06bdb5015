"""The command that runs the whole workflow on data that come with the installation: demo."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from likewise.cli.console import Output, command, new_command

_PROTECTED = (
    "race",
    "sex",
    "married",
    "older_than_median",
)  # by the Equal Credit Opportunity Act, of what we have
_DESIGN: dict[str, Any] = {"n_points": 6, "cv": 3}
_CHOICE = {"bind": 0.95}  # a promise about nearly all pairs; `design` alone keeps 95% of the skill
_FOLDS: dict[str, Any] = {"cv": 3, "n_people": 300, "n_draws": 50}
_STEPS = {  # with their shares of the time
    "Designing a metric": 40,
    "Comparing methods": 35,
    "Auditing all pairs": 5,
    "Measuring stricter metrics": 12,
    "Writing a report": 8,
}


@new_command()
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("likewise-demo"), show_default=True
)
@click.option("-v", "--verbose", is_flag=True, help="Print the tables of every step, too.")
@command
def demo(echo: Output, out: Path, verbose: bool) -> None:
    """Run the whole workflow on 1,989 mortgage applications from Boston.

    Design, round, compare, enforce, audit, measure the trade-off, explain and report.

    Example: likewise demo --out likewise-demo
    """
    from likewise._progress import progress_bar

    steps = iter(_STEPS.items())
    with progress_bar(next(iter(_STEPS)), sum(_STEPS.values()), show=not echo.as_json) as advance:
        done = 0

        def begin() -> None:
            nonlocal done
            name, share = next(steps)
            advance(done, name)
            done = share

        *shown, tables = _run(out, begin)
    _echo_conclusion(echo, *shown)
    if verbose:
        echo("\n" + "\n\n".join(tables))
    files = ["metric.toml", "model.skops", "people.parquet", "scores.parquet", "report.html"]
    echo(f"\nWrote {', '.join(files)}", directory=str(out), files=files)
    echo.finish(
        f"cd {shlex.quote(str(out))}   # open report.html in a browser, edit metric.toml, then",
        "likewise audit people.parquet --metric metric.toml --model model.skops",
        "likewise demo -v         # with the tables of every step",
        "likewise design --help   # for a table of your own",
    )


def _run(out: Path, begin: Callable[[], None]) -> tuple[Any, ...]:
    """The workflow: what the conclusion is about."""
    from likewise import audit, compare, design_metric, tradeoff
    from likewise._optional import need
    from likewise.cli.batch_scoring import ScoringJob, score_file
    from likewise.cli.design import designed_file
    from likewise.cli.report import write_report
    from likewise.cli.seen_people import kept_apart, origin_of
    from likewise.datasets import load_mortgages
    from likewise.io import save_model
    from likewise.metric_file import write_metric
    from likewise.selection.methods import UNCONSTRAINED

    need("jinja2", "The report at the end of the demo")
    bunch = load_mortgages()
    out.mkdir(parents=True, exist_ok=True)
    X, y = bunch.data, bunch.target.map({0: "denied", 1: "approved"}).to_numpy()
    begin()  # a metric from half of the people, with a scorecard
    apart = kept_apart(X, 0.5)
    frontier = design_metric(X[~apart], y[~apart], protected=_PROTECTED, references=False, **_DESIGN)
    units = {name: unit for name, unit in bunch.units.items() if unit != "category"}
    asked = f"Protected: {', '.join(_PROTECTED)}."
    file = designed_file(frontier, frontier.at(**_CHOICE), units, asked, choice=_CHOICE).rounded(X[~apart])
    metric: Any = file.metric
    file = replace(file, **origin_of(X[~apart], metric.columns, 0.5, **_DESIGN, **_CHOICE))
    write_metric(file, out / "metric.toml")
    begin()  # the best method that enforces it, on the other half
    X, y = X[apart], y[apart]
    result = compare(X, y, metric, methods=["additive", "smoothing"], **_FOLDS)
    best = result.best()
    model = best.fit(X, y)
    save_model(model, out / "model.skops")
    X.to_parquet(out / "people.parquet", index=False)
    (out / "scores.parquet").unlink(missing_ok=True)
    score_file(ScoringJob((out / "model.skops").read_bytes()), out / "people.parquet", out / "scores.parquet")
    begin()
    unseen = X.iloc[result.folds[0].test]
    before, after = (audit(each, unseen, metric) for each in (result.results[UNCONSTRAINED].model, model))
    begin()
    curve = tradeoff(X, y, metric, (0.25, 0.5, 1, 2), method=best, comparison=result)
    curve, result = replace(curve, caveat=""), replace(result, caveat="")  # the metric is from the other half
    begin()
    write_report(
        model,
        X,
        y,
        out / "report.html",
        outcome="approved",
        frontier=frontier,
        seen=False,
        comparison=result,
        tradeoff=curve,
        title="Mortgage decisions in Boston",
        model_name="model.skops",
        source="applications in Boston",
        date="1990",
    )
    tables = [file.how, str(result), model.guarantee_.statement, str(curve), str(after)]
    return result, best.name, before, after, file, tables


def _echo_conclusion(echo: Output, result: Any, method: str, before: Any, after: Any, file: Any) -> None:
    """Print what is guaranteed, and what it costs, in a screen of 80 columns."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.table import Table

    from likewise.metric_file import as_rate
    from likewise.selection.methods import CONSTANT, UNCONSTRAINED

    models = {"with the guarantee": method, "the unconstrained model": UNCONSTRAINED, "a constant": CONSTANT}
    rows = result.table.loc[list(models.values())]
    counts = {method: after.n_violations, UNCONSTRAINED: before.n_violations, CONSTANT: 0}
    table = Table("model", box=None, padding=(0, 2, 0, 0))
    for title in ("Brier score", "AUC", f"violating pairs of {before.n_pairs:,}"):
        table.add_column(title, justify="right")
    for (title, name), brier, auc in zip(models.items(), rows["brier"], rows["auc"], strict=True):
        look = "red" if counts[name] else "green"
        table.add_row(title, f"{brier:.4f}", f"{auc:.3f}", f"[bold {look}]{counts[name]:,}[/]")
    echo.facts |= {
        "how": file.how,
        "best": method,
        "violations_before": before.n_violations,
        "violations_after": after.n_violations,
        "brier": dict(zip(models, rows["brier"], strict=True)),
    }
    if not echo.as_json:
        conclusion = (
            "For any two people, seen or not, chances of approval differ by at most their distance, whatever their "
            f"race, sex, marital status and age. {result.cost}"
        )
        screen = Console(highlight=False)
        screen.print(Panel(conclusion, title=f"Mortgages in Boston: 1 metric, {len(models)} models"), table)
    weights = file.metric.by_column
    used = [f"{name}: {as_rate(worth)}" for name, worth in file.meanings().items() if weights[name]]
    echo(f"\nThe distance, in percentage points, adds up over {len(used)} columns:\n{'; '.join(used)}.")
    echo("\nScores are of people whom neither the metric nor the models had seen.")
