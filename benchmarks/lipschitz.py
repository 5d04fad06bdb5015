"""1-Lipschitz networks beside smoothed ones, on the paper's problems: what they keep, and what they cost."""

import csv
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common import N_DRAWS, DataMissingError, section, skipped
from benchmarks.forward import cpu_seconds
from likewise import LipschitzClassifier, SmoothedClassifier, WeightedLp
from likewise.experiments.problems import load, prepare
from likewise.experiments.trials import FULL, network_for

TITLE = "1-Lipschitz networks beside smoothed ones"
SEED, N_VOTES = 2, 2_000  # as many draws are enough for the Brier score of a smoothed model, not for its promise
PROBLEMS = [(name, p) for name in ("seizure", "adult", "compas") for p in (1.0, 2.0, np.inf)]
REPRODUCED = Path(__file__).parents[1] / "docs" / "reproduced" / "results.csv"


def run() -> str:
    try:
        data = {name: prepare(load(name), "rows", SEED, n_train=10**6, n_test=FULL.n_test) for name, _ in PROBLEMS}
    except (DataMissingError, FileNotFoundError, KeyError):
        return skipped(TITLE, DataMissingError("Not run: set `LIKEWISE_DATA` to the folder with the real data."))
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the paper's metrics say nothing about most pairs
        for name, p in PROBLEMS:
            problem = data[name]
            metric = WeightedLp(problem.weights, p)
            calibrated = LipschitzClassifier(metric, random_state=SEED)
            confident = LipschitzClassifier(metric, link="clip", loss="hinge", random_state=SEED)
            train = problem.X_train, problem.y_train
            spent = [cpu_seconds(partial(model.fit, *train)) for model in (calibrated, confident)]
            log, hinge = (scores(model, problem) for model in (calibrated, confident))
            best = smoothed(name, p)
            brier = "" if name == "seizure" else f"{smoothed_brier(problem, metric):.3f}"
            kept = [f"{log[0]:.3f}", f"**{log[2]:.3f}**", f"**{hinge[0]:.3f}**", f"**{hinge[1]:.3f}**"]
            cost = [f"{max(spent):.0f} s", f"{microseconds(confident, problem):.0f}"]
            rows.append([name, f"{p:g}", *kept, f"{best[0]:.3f}", f"{best[1]:.3f}", brier, *cost])
    columns = ["data", "p", "log: accuracy", "log: Brier", "hinge: accuracy", "hinge: confidence"]
    columns += ["smoothed: accuracy", "smoothed: confidence", "smoothed: Brier", "training, one core", "µs per person"]
    return section(
        TITLE,
        columns,
        rows,
        f"Two layers of 128 units, seed {SEED}, 1,000 test people of the row split. Smoothed: the noise with the best "
        "accuracy in `docs/reproduced`, with the same seed; its Brier score is that of splitting (p = 1) or "
        f"Gaussian noise, with {N_VOTES:,} draws. Confidence is the mean probability of the true class. A network "
        f"is evaluated once per person, where the paper draws {N_DRAWS:,} times.",
    )


def scores(model, problem) -> tuple[float, float, float]:
    h = model.predict_proba(problem.X_test)
    own = h[np.arange(len(h)), problem.y_test]
    return float((h.argmax(axis=1) == problem.y_test).mean()), float(own.mean()), float(((1 - own) ** 2).mean())


def smoothed(name, p) -> tuple[float, float]:
    """Accuracy and confidence of the best noise, from the reproduced experiments."""
    with REPRODUCED.open() as lines:
        cells = [
            (float(line["accuracy"]), float(line["confidence"]))
            for line in csv.DictReader(lines)
            if line["model"] == "smoothed network"
            and (line["dataset"], line["split"], line["seed"]) == (name, "rows", str(SEED))
            and float(line["p"]) == p
        ]
    return max(cells)


def smoothed_brier(problem, metric) -> float:
    noise = "splitting" if metric.p == 1 else "gaussian"
    model = SmoothedClassifier(
        network_for(SEED, FULL), metric=metric, noise=noise, n_draws=N_VOTES, augment=1, random_state=SEED
    ).fit(problem.X_train, problem.y_train)
    return scores(model, problem)[2]


def microseconds(model, problem) -> float:
    people = np.resize(problem.X_all, (20_000, problem.X_all.shape[1]))
    model.predict_proba(people)
    start = time.process_time()
    model.predict_proba(people)
    return (time.process_time() - start) / len(people) * 1e6
