"""One cell of the experiments: one model on one split of one data set with one seed, trained, scored and checked."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.data import Problem
from likewise._guarantee_warnings import VacuousGuaranteeWarning
from likewise._typing import FloatArray
from likewise.additive.estimators import AdditiveClassifier
from likewise.auditing.audit import audit
from likewise.auditing.ceiling import ceiling
from likewise.kernel.guarantee import Guarantee
from likewise.lipschitz.estimators import LipschitzClassifier
from likewise.metrics.weighted_lp import WeightedLp
from likewise.smoothing.estimators import SmoothedClassifier
from likewise.smoothing.noise import NOISES

CONSTANT, LINEAR, NETWORK = "constant", "logistic regression", "network"
SMOOTHED, ADDITIVE, CEILING = "smoothed network", "additive model", "ceiling"
LOG_LIPSCHITZ, HINGE_LIPSCHITZ = "1-Lipschitz network by log loss", "1-Lipschitz network by hinge loss"
LIPSCHITZ = (LOG_LIPSCHITZ, HINGE_LIPSCHITZ)
GUARANTEED = (SMOOTHED, ADDITIVE, *LIPSCHITZ)
T = TypeVar("T")
EXPONENTS = ("1", "2", "inf")
NOISE_NAMES = ("laplace", "gaussian", "uniform", "splitting")


@dataclass(frozen=True)
class Settings:
    """How much work a run does; results of different settings are not mixed.

    Attributes
    ----------
    n_test : int
        Number of test people to score, drawn at random for each seed; all if there are fewer.
    n_train : int
        Maximum number of training people.
    n_epochs : int
        Maximum number of epochs; training stops early when the held-out score stops improving.
    n_steps : int
        Maximum number of training steps of a 1-Lipschitz network, with early stopping too.
    epsilon, delta : float
        Sampling error, and the probability per pair that it is larger.
    n_draws : int or "auto"
        Evaluations of the network per person: a fixed number, in place of what `epsilon` and `delta` need. Splitting,
        which has no sampling error, always takes what `epsilon` needs.
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
_ROUNDS, _ENOUGH = 5, 1.0  # rounds of timing at most, and seconds of processor time after which no further one starts
_TIMED = 10_000  # people whose scoring is timed where it takes microseconds each


@dataclass(frozen=True)
class Trial:
    """One model on one split of one data set with one seed; `p` and `noise` are empty where they do not apply."""

    dataset: str
    split: str
    seed: int
    model: str
    p: str = ""
    noise: str = ""

    @property
    def name(self) -> str:
        """A file name for the cell."""
        parts = [self.dataset, self.split, self.seed, self.model, f"L{self.p}" if self.p else "", self.noise]
        return "_".join(str(part).replace(" ", "-") for part in parts if part != "")


def plan(dataset: str, split: str, seed: int) -> Iterator[Trial]:
    """Yield the cells of one split, baselines first."""
    for model in (CONSTANT, LINEAR, NETWORK):
        yield Trial(dataset, split, seed, model)
    for p in EXPONENTS:
        yield Trial(dataset, split, seed, CEILING, p)
        for noise in NOISE_NAMES:
            # Beyond the paper: uniform noise and splitting, for p = 1 only.
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
        and ``cpu_seconds`` (of all cores). For all but ceilings, the cost of training (``train_seconds`` and
        ``train_cpu_seconds``) and of scoring one person: ``evaluations`` of the model, and ``microseconds`` of
        processor time. For models that are evaluated once, ``accuracy_all``, ``confidence_all``, ``brier_all`` and
        ``n_people_all``, on the whole test set. For models with a guarantee also its ``level``
        and ``epsilon``, and the comparison of all pairs of test people: ``n_pairs``, ``n_violations`` (pairs whose
        outputs differ by more than their distance plus epsilon) and ``largest_excess`` (over all pairs, difference of
        outputs minus the tighter ``guarantee_.bound``; at most 0 if the guarantee holds).
    """
    start, cpu = time.perf_counter(), time.process_time()
    if cell.model == CEILING:
        best = ceiling(problem.X_test, problem.y_test, WeightedLp(problem.weights, float(cell.p)))
        found: dict[str, Any] = {"confidence": float(best)}
    else:
        model = model_for(cell, problem, settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is limited on purpose
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
        # Signals have many columns: fewer knots per column limit the time to fit.
        knots = max(2, min(32, _MOST_KNOTS // len(problem.weights)))
        return AdditiveClassifier(metric, max_knots=knots)
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
    # Equal rows have equal scores, so each is scored once.
    distinct, where = np.unique(problem.X_test, axis=0, return_inverse=True)
    model._estimate(model._people(distinct[:1]))  # compile, or load from the cache
    estimate, took = clocked(lambda: model._estimate(model._people(distinct)))
    h = estimate.mean[where.ravel()]  # a column in NumPy 2.0.0
    return {
        **scores_of(h, problem.y_test),
        "evaluations": float(estimate.n_draws.mean()),
        "microseconds": took / len(distinct) * 1e6,
        **checked_pairs(problem.X_test, h, model.guarantee_),
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
        **(checked_pairs(problem.X_test, h, model.guarantee_) if hasattr(model, "guarantee_") else {}),
    }


def network_for(seed: int, settings: Settings) -> Pipeline:
    """Make the paper's network: two hidden layers of 128 ReLU units."""
    # The scaler is fitted on noisy rows, whose spread can be many times that of the data: without it the network starts
    # far from where it can learn (Seizure, L-infinity, Gaussian: 80% accuracy without, 89% with).
    # Patience of 20 epochs: with 10, the epoch at which training stopped varied more than the noises differ.
    network = MLPClassifier(
        (128, 128), max_iter=settings.n_epochs, early_stopping=True, n_iter_no_change=20, random_state=seed
    )
    return make_pipeline(StandardScaler(), network)


def scores_of(h: FloatArray, y: npt.NDArray[Any]) -> dict[str, float]:
    """Accuracy, mean probability of the correct class, and Brier score; two classes, coded 0 and 1."""
    own = h[np.arange(len(h)), y]
    return {
        "accuracy": float((h.argmax(axis=1) == y).mean()),
        "confidence": float(own.mean()),
        "brier": float(((1 - own) ** 2).mean()),
    }


def clocked(work: Callable[[], T]) -> tuple[T, float]:
    """Return a result and its processor time in seconds, over all cores.

    The best of several rounds, so that other load on the machine matters little; a round of more than a second is
    not repeated.
    """
    best, spent = np.inf, 0.0
    for _ in range(_ROUNDS):
        start = time.process_time()
        result = work()
        took = time.process_time() - start
        best, spent = min(best, took), spent + took
        if spent > _ENOUGH:
            break
    return result, best


def checked_pairs(X: FloatArray, h: FloatArray, guarantee: Guarantee) -> dict[str, Any]:
    """Check all pairs of people against the guarantee: ``n_pairs``, ``n_violations`` and ``largest_excess``."""
    # 1e-9 for rounding, as in `audit` itself.
    checked = audit(None, X, guarantee.metric, predictions=h, tolerance=guarantee.epsilon + 1e-9, n_worst=1)
    distinct, first = np.unique(X, axis=0, return_index=True)
    return {
        "level": guarantee.level,
        "epsilon": guarantee.epsilon,
        "n_pairs": checked.n_pairs,
        "n_violations": checked.n_violations,
        "largest_excess": largest_excess(distinct, h[first], guarantee),
    }


def largest_excess(X: FloatArray, probabilities: FloatArray, guarantee: Guarantee) -> float:
    """Largest difference between the outputs of two people minus the guaranteed bound; two classes."""
    most = -np.inf
    for i, (x, h) in enumerate(zip(X[:-1], probabilities[:-1, 1], strict=True)):
        allowed = guarantee.bound(guarantee.metric(X[i + 1 :], x))
        most = max(most, float((np.abs(probabilities[i + 1 :, 1] - h) - allowed).max()))
    return most
