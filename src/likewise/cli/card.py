"""The commands about scorecards: card (export, whole points), verify-card (proof) and notice (to one person)."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise._favourable import given_or_stored, known_favourable
from likewise.cli import console as options
from likewise.cli.console import Band, Destination, Dialect, Output, command, next_command
from likewise.cli.sources import PeopleSource
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd


_ROWS = 60  # printed of a card
_ENDINGS = (".csv", ".xlsx", ".json", ".sql", ".onnx", ".skops")


@options.new_command()
@click.argument("model", type=options.FILE)
@options.writes(
    "By its ending: .csv or .xlsx (the table), .json (everything, for verify-card), .sql, .onnx, or .skops (a model).",
    default="card.csv",
)
@click.option("--in-points", is_flag=True, help="Round to whole points within the metric, as lenders print them.")
@click.option("--points-to-double", type=float, help="Points that double the odds (20).")
@click.option("--base-score", type=int, help="Points of someone with the base odds (600).")
@click.option("--base-odds", type=float, help="Odds at the base score: 50 means 50 to 1 (50).")
@click.option("--max-bins", type=int, help="Most ranges per numeric column (8).")
@click.option("--whole-numbers", multiple=True, help="Integer column with whole points for each value.")
@click.option("--favourable", help="Class whose points are shown; by default the one in the model.")
@click.option("--table", type=options.FILE, help="People with known outcomes, to measure what rounding costs.")
@click.option("--target", help="Column of --table with the outcome.")
@command
@options.reads_table
def card(
    echo: Output,
    model: Path,
    to: Destination,
    in_points: bool,
    favourable: str | None,
    table: Path | None,
    target: str | None,
    dialect: Dialect,
    **given: Any,
) -> None:
    """Write a scorecard as a table, JSON, SQL, ONNX or a model, in its own units or in whole points.

    With --in-points the guarantee is that of the rounded card, proven in exact fractions.

    Example: likewise card model.skops --in-points --points-to-double 20 --out card.json
    """
    from likewise.cli.models import class_named

    out = to.path
    if out.suffix not in _ENDINGS:
        raise InvalidInputError(f"--out must end in {', '.join(_ENDINGS)}; got {out}.")
    to.check(model, table)
    fitted = _scorecard(model)
    classes = getattr(fitted, "classes_", None)
    outcome = class_named(given_or_stored(favourable, fitted), classes)
    if outcome is None and classes is not None and len(classes) == 2:
        outcome = known_favourable(classes.tolist())
        unknown = f". Which class is favourable is not known: --favourable {classes[0]} or {classes[1]} says it."
        why = unknown if outcome is None else ", the favourable class by its word."
        outcome = classes.tolist()[-1] if outcome is None else outcome
        echo.note(f"Points count for '{outcome}'{why}")
    asked = {name: value for name, value in given.items() if value not in (None, ())}
    if (table is None) != (target is None) or (table and not in_points):
        raise InvalidInputError("--table and --target go together, with --in-points.")
    if asked and not in_points:
        raise InvalidInputError(f"--{next(iter(asked)).replace('_', '-')} goes with --in-points.")
    if in_points:
        whole, fitted, outcome = fitted, fitted.in_points(**asked, outcome=outcome), None
        _echo_points(echo, whole, fitted)
        if table is not None and target is not None:
            _echo_cost(echo, whole, fitted, table, target, dialect)
    _write(fitted, out, outcome)
    guarantee = fitted.guarantee_.statement.splitlines()[0]
    echo(f"\n{guarantee}\n\nWrote {out}", card_file=str(out), guarantee=guarantee)
    echo.finish(*([next_command("verify-card", out)] if out.suffix == ".json" else []))


def _echo_points(echo: Output, model: Any, card: Any) -> None:
    """Print the card, and which columns it leaves out."""
    from likewise.scorecard.points import left_out

    rows = card.scorecard()[["column", "range", "points", "points at end"]]
    echo.table(rows.head(_ROWS), "card")
    if len(rows) > _ROWS:
        echo(f"... and {len(rows) - _ROWS} more rows")
    moved = {name: f"{name} ({points:.1f})" for name, points in left_out(model, card).items()}
    if moved:
        echo.note(
            "Left out, as the metric allows them less than a whole point, or they are worth less, with the points that "
            f"they moved a score: {', '.join(moved.values())}. More --points-to-double keep more columns."
        )


def _echo_cost(echo: Output, model: Any, card: Any, table: Path, target: str, dialect: Dialect) -> None:
    """Print what rounding costs on people with known outcomes."""
    import numpy as np

    people, outcomes = PeopleSource(table, target, dialect).load(echo, model)
    labels = {str(label): label for label in model.classes_.tolist()}
    texts = [] if outcomes is None else [*map(str, outcomes)]
    unknown = [text for text in texts if text not in labels]
    if unknown:
        raise InvalidInputError(f"--target must have the classes {', '.join(labels)}; {target!r} has {unknown[0]!r}.")
    costs = model.rounding_cost(card, people, np.array([labels[text] for text in texts]))
    cost = costs.loc["cost"]
    echo(
        f"\nRounding costs {cost['Brier score']:+.5f} of the Brier score on {len(people):,} people, from "
        f"{costs.loc['model', 'Brier score']:.5f}; no chance changes by more than {cost['largest change']:.2%}.",
        brier_score_cost=float(cost["Brier score"]),
        log_loss_cost=float(cost["log loss"]),
        largest_change=float(cost["largest change"]),
    )


def _scorecard(path: Path) -> Any:
    from likewise.additive.scorecard_mixin import ScorecardMixin
    from likewise.decisions.threshold import ThresholdDecision
    from likewise.io import load_model

    model = load_model(path)
    inner = model.estimator_ if isinstance(model, ThresholdDecision) else model
    if not isinstance(inner, ScorecardMixin):
        raise InvalidInputError(
            f"{path} must hold a scorecard; it holds a {type(inner).__name__}. Make one with likewise enforce --method "
            "additive."
        )
    return inner


def _write(fitted: Any, out: Path, outcome: Any) -> None:
    from likewise._writing import write_text
    from likewise.io import save_model

    if out.suffix == ".skops":
        save_model(fitted, out)
    elif out.suffix == ".onnx":
        fitted.to_onnx(out)
    elif out.suffix == ".json":
        fitted.to_json(out, outcome)
    elif out.suffix == ".sql":
        write_text(out, fitted.to_sql(outcome) + "\n")
    else:
        (fitted.to_csv if out.suffix == ".csv" else fitted.to_excel)(out, outcome)


@options.new_command("verify-card")
@click.argument("card", type=options.FILE)
@click.argument("people", type=options.FILE, required=False)
@command
def verify_card(echo: Output, card: Path, people: Path | None) -> None:
    """Prove the guarantee of a scorecard from its numbers, in exact fractions.

    CARD is what to_json() writes. The scores in PEOPLE, a CSV file with the columns that `likewise score` writes beside
    those of the card, are compared with the card's. The exit code is 1 if anything is not proven. The same checker is a
    single file that needs neither likewise nor any other package: likewise/verify_card.py.

    Example: likewise verify-card card.json scores.csv
    """
    from likewise import verify_card as checker

    try:
        document = checker.load(card.read_text(encoding="utf-8"))
        checker.prove(document)
        claim = document["guarantee"]
        echo(
            f"Proven: {claim['statement']} The bound is {claim['bound']}.\n"
            f"The card uses {claim['used']:.1%} of what the metric allows.",
            proven=True,
            guarantee=claim,
        )
        if people is not None:
            n, compared = checker.check_scores(document, people)
            echo(
                f"Scores of {n:,} people computed; {compared:,} in {people} are the card's, to {checker.TOLERANCE:g}.",
                n_people=n,
                n_compared=compared,
            )
    except (checker.NotProvenError, *checker.DAMAGE) as problem:
        why = str(problem) if isinstance(problem, checker.NotProvenError) else checker.damaged(problem)
        echo(f"Not proven: {why}", proven=False, problem=why)
        echo.finish()
        sys.exit(1)
    echo.finish()


@options.new_command()
@click.argument("model", type=options.FILE)
@click.argument("table", type=options.FILE)
@click.option("--person", required=True, help="Who: the value in the column --id, or else the row, from 1.")
@click.option("--id", "id_column", help="Column that names people.")
@click.option("--policy", type=options.FILE, help="TOML or JSON file with names, approved reasons and what is fixed.")
@click.option("--increase", multiple=True, help="Column that people can change, to more of it only.")
@click.option("--decrease", multiple=True, help="Column that people can change, to less of it only.")
@click.option("--allow", multiple=True, help="Column that people can change either way, such as one of categories.")
@options.has_band(threshold="Probability that is needed; a model made with --decide has its own.")
@click.option(
    "--reasons", type=click.IntRange(1), default=4, show_default=True, help="Most reasons to give, ties aside."
)
@options.writes("Also write it: .html, .txt or .json.")
@command
@options.reads_table
def notice(
    echo: Output,
    model: Path,
    table: Path,
    person: str,
    id_column: str | None,
    policy: Path | None,
    increase: tuple[str, ...],
    decrease: tuple[str, ...],
    allow: tuple[str, ...],
    band: Band,
    reasons: int,
    to: Destination,
    dialect: Dialect,
) -> None:
    """Tell one person what lowers the chance of the favourable outcome, and the smallest change that would be enough.

    Columns change only as --increase, --decrease and --allow say, or as the model was made --monotone. The policy file
    can say it too (directions); it has the favourable outcome in words (outcome), tables of names and approved reasons
    by column, lists of columns that are protected (never named) or immutable (marked so), and steps of numbers.

    Example: likewise notice model.skops new.csv --id id --person 17 --threshold 0.8 --increase income --decrease debt
    """
    from likewise._writing import write_text
    from likewise.cli.models import class_named, echo_favourable
    from likewise.decisions.threshold import ThresholdDecision
    from likewise.io import load_model
    from likewise.scorecard.notices import Policy

    out = to.out
    if out is not None and out.suffix not in (".html", ".txt", ".json"):
        raise InvalidInputError(f"--out must end in .html, .txt or .json; got {out}.")
    to.check(model, table, policy)
    inner, fitted = _scorecard(model), load_model(model)
    X = _row_of(echo, inner, PeopleSource(table, id_column, dialect), person)
    said = Policy.read(policy, inner.encoder_.names)
    ways = {**dict.fromkeys(increase, "increase"), **dict.fromkeys(decrease, "decrease"), **dict.fromkeys(allow, "any")}
    rules: dict[str, Any] = {"policy": asdict(said) | {"directions": {**said.directions, **ways}}, "n": reasons}
    if isinstance(fitted, ThresholdDecision):
        if band != Band(None, None, None):
            raise InvalidInputError("--threshold, --width and --favourable are in this model already. Leave them out.")
        (found,) = fitted.notice(X, **rules)
    else:
        classes = getattr(inner, "classes_", None)
        label = class_named(given_or_stored(band.favourable, fitted), classes)
        limits = {"threshold": band.threshold, "width": band.width or 0.0}
        (found,) = inner.notice(X, **limits, favourable=label, **rules)
        echo_favourable(echo, label, classes)
    if found.changes is not None and not found.considered:
        echo.note("No change is suggested, as nobody has said what people can change: --increase, --decrease, --allow.")
    echo(found.to_text(), **json.loads(found.to_json()))
    if out is not None:
        text = {".html": found.to_html, ".txt": found.to_text, ".json": found.to_json}[out.suffix]()
        write_text(out, text.rstrip("\n") + "\n")
        echo(f"\nWrote {out}", notice_file=str(out))
    echo.finish()


def _row_of(echo: Output, model: Any, source: PeopleSource, person: str) -> pd.DataFrame:
    """The row of one person."""
    people, ids = source.load(echo, model)
    names = [*range(1, len(people) + 1)] if ids is None else ids
    rows = people[[str(name) == person for name in names]]
    if len(rows) != 1:
        where = f"the rows 1 to {len(people):,}" if ids is None else f"the column {source.id_column!r}"
        raise InvalidInputError(
            f"--person must occur once in {where} of {source.table}; {person!r} occurs {len(rows)} times."
        )
    return rows.set_axis([person])
