"""Results as tables for the docs, with a row per model and a column per data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pandas as pd

from likewise.experiments.built import best_smoothed
from likewise.experiments.claims import Data, Measured, Model, Statement
from likewise.experiments.summary import data_name, metric_name, model_name, summarise
from likewise.experiments.trials import ADDITIVE, CEILING, CONSTANT, EXPONENTS, LINEAR, LIPSCHITZ, NETWORK

_NO_PROMISE = {LINEAR: "logistic regression, no promise", NETWORK: "network, no promise", CONSTANT: "constant"}


def statement_table(found: Iterable[Statement], by: str) -> str:
    """Statements, by whom they are made, what was measured, and whether they hold."""
    lines = [f"| statement | {by} | ours | holds |", "|---|---|---|---|"]
    lines += [f"| {said} | {paper} | {ours} | {holds} |" for said, paper, ours, holds in found]
    return "\n".join(lines)


def score_table(results: pd.DataFrame) -> str:
    """Mean accuracy, confidence and Brier score of every model on every data set."""
    forms = {"accuracy": "{:.1%}", "confidence": "{:.1%}", "brier": "{:.4f}"}
    return _model_table("accuracy / mean confidence / Brier score", results, forms)


def cost_table(results: pd.DataFrame) -> str:
    """What one person costs in every model, and what training does."""
    forms = {"evaluations": "{:,.0f}", "microseconds": "{:,.1f}", "train_cpu_seconds": "{:,.0f}"}
    return _model_table("evaluations / µs per person / training, s", results[results["model"] != CEILING], forms)


def _model_table(title: str, results: pd.DataFrame, forms: dict[str, str]) -> str:
    found = _Means(results)
    rows: dict[str, Callable[[Data], str]] = {
        model_name(*model): partial(found.words, forms, model) for model in found.models
    }
    return _grid(title, found.data, rows)


def method_table(results: pd.DataFrame) -> str:
    """Brier score, accuracy and cost of every method on real data; smoothing with the noise that scored best."""
    real = results[~results["dataset"].str.contains("synthetic")]
    found, scores = _Means(real), Measured(real)
    forms = {"brier": "{:.4f}", "accuracy": "{:.1%}", "evaluations": "{:,.0f}", "microseconds": "{:,.1f} µs"}
    rows: dict[str, Callable[[Data], str]] = {
        name: partial(found.words, forms, (model, "", "")) for model, name in _NO_PROMISE.items()
    }

    def smoothed(p: str, data: Data) -> str:
        return found.words(forms, best_smoothed(scores, "brier", data, p), data)

    for p in EXPONENTS:
        rows[f"{metric_name(p)} smoothed"] = partial(smoothed, p)
        for model in (ADDITIVE, *LIPSCHITZ):
            if (model, p, "") in found.models:
                rows[model_name(model, p, "")] = partial(found.words, forms, (model, p, ""))
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

    def words(self, forms: dict[str, str], model: Model, data: Data) -> str:
        """Means in their forms; what was not measured is a dash."""
        row = self._rows.get((data, model), {})
        known = {measure: row.get(measure, float("nan")) for measure in forms}
        return " / ".join("-" if value != value else forms[measure].format(value) for measure, value in known.items())


def _grid(title: str, data: list[Data], rows: dict[str, Callable[[Data], str]]) -> str:
    lines = [f"| {title} | " + " | ".join(data_name(*names) for names in data) + " |", "|---|" + "---|" * len(data)]
    lines += [f"| {name} | " + " | ".join(words(names) for names in data) + " |" for name, words in rows.items()]
    return "\n".join(lines)
