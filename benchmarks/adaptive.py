"""Gaussian noise with early stopping, at the paper's (0.01, 1.8e-4), against the paper's loop."""

import numpy as np
from sklearn.frozen import FrozenEstimator

from benchmarks.common import (
    DELTA,
    EPSILON,
    DataMissingError,
    adult,
    metric_for,
    network,
    papers_loop,
    seconds,
    section,
    seizure,
    skipped,
)
from likewise import Gaussian, SmoothedClassifier

TITLE = "Draws as needed against the paper's way"


def run() -> str:
    rows = []
    try:
        for name, load, n_people, target in (("Adult", adult, 400, 10), ("Seizure", seizure, 400, 20)):
            rows.append(compare(name, *load(), n_people, target))
    except DataMissingError as why:
        return skipped(TITLE, why)
    return section(
        TITLE,
        ["data", "paper's way, per person", "as needed, per person", "mean draws", "ratio"],
        rows,
        "Gaussian noise, 2x128 network. The loop's 100,000 draws give (0.01, 1.8e-4) for draws of one's own; "
        "draws as needed give the same promise for draws that all people share.",
    )


def compare(name, X, y, people, n_people, target):
    net, metric = network(X, y), metric_for(X, y)
    noise = Gaussian.for_metric(metric)
    model = SmoothedClassifier(FrozenEstimator(net), noise=noise, epsilon=EPSILON, delta=DELTA, random_state=0).fit(
        X, y
    )
    rng = np.random.default_rng(0)
    people = people[rng.permutation(len(people))[:n_people]]
    model.predict_proba(people[:2])  # compiles
    loop, fast, draws = 0.0, 0.0, []
    for i, block in enumerate(np.array_split(people, 4)):
        loop += seconds(lambda i=i: papers_loop(net, noise, people[i], rng)) / 4
        fast += seconds(lambda block=block: draws.append(model._estimate(block).n_draws)) / len(people)
    mean = np.concatenate(draws).mean()
    ratio = f"**{loop / fast:,.1f} x** (at least {target} x)"
    return [name, f"{1e3 * loop:.0f} ms", f"{1e3 * fast:.1f} ms", f"{mean:,.0f}", ratio]


if __name__ == "__main__":
    print(run())
