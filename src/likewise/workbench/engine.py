"""What a metric does to a model and to pairs of people, fast enough to look at while weights move."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._favourable import column_of
from likewise._parallel import threads_for
from likewise._subsample import evenly_spaced
from likewise._typing import FloatArray, IntArray
from likewise.additive.estimators import AdditiveClassifier, AdditiveRegressor
from likewise.ask import answers
from likewise.design.frontier import design_metric
from likewise.design.joint import Costs
from likewise.exceptions import InvalidInputError, LikewiseError
from likewise.inspection.baselines import Task, categorical_columns, table_model
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People, TableEncoder
from likewise.metrics.table import TableMetric
from likewise.metrics.units import Unit
from likewise.pairs.model_outputs import as_shares
from likewise.pairs.points import row_hashes
from likewise.report.charts import shapes
from likewise.report.pairs import scan_pairs
from likewise.reveal.linear import least_missing_weight
from likewise.scorecard.display import panels_of
from likewise.selection.cross_validation import align_classes
from likewise.workbench.figures import figures, shown_scores
from likewise.workbench.state import Sheet, Weights

MAX_PEOPLE = 30_000
N_FOLDS = 5
_MAX_DESIGNED = 10_000
_MAX_AT_ONCE = 60  # columns whose penalties are chosen at once
_MAX_KNOTS, _ALL_KNOTS = 32, 900  # of live fits, per column and in all; `likewise enforce` fits exported models
_MAX_PAIRED = 700  # people, all pairs of whom are compared
_FIRST_SHAPES = 6
SEEN = "The weights are chosen while these people are looked at, so what they cost is understated here."
GUARANTEED, CONSTANT = "within these weights", "a constant"
LINEAR, BOOSTING = "linear model, no guarantee", "boosting, no guarantee"


@dataclass(frozen=True, eq=False)
class Problem:
    """People with known outcomes.

    Attributes
    ----------
    X : DataFrame
        Its index names the people.
    y : ndarray
    task : {"classification", "regression"}
    table, target : str
        Names, to be shown.
    output_range : tuple of float, or None
        For a regression.
    units : dict from column to unit
    scores : ndarray of shape (n_samples,) or (n_samples, n_classes), or None
        Of a model in use, whose violations are shown; one score is the probability of `outcome`.
    scores_title : str
    outcome : label of a class, or None
        Whose probability is shown; None takes the one with a known favourable word, or the last.
    """

    X: pd.DataFrame
    y: npt.NDArray[Any]
    task: Task
    table: str
    target: str
    output_range: tuple[float, float] | None = None
    units: dict[str, str] = field(default_factory=dict)
    scores: FloatArray | None = None
    scores_title: str = ""
    outcome: Any = None

    @property
    def fingerprint(self) -> str:
        """A hash of the table, its target and its columns."""
        found = hashlib.sha256(repr([self.target, self.task, list(map(str, self.X.columns))]).encode())
        for part in (self.X, pd.Series(self.y).astype(str)):
            found.update(pd.util.hash_pandas_object(part, index=False).to_numpy().tobytes())
        return found.hexdigest()[:32]

    def take(self, rows: IntArray) -> Problem:
        """The problem of some of the people."""
        scores = None if self.scores is None else self.scores[rows]
        return replace(self, X=self.X.iloc[rows], y=self.y[rows], scores=scores)


@dataclass(frozen=True, eq=False)
class Reference:
    """A model without a guarantee: its predictions for people held out, and the model fitted to everybody.

    Pairs are compared by the outputs of the latter: held out, two people may be scored by two different models.
    """

    predictions: FloatArray
    model: Any = None
    outputs: FloatArray | None = None


class Engine:
    """Live measurements of a table of people.

    Parameters
    ----------
    problem : Problem
        Of more than 30,000 people an even sample is measured.
    """

    def __init__(self, problem: Problem) -> None:
        self.n_table = len(problem.X)
        whole = problem.X
        self.blanks = [str(n) for n in whole.columns if n not in categorical_columns(whole) and whole[n].isna().any()]
        self.problem = problem.take(evenly_spaced(len(whole), MAX_PEOPLE)) if len(whole) > MAX_PEOPLE else problem
        X = self.X = self.problem.X
        if X.index.has_duplicates:
            raise InvalidInputError("The id column must name each person once; it has duplicates. Leave --id out.")
        self.categorical = categorical_columns(X)
        numeric = [name for name in X.columns if name not in self.categorical]
        self.encoder = TableEncoder.learn(X, numeric, self.categorical)
        self.people = People.read(X, self.encoder)
        self.names: list[str] = list(self.encoder.names)
        self.classes = np.unique(problem.y) if problem.task == "classification" else None
        self.costs = Costs.of(self.people.rows, np.full(len(X), 1 / len(X)), self.encoder.is_number)
        self.folds = (row_hashes(tuple(self.people.rows.T)) % np.uint64(N_FOLDS)).astype(np.int64)
        self.usable_folds = [k for k in range(N_FOLDS) if self._is_usable(k)]
        self.paired = evenly_spaced(len(X), _MAX_PAIRED)  # people whose pairs are compared
        self.labels = {str(label): position for position, label in enumerate(X.index)}
        self.max_knots = max(3, min(_MAX_KNOTS, _ALL_KNOTS // X.shape[1]))
        self._penalties: dict[Any, float] = {}
        self._references: dict[tuple[str, ...], dict[str, Reference]] = {}
        self._lock = threading.Lock()

    def _is_usable(self, fold: int) -> bool:
        kept = self.folds != fold
        if kept.all() or not kept.any():
            return False
        return self.classes is None or len(np.unique(self.problem.y[kept])) == len(self.classes)

    @property
    def is_sample(self) -> bool:
        """Whether only some people of the table are measured."""
        return len(self.X) < self.n_table

    @property
    def favourable(self) -> Any:
        """The class whose probability is shown; None for a regression."""
        if self.classes is None:
            return None
        return self.classes[column_of(self.problem.outcome, self.classes)]

    @property
    def fitted(self) -> str:
        """Title of the model without a guarantee by which pairs are compared; it has seen them."""
        return f"boosting fitted to these {len(self.X):,} people, no guarantee"

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest number of each numeric column."""
        found = {}
        for i in np.flatnonzero(self.encoder.is_number).tolist():
            there = self.people.rows[~np.isnan(self.people.rows[:, i]), i]
            found[self.names[i]] = (float(there.min()), float(there.max())) if len(there) else (0.0, 0.0)
        return found

    def empty_sheet(self, locked: Sequence[str] = ()) -> Sheet:
        """All columns at 0."""
        numbers = dict(zip(self.names, self.encoder.is_number, strict=True))
        weights: Weights = {
            "numeric": {name: 0.0 for name, number in numbers.items() if number},
            "categorical": {name: 0.0 for name, number in numbers.items() if not number},
            "missing": dict.fromkeys(self.blanks, 0.0),
        }
        for name in locked:
            if name not in numbers:
                raise InvalidInputError(f"--protected must name columns of the table; there is no {name!r}.")
        units = {name: unit for name, unit in self.problem.units.items() if name in numbers and unit != "category"}
        return Sheet(weights, units, tuple(locked))

    def columns(self, sheet: Sheet) -> list[dict[str, Any]]:
        """What the page needs of each column, in the order of the table."""
        weights, found = sheet.weights, []
        for i, name in enumerate(self.names):
            number = bool(self.encoder.is_number[i])
            unit = Unit.of(sheet.units.get(name, ""))
            levels = [] if number else [str(level) for level in self.encoder.columns[i].levels]  # type: ignore[union-attr]
            found.append(
                {
                    "name": name,
                    "kind": "numeric" if number else "categorical",
                    "weight": weights["numeric" if number else "categorical"][name],
                    "missing": weights["missing"].get(name),
                    "capped_at": self._capped_at(sheet, name),
                    "locked": name in sheet.locked,
                    "unit": sheet.units.get(name, ""),
                    "factor": unit.factor,
                    "prefix": unit.prefix,
                    "suffix": unit.after(one=False),
                    "one": unit.one,
                    "typical": float(self.costs.weights[i]) if number else 1.0,
                    "range": list(self.ranges[name]) if number else None,
                    "levels": levels[:200],
                    "n_levels": len(levels),
                }
            )
        return found

    def _capped_at(self, sheet: Sheet, name: str) -> float | None:
        """Most that a number can make, if its blank allows less than its weight: twice the weight of the blank."""
        weight, missing = sheet.weights["numeric"].get(name), sheet.weights["missing"].get(name)
        if not weight or missing is None or missing >= least_missing_weight(weight, *self.ranges[name]):
            return None
        return 2 * missing

    def row_of(self, label: Any) -> int:
        """Row of a person who is named."""
        if str(label) not in self.labels:
            raise InvalidInputError(f"There is no person {str(label)[:80]!r} in the table.")
        return self.labels[str(label)]

    # -- models ---------------------------------------------------------------------------------------------------

    def estimator(self, metric: TableMetric, penalty: Any) -> Any:
        """An unfitted card within a metric, for live figures."""
        if self.classes is not None:
            return AdditiveClassifier(metric, penalty=penalty, max_knots=self.max_knots)
        return AdditiveRegressor(
            metric, penalty=penalty, max_knots=self.max_knots, output_range=self.problem.output_range
        )

    def penalties(self, matters: Sequence[str]) -> dict[Any, float]:
        """Roughness penalties of columns, chosen once: they do not depend on weights.

        Of all columns at once, so that later changes are fast; of very many only those that matter.
        """
        with self._lock:
            if not set(matters) <= set(self._penalties):
                chosen = set(self.names) if len(self.names) <= _MAX_AT_ONCE else {*matters, *self._penalties}
                spans = {name: (high - low) or 1.0 for name, (low, high) in self.ranges.items()}
                loose = TableMetric(
                    {name: 1.0 / span if name in chosen else 0.0 for name, span in spans.items()},
                    {name: float(name in chosen) for name in self.categorical},
                    missing=dict.fromkeys(self.blanks, 1.0),
                )
                found = dict(self.estimator(loose, "auto").fit(self.X, self.problem.y).penalty_)
                self._penalties = {name: found.get(name, max(found.values())) for name in chosen}
            return self._penalties

    def bound(self, sheet: Sheet) -> BoundMetric:
        """The metric of a sheet, for the columns of the table."""
        bound = sheet.metric.bind(self.encoder)
        bound.refuse_special("the workbench")
        return bound

    def fit(self, metric: BoundMetric, rows: Any = None) -> Any:
        """A card within the metric; None if no column matters."""
        matters = [self.names[i] for i in np.flatnonzero(metric.matters)]
        if not matters:
            return None
        X, y = self.X, self.problem.y
        card = self.estimator(metric.description, self.penalties(matters))
        return card.fit(X, y) if rows is None else card.fit(X[rows], y[rows])

    def outputs(self, model: Any, people: pd.DataFrame) -> FloatArray:
        """Probabilities of all classes, or predictions."""
        if self.classes is None:
            return answers(model, people, "predict").astype(np.float64)
        return align_classes(answers(model, people, "predict_proba"), model.classes_, self.classes)

    def shares(self, outputs: FloatArray) -> FloatArray:
        """Outputs as they are compared: probabilities, or predictions as shares of the range, to which they are cut."""
        if self.classes is not None:
            return outputs
        return np.clip(as_shares(outputs[:, None], self.problem.output_range), 0.0, 1.0)

    def constant(self, kept: Any, n: int) -> FloatArray:
        """The best constant of some people, for `n` others."""
        y = self.problem.y[kept]
        if self.classes is None:
            return np.full(n, float(y.mean()))
        return np.tile((y[:, None] == self.classes).mean(axis=0), (n, 1))

    def _blank_predictions(self) -> FloatArray:
        n = len(self.X)
        return np.full(n if self.classes is None else (n, len(self.classes)), np.nan)

    def references(self, locked: Sequence[str]) -> dict[str, Reference]:
        """A constant and models without a guarantee that do not see the locked columns; measured once."""
        key = tuple(sorted(locked))
        if key in self._references:
            return self._references[key]
        shown = self.X[[name for name in self.X.columns if name not in locked]]
        y, task = self.problem.y, self.problem.task
        found = {CONSTANT: Reference(self._blank_predictions())}
        for fold in self.usable_folds:
            out = self.folds == fold
            found[CONSTANT].predictions[out] = self.constant(~out, int(out.sum()))
        kinds = {LINEAR: "logistic" if task == "classification" else "linear", BOOSTING: "boosting"}
        for title, kind in kinds.items() if shown.shape[1] else ():
            predictions = self._blank_predictions()
            with threads_for(shown.size):
                for fold in self.usable_folds:
                    out = self.folds == fold
                    model = table_model(shown, kind, task).fit(shown[~out], y[~out])
                    predictions[out] = self.outputs(model, shown[out])
                model = table_model(shown, kind, task).fit(shown, y)
                found[title] = Reference(predictions, model, self.outputs(model, shown))
        self._references[key] = found
        return found

    def known_references(self, locked: Sequence[str]) -> dict[str, Reference]:
        """The references measured so far."""
        return self._references.get(tuple(sorted(locked)), {})

    # -- what a metric does ---------------------------------------------------------------------------------------

    def evaluate(
        self,
        sheet: Sheet,
        emit: Callable[[dict[str, Any]], object],
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Measure a metric, and hand over what is known: first by one model of four fifths of the people, then by all.

        Parameters
        ----------
        sheet : Sheet
        emit : callable
            Is given the results so far, and then the final ones.
        is_wanted : callable
            Asked between fits whether to go on.
        """
        metric, predictions = self.bound(sheet), self._blank_predictions()
        pairs = self._of_pairs(sheet, metric)
        for count, fold in enumerate(self.usable_folds):
            out = self.folds == fold
            card = self.fit(metric, ~out)
            predictions[out] = self.constant(~out, int(out.sum())) if card is None else self.outputs(card, self.X[out])
            if count == 0:
                figures = self._figures(sheet, predictions)
                emit({**pairs, **self._of_model(card, sheet), "figures": figures, "prices": None, "done": False})
            if not is_wanted():
                return
        card, prices = self.fit(metric), {}
        if card is not None:
            table = card.prices(self.X, self.problem.y, cv=None)
            prices = dict(zip(table["column"].map(str), table["gain if 10% looser"].map(float), strict=True))
        found = self._figures(sheet, predictions) if self.usable_folds else None
        emit({**pairs, **self._of_model(card, sheet), "figures": found, "prices": prices, "done": True})

    def _of_model(self, model: Any, sheet: Sheet) -> dict[str, Any]:
        """Shapes and guarantee of a card."""
        if model is None:
            return {"constant": True, "shapes": None, "guarantee": "", "model": None}
        drawn = shapes(panels_of(model, self.favourable), sheet.units, _FIRST_SHAPES)
        guarantee = model.guarantee_.statement.splitlines()[0]
        return {"constant": False, "shapes": drawn, "guarantee": guarantee, "model": model}

    def _figures(self, sheet: Sheet, predictions: FloatArray) -> dict[str, Any]:
        """Figures of the card and of the references, on the same people."""
        measured = ~np.isnan(predictions.reshape(len(self.X), -1)[:, 0])
        references = self.known_references(sheet.locked)
        titled = {GUARANTEED: predictions} | {title: each.predictions for title, each in references.items()}
        today = self.scores_of_today(sheet)
        if self.problem.scores is not None and today is not None:
            titled[today[0]] = today[1]
        y, folds = self.problem.y[measured], self.folds[measured]
        rows = [
            {
                "title": title,
                "guarantee": title in (GUARANTEED, CONSTANT),
                **figures(each[measured], y, self.classes, folds),
            }
            for title, each in titled.items()
        ]
        return {
            "titles": [score.title for score in shown_scores(self.classes)],
            "rows": rows,
            "n": int(measured.sum()),
            "of": len(measured),
            "pending": not references,
            "caveat": SEEN,
        }

    def scores_of_today(self, sheet: Sheet) -> tuple[str, FloatArray] | None:
        """Title and outputs of the model whose violations are shown: the given one, or boosting fitted to all."""
        problem = self.problem
        if problem.scores is not None:
            given = problem.scores
            if self.classes is not None and given.ndim == 1:
                last = self.favourable == self.classes[-1]
                given = np.column_stack([1 - given, given] if last else [given, 1 - given])
            return problem.scores_title, given
        known = self.known_references(sheet.locked).get(BOOSTING)
        return None if known is None or known.outputs is None else (self.fitted, known.outputs)

    def _of_pairs(self, sheet: Sheet, metric: BoundMetric) -> dict[str, Any]:
        """Mean distance, share of pairs that are bound, and pairs that a model without a guarantee violates."""
        found: dict[str, Any] = {"mean_distance": self.costs.mean_distance(metric), "bound_share": None, "today": None}
        if len(self.paired) < 2:
            return found
        today = self.scores_of_today(sheet)
        outputs = self.constant(slice(None), len(self.X)) if today is None else today[1]
        shares = self.shares(outputs)[self.paired]
        scan = scan_pairs(self.people.rows[self.paired], metric, {"today": shares}, 0.0)
        found["bound_share"] = scan.n_bound / scan.n_pairs
        if today is not None:
            names = [str(self.X.index[row]) for row in self.paired]
            worst = [
                {"a": names[a], "b": names[b], "gap": gap, "distance": distance}
                for a, b, gap, distance in scan.worst["today"].astype(object).to_numpy().tolist()
            ]
            n_above = scan.n_above["today"]
            found["today"] = {"title": today[0], "violations": n_above, "n_pairs": scan.n_pairs, "worst": worst}
        return found

    # -- metrics to start from ------------------------------------------------------------------------------------

    def design(self, locked: Sequence[str]) -> dict[str, Any]:
        """The frontier: metrics from strict to loose, each with its loss on people held out."""
        chosen = evenly_spaced(len(self.X), _MAX_DESIGNED)
        try:
            frontier = design_metric(
                self.X.iloc[chosen],
                self.problem.y[chosen],
                protected=list(locked),
                output_range=self.problem.output_range,
                categorical=self.categorical,
                task=self.problem.task,
                n_points=7,
                references=False,
            )
            best = frontier.best()
        except LikewiseError as error:
            raise InvalidInputError(f"No metric could be designed: {error}") from None
        points = [
            {
                "mean_distance": point.mean_distance,
                "loss": point.loss,
                "loss_se": point.standard_error,
                "best": point is best,
                "set": self.weights_from(cast(TableMetric, point.metric).without_negligible(self.X).rounded()),
            }
            for point in sorted({*frontier.points, best}, key=lambda point: point.mean_distance)
        ]
        return {
            "points": points,
            "locked": list(locked),
            "loss_name": frontier.loss_name,
            "n_people": len(chosen),
            "n_folds": frontier.n_folds,
        }

    def weights_from(self, metric: Any) -> Weights:
        """Weights of a metric, for the columns of the table; 0 for those that it does not have."""
        if metric.p != 1:
            raise InvalidInputError(f"The workbench needs a metric with p = 1; this one has p = {metric.p:g}.")
        start = self.empty_sheet().weights
        given = metric.get_params(deep=False)
        if "weights" in given:  # an array: all columns are numbers
            return {**start, "numeric": dict(zip(metric.columns, metric.weights.tolist(), strict=True))}
        missing = {} if isinstance(given["missing"], str) else given["missing"]
        found = {}
        for section, part in (("numeric", metric.numeric), ("categorical", metric.categorical), ("missing", missing)):
            found[section] = {name: float(part.get(name, 0.0)) for name in start[section]}
        for name, weight in found["numeric"].items():
            if weight and name in found["missing"] and name not in missing:
                found["missing"][name] = 1.0
        return found
