"""The page `docs/reproduce.md`: every number on it comes from ``results.csv``.

``python -m likewise.experiments.page DIRECTORY`` takes the results of `reproduce` from a directory, copies them and the
figure to ``docs/reproduced``, and fills the page.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from likewise.experiments.cells import EXPONENTS, LINEAR, NETWORK, SMOOTHED
from likewise.experiments.figure import draw
from likewise.experiments.summary import data_name, metric_name, model_name, read_results, summarise

_FILES = "reproduced"
_PLACE = re.compile(r"(<!-- begin: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
Data = tuple[str, str]  # data set and split
_SEIZURE: Data = ("seizure", "rows")
Statement = tuple[str, str, str, str]  # what is said, by the paper, by our results, and whether it holds


def fill(page: str, results: pd.DataFrame) -> str:
    """Replace what stands between ``<!-- begin: name -->`` and ``<!-- end -->`` by the part of that name."""
    parts = {"scope": _scope(results), "table": _table(summarise(results)), "statements": _statements(results)}
    return _PLACE.sub(lambda match: f"{match[1]}{parts[match[2]]}\n{match[3]}", page)


class _Means:
    """Means over seeds, in percent, looked up by what they are means of."""

    def __init__(self, summary: pd.DataFrame) -> None:
        key = ["dataset", "split", "model", "p", "noise"]
        self._rows = {tuple(row[name] for name in key): row for row in summary.to_dict("records")}
        self.data: list[Data] = list(dict.fromkeys(zip(summary["dataset"], summary["split"], strict=True)))

    def __call__(self, measure: str, data: Data, model: str, p: str = "", noise: str = "") -> float:
        row = self._rows.get((*data, model, p, noise), {})
        return 100 * float(row.get(measure, np.nan))

    def gain(self, measure: str, data: Data, p: str, noise: str, other: tuple[str, ...]) -> float:
        """How far a smoothed network is above another model, in points."""
        return self(measure, data, SMOOTHED, p, noise) - self(measure, data, *other)


def statements(results: pd.DataFrame) -> list[Statement]:
    """The paper's statements, and ours beyond it, that the results can speak to."""
    summary = summarise(results)
    mean = _Means(summary)
    found: list[Statement] = []
    if _SEIZURE in mean.data:
        found += _on_seizure(mean)
    similar = [data for data in (("adult", "rows"), ("compas", "rows")) if data in mean.data]
    if similar:
        found += _on_similar(mean, similar)
    laplace = {
        f"{data_name(*data)} {metric_name(p)}": mean.gain("confidence", data, p, "gaussian", (SMOOTHED, p, "laplace"))
        for data in mean.data
        for p in EXPONENTS
    }
    found.append(
        (
            "Gaussian noise keeps at least the mean confidence of Laplace noise, for every data set and metric",
            "yes",
            _worst(laplace),
            _yes(all(gain >= 0 for gain in laplace.values())),
        )
    )
    gains = {data: _gain_over_gaussian(results, data) for data in mean.data}
    found.append(
        (
            "Under L1, the better of Uniform and Splitting keeps at least the mean confidence of Gaussian noise, "
            "within noise (two standard errors over seeds)",
            "beyond the paper",
            ", ".join(f"{data_name(*data)} {gain:+.2f} ± {error:.2f}" for data, (gain, error) in gains.items()),
            _yes(all(gain + 2 * error >= 0 for gain, error in gains.values())),
        )
    )
    smoothed = summary[summary["model"] == SMOOTHED]
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


def _gain_over_gaussian(results: pd.DataFrame, data: Data) -> tuple[float, float]:
    """Mean confidence under L1 of the better of Uniform and Splitting, above Gaussian: points, and standard error."""
    here = results[(results["dataset"] == data[0]) & (results["split"] == data[1]) & (results["p"] == "1")]
    table = 100 * here[here["model"] == SMOOTHED].pivot(index="seed", columns="noise", values="confidence")
    differences = table[["uniform", "splitting"]].sub(table["gaussian"], axis=0)
    best = differences[differences.mean().idxmax()]
    return float(best.mean()), float(best.std() / len(best) ** 0.5) if len(best) > 1 else 0.0


def _on_seizure(mean: _Means) -> Iterable[Statement]:
    network, linear = mean("accuracy", _SEIZURE, NETWORK), mean("accuracy", _SEIZURE, LINEAR)
    yield (
        "Seizure, by rows: the network (at least 96.0%) is far more accurate than the logistic regression",
        "96.6% and 82.2%",
        f"{network:.1f}% and {linear:.1f}%",
        _yes(network >= 96.0 and network - linear > 10),
    )
    cost = {p: mean.gain("accuracy", _SEIZURE, p, "gaussian", (NETWORK,)) for p in ("1", "2")}
    yield (
        "Seizure, by rows: Gaussian smoothing under L1 and L2 stays within 0.5 points of the network's accuracy",
        "within 0.2 points",
        ", ".join(f"L{p} {gain:+.2f}" for p, gain in cost.items()),
        _within(cost.values(), 0.5),
    )


def _on_similar(mean: _Means, sets: list[Data]) -> Iterable[Statement]:
    gains = {data: mean("accuracy", data, NETWORK) - mean("accuracy", data, LINEAR) for data in sets}
    whole = {data: mean("accuracy_all", data, NETWORK) - mean("accuracy_all", data, LINEAR) for data in sets}
    yield (
        "Adult and COMPAS: the network's accuracy is within 1.5 points of the logistic regression's",
        "similar",
        ", ".join(
            f"{data_name(*data)} {gain:+.2f} (on the whole test set {whole[data]:+.2f})" for data, gain in gains.items()
        ),
        _within(gains.values(), 1.5),
    )
    smooth = {
        (data, p): [mean.gain(measure, data, p, "gaussian", (LINEAR,)) for measure in ("accuracy", "confidence")]
        for data in sets
        for p in ("1", "2")
    }
    yield (
        "Adult and COMPAS: Gaussian smoothing under L1 and L2 stays within 1.5 points of the logistic regression's "
        "accuracy, with higher mean confidence",
        "similar, and higher",
        "; ".join(
            f"{data_name(*data)} {metric_name(p)} {accuracy:+.2f}, confidence {confidence:+.1f}"
            for (data, p), (accuracy, confidence) in smooth.items()
        ),
        _within([accuracy for accuracy, _ in smooth.values()], 1.5)
        if all(confidence > 0 for _, confidence in smooth.values())
        else _yes(False),
    )


def _yes(holds: bool) -> str:
    return "yes" if holds else "**no**"


def _within(gains: Iterable[float], limit: float) -> str:
    """Whether all gains are within a limit; if not, whether that is because they are larger."""
    gains = list(gains)
    if all(abs(gain) <= limit for gain in gains):
        return "yes"
    return f"**no**: better by more than {limit}" if all(gain >= -limit for gain in gains) else "**no**"


def _worst(gains: dict[str, float]) -> str:
    below = {name: gain for name, gain in gains.items() if not gain >= 0}
    if below:
        listed = ", ".join(f"{name} {gain:+.2f}" for name, gain in sorted(below.items(), key=lambda item: item[1]))
        return f"not in {len(below)} of {len(gains)}: {listed}"
    name = min(gains, key=lambda each: gains[each])
    return f"all {len(gains)}; the smallest difference is {gains[name]:+.2f} ({name})"


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


def _table(summary: pd.DataFrame) -> str:
    """Accuracy and mean confidence of every model on every data set."""
    mean = _Means(summary)
    lines = [
        "| accuracy / mean confidence, % | " + " | ".join(data_name(*data) for data in mean.data) + " |",
        "|---|" + "---|" * len(mean.data),
    ]
    for model in dict.fromkeys(zip(summary["model"], summary["p"], summary["noise"], strict=True)):
        scores = [
            " / ".join("-" if np.isnan(value) else f"{value:.1f}" for value in values)
            for values in (
                [mean(measure, data, *model) for measure in ("accuracy", "confidence")] for data in mean.data
            )
        ]
        lines.append(f"| {model_name(*model)} | " + " | ".join(scores) + " |")
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
