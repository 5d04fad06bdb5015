"""What the methods without noise were to reach beside smoothing, and what the results say to it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from likewise.experiments.claims import SEIZURE, SIMILAR, Data, Measured, Model, Statement, on_pairs, verdict
from likewise.experiments.summary import data_name, metric_name, summarise
from likewise.experiments.trials import (
    ADDITIVE,
    EXPONENTS,
    HINGE_LIPSCHITZ,
    LINEAR,
    LIPSCHITZ,
    LOG_LIPSCHITZ,
    NOISE_NAMES,
    SMOOTHED,
)


def goals(results: pd.DataFrame) -> list[Statement]:
    """Goals that were set before the run, as far as the results can speak to them."""
    scores = Measured(results)
    built = results[results["model"].isin((ADDITIVE, *LIPSCHITZ))]
    found: list[Statement] = []
    if built["model"].isin(LIPSCHITZ).any():
        if SEIZURE in scores.data:
            found += _on_signals(scores)
        tables = [data for data in SIMILAR if data in scores.data]
        if tables:
            found += _on_tables(scores, tables)
        found.append(_on_costs(results))
    if len(built):
        found += [_on_additive(scores), on_pairs(built)]
    return found


def _on_signals(scores: Measured) -> Iterable[Statement]:
    for p, limit, goal in (("2", -0.5, "at most 0.5 points below"), ("inf", 0.0, "above")):
        smoothed = (SMOOTHED, p, "gaussian")
        gains = {model: scores.gain("accuracy", SEIZURE, (model, p), smoothed) for model in reversed(LIPSCHITZ)}
        yield (
            f"Seizure, by rows, {metric_name(p)}: accuracy of the 1-Lipschitz network (hinge loss) beside Gaussian "
            "smoothing",
            goal,
            f"{gains[HINGE_LIPSCHITZ]} (log loss {gains[LOG_LIPSCHITZ]})",
            verdict(gains[HINGE_LIPSCHITZ].mean > limit),
        )


def _on_tables(scores: Measured, tables: list[Data]) -> Iterable[Statement]:
    for measure, model, limit, said, goal in (
        ("accuracy", HINGE_LIPSCHITZ, -0.5, "accuracy of the 1-Lipschitz network (hinge loss)", "at most 0.5 below"),
        ("confidence", HINGE_LIPSCHITZ, -1.0, "its mean confidence", "at most 1 point below"),
        ("brier", LOG_LIPSCHITZ, 0.0, "Brier score, times 100, of the 1-Lipschitz network (log loss)", "lower"),
    ):
        gains = {
            f"{data_name(*data)} {metric_name(p)}": scores.gain(
                measure, data, (model, p), best_smoothed(scores, measure, data, p)
            )
            for data in tables
            for p in EXPONENTS
        }
        yield (
            f"Adult and COMPAS, every p: {said} beside that of the noise which is best at it",
            goal,
            ", ".join(f"{name} {gain}" for name, gain in gains.items()),
            verdict(all(gain.mean < 0 if measure == "brier" else gain.mean >= limit for gain in gains.values())),
        )


def best_smoothed(scores: Measured, measure: str, data: Data, p: str) -> Model:
    """The noise that is best by the mean over the same seeds, which favours smoothing."""

    def merit(noise: str) -> float:
        mean = float(scores(measure, data, SMOOTHED, p, noise).mean())
        return -np.inf if np.isnan(mean) else -mean if measure == "brier" else mean

    return SMOOTHED, p, max(NOISE_NAMES, key=merit)


def _on_costs(results: pd.DataFrame) -> Statement:
    """How much cheaper one evaluation is than draws as needed, in the least favourable of all comparisons."""
    cost = summarise(results).set_index(["dataset", "split", "p", "model"])["microseconds"].sort_index()
    ratios = {
        f"{data_name(dataset, split)} {metric_name(p)}": (
            cost[dataset, split, p, SMOOTHED].min() / cost[dataset, split, p, HINGE_LIPSCHITZ].max()
        )
        for dataset, split, p, model in dict.fromkeys(cost.index)
        if model == HINGE_LIPSCHITZ
    }
    least = min(ratios, key=ratios.__getitem__)
    return (
        "Processor time per person: the cheapest smoothing (draws as needed, shared by 1,000 people) beside the "
        "1-Lipschitz network",
        "",
        f"at least {ratios[least]:,.0f} times as much ({least})",
        "",
    )


def _on_additive(scores: Measured) -> Statement:
    method: Model = (ADDITIVE, "1")

    def words(data: Data) -> str:
        others: dict[str, Model] = {
            "the best smoothing": best_smoothed(scores, "brier", data, "1"),
            "the 1-Lipschitz network": (LOG_LIPSCHITZ, "1"),
            "the logistic regression": (LINEAR,),
        }
        gains = {name: scores.gain("brier", data, method, model) for name, model in others.items()}
        known = [f"{name} {gain}" for name, gain in gains.items() if gain.mean == gain.mean]
        return f"{data_name(*data)}: " + ", ".join(known)

    measured = [data for data in scores.data if len(scores("brier", data, *method))]
    return (
        "L1: Brier score, times 100, of the additive model minus that of others (below 0 is better)",
        "",
        "; ".join(words(data) for data in measured),
        "",
    )
