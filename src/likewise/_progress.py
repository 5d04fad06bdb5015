"""A progress bar, shown only at a terminal, and lines that are shown as results come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(description: str, total: int | None, *, show: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances the bar, or does nothing without `show` or a terminal.

    Without a `total` the bar shows the elapsed time.
    """
    if not show:
        yield lambda steps: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:  # rich 13 would print an empty line
        yield lambda steps: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps: bar.advance(task, steps)


def show_line(text: str, *, show: bool) -> None:
    """Print a line to standard error; above a bar, if there is one."""
    if show:
        print(text, file=sys.stderr, flush=True)
