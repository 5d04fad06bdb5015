"""Training the inner model: on the training rows, or on noisy copies of them, so that it is fitted to the noise."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from likewise._fit_validation import TrainingData, seed_from
from likewise._inner_estimator import check_takes_weights, fit_weighted, seed_inner
from likewise._progress import progress_bar
from likewise._typing import IntArray
from likewise.ask import is_plain_function
from likewise.exceptions import InvalidInputError
from likewise.smoothing.sampling import Perturbation

_VALIDATION_COPIES = 10  # noisy copies of each held-out person on which epochs are compared


def fit_inner(
    estimator: Any,
    data: TrainingData,
    perturbation: Perturbation,
    *,
    n_copies: int,
    state: np.random.RandomState | None,
    classes: npt.NDArray[Any] | None,
    verbose: bool,
) -> Any:
    """Fit a clone of the inner estimator on `n_copies` noisy copies of each person; 0 takes the rows themselves.

    Plain functions and frozen models are not fitted. `state` seeds every `random_state` inside that is None.
    """
    frozen = isinstance(estimator, FrozenEstimator)
    is_function = is_plain_function("estimator", estimator)
    if n_copies and (is_function or frozen):
        kind = "plain function" if is_function else "FrozenEstimator"
        raise InvalidInputError(f"augment must be 0 for a {kind}, which cannot be trained; got {n_copies}.")
    if is_function:
        return estimator
    # A copy: fitting the original again must not change this model.
    estimator = copy.deepcopy(estimator) if frozen else clone(estimator)
    if state is not None:
        seed_inner(estimator, state)
    if frozen:
        return estimator.fit(data.people.table, data.y)  # checks that it is fitted
    if not n_copies:
        return fit_weighted(estimator, data.people.table, data.y, data.weights)
    rng = np.random.default_rng(seed_from(state))
    return fit_on_noisy_copies(estimator, data, perturbation, n_copies, rng, classes=classes, verbose=verbose)


def fit_on_noisy_copies(
    estimator: Any,
    data: TrainingData,
    perturbation: Perturbation,
    n_copies: int,
    rng: np.random.Generator,
    *,
    classes: npt.NDArray[Any] | None = None,
    verbose: bool = False,
) -> Any:
    """Fit `estimator` in place on `n_copies` noisy copies of each person, and return it.

    An estimator with `partial_fit`, and such a last step of a `Pipeline`, gets new noise in each epoch; the earlier
    steps of a `Pipeline` are fitted once, on noisy copies. The estimator's own parameters control training: up to
    `max_iter` epochs (one, without such a parameter) of `n_copies` passes over the data, until the score has not risen
    by `tol` for `n_iter_no_change` epochs; the model of the best epoch (the last of several) is returned. With
    `early_stopping`, the score is that of held-out people (`validation_fraction`) under the same noise in every epoch,
    without, that of all people under new noise. Accuracy under noise is the mean probability of the correct class
    after smoothing with hard votes.

    Other estimators are fitted once, on all copies together. Equal rows get equal noise, in any order, so a weight of
    2 has the effect of a duplicate.
    """
    people, used = data.people, np.flatnonzero(data.counts)
    distinct, inverse = np.unique(people.rows[used], axis=0, return_inverse=True)
    distinct_of = np.zeros(len(data), dtype=np.intp)
    distinct_of[used] = inverse.ravel()

    def perturbed(rows: IntArray, n_times: int) -> Any:
        noisy = [perturbation.perturb(distinct, rng)[distinct_of[rows]] for _ in range(n_times)]
        return people.encoder.decode(np.concatenate(noisy))

    copies = _NoisyCopies(perturbed, data, used)
    if isinstance(estimator, Pipeline) and hasattr(estimator.steps[-1][1], "partial_fit"):
        name, last = estimator.steps[-1]
        first_steps = estimator[:-1]
        if len(first_steps):
            first_steps.fit(*copies.take(used, n_copies)[:2])
            copies = replace(copies, perturbed=lambda rows, n: first_steps.transform(perturbed(rows, n)))
        estimator.steps[-1] = (name, _fit_by_epochs(last, copies, n_copies, rng, classes, verbose))
        return estimator
    if hasattr(estimator, "partial_fit"):
        return _fit_by_epochs(estimator, copies, n_copies, rng, classes, verbose)
    X, labels, options = copies.take(used, n_copies)
    return fit_weighted(estimator, X, labels, options.get("sample_weight"))


@dataclass(frozen=True, eq=False)
class _NoisyCopies:
    """Copies of rows under new noise, made by `perturbed` from positions and a number of copies."""

    perturbed: Callable[[IntArray, int], Any]
    data: TrainingData
    used: IntArray

    def take(self, rows: IntArray, n_times: int = 1) -> tuple[Any, npt.NDArray[Any], dict[str, Any]]:
        """Noisy copies of some rows, their labels, and their weights as keyword arguments."""
        weights = self.data.weights
        options = {} if weights is None else {"sample_weight": np.tile(weights[rows], n_times)}
        return self.perturbed(rows, n_times), np.tile(self.data.y[rows], n_times), options


def _fit_by_epochs(
    model: Any,
    copies: _NoisyCopies,
    n_copies: int,
    rng: np.random.Generator,
    classes: npt.NDArray[Any] | None,
    verbose: bool,
) -> Any:
    """Train with `partial_fit`, under new noise each time, until the score stalls."""
    n_epochs = getattr(model, "max_iter", 1)
    tolerance = getattr(model, "tol", None) or 0.0
    patience = getattr(model, "n_iter_no_change", n_epochs)
    early_stopping = bool(getattr(model, "early_stopping", False))
    rows, validation = copies.used, None
    if copies.data.weights is not None:
        check_takes_weights(model, "partial_fit")
    if early_stopping:
        shuffled = rows[rng.permutation(len(rows))]
        n_held_out = min(len(rows) - 1, int(np.ceil(model.validation_fraction * len(rows))))
        rows = np.sort(shuffled[n_held_out:])
        validation = copies.take(shuffled[:n_held_out], _VALIDATION_COPIES)
        model.set_params(early_stopping=False)  # scikit-learn's own refuses partial_fit
    known = {} if classes is None else {"classes": classes}

    best_score, best, n_stale = -np.inf, model, 0
    with progress_bar("Training", n_epochs * n_copies, show=verbose) as advance:
        for _ in range(n_epochs):
            for _ in range(n_copies):
                X, y, options = copies.take(rows)
                model.partial_fit(X, y, **known, **options)
                advance(1)
            X, y, options = validation or copies.take(rows)
            score = model.score(X, y, **options)
            n_stale = 0 if score > best_score + tolerance else n_stale + 1
            if score >= best_score:
                best_score = score
                best = copy.deepcopy(model)
            if n_stale >= patience:
                break
    return best.set_params(early_stopping=True) if early_stopping else best
