"""Which noise, for a given model and metric."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise.enforce.smoothing.ballot import Ballot
from likewise.enforce.smoothing.draws import Perturbation
from likewise.enforce.smoothing.margins import LINEAR_CLASSIFIERS
from likewise.enforce.smoothing.mixed import Mixed, numbers_under
from likewise.enforce.smoothing.noises import Gaussian, Noise, Splitting, Uniform
from likewise.metrics.distance import ColumnWeights
from likewise.metrics.lp import WeightedLp
from likewise.metrics.people import People
from likewise.models.trees import BOOSTED, FORESTS, SINGLE_TREES
from likewise.models.unwrapping import last_step

_MOST_COPIES = 10  # of a person, on average


def candidate_noise(model: Any, ballot: Ballot, p: float) -> type[Noise]:
    """The kind of noise under which a model of this type (fitted or not) may have a formula; else that without one."""
    kind = type(last_step(model))
    if kind in LINEAR_CLASSIFIERS and ballot.vote == "hard" and ballot.n_outputs == 2:
        return Gaussian
    has_leaves = kind in SINGLE_TREES or kind in BOOSTED or (kind in FORESTS and ballot.vote != "hard")
    return Uniform if has_leaves and p == 1 else without_formula(p)


def without_formula(p: float) -> type[Noise]:
    """The kind of noise for "auto" where the model has to be evaluated."""
    return Splitting if p == 1 else Gaussian


def is_array(people: People, weights: ColumnWeights) -> bool:
    """Whether people are rows of numbers, all there where they matter: formulas and fast networks work for those."""
    return people.coding.is_plain and not weights.allows_missing


def counted_people(people: People, weights: FloatArray | None) -> People:
    """People as often as they count: what is read off a population (the middle, a background) is that of theirs.

    As many times as their weights say, if these are small whole numbers; else as many people as there are, spread
    evenly over the weights.
    """
    if weights is None:
        return people
    n, total = len(people), float(weights.sum())
    if (weights == np.rint(weights)).all() and total <= _MOST_COPIES * n:
        return people.take(np.repeat(np.arange(n), weights.astype(np.int64)))
    return people.take(np.searchsorted(np.cumsum(weights), (np.arange(n) + 0.5) / n * total))


def perturbation_for(
    noise: Noise | type[Noise],
    people: People,
    weights: ColumnWeights,
    seed: int,
    *,
    n_draws: int | None = None,
    epsilon: float = 0.01,
) -> Perturbation:
    """Noise calibrated to a metric, ready for people like these; `n_draws` and `epsilon` are for splitting."""
    if not is_array(people, weights):
        kind = type(noise) if isinstance(noise, Noise) else noise
        options = {"n_draws": n_draws, "epsilon": epsilon}
        return Mixed.from_training_data(kind, people.rows, people.coding, weights, seed, **options)  # type: ignore[arg-type]
    if not isinstance(noise, Noise):
        noise = noise.for_metric(WeightedLp(weights.weights, weights.p, feature_names=people.coding.labels))
    return numbers_under(noise, people.rows, seed, n_draws=n_draws, epsilon=epsilon)
