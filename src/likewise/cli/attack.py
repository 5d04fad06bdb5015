"""The commands that search and bound over people in the table or not: attack (the worst pair) and effect (a column)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import PAIR, Destination, Output, command, facts_of, next_command
from likewise.cli.models import Examined, check_taken, direction_of, examines
from likewise.cli.sources import PeopleSource, reads_people
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing.effect import Effect

_SHOWN = 6  # rows of a table


@options.new_command()
@examines()
@click.option("--only", multiple=True, help="Compare people who differ in this column alone; repeat it for several.")
@click.option(
    "--pairs",
    type=click.IntRange(1000),
    default=1_000_000,
    show_default=True,
    help="Approximate number of pairs to try.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="The same seed tries the same pairs."
)
@options.writes("Write the worst pair as CSV.")
@command
@reads_people
def attack(
    echo: Output,
    source: PeopleSource,
    examined: Examined,
    only: tuple[str, ...],
    pairs: int,
    seed: int,
    to: Destination,
) -> None:
    """Search for the pair of people, in the table or not, whose scores most exceed their distance.

    The search stays within the domain in the metric file (likewise metric --domain), if there is one. With --only it is
    otherwise learned from the table.

    Example: likewise attack loans.csv --model model.json --metric metric.toml --only sex --out pair.csv
    """
    from likewise import attack as search

    model, file, limits = examined.load(source, to)
    own: Any = getattr(model, "guarantee_", None)
    if file is None and own is None:
        raise InvalidInputError("Give --metric as well: only models of likewise have one.")
    X, _ = source.load(echo, model)
    check_taken("--only", only, X)
    with echo.busy("Searching"):
        found = search(
            model,
            own.metric if file is None else file.metric,
            X,
            only=list(only) or None,
            domain=None if file is None else file.domain_for(X),
            n_pairs=pairs,
            output_range=limits,
            favourable=direction_of(examined.favourable, model, file),
            random_state=seed,
        )
    told, what = found.labels.written, "D"
    if found.guarantee is not None:
        what = f"the model's guarantee at distance D, {told(found.bound)}"
    text = (
        f"The worst of {found.n_pairs:,} pairs: scores differ by {told(found.difference)} at a distance D of "
        f"{told(found.distance)}; {told(max(0.0, found.excess_over_bound))} more than {what}."
    )
    if found.pair is None:
        who = f", of people who differ in {' and '.join(only)} alone," if only else ""
        text = f"No pair was found: all {found.n_pairs:,} pairs tried{who} have equal scores."
    echo(
        text,
        **facts_of(found, "n_pairs", "n_violations", "difference", "distance", "excess", "bound", "excess_over_bound"),
        favourable=found.favourable or None,
        favoured=None if found.favoured is None else PAIR[found.favoured],
    )
    echo.pair(found.pair)
    if found.favoured is not None:
        echo(f"Favoured: {PAIR[found.favoured]} (favourable: {found.favourable}).")
    echo.unit(found.labels)
    echo(f"\n{found.coverage}", coverage=found.coverage)
    if to.out is not None and found.pair is None:
        echo.note(f"{to.out} was not written, as there is no pair.")
    elif to.out is not None:
        echo.csv(found.pair, to.out, "pair_file")
    proof = [word for name in only for word in ("--column", name)] if found.pair is None else []
    echo.finish(*([next_command("effect", source.table, "--model", examined.model_name, *proof)] if proof else []))


@options.new_command()
@examines("for its domain and the smallest excess.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    required=True,
    help="Column to exchange, or what a set of 0/1 columns is called; repeat it for several.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="Processor time to spend on the proof at most; a bound is given even if it is not closed by then.",
)
@click.option("--boxes", type=click.IntRange(1), help="Most boxes to bound, instead of a time limit.")
@click.option(
    "--max-effect",
    type=click.FloatRange(0),
    help="Exit 1 unless the effect is proven to be at most this: in percentage points, or in the unit of other scores.",
)
@options.writes("Write what exchanging the column does to each person as CSV.")
@click.option("-v", "--verbose", is_flag=True, help="Print whole tables, the whole pair, and the domain.")
@command
@reads_people
def effect(
    echo: Output,
    source: PeopleSource,
    examined: Examined,
    columns: tuple[str, ...],
    seconds: float,
    boxes: int | None,
    max_effect: float | None,
    to: Destination,
    verbose: bool,
) -> None:
    """Find how much a column can matter: for these people, for the worst pair there can be, and at most.

    Example: likewise effect loans.csv --model model.skops --column sex --out effect.csv
    """
    from likewise import effect as find_effect

    model, file, limits = examined.load(source, to)
    X, ids = source.load(echo, model)
    check_taken("--column", columns, X)
    found = find_effect(
        model,
        X,
        list(columns),
        None if file is None else file.metric,
        domain=None if file is None else file.domain_for(X),
        output_range=limits,
        favourable=direction_of(examined.favourable, model, file),
        max_seconds=None if boxes is not None else seconds,
        max_boxes=boxes,
        verbose=not echo.as_json,
    )
    _echo_effect(echo, found, verbose)
    if to.out is not None:
        people = found.labels.in_units(found.on_people, "effect")
        people = people.assign(row=people["row"] + 1 if ids is None else ids)
        people = people if ids is None else people.rename(columns={"row": ids.name})
        echo.csv(people, to.out, "people_file")
    passed = True
    if max_effect is not None:
        passed = found.proven is not None and found.labels.factor * found.proven <= max_effect
        gate = max_effect / found.labels.factor
        echo(
            f"\nThe gate, at most {found.labels.written(gate)} for anybody in the domain, "
            f"{'passed' if passed else 'failed'}.",
            gate=gate,
            passed=passed,
        )
    echo.finish()
    if not passed:
        sys.exit(1)


def _echo_effect(echo: Output, found: Effect, verbose: bool) -> None:
    """Print the effect on people, the worst pair, and the proof; their tables as a whole only if `verbose`."""
    names, told = " and ".join(map(str, found.columns)), found.labels.written
    for each in found.sets:
        if set(each.members) <= set(found.columns):
            echo(f"Exchanged together, as everybody here has exactly one 1 in them: {each}.\n")
    largest = float(found.on_people["effect"].max())
    interval, more = "", "" if found.all_tried else " or more"
    if found.mean_interval is not None and not found.proves_none:
        interval = f" ({found.labels.between(*found.mean_interval)} in the population, at 95%)"
    changes = f"the output by {told(found.mean)}{more} on average{interval}, and by up to {told(largest)}{more}"
    if largest <= found.rounding:
        changes = f"nothing{interval.replace('(', '(on average ')}"
    echo(
        f"For these {len(found.on_people):,} people: exchanging {names} alone changes {changes}. Everybody was given "
        f"{found.tried}.",
        n_people=len(found.on_people),
        **facts_of(found, "mean", "mean_interval", "tried", "all_tried"),
        largest_on_people=largest,
    )
    known = f"Who gains (favourable: {found.favourable}):"
    tables = {"directions": known if found.favourable else "Who gets the higher score:"}
    tables["groups"] = "By the people's own value:"
    echo.facts["favourable"] = found.favourable or None
    for key, title in tables.items():
        table = found.labels.in_units(getattr(found, key), "mean", "mean_low", "mean_high", "largest")
        if len(table) and largest > 0:
            echo(f"\n{title}")
            echo.table(table, key, table if verbose else _in_short(getattr(found, key), found))
    if verbose and found.labels.are_probabilities and largest > 0 and len(found.directions) + len(found.groups):
        echo("Of means and the largest, 0.01 is one percentage point.")
    pairs = f"no two people of the domain who differ in {names} alone"
    if found.pair is None:
        worst = f"No pair was found: {pairs} were found to get different outputs."
    else:
        worst = f"The worst pair found in the domain differs by {told(found.found)}:"
    echo(f"\n{worst}", found=found.found)
    echo.pair(found.pair, verbose)
    if found.proves_none:
        text = f"Proven: {pairs} get different outputs, but for rounding ({found.how})."
    elif found.proven is not None:
        more = "" if found.proven - found.found <= found.rounding else f" than {found.labels.at_most(found.proven)}"
        text = f"Proven: {pairs} differ by more{more}. {found.standing}."
        if found.proof.stopped and not found.meets:
            text += f" Raise {'--boxes' if 'box' in found.limit else '--seconds'}."
    else:
        text = f"No upper bound is proven. {found.standing}."
        if found.pair is None:
            text += " Finding no pair does not prove that there is none."
    if found.searched:
        echo(f"\nSearched: {found.searched}.")
    proof = facts_of(found.proof, "proven", "how", "n_boxes", "stopped")
    echo(f"\n{text}", **facts_of(found, "searched", "meets"), **proof)
    if found.excess is not None:
        worst = "no pair was found whose outputs exceed the metric"
        if found.excess.pair is not None and found.excess.found > found.rounding:
            worst = f"outputs exceed the metric by {told(found.excess.found)} in the worst pair found"
        limit = f"no upper bound is proven: {found.excess.how}"
        if found.excess.proven is not None and found.excess.proven <= found.rounding:
            limit = "proven: none does, but for rounding"
        elif found.excess.proven is not None:
            limit = f"proven: by at most {found.labels.at_most(found.excess.proven)}"
        echo(
            f"\nOver all pairs of the domain, {worst}; {limit}. Searched: {found.excess.searched}.",
            excess_found=found.excess.found,
            excess_proven=found.excess.proven,
        )
    echo.unit(found.labels)
    domain = found.domain.describe()
    if verbose or echo.as_json:
        echo("\nThe domain, what each column can hold:")
        echo.table(domain, "domain")
    else:
        echo(f"\n-v prints whole tables, and what each of the {len(domain)} columns of the domain can hold.")


def _in_short(table: pd.DataFrame, found: Effect) -> pd.DataFrame:
    """The first rows above rounding, with differences as people write them."""
    told, some = found.labels.written, table[table["largest"] > found.rounding].head(_SHOWN)
    return (
        some.loc[:, :"mean"]
        .iloc[:, :-1]
        .assign(**{"on average": some["mean"].map(told), "at most": some["largest"].map(told)})
    )
