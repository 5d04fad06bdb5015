"""1-Lipschitz networks compared with smoothed ones on the paper's problems: cost and quality."""

import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.frozen import FrozenEstimator

from benchmarks.common import N_DRAWS, DataMissingError, papers_loop, section, skipped
from benchmarks.forward import cpu_seconds
from experiments.data import load, prepare
from experiments.statements import goals
from experiments.summary import read_results
from experiments.trials import FULL, Settings, clocked, network_for
from likewise import Gaussian, LipschitzClassifier, SmoothedClassifier, WeightedLp

TITLE = "1-Lipschitz networks: cost"
SEED, N_TIMED, N_DRAWN = 2, 10_000, 20  # people whose scoring is timed, with one evaluation and with draws
TRAINING = {"adult": 60, "seizure": 300}  # seconds allowed
CHEAPER = 5_000
REPRODUCED = Path(__file__).parents[1] / "docs" / "reproduced" / "results.csv"


def run() -> str:
    try:
        problems = {name: prepare(load(name), "rows", SEED, n_train=10**6, n_test=FULL.n_test) for name in TRAINING}
    except (DataMissingError, FileNotFoundError, KeyError):
        return skipped(TITLE, DataMissingError("Not run: set `LIKEWISE_DATA` to the folder with the real data."))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the paper's metrics say nothing about most pairs
        return "\n".join([costs(problems), quality()])


def costs(problems) -> str:
    rows, model, metric = [], None, None
    for name, allowed in TRAINING.items():
        metric = WeightedLp(problems[name].weights, 2.0)
        model = LipschitzClassifier(metric, link="clip", loss="hinge", random_state=SEED)
        spent = cpu_seconds(partial(model.fit, problems[name].X_train, problems[name].y_train))
        rows.append([f"training, {name.capitalize()}, p = 2, one core", f"**{spent:.0f} s**", f"{allowed} s"])
    once, fast, loop = scoring(model, problems["seizure"], metric)
    rows += [
        ["Seizure, one person: one evaluation", f"{1e6 * once:.1f} µs", ""],
        [
            f"{N_DRAWS:,} draws, the paper's method",
            f"{1e3 * loop:.0f} ms, **{loop / once:,.0f} times**",
            f"{CHEAPER:,} x",
        ],
        [f"{N_DRAWS:,} draws, shared by {N_DRAWN} people, fast forward pass", f"{1e3 * fast:.0f} ms", ""],
        ["that, compared with one evaluation", f"{fast / once:,.0f} times", ""],
    ]
    return section(
        TITLE,
        ["what", "measured", "allowed"],
        rows,
        f"Two layers of 128 units, seed {SEED}. Processor time, so that other load on the machine matters little; "
        "scoring is the best of several rounds. Draws go through a network of the same size with Gaussian noise.",
    )


def scoring(model, problem, metric) -> tuple[float, float, float]:
    """Processor seconds per person: one evaluation, draws by the fast forward pass, and by the paper's loop."""
    crowd = np.resize(problem.X_all, (N_TIMED, problem.X_all.shape[1]))
    model.predict_proba(crowd[:2])  # compiled, or read from the cache
    _, once = clocked(lambda: model.predict_proba(crowd))
    net = network_for(SEED, Settings(n_epochs=15)).fit(problem.X_train, problem.y_train)
    noise = Gaussian.for_metric(metric)
    smoothed = SmoothedClassifier(FrozenEstimator(net), noise=noise, n_draws=N_DRAWS, random_state=SEED)
    smoothed.fit(problem.X_train[:100], problem.y_train[:100]).predict_proba(crowd[:2])
    _, fast = clocked(lambda: smoothed.predict_proba(crowd[:N_DRAWN]))
    _, loop = clocked(lambda: papers_loop(net, noise, crowd[0], np.random.default_rng(0)))
    return once / len(crowd), fast / N_DRAWN, loop


def quality() -> str:
    found = [[said, goal, ours, holds] for said, goal, ours, holds in goals(read_results(REPRODUCED))]
    return section(
        "1-Lipschitz networks: quality",
        ["statement", "goal", "measured", "holds"],
        found,
        "From `docs/reproduced/results.csv` (`make reproduce`): differences in percentage points, or of Brier "
        "scores times 100, means over seeds ± standard errors.",
    )


if __name__ == "__main__":
    print(run())
