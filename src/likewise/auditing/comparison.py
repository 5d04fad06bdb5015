"""Every way to a model on the same folds, beside a constant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from likewise._frozen import Frozen
from likewise._progress import progress_bar
from likewise._rules import TRUTH
from likewise.auditing.assignment import read_assignment
from likewise.auditing.holdout import Fold, Showing, make_folds, show
from likewise.auditing.recommending import Recommendation, recommend
from likewise.auditing.tabulating import as_html, as_table, as_text
from likewise.auditing.ways import ways_for
from likewise.metrics.abstract import Metric
from likewise.models.pipelines import Task


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Frozen):
    """What each way keeps, promises and costs.

    Attributes
    ----------
    showings : dict from way to Showing
        What was measured, in the order of simplicity.
    estimators : dict from way to unfitted estimator
        Of the ways that can be gone.
    folds : tuple of Fold
        The same for every way.
    task : {"classes", "numbers"}
    metric : Metric
    """

    showings: dict[str, Showing]
    estimators: dict[str, Any]
    folds: tuple[Fold, ...]
    task: Task
    metric: Metric

    @property
    def table(self) -> pd.DataFrame:
        """One row per way.

        For classes ``brier``, ``auc``, ``accuracy``, ``log_loss`` and ``confidence`` (mean probability of the true
        class), for numbers ``squared_error``, ``r2`` and ``rmse``: means over the folds, of people held out, each
        with its standard error in a column that ends in ``_se``. Then ``people`` (measured), ``violations`` (pairs of
        people that differ by more than ``D + epsilon``) among ``pairs`` searched, ``promise``, ``level`` and
        ``epsilon``, ``evaluations`` and ``microseconds`` per person, ``fit_seconds`` per fold, and a ``note``.
        """
        return as_table({name: showing.row for name, showing in self.showings.items()}, self.task)

    def best(self) -> Recommendation:
        """The way to take: the best proper score among those that keep the promise.

        That is the Brier score for classes, and squared error for numbers. Of ways within one standard error of the
        best, the simplest is taken: a constant, then an additive model, a network, projection, smoothing, and your own.
        So nothing is recommended that is not better than a constant. The standard error is that of the difference
        between the two, fold by fold.
        """
        return recommend(self.showings, self.estimators, self.folds, self.task)

    @property
    def measured_on(self) -> str:
        """On whom, in words."""
        return measured_on(self.folds)

    def __str__(self) -> str:
        return as_text(self.table, self.task, self.measured_on, self.best().reason)

    def _repr_html_(self) -> str:
        best, table = self.best(), self.table
        title = f"{len(table)} ways, on people held out"
        return as_html(table, self.task, title, self.measured_on, best.reason, str(table["title"][best.name]))

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.showings)}; best: {self.best().name}>"


def compare(
    X: Any,
    y: Any,
    metric: Metric,
    ways: Any = "auto",
    cv: Any = 5,
    *,
    task: Literal["auto", "classes", "numbers"] = "auto",
    output_range: tuple[float, float] | None = None,
    n_people: int = 1000,
    n_draws: int = 200,
    estimator: Any = None,
    smoothing: Mapping[str, Any] | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> Comparison:
    """Fit every way to a model on the same folds, and measure each on people held out.

    The ways, the simplest first: ``"constant"`` (the base rate or the mean: any promise allows it), ``"additive"``,
    ``"network"`` (1-Lipschitz, if PyTorch is there), ``"projection"``, ``"smoothing"`` and ``"augmented"`` (smoothing
    of a model that was trained on noisy copies), all within `metric`; and without a promise ``"linear"`` (logistic or
    linear regression without the columns of weight 0) and ``"boosting"``, which reads all columns, those of weight 0
    too, and is what is projected and smoothed unless an `estimator` is given.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        For a metric of tables a table with the metric's columns.
    y : array-like of shape (n_samples,)
    metric : Metric
    ways : "auto" or list, default="auto"
        Names of ways, and pairs ``(name, estimator)`` for your own; one that enforces a metric is given this one. The
        constant and boosting are always there.
    cv : int, cross-validation generator or iterable, default=5
        Folds; a number of them is shuffled, and stratified by class.
    task : {"auto", "classes", "numbers"}, default="auto"
        What `y` holds. "auto" takes numbers that are not whole, or have more than 20 values, as numbers.
    output_range : tuple of float, optional
        Of numbers: the limits that are the unit of the promise. None takes the range of `y`.
    n_people : int, default=1000
        Held-out people per fold among whom all pairs are searched, and on whom smoothing is measured: an even sample.
    n_draws : int, default=200
        Evaluations per person of a smoothed model; the more, the smaller its epsilon.
    estimator : classifier or regressor, optional
        What is projected and smoothed, not yet fitted, or fitted and in a `FrozenEstimator`. None is gradient boosting.
    smoothing : dict, optional
        Parameters of the smoothed models: ``noise``, ``vote``, ``epsilon``, ``delta``, ``n_draws`` and, for
        ``"augmented"``, ``augment``. If smoothing cannot do what they ask, that is an error.
    random_state : int, default=0
        Seeds folds and models.
    verbose : bool, default=False
        Show a progress bar.

    Returns
    -------
    Comparison

    Notes
    -----
    Figures are of people held out, and hold for people like them. That no pair was found to break a promise is no
    proof: that is in the promise itself. Standard errors over folds are somewhat too small, since folds share the
    people they train on.

    Examples
    --------
    >>> import numpy as np
    >>> from likewise import WeightedLp
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> result = compare(X, np.arange(60) // 30, WeightedLp([0.8]), ways=["linear"], cv=3)
    >>> result.table["brier"].round(2).to_dict()
    {'constant': 0.25, 'linear': 0.04, 'boosting': 0.03}
    >>> result.table["violations"].to_dict()
    {'constant': 0, 'linear': 445, 'boosting': 298}
    >>> result.best().name
    'constant'
    """
    TRUTH.check("verbose", verbose)
    given = read_assignment(X, y, metric, task, output_range, n_draws, random_state, estimator, smoothing)
    chosen = ways_for(given, ways)
    folds = make_folds(given, cv, n_people)
    showings = {}
    with progress_bar("Comparing", len(chosen) * len(folds), show=verbose) as advance:
        for way in chosen:
            showings[way.name] = show(way, given, folds, advance)
    estimators = {way.name: way.estimator for way in chosen if way.estimator is not None}
    return Comparison(showings, estimators, folds, given.task, given.metric)


def measured_on(folds: tuple[Fold, ...]) -> str:
    """Of whom the figures are, in words."""
    sizes = [len(fold.held_out) for fold in folds]
    searched = [len(fold.sample) for fold in folds]
    words = (
        f"Each figure is of people held out, {_range(sizes)} in each of {len(folds)} folds: the mean over the folds, "
        "with its standard error. All pairs were searched"
    )
    return words + (f" among {_range(searched)} of them, an even sample." if searched != sizes else " among them.")


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
