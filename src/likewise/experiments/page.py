"""The pages `docs/reproduce.md` and `docs/methods.md`: every number between their marks comes from ``results.csv``.

``python -m likewise.experiments.page DIRECTORY`` takes the results of `reproduce` from a directory, copies them and the
figure to ``docs/reproduced``, and fills the pages.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from likewise.experiments.built import goals
from likewise.experiments.claims import statements
from likewise.experiments.figure import draw
from likewise.experiments.markdown import cost_table, method_table, score_table, statement_table
from likewise.experiments.summary import data_name, read_results, summarise

PAGES = ("reproduce.md", "methods.md")
_FILES = "reproduced"
_PLACE = re.compile(r"(<!-- begin: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(page: str, results: pd.DataFrame) -> str:
    """Replace what stands between ``<!-- begin: name -->`` and ``<!-- end -->`` by the part of that name."""
    return _PLACE.sub(lambda match: f"{match[1]}{_PARTS[match[2]](results)}\n{match[3]}", page)


def _scope(results: pd.DataFrame) -> str:
    """What was run, with how many draws, and how long it took."""
    smoothed = results[results["level"] == "sampled"]
    cost = results.groupby("seed")["cpu_seconds"].sum() / 60
    draws = summarise(smoothed)["evaluations"]
    per_seed = results.groupby(["dataset", "split", "seed"], sort=False).size()
    finished: dict[str, list[str]] = {}
    for dataset, split, seed in per_seed.index:
        finished.setdefault(data_name(dataset, split), []).append(str(seed))
    seeds = "; ".join(f"{name} {', '.join(found)}" for name, found in finished.items())
    return "\n".join(
        [
            f"- Seeds: {seeds}. Test people scored per seed: up to {results['n_people'].max():,}.",
            f"- Draws per person, where they are random: {smoothed['evaluations'].mean():,.0f} on average; "
            f"{(draws > 100_000).sum()} of {len(draws)} combinations of data, metric and noise took more than 100,000.",
            f"- CPU time of one seed, on all cores together: {cost.min():.0f} to {cost.max():.0f} minutes.",
        ]
    )


_PARTS: dict[str, Callable[[pd.DataFrame], str]] = {
    "scope": _scope,
    "table": score_table,
    "statements": lambda results: statement_table(statements(results), "paper"),
    "goals": lambda results: statement_table(goals(results), "goal"),
    "costs": cost_table,
    "methods": method_table,
}


def write_pages(source: Path, docs: Path) -> None:
    """Copy the results from `source` to the docs, draw the figure, and fill the pages."""
    target = docs / _FILES
    target.mkdir(exist_ok=True)
    if source.resolve() != target.resolve():
        shutil.copyfile(source / "results.csv", target / "results.csv")
    results = read_results(target / "results.csv")
    draw(summarise(results), target / "figure.svg", target / "figure.png")
    for name in PAGES:
        page = docs / name
        page.write_text(fill(page.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]), Path("docs"))
