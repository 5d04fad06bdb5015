"""What the paper states, what was set as a goal for the other methods, and whether the results agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from experiments.summary import data_name, metric_name, summarise
from experiments.trials import (
    ADDITIVE,
    EXPONENTS,
    HINGE_LIPSCHITZ,
    LINEAR,
    LIPSCHITZ,
    LOG_LIPSCHITZ,
    NETWORK,
    NOISE_NAMES,
    SMOOTHED,
)

Data = tuple[str, str]  # data set and split
Model = tuple[str, ...]  # kind, then p and noise where they apply
Statement = tuple[str, str, str, str]  # statement, the paper's value, ours, and whether it holds
SEIZURE: Data = ("seizure", "rows")
SIMILAR: tuple[Data, ...] = (("adult", "rows"), ("compas", "rows"))


class Measured:
    """Scores times 100, one per seed, by data set and model."""

    def __init__(self, results: pd.DataFrame) -> None:
        self._rows = dict(list(results.groupby(["dataset", "split", "model", "p", "noise"], sort=False)))
        self.data: list[Data] = list(dict.fromkeys(zip(results["dataset"], results["split"], strict=True)))

    def __call__(self, measure: str, data: Data, model: str, p: str = "", noise: str = "") -> pd.Series[float]:
        """Return one score per seed; empty if the model was not run."""
        rows = self._rows.get((*data, model, p, noise))
        return pd.Series(dtype=float) if rows is None else 100 * rows.set_index("seed")[measure]

    def gain(self, measure: str, data: Data, model: Model, other: Model) -> Gain:
        """Difference between the scores of two models."""
        return Gain.of(self(measure, data, *model) - self(measure, data, *other))


@dataclass(frozen=True)
class Gain:
    """A difference of scores times 100, mean over seeds, with its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, differences: pd.Series[float]) -> Gain:
        """Summarise one difference per seed."""
        error = float(differences.std() / len(differences) ** 0.5) if len(differences) > 1 else 0.0
        return cls(float(differences.mean()), error)

    def __str__(self) -> str:
        return f"{self.mean:+.2f} ± {self.error:.2f}"


def statements(results: pd.DataFrame) -> list[Statement]:
    """Check the statements of the paper, and ours beyond it, that these results can decide."""
    scores = Measured(results)
    found: list[Statement] = []
    if SEIZURE in scores.data:
        found += _on_seizure(scores)
    similar = [data for data in SIMILAR if data in scores.data]
    if similar:
        found += _on_similar(scores, similar)
    found += _on_noises(scores)
    found.append(on_pairs(results[results["model"] == SMOOTHED]))
    return found


def on_pairs(models: pd.DataFrame) -> Statement:
    """Whether the guarantee holds on all pairs of test people."""
    return (
        "No pair of test people exceeds its guarantee",
        "proved",
        f"{models['n_violations'].sum():,.0f} of {models['n_pairs'].sum():,.0f} pairs are above D + ε; "
        f"the largest excess over the tighter bound(D) + ε is {models['largest_excess'].max():.3g}",
        verdict(models["n_violations"].sum() == 0 and models["largest_excess"].max() <= 1e-9),
    )


def _on_seizure(scores: Measured) -> Iterable[Statement]:
    network, linear = (float(scores("accuracy", SEIZURE, model).mean()) for model in (NETWORK, LINEAR))
    yield (
        "Seizure, by rows: the network (at least 96.0%) is far more accurate than the logistic regression",
        "96.6% and 82.2%",
        f"{network:.1f}% and {linear:.1f}%",
        verdict(network >= 96.0 and network - linear > 10),
    )
    gains = {p: scores.gain("accuracy", SEIZURE, (SMOOTHED, p, "gaussian"), (NETWORK,)) for p in ("1", "2")}
    yield (
        "Seizure, by rows: Gaussian smoothing under L1 and L2 stays within 0.5 points of the network's accuracy",
        "within 0.2 points",
        ", ".join(f"L{p} {gain}" for p, gain in gains.items()),
        _within(gains.values(), 0.5),
    )


def _on_similar(scores: Measured, sets: list[Data]) -> Iterable[Statement]:
    gains, whole = (
        {data: scores.gain(measure, data, (NETWORK,), (LINEAR,)) for data in sets}
        for measure in ("accuracy", "accuracy_all")
    )
    yield (
        "Adult and COMPAS: the network's accuracy is within 1.5 points of the logistic regression's",
        "similar",
        ", ".join(f"{data_name(*data)} {gains[data]} (on the whole test set {whole[data]})" for data in sets),
        _within(gains.values(), 1.5),
    )
    accuracy, confidence = (
        {(data, p): scores.gain(measure, data, (SMOOTHED, p, "gaussian"), (LINEAR,)) for data in sets for p in "12"}
        for measure in ("accuracy", "confidence")
    )
    yield (
        "Adult and COMPAS: Gaussian smoothing under L1 and L2 stays within 1.5 points of the logistic regression's "
        "accuracy, with higher mean confidence",
        "similar, and higher",
        "; ".join(
            f"{data_name(*data)} {metric_name(p)} {gain}, confidence {confidence[data, p]}"
            for (data, p), gain in accuracy.items()
        ),
        _within(accuracy.values(), 1.5) if all(gain.mean > 0 for gain in confidence.values()) else verdict(False),
    )


def _on_noises(scores: Measured) -> Iterable[Statement]:
    gains = {
        f"{data_name(*data)} {metric_name(p)}": scores.gain(
            "confidence", data, (SMOOTHED, p, "gaussian"), (SMOOTHED, p, "laplace")
        )
        for data in scores.data
        for p in EXPONENTS
    }
    yield (
        "Gaussian noise keeps at least the mean confidence of Laplace noise, for every data set and metric",
        "yes",
        _worst(gains),
        verdict(all(gain.mean >= 0 for gain in gains.values())),
    )
    best = {
        data: max(
            (
                scores.gain("confidence", data, (SMOOTHED, "1", noise), (SMOOTHED, "1", "gaussian"))
                for noise in ("uniform", "splitting")
            ),
            key=lambda gain: gain.mean,
        )
        for data in scores.data
    }
    yield (
        "Under L1, the better of Uniform and Splitting keeps at least the mean confidence of Gaussian noise, "
        "within noise (two standard errors)",
        "beyond the paper",
        ", ".join(f"{data_name(*data)} {gain}" for data, gain in best.items()),
        verdict(all(gain.mean + 2 * gain.error >= 0 for gain in best.values())),
    )


def goals(results: pd.DataFrame) -> list[Statement]:
    """Check the goals set before the run that these results can decide."""
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
            f"Seizure, by rows, {metric_name(p)}: accuracy of the 1-Lipschitz network (hinge loss) minus that of "
            "Gaussian smoothing",
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
            f"Adult and COMPAS, every p: {said} minus that of the best noise",
            goal,
            ", ".join(f"{name} {gain}" for name, gain in gains.items()),
            verdict(all(gain.mean < 0 if measure == "brier" else gain.mean >= limit for gain in gains.values())),
        )


def best_smoothed(scores: Measured, measure: str, data: Data, p: str) -> Model:
    """Return the smoothed model with the best mean over the same seeds, a choice that favours smoothing."""

    def merit(noise: str) -> float:
        mean = float(scores(measure, data, SMOOTHED, p, noise).mean())
        return -np.inf if np.isnan(mean) else -mean if measure == "brier" else mean

    return SMOOTHED, p, max(NOISE_NAMES, key=merit)


def _on_costs(results: pd.DataFrame) -> Statement:
    """How much cheaper one evaluation is than adaptive sampling, in the least favourable comparison."""
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
        "Processor time per person: the cheapest smoothing (adaptive sampling, shared by 1,000 people) compared with "
        "the 1-Lipschitz network",
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


def verdict(holds: bool) -> str:
    """Format a verdict; "no" is bold."""
    return "yes" if holds else "**no**"


def _within(gains: Iterable[Gain], limit: float) -> str:
    """Whether all gains are within a limit, and if not, whether they only exceed it upwards."""
    means = [gain.mean for gain in gains]
    if all(abs(mean) <= limit for mean in means):
        return "yes"
    return f"**no**: better by more than {limit}" if all(mean >= -limit for mean in means) else "**no**"


def _worst(gains: dict[str, Gain]) -> str:
    order = sorted(gains, key=lambda name: gains[name].mean)
    below = [name for name in order if not gains[name].mean >= 0]
    if below:
        return f"not in {len(below)} of {len(gains)}: " + ", ".join(f"{name} {gains[name]}" for name in below)
    return f"all {len(gains)}; the smallest difference is {gains[order[0]]} ({order[0]})"
