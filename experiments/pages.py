"""The pages `docs/reproduce.md` and `docs/methods.md`: every number between their markers comes from ``results.csv``.

``python -m experiments --pages DIRECTORY`` copies the results of `reproduce` and their figure from a directory to
``docs/reproduced``, and fills the pages.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.statements import Data, Measured, Model, Statement, best_smoothed, goals, statements
from experiments.summary import data_name, draw, metric_name, model_name, read_results, summarise
from experiments.trials import ADDITIVE, CEILING, CONSTANT, EXPONENTS, LINEAR, LIPSCHITZ, NETWORK

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


_NO_GUARANTEE = {LINEAR: "logistic regression, no guarantee", NETWORK: "network, no guarantee", CONSTANT: "constant"}


def statement_table(found: Iterable[Statement], by: str) -> str:
    """Statements, their source, what was measured, and whether they hold."""
    lines = [f"| statement | {by} | ours | holds |", "|---|---|---|---|"]
    lines += [f"| {said} | {paper} | {ours} | {holds} |" for said, paper, ours, holds in found]
    return "\n".join(lines)


def score_table(results: pd.DataFrame) -> str:
    """Mean accuracy, confidence and Brier score of every model on every data set."""
    forms = {"accuracy": "{:.1%}", "confidence": "{:.1%}", "brier": "{:.4f}"}
    return _model_table("accuracy / mean confidence / Brier score", results, forms)


def cost_table(results: pd.DataFrame) -> str:
    """Cost of scoring one person and of training, for every model."""
    forms = {"evaluations": "{:,.0f}", "microseconds": "{:,.1f}", "train_cpu_seconds": "{:,.0f}"}
    return _model_table("evaluations / µs per person / training, s", results[results["model"] != CEILING], forms)


def _model_table(title: str, results: pd.DataFrame, forms: dict[str, str]) -> str:
    found = _Means(results)
    rows: dict[str, Callable[[Data], str]] = {
        model_name(*model): partial(found.formatted, forms, model) for model in found.models
    }
    return _grid(title, found.data, rows)


def method_table(results: pd.DataFrame) -> str:
    """Brier score, accuracy and cost of every method on real data; smoothing with the noise that scored best."""
    real = results[~results["dataset"].str.contains("synthetic")]
    found, scores = _Means(real), Measured(real)
    forms = {"brier": "{:.4f}", "accuracy": "{:.1%}", "evaluations": "{:,.0f}", "microseconds": "{:,.1f} µs"}
    rows: dict[str, Callable[[Data], str]] = {
        name: partial(found.formatted, forms, (model, "", "")) for model, name in _NO_GUARANTEE.items()
    }

    def smoothed(p: str, data: Data) -> str:
        return found.formatted(forms, best_smoothed(scores, "brier", data, p), data)

    for p in EXPONENTS:
        rows[f"{metric_name(p)} smoothed"] = partial(smoothed, p)
        for model in (ADDITIVE, *LIPSCHITZ):
            if (model, p, "") in found.models:
                rows[model_name(model, p, "")] = partial(found.formatted, forms, (model, p, ""))
    return _grid("Brier score / accuracy / evaluations / time per person", found.data, rows)


class _Means:
    """Means over seeds, looked up by data and model."""

    def __init__(self, results: pd.DataFrame) -> None:
        self._rows: dict[tuple[Data, Model], Any] = {
            ((row["dataset"], row["split"]), (row["model"], row["p"], row["noise"])): row
            for row in summarise(results).to_dict("records")
        }
        self.data: list[Data] = list(dict.fromkeys(data for data, _ in self._rows))
        self.models: list[Model] = list(
            dict.fromkeys(zip(results["model"], results["p"], results["noise"], strict=True))
        )

    def formatted(self, forms: dict[str, str], model: Model, data: Data) -> str:
        """Formatted means; a dash where nothing was measured."""
        row = self._rows.get((data, model), {})
        known = {measure: row.get(measure, float("nan")) for measure in forms}
        return " / ".join("-" if value != value else forms[measure].format(value) for measure, value in known.items())


def _grid(title: str, data: list[Data], rows: dict[str, Callable[[Data], str]]) -> str:
    lines = [f"| {title} | " + " | ".join(data_name(*names) for names in data) + " |", "|---|" + "---|" * len(data)]
    lines += [f"| {name} | " + " | ".join(words(names) for names in data) + " |" for name, words in rows.items()]
    return "\n".join(lines)


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
