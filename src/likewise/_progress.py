"""A progress bar, shown only at a terminal, and lines that are shown as results come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta


@contextmanager
def progress_bar(description: str, total: float | None, *, show: bool) -> Iterator[Callable[..., None]]:
    """Yield a function that advances the bar and may rename it, or does nothing without `show` or a terminal.

    Without a `total` the bar shows the elapsed time.
    """
    if not show:
        yield lambda steps, text=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:  # rich 13 would print an empty line
        yield lambda steps, text=None: None
        return
    left = TextColumn("{task.fields[left]}")
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), left, console=console, transient=True
    ) as bar:
        task = bar.add_task(description, total=total, left="")

        def advance(steps: float, text: str | None = None) -> None:
            bar.update(task, advance=steps, description=text)
            one = bar.tasks[0]
            if total and one.completed:  # from the first step on, also where steps take long
                seconds = (one.elapsed or 0.0) * max(0.0, total - one.completed) / one.completed
                bar.update(task, left=f"about {timedelta(seconds=round(seconds))} left")

        yield advance


def show_line(text: str, *, show: bool) -> None:
    """Print a line to standard error; above a bar, if there is one."""
    if show:
        print(text, file=sys.stderr, flush=True)
