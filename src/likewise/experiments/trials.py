"""One cell of the experiments: a model on one split of one data set under one seed, trained, scored and checked."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from likewise._typing import FloatArray
from likewise.auditing.ceilings import ceiling
from likewise.auditing.violations import audit
from likewise.enforce.smoothing.estimators import SmoothedClassifier
from likewise.enforce.smoothing.noises import NOISES
from likewise.experiments.problems import Problem
from likewise.guarantees.promise import Guarantee, VacuousGuaranteeWarning
from likewise.metrics.lp import WeightedLp

LINEAR, NETWORK, SMOOTHED, CEILING = "logistic regression", "network", "smoothed network", "ceiling"
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
        Passes over the training data at most; training stops earlier when held-out people do not gain.
    epsilon, delta : float
        Error of drawing, and the probability per pair that it is larger.
    n_draws : int or "auto"
        Evaluations of the network per person: a fixed number, in place of what `epsilon` and `delta` need. Splitting,
        which has no error of sampling, always takes what `epsilon` needs.
    """

    n_test: int = 1000
    n_train: int = 100_000
    n_epochs: int = 200
    epsilon: float = 0.01
    delta: float = 1.8e-4
    n_draws: int | Literal["auto"] = "auto"


FULL = Settings()
QUICK = Settings(n_test=200, n_train=2000, n_epochs=20, epsilon=0.1)


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
    yield Trial(dataset, split, seed, LINEAR)
    yield Trial(dataset, split, seed, NETWORK)
    for p in EXPONENTS:
        yield Trial(dataset, split, seed, CEILING, p)
        for noise in NOISE_NAMES:
            # Beyond the paper: uniform noise and splitting, where they are at home.
            if noise in ("laplace", "gaussian") or p == "1":
                yield Trial(dataset, split, seed, SMOOTHED, p, noise)


def run(cell: Trial, problem: Problem, settings: Settings) -> dict[str, Any]:
    """Train, score and check the model of a cell.

    Returns
    -------
    dict
        ``accuracy``; ``confidence``, the mean probability of the correct class; ``n_people``; ``seconds`` and
        ``cpu_seconds`` (of all cores). For models without smoothing also ``accuracy_all``, ``confidence_all`` and
        ``n_people_all``, on the whole test set. For smoothed models also what is promised (``level``, ``epsilon``),
        ``mean_draws`` per person, ``train_seconds``, and what comparing all pairs of test people shows: ``n_pairs``,
        ``n_violations`` (pairs whose outputs differ by more than their distance plus epsilon) and ``largest_excess``
        (over all pairs, difference of outputs minus the promise, ``guarantee_.bound``, which is tighter; not above 0
        if it is kept).
    """
    start, cpu = time.perf_counter(), time.process_time()
    if cell.model == CEILING:
        best = ceiling(problem.X_test, problem.y_test, WeightedLp(problem.weights, float(cell.p)))
        found: dict[str, Any] = {"confidence": float(best)}
    elif cell.model == LINEAR:
        found = _baseline(problem.linear, problem)
    elif cell.model == NETWORK:
        network = network_for(cell.seed, settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the last epoch is a limit we set
            network.fit(problem.X_train, problem.y_train)
        found = _baseline(network, problem)
    else:
        found = _smoothed(cell, problem, settings)
    return {
        **found,
        "n_people": len(problem.X_test),
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
    }


def _smoothed(cell: Trial, problem: Problem, settings: Settings) -> dict[str, Any]:
    start = time.perf_counter()
    metric = WeightedLp(problem.weights, float(cell.p))
    model = SmoothedClassifier(
        network_for(cell.seed, settings),
        noise=NOISES[cell.noise].for_metric(metric),
        epsilon=settings.epsilon,
        delta=settings.delta,
        n_draws="auto" if cell.noise == "splitting" else settings.n_draws,
        augment=1,
        random_state=cell.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousGuaranteeWarning)  # the paper's weights put most pairs at D >= 1
        model.fit(problem.X_train, problem.y_train)
    train_seconds = time.perf_counter() - start
    # Equal people have equal scores, so each is scored once.
    distinct, where = np.unique(problem.X_test, axis=0, return_inverse=True)
    estimate = model._estimate(distinct)
    h, promise = estimate.mean, model.guarantee_
    # A billionth for the rounding of sums, as in `audit` itself.
    checked = audit(None, problem.X_test, metric, predictions=h[where], tolerance=promise.epsilon + 1e-9, n_worst=1)
    return {
        **_scores(h[where], problem.y_test),
        "level": promise.level,
        "epsilon": promise.epsilon,
        "mean_draws": float(estimate.n_draws.mean()),
        "n_pairs": checked.n_pairs,
        "n_violations": checked.n_violations,
        "largest_excess": largest_excess(distinct, h, promise),
        "train_seconds": train_seconds,
    }


def _baseline(model: Any, problem: Problem) -> dict[str, Any]:
    """Scores on the same people as the smoothed models', and on the whole test set, which costs little here."""
    whole = _scores(model.predict_proba(problem.X_all), problem.y_all)
    return {
        **_scores(model.predict_proba(problem.X_test), problem.y_test),
        **{f"{measure}_all": value for measure, value in whole.items()},
        "n_people_all": len(problem.y_all),
    }


def _scores(h: FloatArray, y: npt.NDArray[Any]) -> dict[str, Any]:
    return {
        "accuracy": float((h.argmax(axis=1) == y).mean()),
        "confidence": float(h[np.arange(len(h)), y].mean()),
    }


def largest_excess(X: FloatArray, probabilities: FloatArray, guarantee: Guarantee) -> float:
    """Largest difference between the outputs for two people in excess of what is promised; two classes."""
    most = -np.inf
    for i, (x, h) in enumerate(zip(X[:-1], probabilities[:-1, 1], strict=True)):
        promised = guarantee.bound(guarantee.metric(X[i + 1 :], x))
        most = max(most, float((np.abs(probabilities[i + 1 :, 1] - h) - promised).max()))
    return most


def network_for(seed: int, settings: Settings) -> Pipeline:
    """Make the paper's network: two hidden layers of 128 ReLU units."""
    # The scaler sees people with their noise, which can be many times as wide as they are apart: without it the network
    # starts far from where it can learn (Seizure, L-infinity, Gaussian: 80% accuracy without, 89% with).
    # Patience of 20 epochs: with 10, the epoch at which training stopped varied more than the noises differ.
    network = MLPClassifier(
        (128, 128), max_iter=settings.n_epochs, early_stopping=True, n_iter_no_change=20, random_state=seed
    )
    return make_pipeline(StandardScaler(), network)
