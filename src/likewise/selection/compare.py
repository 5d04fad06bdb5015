"""Fit all methods on the same folds, and recommend one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from shutil import get_terminal_size
from textwrap import fill
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import clone

from likewise._frozen import Frozen
from likewise._html import grid, panel, words
from likewise._progress import show_line
from likewise._validation import BOOL, counted
from likewise.inspection.baselines import Task
from likewise.metrics.base import Metric
from likewise.selection.cross_validation import (
    SCORES,
    CVResult,
    Fold,
    FoldFits,
    Score,
    cross_validate_method,
    make_folds,
)
from likewise.selection.methods import (
    CONSTANT,
    UNCONSTRAINED,
    LearningProblem,
    Method,
    build_methods,
    check_problem,
)

_COUNTS = ["people", "violations", "pairs", "evaluations"]
_COLUMNS = ["people", "violations", "pairs", "guarantee", "level", "epsilon", "evaluations", "microseconds"]
_COLUMNS += ["fit_seconds", "note"]  # after the scores
_WIDTH = 120


def as_table(rows: dict[Any, dict[str, Any]], task: Task, index: str = "method") -> pd.DataFrame:
    """One row per entry of `rows`, with the same columns for every table."""
    scores = [column for score in SCORES[task] for column in (score.name, f"{score.name}_se")]
    table = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=["title", *scores, *_COLUMNS])
    table = table.astype({**dict.fromkeys(_COUNTS, "Int64"), "guarantee": bool})
    table[["level", "note"]] = table[["level", "note"]].fillna("")
    return table.rename_axis(index)


def as_text(table: pd.DataFrame, task: Task, measured_on: str, conclusion: str) -> str:
    """For a terminal: scores, guarantees with costs, notes, and the conclusion."""
    measured, width = table["evaluations"].notna(), min(_WIDTH, get_terminal_size((_WIDTH, 0)).columns)
    blocks = [
        block for cells in (_score_cells(table, task), _cost_cells(table)) for block in _aligned(cells[measured], width)
    ]
    notes = [
        fill(f"{row.title}: {str(row.note).rstrip('.')}.", width, subsequent_indent="  ")
        for row in table[table["note"] != ""].itertuples()
    ]
    blocks += ["\n".join(notes)] if notes else []
    return "\n\n".join([*blocks, fill(measured_on, width), fill(conclusion, width)])


def as_html(table: pd.DataFrame, task: Task, title: str, measured_on: str, conclusion: str, best: str = "") -> str:
    """For a notebook: one table, in which the row titled `best` is bold."""
    cells = pd.concat([_score_cells(table, task), _cost_cells(table).iloc[:, 1:], table[["note"]]], axis=1)
    last = cells.shape[1] - 1
    body = grid([str(name) for name in cells.columns], cells.to_numpy().tolist(), left=[0, last], strong=best)
    return panel(title, words(conclusion), body, words(measured_on, quiet=True))


def _aligned(cells: pd.DataFrame, width: int) -> list[str]:
    """Columns of text, the first aligned left and the others right; in several blocks if they are too wide for one."""
    first, *others = ([str(name), "-" * max(len(str(name)), *texts.str.len()), *texts] for name, texts in cells.items())
    blocks = [[first]]
    for column in others:
        taken = sum(len(each[1]) + 2 for each in blocks[-1])
        if taken + len(column[1]) > width and len(blocks[-1]) > 1:
            blocks.append([first])
        blocks[-1].append(column)
    for block in blocks:
        block[:] = [[text.rjust(len(each[1])) for text in each] for each in block]
        block[0] = [text.ljust(len(first[1])) for text in first]
    return ["\n".join(map("  ".join, zip(*block, strict=True))) for block in blocks]


def _score_cells(table: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Scores with their standard errors, as text; empty where nothing was measured."""
    cells = {str(table.index.name): table["title"].tolist()}
    for score in SCORES[task]:
        values = zip(table[score.name], table[f"{score.name}_se"], strict=True)
        cells[score.title] = [_score_cell(score, *pair) for pair in values]
    return pd.DataFrame(cells, index=table.index)


def _cost_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Guarantee, violations and costs, as text; empty where nothing was measured."""
    cells = {
        str(table.index.name): table["title"],
        "guarantee": table["level"],
        "epsilon": table["epsilon"].map(lambda epsilon: "" if np.isnan(epsilon) else f"{epsilon:.2g}"),
        "violations": table["violations"].map("{:,}".format),
        "pairs": table["pairs"].map("{:,}".format),
        "evaluations": table["evaluations"].map("{:,}".format),
        "µs per person": table["microseconds"].map(_amount),
        "fit seconds": table["fit_seconds"].map(_amount),
    }
    return pd.DataFrame(cells).where(table["evaluations"].notna(), "").assign(**{str(table.index.name): table["title"]})


def _amount(size: float) -> str:
    return f"{size:,.0f}" if size >= 100 else f"{size:.2g}"


def _score_cell(score: Score, value: float, error: float) -> str:
    """A score and its standard error, with the same decimals."""
    if np.isnan(value):
        return ""
    if score.percent:
        return f"{100 * value:.1f}% ± {100 * error:.1f}"
    digits = score.digits
    if digits is None:  # in units of the outcome: two digits of the error
        digits = int(np.clip(1 - np.floor(np.log10(error or 1.0)), 0, 6))
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The method that `Comparison.best` recommends.

    Attributes
    ----------
    name : str
    estimator : unfitted estimator
    reason : str
        Why this method.
    constant_is_as_good : bool
        Whether no method with a guarantee is better than a constant, which is then recommended.
    """

    name: str
    estimator: Any
    reason: str
    constant_is_as_good: bool

    def fit(self, X: Any, y: Any) -> Any:
        """Fit a clone of the estimator, and return it."""
        return clone(self.estimator).fit(X, y)

    def __str__(self) -> str:
        return self.reason


def recommend(
    results: dict[str, CVResult], estimators: dict[str, Any], folds: tuple[Fold, ...], task: Task
) -> Recommendation:
    """The first (simplest) method whose mean loss is within one standard error of the best."""
    kept = [name for name, result in results.items() if result.keeps_guarantee]
    score = SCORES[task][0]
    best = min(kept, key=lambda name: results[name].row[score.name])
    for chosen in kept:
        gap, error = difference(results[chosen], results[best], folds)
        if gap <= error or chosen == best:
            break

    title, which = score.title, results[chosen].row["title"]
    own, lowest, constant = (score.format(results[name].row[score.name]) for name in (chosen, best, CONSTANT))
    near, best_one = f"within one standard error ({error:.2g}) of", f"{lowest} ({results[best].row['title']})"
    if best == CONSTANT:
        reason = f"A constant is as good: no method with a guarantee beats its {title}, {constant}."
    elif chosen == CONSTANT:
        others = f"the best {title} of the methods with a guarantee, {best_one}"
        reason = f"A constant is as good: {others}, is {near} its {constant}."
    else:
        rank = "the lowest of the methods with a guarantee"
        rank = rank if chosen == best else f"{near} {rank}, {best_one}, which is less simple"
        reason = f"Best: {which}. Its {title}, {own}, is {rank}. A constant has {constant}."
    return Recommendation(chosen, estimators[chosen], reason, chosen == CONSTANT)


def difference(first: CVResult, second: CVResult, folds: tuple[Fold, ...]) -> tuple[float, float]:
    """Mean difference of losses over people on whom both were measured, and its standard error.

    The difference is taken within each fold, so that folds that are hard for both do not widen the error.
    """
    gap = first.losses - second.losses
    means = np.array([np.nanmean(gap[fold.test]) for fold in folds])
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))


def beats_constant(free: CVResult, constant: CVResult) -> bool:
    """Whether the unconstrained model is better than a constant on held-out people, by two standard errors.

    If it is not, a guarantee has nothing to lose on these people, and what it costs cannot be seen. The folds are too
    few to tell; given the models, the people are independent.
    """
    gain = constant.losses - free.losses
    gain = gain[~np.isnan(gain)]
    return bool(gain.mean() > 2 * gain.std() / np.sqrt(len(gain)))


def cost_of(method: CVResult, results: Mapping[str, CVResult], folds: tuple[Fold, ...], task: Task) -> str:
    """What a method costs against the unconstrained model, in a sentence, if there is something to lose."""
    score, constant, free = SCORES[task][0], results[CONSTANT], results[UNCONSTRAINED]
    of_free, of_constant = (score.format(result.row[score.name]) for result in (free, constant))
    if not beats_constant(free, constant):
        return (
            f"What the guarantee costs cannot be seen on these people: the unconstrained model ({score.title} "
            f"{of_free}) is not measurably better than a constant ({of_constant})."
        )
    gap, error = difference(method, free, folds)
    digits = int(np.clip(1 - np.floor(np.log10(error)), 0, 6)) if error > 0 else 6
    small = "" if gap > 2 * error else ", too little to be told from chance"
    return (
        f"Cost of the guarantee: {gap:+,.{digits}f} ± {error:,.{digits}f} of {score.title} against the unconstrained "
        f"model ({of_free}; a constant has {of_constant}){small}."
    )


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Frozen):
    """Result of `compare`.

    Attributes
    ----------
    results : dict from method to CVResult
        In the order of simplicity.
    estimators : dict from method to unfitted estimator
        Of the methods that apply.
    folds : tuple of Fold
        The same for every method.
    task : {"classification", "regression"}
    metric : Metric
    caveat : str
        What costs cannot tell, as nobody has said whether the metric was made from these people.
    """

    results: dict[str, CVResult]
    estimators: dict[str, Any]
    folds: tuple[Fold, ...]
    task: Task
    metric: Metric
    caveat: str = ""

    @property
    def table(self) -> pd.DataFrame:
        """One row per method.

        Scores are means over the folds, on held-out people, each with its standard error in a column that ends in
        ``_se``. For a classification ``brier``, ``auc``, ``accuracy``, ``log_loss`` and ``confidence`` (mean
        probability of the true class); for a regression ``squared_error``, ``r2`` and ``rmse``.
        Then ``people`` (measured), ``violations`` (pairs whose outputs differ by more than ``D + epsilon``) among
        ``pairs`` searched, ``guarantee`` (whether there is one), ``level`` and ``epsilon``, ``evaluations`` and
        ``microseconds`` per person, ``fit_seconds`` per fold, and a ``note``.
        """
        return as_table({name: result.row for name, result in self.results.items()}, self.task)

    def best(self) -> Recommendation:
        """The method with the best proper score among those that keep their guarantee.

        The score is the Brier score for a classification, and squared error for a regression. Of methods within one
        standard error of the best, the simplest is taken: a constant, then an additive model, a network, projection,
        smoothing, and your own. So nothing is recommended that is not better than a constant. The standard error is
        that of the difference between the two, fold by fold.
        """
        return recommend(self.results, self.estimators, self.folds, self.task)

    @property
    def cost(self) -> str:
        """What the guarantee of the best method costs against the unconstrained model, in a sentence.

        It is understated if the metric was made from the people held out, which only `made_by` rules out here.
        """
        return cost_of(self.results[self.best().name], self.results, self.folds, self.task)

    @property
    def measured_on(self) -> str:
        """How many people were measured."""
        return measured_on(self.folds)

    def __str__(self) -> str:
        return as_text(self.table, self.task, self.measured_on, self._conclusion)

    def _repr_html_(self) -> str:
        table = self.table
        title, best = f"{len(table)} methods on held-out people", str(table["title"][self.best().name])
        return as_html(table, self.task, title, self.measured_on, self._conclusion, best)

    @property
    def _conclusion(self) -> str:
        return f"{self.best().reason} {self.cost} {self.caveat}".rstrip()

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(self.results)}; best: {self.best().name}>"


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
    made_by: Callable[[Any, Any], Metric] | None = None,
    random_state: int = 0,
    verbose: bool = False,
) -> Comparison:
    """Fit all methods on the same folds, and measure each on held-out people.

    The methods, the simplest first: ``"constant"`` (the base rate or the mean, which every metric allows),
    ``"additive"``, ``"network"`` (1-Lipschitz, if PyTorch is installed), ``"projection"``, ``"smoothing"`` and
    ``"augmented"`` (smoothing of a model trained on noisy copies), all within `metric`. Last, without a guarantee, the
    ``"unconstrained"`` model: the better of logistic (or linear) regression and boosting, chosen within the people it
    is trained on, which reads all columns but the protected ones. Boosting of all columns is what is projected and
    smoothed unless an `estimator` is given.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        For a metric of tables a table with the metric's columns.
    y : array-like of shape (n_samples,)
    metric : Metric
    methods : "auto" or list, default="auto"
        Names of methods, and pairs ``(name, estimator)`` for your own; an estimator that enforces a metric gets this
        one. The constant and the unconstrained model are always included.
    cv : int, cross-validation generator or iterable, default=5
        Folds; an integer is shuffled, and stratified by class.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is a regression if `y` has fractional values, or more than 20 distinct numbers.
    output_range : tuple of float, optional
        For a regression: the range in units of which the guarantee is stated. None takes the range of `y`.
    n_people : int, default=1000
        Held-out people per fold whose pairs are searched, and on whom smoothing is measured: an even sample.
    n_draws : int, default=200
        Budget of smoothing: evaluations per person of its model, for `n_people` of each fold. More lower epsilon.
    estimator : classifier or regressor, optional
        What is projected and smoothed: unfitted, or fitted in a `FrozenEstimator`. None is gradient boosting.
    smoothing : dict, optional
        Parameters of the smoothed models: ``noise``, ``vote``, ``epsilon``, ``delta``, ``n_draws`` and, for
        ``"augmented"``, ``augment``. Parameters that cannot be satisfied raise an error.
    made_by : callable, optional
        From people and outcomes to a metric: how `metric` was made. It is made again from those who are trained on in
        each fold, so that costs are those of the whole procedure, as for ``made_by=lambda X, y: design_metric(X,
        y).best().metric``. Without it, the costs of a metric that was made from these people are understated: neither
        a metric nor its models say from whom it was made.
    random_state : int, default=0
        Seeds folds and models.
    verbose : bool, default=False
        Show a progress bar, and each method's score as it is measured, the quick ones first, with what is left.

    Returns
    -------
    Comparison

    Notes
    -----
    Scores describe people like those held out. Finding no violation does not prove a guarantee; the proof is that of
    the method. Standard errors over folds are somewhat too small, since training sets overlap.

    Columns are protected if the metric's ``zero_reasons`` say so, or give no reason for the weight 0, which people have
    set then. Columns that are not used, not forced or not judged are not protected: that the metric does not let them
    matter is part of what it costs.

    No model is fitted twice to the same people: projection takes the card of a fold, and shares its boosting with
    smoothing. ``fit_seconds`` count these for both.

    Examples
    --------
    >>> import numpy as np
    >>> from likewise import WeightedLp
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> result = compare(X, np.arange(60) // 30, WeightedLp([0.8]), methods=["constant"], cv=3)
    >>> result.table["brier"].round(2).to_dict()
    {'constant': 0.25, 'unconstrained': 0.04}
    >>> result.table["violations"].to_dict()
    {'constant': 0, 'unconstrained': 445}
    >>> result.best().name
    'constant'
    """
    BOOL.check("verbose", verbose)
    problem = check_problem(X, y, metric, task, output_range, n_draws, random_state, estimator, smoothing)
    chosen = build_methods(problem, methods)
    folds = make_folds(problem, cv, n_people, made_by, verbose=verbose)
    ordered = sorted(chosen, key=_slowness)
    measured = measure_all([(method, problem, method.title) for method in ordered], folds, verbose)
    found = {method.name: result for method, result in zip(ordered, measured, strict=True)}
    results = {method.name: found[method.name] for method in chosen}
    estimators = {method.name: method.estimator for method in chosen if method.estimator is not None}
    return Comparison(results, estimators, folds, problem.task, problem.metric, caveat_of(folds))


_SLOWEST_LAST = {"projection": 1, "network": 2, "smoothing": 3, "augmented": 4}


def _slowness(method: Method) -> int:
    # Models that others fit inside come before these, which take them over.
    return _SLOWEST_LAST.get(method.name, 3 if method.is_slow else 0)


def measure_all(
    jobs: Sequence[tuple[Method, LearningProblem, str]], folds: tuple[Fold, ...], verbose: bool
) -> list[CVResult]:
    """Measure methods, each on its problem and under a title; if `verbose`, say each score as it comes."""
    results, fits = list[CVResult](), None
    for i, (method, problem, title) in enumerate(jobs, start=1):
        fits = FoldFits(problem, folds) if fits is None else fits  # the people are the same in all
        bar = f"Fitting {title} on {len(folds)} folds" if verbose else ""
        results.append(cross_validate_method(method, problem, fits, title=bar))
        left = f"{len(jobs) - i} left, next: {jobs[i][2]}" if i < len(jobs) else "the last"
        show_line(f"{title}: {_in_short(results[-1].row, SCORES[problem.task][0])} ({left})", show=verbose)
    return results


def _in_short(row: dict[str, Any], score: Score) -> str:
    """A method's score and violations, or why it was left out."""
    if score.name not in row:
        return str(row["note"])
    cell = _score_cell(score, row[score.name], row[f"{score.name}_se"])
    return f"{score.title} {cell}, {counted(row['violations'], 'violation')}"


def caveat_of(folds: tuple[Fold, ...]) -> str:
    """What cannot be known of the costs of a metric that is the same in all folds."""
    if folds[0].metric is not None:
        return ""
    return (
        "If the metric was made from these people, its cost is understated here; with made_by, it is made again in "
        "each fold."
    )


def measured_on(folds: tuple[Fold, ...]) -> str:
    """How many people were measured."""
    sizes = [len(fold.test) for fold in folds]
    searched = [len(fold.sample) for fold in folds]
    people = "these people" if searched == sizes else f"an even sample of {_range(searched)} of them"
    made = "" if folds[0].metric is None else " In each fold the metric was made again, from the other people alone."
    return (
        f"Scores are means over {len(folds)} folds with their standard errors, on {_range(sizes)} held-out people per "
        f"fold.{made} All pairs of {people} were searched."
    )


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
