"""What the paper says, and what the results say to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from likewise.experiments.summary import data_name, metric_name
from likewise.experiments.trials import EXPONENTS, LINEAR, NETWORK, SMOOTHED

Data = tuple[str, str]  # data set and split
Model = tuple[str, ...]  # kind, and p and noise if they mean something
Statement = tuple[str, str, str, str]  # what is said, by the paper, by our results, and whether it holds
SEIZURE: Data = ("seizure", "rows")
SIMILAR: tuple[Data, ...] = (("adult", "rows"), ("compas", "rows"))


class Measured:
    """Scores times 100, one per seed, looked up by what they are scores of."""

    def __init__(self, results: pd.DataFrame) -> None:
        self._rows = dict(list(results.groupby(["dataset", "split", "model", "p", "noise"], sort=False)))
        self.data: list[Data] = list(dict.fromkeys(zip(results["dataset"], results["split"], strict=True)))

    def __call__(self, measure: str, data: Data, model: str, p: str = "", noise: str = "") -> pd.Series[float]:
        """Look up a measure; without a row for it, the answer is empty."""
        rows = self._rows.get((*data, model, p, noise))
        return pd.Series(dtype=float) if rows is None else 100 * rows.set_index("seed")[measure]

    def gain(self, measure: str, data: Data, model: Model, other: Model) -> Gain:
        """How far a model is above another."""
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
    """The paper's statements, and ours beyond it, that the results can speak to."""
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
    """Whether models keep their promise on all pairs of test people."""
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


def verdict(holds: bool) -> str:
    """A "no" stands out."""
    return "yes" if holds else "**no**"


def _within(gains: Iterable[Gain], limit: float) -> str:
    """Whether all gains are within a limit; if not, whether that is because they are larger."""
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
