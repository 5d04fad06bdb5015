"""The commands that score people and decide about them: score, and decide (in rounds, and verifying earlier ones)."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise._favourable import given_or_stored
from likewise.cli import console as options
from likewise.cli.console import Band, Batching, Destination, Output, command, facts_of, next_command
from likewise.cli.models import class_named, echo_favourable
from likewise.exceptions import FileError, InvalidInputError

if TYPE_CHECKING:
    from likewise.decisions.costs import DecisionCosts
    from likewise.decisions.round_record import RoundRecord

_NEAR = 0.05  # distance of the pairs that are counted beside a round of decisions


@options.new_command()
@click.argument("model", type=options.FILE)
@click.argument("table", type=options.FILE)
@options.writes("Parquet or CSV; - is standard output.", default="scores.parquet")
@click.option("--intervals", is_flag=True, help="Add intervals of the exact scores and certified distances.")
@command
@options.scores_in_batches("scores")
def score(
    echo: Output,
    model: Path,
    table: Path,
    to: Destination,
    intervals: bool,
    batching: Batching,
) -> None:
    """Score the people in a table of any size. An interrupted run can be resumed by the same command.

    A single - reads CSV from standard input, or writes it to standard output.

    Example: likewise score model.skops loans.csv --id id --out scores.csv
    """
    from likewise.cli.batch_scoring import ScoringJob, score_file
    from likewise.cli.table_io import hinted, is_standard, named
    from likewise.io import load_model

    out = to.path
    echo.to_stderr = is_standard(out)
    if echo.to_stderr and echo.as_json:
        raise InvalidInputError("--json and --out - cannot both write to standard output. Give a file as --out.")
    load_model(model)  # refuse a bad file before any work
    if not is_standard(out):
        to.check(model, table)
    job = ScoringJob(model.read_bytes(), intervals)
    with _standard_streams(table, out) as (source, target):
        n = score_file(job, source, target, **vars(batching), verbose=not echo.as_json, note=echo.note)
    written = "" if echo.to_stderr else f"\nWrote {out}"
    echo(f"Scored {n:,} people of {named(table)}.{written}", n_people=n, scores_file=str(out))
    echo.finish(next_command("audit", hinted(table), "--model", model))


def read_key(path: Path) -> bytes:
    """Read the secret key for decisions."""
    key = path.read_bytes()
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


# -- decisions in rounds ----------------------------------------------------------------------------------------------


@options.new_command()
@click.argument("model", type=options.FILE, required=False)
@click.argument("table", type=options.FILE, required=False)
@click.option("--round", "round_name", help="Name of the round, such as 2026-11-17: everybody in it shares one draw.")
@click.option(
    "--key-file", type=options.FILE, help="Secret key, 16 bytes or more; whoever has it can predict the decisions."
)
@options.has_band()
@options.writes("CSV or Parquet; the record of the round is written beside it.", default="decisions.csv")
@click.option("--commit", is_flag=True, help="Print the commitments to publish before the round, and decide nothing.")
@click.option(
    "--verify",
    "earlier",
    type=options.FILE,
    help="Verify these decisions; with MODEL and TABLE, scores and ids too; with --key-file, the record's seal.",
)
@command
@options.scores_in_batches("decisions")
def decide(
    echo: Output,
    model: Path | None,
    table: Path | None,
    round_name: str | None,
    key_file: Path | None,
    earlier: Path | None,
    commit: bool,
    band: Band,
    to: Destination,
    batching: Batching,
) -> None:
    """Decide by one draw for everybody in a round, so that similar people seldom get different decisions.

    The draw follows from a secret key and the name of the round. Publish the commitments before the round (--commit);
    afterwards the record beside the decisions opens the draw, and anyone can check them (--verify).

    Example: likewise decide model.skops new.csv --round 2026-11-17 --key-file secret.key --threshold 0.6 --width 0.1
    """
    if earlier is not None:
        _verify(echo, earlier, model, table, key_file, batching)
        return
    if round_name is None or key_file is None:
        raise InvalidInputError("--round and --key-file are needed: the draw follows from the key and the round.")
    if commit:
        _commit(echo, round_name, read_key(key_file))
        return
    if model is None or table is None:
        raise InvalidInputError("MODEL and TABLE are needed to decide; without them use --commit or --verify.")

    from likewise._shared_draw import SharedDraw
    from likewise.cli.batch_scoring import ScoringJob, columns_kept, score_file
    from likewise.cli.decision_files import costs_beside_threshold, record_of, write_record
    from likewise.decisions.round_record import DecisionRule
    from likewise.io import load_model

    key = read_key(key_file)
    out = to.path
    for path in (out, record_of(out)):
        replace(to, out=path).check(model, table, key_file)
    fitted = load_model(model)
    if band.favourable is not None and band.threshold is None:
        raise InvalidInputError("--favourable goes with --threshold and --width.")
    decision = fitted if band.threshold is None and band.width is None else _with_band(echo, fitted, band)
    rule = DecisionRule.of(decision)
    job = ScoringJob(model.read_bytes(), draw=SharedDraw.from_key(key, round_name), rule=rule)
    n = score_file(job, table, out, **vars(batching), verbose=not echo.as_json, note=echo.note)
    record = write_record(job, key, model, table, out, columns_kept(batching.id_column, batching.keep), n)
    echo(
        f"Decided about {n:,} people in the round {round_name}.",
        n_people=n,
        round=round_name,
        record_digest=record.digest,
        **facts_of(record, "key_commitment", "draw_commitment"),
    )
    costs = costs_beside_threshold(fitted, rule, table, batching.dialect, _NEAR)
    if costs is not None:
        _echo_costs(echo, costs)
    echo(
        f"\nWrote {out}\nWrote {record_of(out)}: it opens the draw. Publish it after the round, or at least its "
        f"digest, {record.digest}: until then whoever holds the key could write another.",
        decisions_file=str(out),
        record_file=str(record_of(out)),
    )
    echo.finish(next_command("decide", model, table, "--verify", out))


def _commit(echo: Output, round_name: str, key: bytes) -> None:
    from likewise._shared_draw import SharedDraw, key_commitment

    commitment, of_draw = key_commitment(key), SharedDraw.from_key(key, round_name).commitment
    echo(
        f"Round:               {round_name}\nCommitment of key:   {commitment}\n"
        f"Commitment of draw:  {of_draw}\nPublish these before the round.",
        round=round_name,
        key_commitment=commitment,
        draw_commitment=of_draw,
    )
    echo.finish()


def _with_band(echo: Output, model: Any, band: Band) -> Any:
    from likewise.decisions.threshold import ThresholdDecision

    if band.threshold is None or band.width is None:
        raise InvalidInputError("--threshold and --width go together; a plain threshold (width 0) guarantees nothing.")
    if isinstance(model, ThresholdDecision):
        raise InvalidInputError("--threshold and --width are in this model already. Leave them out.")
    classes = getattr(model, "classes_", None)
    chosen = class_named(given_or_stored(band.favourable, model), classes)
    found = ThresholdDecision.from_model(model, threshold=band.threshold, width=band.width, favourable=chosen)
    echo_favourable(echo, chosen, classes)
    return found


def _echo_costs(echo: Output, costs: DecisionCosts) -> None:
    """Show near pairs decided differently, beside the plain threshold."""
    from likewise.decisions.costs import percentage_upwards

    plain, soft = costs.table.iloc[0], costs.table.iloc[1]
    echo.facts["near_pairs"] = costs.n_near_pairs
    if not costs.n_near_pairs:
        echo(f"\nNo two of {costs.n_people:,} people are at a distance of at most {costs.near:g}.")
        return
    echo(
        f"\nOf {costs.n_near_pairs:,} pairs of people at a distance of at most {costs.near:g} (under the metric of the "
        "scores, before it is divided by the width), decided differently:\n"
        f"  {plain['near_different']:6.1%}  by a plain threshold at {costs.threshold:g}, which guarantees nothing\n"
        f"  {soft['near_different']:6.1%}  by this rule on average over rounds; any two people that near at most "
        f"{percentage_upwards(soft['guarantee'])}\n"
        f"  {soft['near_different_independent']:6.1%}  if everyone had a draw of their own\n"
        f"The draw matters for {soft['in_band']:.1%} of people.",
        width=float(costs.table.index[1]),
        near_different_by_threshold=float(plain["near_different"]),
        near_different=float(soft["near_different"]),
        near_guarantee=float(soft["guarantee"]),
        near_different_independent=float(soft["near_different_independent"]),
        in_band=float(soft["in_band"]),
    )


def _verify(
    echo: Output, earlier: Path, model: Path | None, table: Path | None, key_file: Path | None, batching: Batching
) -> None:
    from likewise.cli.decision_files import VerificationError, read_record, verify, verify_scores

    if (model is None) != (table is None):
        raise InvalidInputError("MODEL and TABLE go together: with both, probabilities and ids are verified too.")
    record = read_record(earlier)
    try:
        if model is not None and table is not None:
            verify_scores(earlier, record, model, table, batching.dialect, batching.id_column)
        n = verify(earlier, record, batching.id_column, None if key_file is None else read_key(key_file))
    except VerificationError as failure:
        echo.facts |= {"verified": False, "reason": str(failure)}
        if echo.as_json:
            echo.finish()
        click.echo(f"Failed: {failure}", err=True)
        sys.exit(1)
    shown, not_shown = _what_is_shown(record, with_table=table is not None, with_key=key_file is not None)
    echo(
        f"Verified: all {n:,} decisions of the round {record.round} follow from its draw and the probabilities beside "
        f"them{shown}.\nNot shown: {not_shown}.\n"
        f"Compare with what was published before the round: commitment of draw {record.draw_commitment}, "
        f"commitment of key {record.key_commitment}; and after it: digest of record {record.digest}.",
        verified=True,
        n_people=n,
        round=record.round,
        record_digest=record.digest,
        **facts_of(record, "key_commitment", "draw_commitment"),
        not_shown=not_shown,
    )
    echo.finish()


def _what_is_shown(record: RoundRecord, *, with_table: bool, with_key: bool) -> tuple[str, str]:
    """What a verification shows beyond the draw, and what it does not."""
    kept = f", and {', '.join(record.kept)} are those of the table, row by row" if record.kept else ""
    shown = f"; these are the model's for the people of the table{kept}" if with_table else ""
    if with_key:
        return f"{shown}; files and record have the seal of the key", (
            "that a holder of the key wrote no second record; only what was published shows that"
        )
    if with_table:
        return shown, (
            "that model, table, decisions and record were not all exchanged together; what was published shows that, "
            "and for a holder of the key --key-file"
        )
    return "", (
        "whose decisions these are: ids, rows and probabilities could be exchanged together with the record; MODEL and "
        "TABLE show that they were not, or what was published, or for a holder of the key --key-file"
    )
