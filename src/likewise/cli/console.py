"""What a command says, to people or machines, and how it ends."""

from __future__ import annotations

import functools
import json
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from likewise.exceptions import LikewiseError

if TYPE_CHECKING:
    import pandas as pd

FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
TABLE = click.Path(path_type=Path, allow_dash=True)
"""A file, or a directory of Parquet files."""
MODELS = ("logistic", "forest", "boosting", "network")
TASKS = ("classification", "regression")

force = click.option("--force", is_flag=True, help="Replace a file that is there already; never one that is read.")
target = click.option("--target", required=True, help="Column with the outcome to predict.")
task = click.option(
    "--task", type=click.Choice(TASKS), help="What the target is, where it could be either: kinds or a number."
)

output_range = click.option(
    "--range",
    "output_range",
    type=float,
    nargs=2,
    help="Lowest and highest outcome of a regression; by default as the metric file says.",
)


id_aside = click.option("--id", "id_column", help="Column that names people: it is left out, and names rows in errors.")

cluster = click.option("--cluster", help="Address of a Dask scheduler, such as tcp://127.0.0.1:8786, or local.")


def reads_table(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add how CSV is written, given to the function as one `dialect`."""

    @click.option("--delimiter", default=",", show_default=True, help="Between the columns of a CSV file; 'tab' too.")
    @click.option("--encoding", default="utf-8", show_default=True, help="Of a CSV file, such as latin-1.")
    @click.option("--decimal", default=".", show_default=True, help="Sign before the decimals in a CSV file.")
    @functools.wraps(function)
    def wrapped(*args: Any, delimiter: str, encoding: str, decimal: str, **options: Any) -> Any:
        from likewise.cli.table_io import Dialect

        return function(*args, dialect=Dialect(delimiter, encoding, decimal), **options)

    return wrapped


metric = click.option("--metric", "metric_file", type=FILE, required=True, help="Metric file (TOML).")


BAD_INPUT, CRASH, STOPPED = 2, 3, 130
"""Exit codes; 1 is a gate that failed."""


class Output:
    """Where results go: words for people, or one JSON document for machines.

    Results belong to standard output, notes to standard error. If a table of scores takes standard output
    (`aside`), results go to standard error too.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.aside = False
        self.facts: dict[str, Any] = {}
        self.notes: list[str] = []

    def __call__(self, text: str, **facts: Any) -> None:
        """Say words to people, and the same as facts to machines."""
        self.facts |= facts
        if not self.as_json:
            click.echo(text, err=self.aside)

    def note(self, text: str) -> None:
        """One line on what was found, done or left out; each once."""
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.as_json:
            click.echo(f"Note: {text}", err=True)

    def busy(self, doing: str) -> AbstractContextManager[Any]:
        """Show that work goes on."""
        from likewise._progress import progress_bar

        return progress_bar(doing, None, show=not self.as_json)

    def table(self, frame: pd.DataFrame, name: str) -> None:
        """Show a table."""
        self.facts[name] = json.loads(frame.to_json(orient="records"))
        if not self.as_json:
            click.echo(frame.to_string(index=False), err=self.aside)

    def finish(self, *try_next: str) -> None:
        """End: with the document, or with what to do next."""
        if self.as_json:
            click.echo(json.dumps(self.facts | ({"notes": self.notes} if self.notes else {}), indent=2))
        elif try_next:
            click.echo("\nNext: " + "\n      ".join(try_next), err=self.aside)


_CARRIED = ("--task", "--delimiter", "--encoding", "--decimal", "--categorical", "--id", "--range")
"""Options that say how a table is read: what was given to one command is needed by the next."""


def then(name: str, *words: object) -> str:
    """A command to run next on the same table, as it can be pasted into a shell.

    Options on how to read the table that the present command was given are repeated, if that command has them.
    """
    return shlex.join(["likewise", name, *(str(word) for word in words), *_carried(name)])


def _carried(name: str) -> list[str]:
    context = click.get_current_context()
    known: Any = context.parent.command if context.parent else None
    following = getattr(known, "commands", {}).get(name)
    options = {flag for option in (following.params if following else []) for flag in option.opts}
    found = []
    for option in context.command.params:
        flag = next((flag for flag in option.opts if flag in _CARRIED and flag in options), None)
        if flag is None or context.get_parameter_source(str(option.name)) is not ParameterSource.COMMANDLINE:
            continue
        value = context.params[str(option.name)]
        for one in value if getattr(option, "multiple", False) else [value]:
            found += [flag, *map(str, one if isinstance(one, tuple) else [one])]
    return found


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Every way to end: bad input (2) and a crash (3) with one clear line, Ctrl-C (130) with nothing half-written."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of words.")
    @functools.wraps(function)
    def wrapped(as_json: bool, **options: Any) -> Any:
        say = Output(as_json)
        try:
            with _warnings_as_notes(say):
                return function(say, **options)
        except KeyboardInterrupt as interrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not break into the way out
            click.echo(" ".join(["Stopped. Nothing was half-written.", *_words(interrupt)]), err=True)
            sys.exit(STOPPED)
        except BrokenPipeError:
            raise  # who reads standard output has seen enough: click ends quietly
        except Exception as error:
            if os.environ.get("LIKEWISE_DEBUG"):
                raise
            text = " ".join(_for_commands(error).split())
            if isinstance(error, (LikewiseError, ValueError, OSError)):
                click.echo(f"Error: {text}", err=True)
                sys.exit(BAD_INPUT)
            click.echo(
                f"Error in likewise itself: {type(error).__name__}: {text[:300]} "
                "Set LIKEWISE_DEBUG=1 and run it again to see where.",
                err=True,
            )
            sys.exit(CRASH)

    return wrapped


def _for_commands(message: Warning | Exception | str) -> str:
    """What an error or a warning says at the command line."""
    return getattr(message, "command_text", None) or str(message)


def _words(interrupt: BaseException | None) -> list[str]:
    """What the work said when it was interrupted, even if a second Ctrl-C broke into that."""
    while interrupt is not None and not (isinstance(interrupt, KeyboardInterrupt) and interrupt.args):
        interrupt = interrupt.__context__
    return [] if interrupt is None else [str(word) for word in interrupt.args]


@contextmanager
def _warnings_as_notes(say: Output) -> Iterator[None]:
    """A warning is for people: one line without file names."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *place, **more: say.note(" ".join(_for_commands(message).split()))
        yield


def say_coverage(say: Output, reach: Any) -> None:
    """Say how many pairs a metric binds, and what to do where these are few."""
    say(f"\n{reach.statement}", bound_share=reach.bound_share, nearest=reach.nearest)
    if reach.is_little:
        say.note(
            f"Nothing is said about {1 - reach.bound_share:.1%} of the pairs, where D >= 1. Smaller weights bind "
            "more of them: likewise scale METRIC --by FACTOR, or likewise metric --normalize."
        )
