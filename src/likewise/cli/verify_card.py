"""The command that proves the guarantee of a scorecard from its own numbers: verify-card."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from likewise import verify_card as checker
from likewise.cli import console as options
from likewise.cli.console import Output, command
from likewise.exceptions import FileError

_GATE = 1


@click.command("verify-card")
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
    try:
        document = json.loads(card.read_text(encoding="utf-8"))
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
    except OSError as error:
        raise FileError(f"Cannot read {error.filename}: {error.strerror}.") from None
    except (checker.NotProvenError, *checker.DAMAGE) as problem:
        why = str(problem) if isinstance(problem, checker.NotProvenError) else checker.damaged(problem)
        echo(f"Not proven: {why}", proven=False, problem=why)
        echo.finish()
        sys.exit(_GATE)
    echo.finish()
