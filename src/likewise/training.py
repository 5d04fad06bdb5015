"""Training the inner model on noisy copies, so that it expects the noise it will be smoothed with."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from likewise.metrics import FloatArray
from likewise.progress import progress_bar
from likewise.voting.draws import Perturbation


def fit_on_noisy_copies(
    estimator: Any,
    X: FloatArray,
    y: npt.NDArray[Any],
    perturbation: Perturbation,
    n_copies: int,
    rng: np.random.Generator,
    *,
    classes: npt.NDArray[Any] | None = None,
    verbose: bool = False,
) -> Any:
    """Fit `estimator` on `n_copies` noisy copies of each person.

    With `partial_fit`, one epoch is `n_copies` passes over the data, each under fresh noise, and there are up to
    `estimator.max_iter` epochs (one, if it has no such parameter): training ends when the score on new noisy
    copies has not risen by `tol` in `n_iter_no_change` epochs. Otherwise (and with scikit-learn's own
    `early_stopping`, which excludes `partial_fit`) all copies are made once and fitted together.
    """

    def noisy() -> FloatArray:
        return perturbation.perturb(X, rng)

    if not hasattr(estimator, "partial_fit") or getattr(estimator, "early_stopping", False):
        return estimator.fit(np.concatenate([noisy() for _ in range(n_copies)]), np.tile(y, n_copies))

    n_epochs = getattr(estimator, "max_iter", 1)
    tolerance = getattr(estimator, "tol", None) or 0.0
    patience = getattr(estimator, "n_iter_no_change", n_epochs)
    best, stale = -np.inf, 0
    options = {} if classes is None else {"classes": classes}
    with progress_bar("Training", n_epochs * n_copies, show=verbose) as advance:
        for _ in range(n_epochs):
            scores = []
            for _ in range(n_copies):
                copy = noisy()
                if hasattr(estimator, "n_features_in_"):  # not yet before the first pass
                    scores.append(estimator.score(copy, y))
                estimator.partial_fit(copy, y, **options)
                advance(1)
            score = float(np.mean(scores)) if scores else -np.inf
            best, stale = (score, 0) if score > best + tolerance else (best, stale + 1)
            if stale >= patience:
                break
    return estimator
