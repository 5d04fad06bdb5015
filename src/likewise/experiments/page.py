"""The page `docs/reproduce.md`: every number on it comes from ``results.csv``.

``python -m likewise.experiments.page DIRECTORY`` takes the results of `reproduce` from a directory, copies them and the
figure to ``docs/reproduced``, and fills the page.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from likewise.experiments.figure import draw
from likewise.experiments.summary import data_name, metric_name, model_name, read_results, summarise
from likewise.experiments.trials import EXPONENTS, LINEAR, NETWORK, SMOOTHED

_FILES = "reproduced"
_PLACE = re.compile(r"(<!-- begin: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
Data = tuple[str, str]  # data set and split
Model = tuple[str, ...]  # kind, and p and noise if it is smoothed
_SEIZURE: Data = ("seizure", "rows")
Statement = tuple[str, str, str, str]  # what is said, by the paper, by our results, and whether it holds


def fill(page: str, results: pd.DataFrame) -> str:
    """Replace what stands between ``<!-- begin: name -->`` and ``<!-- end -->`` by the part of that name."""
    parts = {"scope": _scope(results), "table": _table(results), "statements": _statements(results)}
    return _PLACE.sub(lambda match: f"{match[1]}{parts[match[2]]}\n{match[3]}", page)


class _Measured:
    """Scores in percent, one per seed, looked up by what they are scores of."""

    def __init__(self, results: pd.DataFrame) -> None:
        self._rows = dict(list(results.groupby(["dataset", "split", "model", "p", "noise"], sort=False)))
        self.data: list[Data] = list(dict.fromkeys(zip(results["dataset"], results["split"], strict=True)))

    def __call__(self, measure: str, data: Data, model: str, p: str = "", noise: str = "") -> pd.Series[float]:
        rows = self._rows.get((*data, model, p, noise))
        return pd.Series(dtype=float) if rows is None else 100 * rows.set_index("seed")[measure]

    def gain(self, measure: str, data: Data, model: Model, other: Model) -> Gain:
        """How far a model is above another."""
        return Gain.of(self(measure, data, *model) - self(measure, data, *other))


@dataclass(frozen=True)
class Gain:
    """A difference in points, mean over seeds, with its standard error."""

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
    scores = _Measured(results)
    found: list[Statement] = []
    if _SEIZURE in scores.data:
        found += _on_seizure(scores)
    similar = [data for data in (("adult", "rows"), ("compas", "rows")) if data in scores.data]
    if similar:
        found += _on_similar(scores, similar)
    found += _on_noises(scores)
    smoothed = results[results["model"] == SMOOTHED]
    found.append(
        (
            "No pair of test people exceeds its guarantee",
            "proved",
            f"{smoothed['n_violations'].sum():,.0f} of {smoothed['n_pairs'].sum():,.0f} pairs are above D + ε; "
            f"the largest excess over the tighter bound(D) + ε is {smoothed['largest_excess'].max():.3g}",
            _yes(smoothed["n_violations"].sum() == 0 and smoothed["largest_excess"].max() <= 1e-9),
        )
    )
    return found


def _on_seizure(scores: _Measured) -> Iterable[Statement]:
    network, linear = (float(scores("accuracy", _SEIZURE, model).mean()) for model in (NETWORK, LINEAR))
    yield (
        "Seizure, by rows: the network (at least 96.0%) is far more accurate than the logistic regression",
        "96.6% and 82.2%",
        f"{network:.1f}% and {linear:.1f}%",
        _yes(network >= 96.0 and network - linear > 10),
    )
    gains = {p: scores.gain("accuracy", _SEIZURE, (SMOOTHED, p, "gaussian"), (NETWORK,)) for p in ("1", "2")}
    yield (
        "Seizure, by rows: Gaussian smoothing under L1 and L2 stays within 0.5 points of the network's accuracy",
        "within 0.2 points",
        ", ".join(f"L{p} {gain}" for p, gain in gains.items()),
        _within(gains.values(), 0.5),
    )


def _on_similar(scores: _Measured, sets: list[Data]) -> Iterable[Statement]:
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
        _within(accuracy.values(), 1.5) if all(gain.mean > 0 for gain in confidence.values()) else _yes(False),
    )


def _on_noises(scores: _Measured) -> Iterable[Statement]:
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
        _yes(all(gain.mean >= 0 for gain in gains.values())),
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
        _yes(all(gain.mean + 2 * gain.error >= 0 for gain in best.values())),
    )


def _yes(holds: bool) -> str:
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


def _scope(results: pd.DataFrame) -> str:
    """What was run, with how many draws, and how long it took."""
    smoothed = results[results["level"] == "sampled"]
    cost = results.groupby("seed")["cpu_seconds"].sum() / 60
    draws = summarise(smoothed)["mean_draws"]
    per_seed = results.groupby(["dataset", "split", "seed"], sort=False).size()
    finished: dict[str, list[str]] = {}
    for dataset, split, seed in per_seed.index:
        finished.setdefault(data_name(dataset, split), []).append(str(seed))
    seeds = "; ".join(f"{name} {', '.join(found)}" for name, found in finished.items())
    return "\n".join(
        [
            f"- Seeds: {seeds}. Test people scored per seed: up to {results['n_people'].max():,}.",
            f"- Draws per person, where they are random: {smoothed['mean_draws'].mean():,.0f} on average; "
            f"{(draws > 100_000).sum()} of {len(draws)} combinations of data, metric and noise took more than 100,000.",
            f"- CPU time of one seed, on all cores together: {cost.min():.0f} to {cost.max():.0f} minutes.",
        ]
    )


def _table(results: pd.DataFrame) -> str:
    """Mean accuracy and confidence of every model on every data set."""
    scores = _Measured(results)
    lines = [
        "| accuracy / mean confidence, % | " + " | ".join(data_name(*data) for data in scores.data) + " |",
        "|---|" + "---|" * len(scores.data),
    ]
    for model in dict.fromkeys(zip(results["model"], results["p"], results["noise"], strict=True)):
        words = []
        for data in scores.data:
            means = (float(scores(measure, data, *model).mean()) for measure in ("accuracy", "confidence"))
            words.append(" / ".join("-" if np.isnan(mean) else f"{mean:.1f}" for mean in means))
        lines.append(f"| {model_name(*model)} | " + " | ".join(words) + " |")
    return "\n".join(lines)


def _statements(results: pd.DataFrame) -> str:
    lines = ["| statement | paper | ours | holds |", "|---|---|---|---|"]
    lines += [f"| {said} | {paper} | {ours} | {holds} |" for said, paper, ours, holds in statements(results)]
    return "\n".join(lines)


def write_page(source: Path, docs: Path) -> None:
    """Copy the results from `source` to the docs, draw the figure, and fill the page."""
    target = docs / _FILES
    target.mkdir(exist_ok=True)
    if source.resolve() != target.resolve():
        shutil.copyfile(source / "results.csv", target / "results.csv")
    results = read_results(target / "results.csv")
    draw(summarise(results), target / "figure.svg", target / "figure.png")
    page = docs / "reproduce.md"
    page.write_text(fill(page.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    write_page(Path(sys.argv[1]), Path("docs"))
