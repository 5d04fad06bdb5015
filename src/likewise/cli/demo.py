"""The command that runs the whole workflow on data that come with the installation: demo."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.console import Output, command, new_command

if TYPE_CHECKING:
    import pandas as pd

_PROTECTED = (
    "race",
    "sex",
    "married",
    "older_than_median",
)  # what the Equal Credit Opportunity Act protects, and we have
_WHATEVER = "their race, sex, marital status and age"
_METHODS = ["additive", "smoothing"]
_SCALES = (0.25, 0.5, 1, 2)
_DESIGN: dict[str, Any] = {"n_points": 6, "cv": 3}
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
@click.option("-v", "--verbose", is_flag=True, help="Print every step with its tables.")
@command
def demo(echo: Output, out: Path, verbose: bool) -> None:
    """Run the whole workflow on 1,989 mortgage applications from Boston.

    Design, round, compare, enforce, audit, measure the trade-off, explain and report.

    Example: likewise demo --out likewise-demo
    """
    from likewise._progress import progress_bar

    every = echo if verbose else Output(as_json=True)  # which prints nothing, and keeps the facts
    steps = iter(_STEPS.items())
    with progress_bar(next(iter(_STEPS)), sum(_STEPS.values()), show=not (echo.as_json or verbose)) as advance:
        done = 0

        def begin() -> None:
            nonlocal done
            name, share = next(steps)
            advance(done, name)
            done = share

        shown = _run(every, out, begin)
    echo.facts = every.facts | echo.facts
    _echo_conclusion(echo, *shown)
    files = ["metric.toml", "model.skops", "people.parquet", "scores.parquet", "report.html"]
    echo(f"\nWrote {', '.join(files)}", directory=str(out), files=files)
    echo.finish(
        f"cd {shlex.quote(str(out))}   # open report.html in a browser, edit metric.toml, then",
        "likewise audit people.parquet --metric metric.toml --model model.skops",
        "likewise demo -v         # every step",
        "likewise design --help   # for a table of your own",
    )


def _run(echo: Output, out: Path, begin: Callable[[], None]) -> tuple[Any, ...]:
    """The workflow: what the conclusion is about."""
    import numpy as np
    import pandas as pd

    from likewise import audit, compare, design_metric, tradeoff
    from likewise._optional import need
    from likewise.cli.batch_scoring import ScoringJob, score_file
    from likewise.cli.design import DEFAULT_CHOICE, designed_file, echo_frontier
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
    echo(f"1. {len(X):,} mortgage applications, of which {np.mean(y == 'approved'):.0%} were approved.")

    begin()
    apart = kept_apart(X, 0.5)
    echo(f"2. From half of them, a metric is designed together with a scorecard; {_WHATEVER} must not matter.")
    frontier = design_metric(
        X[~apart], y[~apart], protected=_PROTECTED, references=False, verbose=not echo.as_json, **_DESIGN
    )
    point = frontier.best()
    echo_frontier(echo, frontier, point)
    units = {name: unit for name, unit in bunch.units.items() if unit != "category"}
    file = designed_file(frontier, point, units, f"Protected: {', '.join(_PROTECTED)}.").rounded(X[~apart])
    metric: Any = file.metric
    file = replace(file, **origin_of(X[~apart], metric.columns, 0.5, **_DESIGN, **DEFAULT_CHOICE))
    X, y = X[apart], y[apart]
    write_metric(file, out / "metric.toml")
    echo(f"\n{file.how}", how=file.how)
    echo("\n3. In round numbers, one percentage point is worth:")
    echo.table(pd.DataFrame(file.meanings().items(), columns=["column", "one point"]), "metric")

    echo(f"\n4. The methods that enforce it, on the other {len(X):,} people, each measured on those held out:")
    begin()
    result = compare(X, y, metric, methods=_METHODS, verbose=not echo.as_json, **_FOLDS)
    best = result.best()
    echo(str(replace(result, caveat="")), best=best.name, reason=best.reason)

    model = best.fit(X, y)
    save_model(model, out / "model.skops")
    echo(f"\n5. Enforced by the best of them, {best.name}:\n{model.guarantee_.statement}", level=model.guarantee_.level)
    X.to_parquet(out / "people.parquet", index=False)
    (out / "scores.parquet").unlink(missing_ok=True)
    score_file(ScoringJob((out / "model.skops").read_bytes()), out / "people.parquet", out / "scores.parquet")

    begin()
    unseen = X.iloc[result.folds[0].test]
    before, after = (audit(each, unseen, metric) for each in (result.results[UNCONSTRAINED].model, model))
    echo(
        f"\n6. All {before.n_pairs:,} pairs of {len(unseen):,} people were searched. The unconstrained "
        f"model, trained on the others: {before.n_violations:,} pairs differ by more than their distance, "
        f"the worst by {100 * before.max_excess:.0f} points. With the guarantee: {after.n_violations:,}.",
        violations_before=before.n_violations,
        violations_after=after.n_violations,
    )
    begin()
    curve = tradeoff(X, y, metric, _SCALES, method=best, comparison=result, verbose=not echo.as_json)
    curve = replace(curve, caveat="")  # the metric is from the other half
    echo(f"\n7. What a stricter metric costs:\n{curve}", matching_scale=curve.matching_scale)
    _echo_reasons(echo, model, X)
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
    return result, best.name, before, after, file


def _echo_reasons(echo: Output, model: Any, people: pd.DataFrame) -> None:
    """Print why three people are the least likely to be approved, if the model has reasons."""
    import numpy as np

    if not hasattr(model, "reasons"):
        return
    approved = model.predict_proba(people)[:, list(model.classes_).index("approved")]
    lowest = people.iloc[np.argsort(approved, kind="stable")[:3]]
    echo("\n8. Main reasons against the three people with the lowest scores, compared with the average person:")
    for name, row in model.reasons(lowest, n=3, outcome="denied").drop(columns="outcome").iterrows():
        reasons = (reason.removesuffix(" against the average person") for reason in row if reason)
        echo(f"   application {name}: {'; '.join(reasons)}")


def _echo_conclusion(echo: Output, result: Any, method: str, before: Any, after: Any, file: Any) -> None:
    """Print what is guaranteed, and what it costs, in a screen of 80 columns."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.table import Table

    from likewise.metric_file import as_rate
    from likewise.selection.methods import CONSTANT, UNCONSTRAINED

    models = {"with the guarantee": method, "the unconstrained model": UNCONSTRAINED, "a constant": CONSTANT}
    rows = result.table.loc[list(models.values())]
    echo.facts |= {
        "brier": dict(zip(models, rows["brier"], strict=True)),
        "conclusion": [
            {"model": name, "Brier score (lower is better)": round(row["brier"], 4), "AUC": round(row["auc"], 3)}
            for name, (_, row) in zip(models, rows.iterrows(), strict=True)
        ],
    }
    if echo.as_json:
        return
    screen = Console(highlight=False)
    screen.print(
        Panel(
            f"For any two people, seen or not, chances of approval differ by at most their distance, whatever "
            f"{_WHATEVER}. {result.cost}",
            title=f"Mortgages in Boston: 1 metric, {len(models)} models",
        )
    )
    table = Table("model", box=None, padding=(0, 2, 0, 0))
    for title in ("Brier score", "AUC", f"violating pairs of {before.n_pairs:,}"):
        table.add_column(title, justify="right")
    audits = {method: after, UNCONSTRAINED: before}
    for (name, key), (_, row) in zip(models.items(), rows.iterrows(), strict=True):
        count = audits[key].n_violations if key in audits else 0
        table.add_row(
            name, f"{row['brier']:.4f}", f"{row['auc']:.3f}", f"[bold {'red' if count else 'green'}]{count:,}[/]"
        )
    screen.print(table)
    weights = file.metric.by_column
    used = [f"{name}: {as_rate(worth)}" for name, worth in file.meanings().items() if weights[name]]
    screen.print(f"\nThe distance, in percentage points, adds up over {len(used)} columns:\n{'; '.join(used)}.")
    screen.print("\nScores are of people whom neither the metric nor the models had seen.")
