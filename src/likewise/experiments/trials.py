"""One cell of the experiments: a model on one split of one data set under one seed, trained, scored and checked."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from likewise.additive.estimators import AdditiveClassifier
from likewise.auditing.ceiling import ceiling
from likewise.experiments.clocks import clocked, kept_promise, scores_of
from likewise.experiments.problems import Problem
from likewise.guarantees.guarantee import VacuousGuaranteeWarning
from likewise.lipschitz.estimators import LipschitzClassifier
from likewise.metrics.weighted_lp import WeightedLp
from likewise.smoothing.estimators import SmoothedClassifier
from likewise.smoothing.noise import NOISES

CONSTANT, LINEAR, NETWORK = "constant", "logistic regression", "network"
SMOOTHED, ADDITIVE, CEILING = "smoothed network", "additive model", "ceiling"
LOG_LIPSCHITZ, HINGE_LIPSCHITZ = "1-Lipschitz network by log loss", "1-Lipschitz network by hinge loss"
LIPSCHITZ = (LOG_LIPSCHITZ, HINGE_LIPSCHITZ)
PROMISING = (SMOOTHED, ADDITIVE, *LIPSCHITZ)
EXPONENTS = ("1", "2", "inf")
NOISE_NAMES = ("laplace", "gaussian", "uniform", "splitting")


@dataclass(frozen=True)
class Settings:
    """How much work a run does; results of different settings are not mixed.

    Attributes
    ----------
    n_test : int
        People of the test set who are scored, drawn at random for each seed; all, if there are fewer.
    n_train : int
        People of the training set at most.
    n_epochs : int
        Passes of the network over the training data at most; training stops earlier when held-out people do not gain.
    n_steps : int
        Steps of training of a 1-Lipschitz network at most; it stops earlier likewise.
    epsilon, delta : float
        Error of drawing, and the probability per pair that it is larger.
    n_draws : int or "auto"
        Evaluations of the network per person: a fixed number, in place of what `epsilon` and `delta` need. Splitting,
        which has no error of sampling, always takes what `epsilon` needs.
    """

    n_test: int = 1000
    n_train: int = 100_000
    n_epochs: int = 200
    n_steps: int = 4000
    epsilon: float = 0.01
    delta: float = 1.8e-4
    n_draws: int | Literal["auto"] = "auto"


FULL = Settings()
QUICK = Settings(n_test=200, n_train=2000, n_epochs=20, n_steps=500, epsilon=0.1)
_MOST_KNOTS = 900  # of an additive model, over all columns
_TIMED = 10_000  # people whose scoring is timed where it takes microseconds each


@dataclass(frozen=True)
class Trial:
    """One model on one split of one data set under one seed; `p` and `noise` are empty where they mean nothing."""

    dataset: str
    split: str
    seed: int
    model: str
    p: str = ""
    noise: str = ""

    @property
    def name(self) -> str:
        """The cell in words that can be the name of a file."""
        parts = [self.dataset, self.split, self.seed, self.model, f"L{self.p}" if self.p else "", self.noise]
        return "_".join(str(part).replace(" ", "-") for part in parts if part != "")


def plan(dataset: str, split: str, seed: int) -> Iterator[Trial]:
    """Yield the cells of one split, baselines first."""
    for model in (CONSTANT, LINEAR, NETWORK):
        yield Trial(dataset, split, seed, model)
    for p in EXPONENTS:
        yield Trial(dataset, split, seed, CEILING, p)
        for noise in NOISE_NAMES:
            # Beyond the paper: uniform noise and splitting, where they are at home.
            if noise in ("laplace", "gaussian") or p == "1":
                yield Trial(dataset, split, seed, SMOOTHED, p, noise)
        if p == "1":
            yield Trial(dataset, split, seed, ADDITIVE, p)
        for model in LIPSCHITZ:
            yield Trial(dataset, split, seed, model, p)


def run(cell: Trial, problem: Problem, settings: Settings) -> dict[str, Any]:
    """Train, score and check the model of a cell.

    Returns
    -------
    dict
        ``accuracy``; ``confidence``, the mean probability of the correct class; ``brier``; ``n_people``; ``seconds``
        and ``cpu_seconds`` (of all cores). For all but ceilings, what training took (``train_seconds`` and
        ``train_cpu_seconds``) and what scoring one person costs: ``evaluations`` of the model, and ``microseconds`` of
        processor time. For models that are evaluated once, ``accuracy_all``, ``confidence_all``, ``brier_all`` and
        ``n_people_all``, on the whole test set. For models with a promise also what is promised (``level``,
        ``epsilon``), and what comparing all pairs of test people shows: ``n_pairs``, ``n_violations`` (pairs whose
        outputs differ by more than their distance plus epsilon) and ``largest_excess`` (over all pairs, difference of
        outputs minus the promise, ``guarantee_.bound``, which is tighter; not above 0 if it is kept).
    """
    start, cpu = time.perf_counter(), time.process_time()
    if cell.model == CEILING:
        best = ceiling(problem.X_test, problem.y_test, WeightedLp(problem.weights, float(cell.p)))
        found: dict[str, Any] = {"confidence": float(best)}
    else:
        model = model_for(cell, problem, settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the last epoch is a limit we set
            warnings.simplefilter("ignore", VacuousGuaranteeWarning)  # the paper's weights put most pairs at D >= 1
            model.fit(problem.X_train, problem.y_train)
        found = {"train_seconds": time.perf_counter() - start, "train_cpu_seconds": time.process_time() - cpu}
        found |= (_drawn if cell.model == SMOOTHED else _evaluated)(model, problem)
    return {
        **found,
        "n_people": len(problem.X_test),
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
    }


def model_for(cell: Trial, problem: Problem, settings: Settings) -> Any:
    """Make the model of a cell, not yet trained."""
    if cell.model == CONSTANT:
        return DummyClassifier(strategy="prior")
    if cell.model == LINEAR:
        return clone(problem.linear)
    if cell.model == NETWORK:
        return network_for(cell.seed, settings)
    metric = WeightedLp(problem.weights, float(cell.p))
    if cell.model == ADDITIVE:
        # A signal has many columns: coarser shapes keep their number, and the time to fit them, within bounds.
        knots = max(2, min(32, _MOST_KNOTS // len(problem.weights)))
        return AdditiveClassifier(metric, max_knots=knots, random_state=cell.seed)
    if cell.model in LIPSCHITZ:
        kind: Any = {"link": "clip", "loss": "hinge"} if cell.model == HINGE_LIPSCHITZ else {}
        return LipschitzClassifier(metric, **kind, n_steps=settings.n_steps, random_state=cell.seed)
    return SmoothedClassifier(
        network_for(cell.seed, settings),
        noise=NOISES[cell.noise].for_metric(metric),
        epsilon=settings.epsilon,
        delta=settings.delta,
        n_draws="auto" if cell.noise == "splitting" else settings.n_draws,
        augment=1,
        random_state=cell.seed,
    )


def _drawn(model: SmoothedClassifier, problem: Problem) -> dict[str, Any]:
    """Scores of a smoothed model."""
    # Equal people have equal scores, so each is scored once.
    distinct, where = np.unique(problem.X_test, axis=0, return_inverse=True)
    model._estimate(distinct[:1])  # compiled, or read from the cache
    estimate, took = clocked(lambda: model._estimate(distinct))
    h = estimate.mean[where.ravel()]  # a column in NumPy 2.0.0
    return {
        **scores_of(h, problem.y_test),
        "evaluations": float(estimate.n_draws.mean()),
        "microseconds": took / len(distinct) * 1e6,
        **kept_promise(problem.X_test, h, model.guarantee_),
    }


def _evaluated(model: Any, problem: Problem) -> dict[str, Any]:
    """Scores of a model that is evaluated once: also on the whole test set, which costs little."""
    h = model.predict_proba(problem.X_test)
    whole = scores_of(model.predict_proba(problem.X_all), problem.y_all)
    crowd = np.resize(problem.X_all, (_TIMED, problem.X_all.shape[1]))
    _, took = clocked(lambda: model.predict_proba(crowd))
    return {
        **scores_of(h, problem.y_test),
        **{f"{measure}_all": value for measure, value in whole.items()},
        "n_people_all": len(problem.y_all),
        "evaluations": 1.0,
        "microseconds": took / len(crowd) * 1e6,
        **(kept_promise(problem.X_test, h, model.guarantee_) if hasattr(model, "guarantee_") else {}),
    }


def network_for(seed: int, settings: Settings) -> Pipeline:
    """Make the paper's network: two hidden layers of 128 ReLU units."""
    # The scaler sees people with their noise, which can be many times as wide as they are apart: without it the network
    # starts far from where it can learn (Seizure, L-infinity, Gaussian: 80% accuracy without, 89% with).
    # Patience of 20 epochs: with 10, the epoch at which training stopped varied more than the noises differ.
    network = MLPClassifier(
        (128, 128), max_iter=settings.n_epochs, early_stopping=True, n_iter_no_change=20, random_state=seed
    )
    return make_pipeline(StandardScaler(), network)
