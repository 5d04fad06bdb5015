"""Training the inner model: on the people as they are, or on noisy copies, so that it expects the noise."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from likewise._fit_validation import seed_from
from likewise._inner_estimator import check_takes_weights, fit_weighted
from likewise._progress import progress_bar
from likewise._typing import FloatArray
from likewise.exceptions import InvalidInputError
from likewise.inspection.prediction import is_plain_function
from likewise.metrics.encoders import People
from likewise.smoothing.sampling import Perturbation

# Noisy copies of each held-out person on which epochs are compared.
_JUDGING_COPIES = 10


def fit_inner(
    given: Any,
    people: People,
    y: npt.NDArray[Any],
    weights: FloatArray | None,
    perturbation: Perturbation,
    *,
    n_copies: int,
    state: Any,
    classes: npt.NDArray[Any] | None,
    verbose: bool,
) -> Any:
    """Fit a copy of the inner estimator, or take a plain function as it is.

    Parameters
    ----------
    given : estimator or callable
    people, y, weights : people, their outcomes, and what they count
    perturbation : Perturbation
        Makes noisy copies.
    n_copies : int
        Per person; 0 trains on the people as they are.
    state : RandomState or None
        Seeds every `random_state` inside the estimator that is None, unless it is None itself.
    """
    if is_plain_function("estimator", given):
        if n_copies:
            raise InvalidInputError(f"augment must be 0 for a plain function, which cannot be trained; got {n_copies}.")
        return given
    # A frozen model is copied: who fits the original again does not reach what is promised here.
    estimator = copy.deepcopy(given) if isinstance(given, FrozenEstimator) else clone(given)
    if n_copies and isinstance(estimator, FrozenEstimator):
        raise InvalidInputError(f"augment must be 0 for a FrozenEstimator, which cannot be trained; got {n_copies}.")
    if state is not None:
        seed_inner(estimator, state)
    if isinstance(estimator, FrozenEstimator):
        return estimator.fit(people.table, y)  # checks that it is fitted
    if not n_copies:
        return fit_weighted(estimator, people.table, y, weights)
    rng = np.random.default_rng(seed_from(state))
    return fit_on_noisy_copies(
        estimator, people, y, perturbation, n_copies, rng, weights=weights, classes=classes, verbose=verbose
    )


def seed_inner(estimator: Any, state: Any) -> None:
    """Give every `random_state` inside the estimator that is None a fixed value."""
    params = estimator.get_params(deep=True)
    unset = sorted(name for name in params if name.split("__")[-1] == "random_state" and params[name] is None)
    estimator.set_params(**{name: int(state.randint(2**31)) for name in unset})


def fit_on_noisy_copies(
    estimator: Any,
    people: People,
    y: npt.NDArray[Any],
    perturbation: Perturbation,
    n_copies: int,
    rng: np.random.Generator,
    *,
    weights: FloatArray | None = None,
    classes: npt.NDArray[Any] | None = None,
    verbose: bool = False,
) -> Any:
    """Fit `estimator` on `n_copies` noisy copies of each person; return the fitted estimator.

    An estimator with `partial_fit` (such as scikit-learn's MLP, or a wrapper of a PyTorch module) sees fresh noise in
    each epoch, and so does the last step of a `Pipeline`, whose other steps are fitted once, on noisy copies.
    Its own parameters say how long: up to `max_iter` epochs (one, if it has no such parameter), of `n_copies` passes
    over the data each; training ends when the score has not risen by `tol` for `n_iter_no_change` epochs, and the
    model of the best epoch (the last of several) is returned. With `early_stopping`, the share
    `validation_fraction` of the people is held out and the score is theirs, under the same noise in every epoch;
    without, it is that of everybody under new noise. For a classifier, accuracy under noise is the mean confidence
    in the correct class that smoothing with hard votes will have.

    Other estimators are fitted once, on all copies together. Equal people get equal noise, whatever their order: to
    count twice is the same as to be there twice.

    Parameters
    ----------
    estimator : estimator
        Unfitted; fitted in place.
    people, y : people and their outcomes
    perturbation : Perturbation
        Makes the noisy copies.
    n_copies : int
    rng : Generator
        Draws the noise and the people held out. The estimator's own randomness follows its `random_state`.
    weights : ndarray of shape (n_samples,), optional
        What each person counts.
    classes : ndarray, optional
        For a classifier.
    verbose : bool, default=False
    """

    counts = np.ones(len(y)) if weights is None else weights
    everyone = np.flatnonzero(counts)
    distinct, where = np.unique(people.rows[everyone], axis=0, return_inverse=True)
    place = np.zeros(len(y), dtype=np.intp)
    place[everyone] = where.ravel()

    def noisy(rows: npt.NDArray[np.intp], n_times: int = 1) -> Any:
        copies = [perturbation.perturb(distinct, rng)[place[rows]] for _ in range(n_times)]
        return people.encoder.decode(np.concatenate(copies))

    def options(rows: npt.NDArray[np.intp], n_times: int = 1) -> dict[str, Any]:
        return {} if weights is None else {"sample_weight": np.tile(weights[rows], n_times)}

    copied = np.tile(y[everyone], n_copies), options(everyone, n_copies).get("sample_weight")
    if isinstance(estimator, Pipeline) and hasattr(estimator.steps[-1][1], "partial_fit"):
        name, last = estimator.steps[-1]
        before = estimator[:-1]
        if len(before):
            before.fit(noisy(everyone, n_copies), copied[0])
        prepare: Callable[[Any], Any] = before.transform if len(before) else lambda rows: rows
        copies = _Copies(lambda rows, n=1: prepare(noisy(rows, n)), options, y, everyone)
        estimator.steps[-1] = (name, _fit_by_epochs(last, copies, n_copies, rng, classes, verbose))
        return estimator
    if hasattr(estimator, "partial_fit"):
        return _fit_by_epochs(estimator, _Copies(noisy, options, y, everyone), n_copies, rng, classes, verbose)
    return fit_weighted(estimator, noisy(everyone, n_copies), *copied)


@dataclass(frozen=True, eq=False)
class _Copies:
    """Noisy copies of people, made when they are asked for.

    Attributes
    ----------
    noisy, options : callable
        Of positions and a number of copies: people under fresh noise, and their weights by name, if there are any.
    y : ndarray
    everyone : ndarray
        Positions of those who count.
    """

    noisy: Callable[..., Any]
    options: Callable[..., dict[str, Any]]
    y: npt.NDArray[Any]
    everyone: npt.NDArray[np.intp]

    def of(self, rows: npt.NDArray[np.intp], n_times: int = 1) -> tuple[Any, npt.NDArray[Any], dict[str, Any]]:
        """Copies of some people, their labels, and their weights by name."""
        return self.noisy(rows, n_times), np.tile(self.y[rows], n_times), self.options(rows, n_times)


def _fit_by_epochs(
    model: Any,
    copies: _Copies,
    n_copies: int,
    rng: np.random.Generator,
    classes: npt.NDArray[Any] | None,
    verbose: bool,
) -> Any:
    """Train with `partial_fit` until the score stalls, under fresh noise each time."""
    n_epochs = getattr(model, "max_iter", 1)
    tolerance = getattr(model, "tol", None) or 0.0
    patience = getattr(model, "n_iter_no_change", n_epochs)
    hold_out = bool(getattr(model, "early_stopping", False))
    rows = copies.everyone
    if copies.options(rows):
        check_takes_weights(model, "partial_fit")
    judged: tuple[Any, npt.NDArray[Any], dict[str, Any]] | None = None
    if hold_out:
        shuffled = rows[rng.permutation(len(rows))]
        n_held = min(len(rows) - 1, int(np.ceil(model.validation_fraction * len(rows))))
        held, rows = shuffled[:n_held], np.sort(shuffled[n_held:])
        judged = copies.of(held, _JUDGING_COPIES)
        model.set_params(early_stopping=False)  # scikit-learn's own refuses partial_fit
    known = {} if classes is None else {"classes": classes}

    best_score, best, stale = -np.inf, model, 0
    with progress_bar("Training", n_epochs * n_copies, show=verbose) as advance:
        for _ in range(n_epochs):
            for _ in range(n_copies):
                shown, labels, weighed = copies.of(rows)
                model.partial_fit(shown, labels, **known, **weighed)
                advance(1)
            shown, labels, weighed = judged or copies.of(rows)
            score = model.score(shown, labels, **weighed)
            stale = 0 if score > best_score + tolerance else stale + 1
            if score >= best_score:
                best_score = score
                best = copy.deepcopy(model)
            if stale >= patience:
                break
    return best.set_params(early_stopping=True) if hold_out else best
