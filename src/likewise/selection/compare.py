"""Every method to a model on the same folds, beside a constant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import clone

from likewise._frozen import Frozen
from likewise._html import grid, panel, words
from likewise._progress import progress_bar
from likewise._validation import TRUTH
from likewise.inspection.baselines import Task
from likewise.metrics.base import Metric
from likewise.selection.cross_validation import SCORES, CVResult, Fold, Score, make_folds, show
from likewise.selection.methods import CONSTANT, methods_for, read_learning_task

_AFTER = [
    "people",
    "violations",
    "pairs",
    "promise",
    "level",
    "epsilon",
    "evaluations",
    "microseconds",
    "fit_seconds",
    "note",
]
_WHOLE = ["people", "violations", "pairs", "evaluations"]
_WIDTH = 120


def as_table(rows: dict[Any, dict[str, Any]], task: Task, index: str = "method") -> pd.DataFrame:
    """One row per entry of `rows`, the same columns for all."""
    figures = [column for one in SCORES[task] for column in (one.name, f"{one.name}_se")]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=None).reindex(columns=["title", *figures, *_AFTER])
    table = table.astype({**dict.fromkeys(_WHOLE, "Int64"), "promise": bool})
    table[["level", "note"]] = table[["level", "note"]].fillna("")
    return table.rename_axis(index)


def as_text(table: pd.DataFrame, task: Task, measured_on: str, conclusion: str) -> str:
    """For a terminal: how good each way is, what it promises and costs, notes, on whom, and what follows."""
    gone = table["evaluations"].notna()
    blocks = [_aligned(cells[gone]) for cells in (_figures(table, task), _costs(table))]
    notes = [
        fill(f"{row.title}: {str(row.note).rstrip('.')}.", _WIDTH, subsequent_indent="  ")
        for row in table[table["note"] != ""].itertuples()
    ]
    words = [fill(measured_on, _WIDTH), fill(conclusion, _WIDTH)]
    return "\n\n".join([*blocks, *(["\n".join(notes)] if notes else []), *words])


def as_html(table: pd.DataFrame, task: Task, title: str, measured_on: str, conclusion: str, best: str = "") -> str:
    """For a notebook: the same as one table, in which the row of the title `best` stands out."""
    cells = pd.concat([_figures(table, task), _costs(table).iloc[:, 1:], table[["note"]]], axis=1)
    last = cells.shape[1] - 1
    body = grid([str(name) for name in cells.columns], cells.to_numpy().tolist(), left=[0, last], strong=best)
    return panel(title, words(conclusion), body, words(measured_on, quiet=True))


def _aligned(cells: pd.DataFrame) -> str:
    """Columns of text, the first to the left and the others to the right."""
    widths = [max(len(name), *cells[name].str.len()) for name in cells.columns]

    def line(entries: Any) -> str:
        first, *others = entries
        return "  ".join([first.ljust(widths[0]), *(e.rjust(w) for e, w in zip(others, widths[1:], strict=True))])

    return "\n".join([line(cells.columns), line("-" * width for width in widths), *map(line, cells.to_numpy())])


def _figures(table: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Figures with their standard errors, as text; empty where nothing was measured."""
    cells = {str(table.index.name): table["title"].tolist()}
    for one in SCORES[task]:
        pairs = zip(table[one.name], table[f"{one.name}_se"], strict=True)
        cells[one.title] = [_figure(one, *pair) for pair in pairs]
    return pd.DataFrame(cells, index=table.index)


def _costs(table: pd.DataFrame) -> pd.DataFrame:
    """Promise, violations and costs, as text; empty where nothing was measured."""
    cells = {
        str(table.index.name): table["title"],
        "promise": table["level"],
        "epsilon": table["epsilon"].map(lambda epsilon: "" if np.isnan(epsilon) else f"{epsilon:.2g}"),
        "violations": table["violations"].map("{:,}".format),
        "of pairs": table["pairs"].map("{:,}".format),
        "evaluations": table["evaluations"].map("{:,}".format),
        "µs a person": table["microseconds"].map(_amount),
        "seconds to fit": table["fit_seconds"].map(_amount),
    }
    return pd.DataFrame(cells).where(table["evaluations"].notna(), "").assign(**{str(table.index.name): table["title"]})


def _amount(size: float) -> str:
    return f"{size:,.0f}" if size >= 100 else f"{size:.2g}"


def _figure(one: Score, value: float, error: float) -> str:
    """A figure and its standard error, to the same digits."""
    if np.isnan(value):
        return ""
    if one.percent:
        return f"{100 * value:.1f}% ± {100 * error:.1f}"
    digits = one.digits
    if digits is None:  # in units of the outcome: two digits of the error say enough
        digits = int(np.clip(1 - np.floor(np.log10(error or 1.0)), 0, 6))
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"


@dataclass(frozen=True, eq=False)
class Recommendation:
    """A method that keeps the promise.

    Attributes
    ----------
    name : str
        Of the method.
    estimator : estimator
        Not yet fitted.
    reason : str
        Why this one, in words.
    constant_is_as_good : bool
        Whether nothing that keeps the promise is better than a constant; the constant is then what is recommended.
    """

    name: str
    estimator: Any
    reason: str
    constant_is_as_good: bool

    def fit(self, X: Any, y: Any) -> Any:
        """Fit a copy of the estimator on all of these people, and return it."""
        return clone(self.estimator).fit(X, y)

    def __str__(self) -> str:
        return self.reason


def recommend(
    showings: dict[str, CVResult], estimators: dict[str, Any], folds: tuple[Fold, ...], task: Task
) -> Recommendation:
    """Choose among methods in the order of simplicity.

    The best mean loss decides, and of those within one standard error of it the simplest is taken.
    """
    kept = [name for name, showing in showings.items() if showing.keeps_promise]
    measure = SCORES[task][0]
    title, score = measure.title, measure.name
    best = min(kept, key=lambda name: showings[name].row[score])
    for chosen in kept:
        gap, error = difference(showings[chosen], showings[best], folds)
        if gap <= error or chosen == best:
            break

    score_of = {name: measure.in_words(showings[name].row[score]) for name in kept}
    title_of = {name: showings[name].row["title"] for name in kept}
    beside = f"A constant has {score_of[CONSTANT]}."
    if best == CONSTANT:
        reason = f"A constant is as good: no method with a guarantee beats its {title}, {score_of[CONSTANT]}."
    elif chosen == CONSTANT:
        reason = (
            f"A constant is as good: the best {title} of the methods with a guarantee, {score_of[best]} "
            f"({title_of[best]}), is within one standard error ({error:.2g}) of its {score_of[CONSTANT]}."
        )
    elif chosen == best:
        reason = (
            f"Best: {title_of[best]}. Its {title}, {score_of[best]}, is the lowest of the methods with a guarantee. "
            f"{beside}"
        )
    else:
        reason = (
            f"Best: {title_of[chosen]}. Its {title}, {score_of[chosen]}, is within one standard error ({error:.2g}) of "
            f"the lowest of the methods with a guarantee, {score_of[best]} ({title_of[best]}), which is less simple. "
            f"{beside}"
        )
    return Recommendation(chosen, estimators[chosen], reason, chosen == CONSTANT)


def difference(first: CVResult, second: CVResult, folds: tuple[Fold, ...]) -> tuple[float, float]:
    """By how much the losses of `first` are larger, on people on whom both were measured, with its standard error.

    Folds are compared one by one: what makes a fold hard for both does not blur the difference.
    """
    gap = first.losses - second.losses
    means = np.array([np.nanmean(gap[fold.held_out]) for fold in folds])
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Frozen):
    """What each way keeps, promises and costs.

    Attributes
    ----------
    showings : dict from method to Showing
        What was measured, in the order of simplicity.
    estimators : dict from method to unfitted estimator
        Of the methods that can be gone.
    folds : tuple of Fold
        The same for every method.
    task : {"classification", "regression"}
    metric : Metric
    """

    showings: dict[str, CVResult]
    estimators: dict[str, Any]
    folds: tuple[Fold, ...]
    task: Task
    metric: Metric

    @property
    def table(self) -> pd.DataFrame:
        """One row per method.

        For classes ``brier``, ``auc``, ``accuracy``, ``log_loss`` and ``confidence`` (mean probability of the true
        class), for numbers ``squared_error``, ``r2`` and ``rmse``: means over the folds, of people held out, each
        with its standard error in a column that ends in ``_se``. Then ``people`` (measured), ``violations`` (pairs of
        people that differ by more than ``D + epsilon``) among ``pairs`` searched, ``promise``, ``level`` and
        ``epsilon``, ``evaluations`` and ``microseconds`` per person, ``fit_seconds`` per fold, and a ``note``.
        """
        return as_table({name: showing.row for name, showing in self.showings.items()}, self.task)

    def best(self) -> Recommendation:
        """The method to take: the best proper score among those that keep the promise.

        That is the Brier score for classes, and squared error for numbers. Of methods within one standard error of the
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
        title = f"{len(table)} methods, on people held out"
        return as_html(table, self.task, title, self.measured_on, best.reason, str(table["title"][best.name]))

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.showings)}; best: {self.best().name}>"


def compare(
    X: Any,
    y: Any,
    metric: Metric,
    methods: Any = "auto",
    cv: Any = 5,
    *,
    task: Literal["auto", "classification", "regression"] = "auto",
    output_range: tuple[float, float] | None = None,
    n_people: int = 1000,
    n_draws: int = 200,
    estimator: Any = None,
    smoothing: Mapping[str, Any] | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> Comparison:
    """Fit every method to a model on the same folds, and measure each on people held out.

    The methods, the simplest first: ``"constant"`` (the base rate or the mean: any promise allows it), ``"additive"``,
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
    methods : "auto" or list, default="auto"
        Names of methods, and pairs ``(name, estimator)`` for your own; one that enforces a metric gets this metric.
        The constant and boosting are always included.
    cv : int, cross-validation generator or iterable, default=5
        Folds; a number of them is shuffled, and stratified by class.
    task : {"auto", "classification", "regression"}, default="auto"
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
    >>> result = compare(X, np.arange(60) // 30, WeightedLp([0.8]), methods=["linear"], cv=3)
    >>> result.table["brier"].round(2).to_dict()
    {'constant': 0.25, 'linear': 0.04, 'boosting': 0.03}
    >>> result.table["violations"].to_dict()
    {'constant': 0, 'linear': 445, 'boosting': 298}
    >>> result.best().name
    'constant'
    """
    TRUTH.check("verbose", verbose)
    given = read_learning_task(X, y, metric, task, output_range, n_draws, random_state, estimator, smoothing)
    chosen = methods_for(given, methods)
    folds = make_folds(given, cv, n_people)
    showings = {}
    with progress_bar("Comparing", len(chosen) * len(folds), show=verbose) as advance:
        for method in chosen:
            showings[method.name] = show(method, given, folds, advance)
    estimators = {method.name: method.estimator for method in chosen if method.estimator is not None}
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
