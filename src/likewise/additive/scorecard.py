"""Reading a scorecard: its table, the points of single people, reasons in words, and exports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone

from likewise._fit_validation import check_fitted, check_sample_weight
from likewise._links import LINKS
from likewise._typing import FloatArray
from likewise._validation import check_count, checking, in_a_line
from likewise._writing import atomic_write, write_csv
from likewise.additive.scorer import AdditiveScorer, card_of, level_names
from likewise.additive.sql import expression
from likewise.exceptions import InvalidInputError
from likewise.metrics.columns import UNSEEN
from likewise.metrics.encoders import People
from likewise.metrics.units import Unit


def reasons_of(
    scorer: AdditiveScorer, people: People, outcomes: Sequence[Any], chosen: int | None, n: int, index: Any
) -> pd.DataFrame:
    """The columns with the most points for an outcome, against 0, the average person's, in words.

    Parameters
    ----------
    scorer : AdditiveScorer
    people : People
    outcomes : sequence
        What can be explained: the classes; or two words for less and more than the average person.
    chosen : int or None
        Position of the outcome to explain; None takes, for each person, the one with the largest gain.
    n : int
        Reasons per person, at most.
    index : index of the result
    """
    n = check_count("n", n)
    points = scorer.points(people)  # of each person, column and function
    if points.shape[2] == 1:
        points = np.concatenate([-points, points], axis=2)
    if chosen is None:
        # Beside the average person's, the log of a probability grows by the sum of points and a term that all outcomes
        # share. The last of equals.
        gains = points.sum(axis=1)
        which = gains.shape[1] - 1 - np.argmax(gains[:, ::-1], axis=1)
    else:
        which = np.full(len(people), chosen)
    speaks = np.take_along_axis(points, which[:, None, None], axis=2)[:, :, 0]
    order = np.argsort(-speaks, axis=1, kind="stable")[:, :n]
    units, numeric = getattr(scorer.guarantee.metric, "units", {}), scorer.guarantee.output_range is not None
    rows = []
    for person, columns in enumerate(order):
        outcome, words = outcomes[which[person]], []
        for j in columns[speaks[person, columns] > 0]:
            column, size = scorer.model.shapes[j].column, speaks[person, j]
            what = _value(people, person, column, units)
            # A prediction that is lower is lower by a negative number.
            size = f"{size if which[person] else -size:+.2f}" if numeric else f"{size:+.2f} {_of(scorer, outcome)}"
            words.append(f"{people.encoder.names[column]} is {what}: {size} against the average person")
        rows.append([outcome, *words, *[""] * (n - len(words))])
    return pd.DataFrame(rows, columns=["outcome", *(f"reason {k}" for k in range(1, n + 1))], index=index)


def _of(scorer: AdditiveScorer, outcome: Any) -> str:
    return f"{LINKS[scorer.link].score} of {outcome!r}"


def _value(people: People, person: int, column: int, units: Any) -> str:
    value, levels = people.rows[person, column], level_names(people.encoder, column)
    if np.isnan(value):
        return "not known"
    if levels is None:
        unit = units.get(people.encoder.names[column], "")
        return Unit.of("" if unit == "category" else unit).written(value)
    level = levels[int(value)] if value != UNSEEN else "of a kind that the model has not seen"
    return "not known" if level is None else str(level)


class ScorecardMixin:
    """What additive models can say about themselves.

    Where there are two classes, points count for the outcome that is asked about, ``classes_[1]`` if none is, and
    those for the other are their negatives. With more, they are the logit of the outcome. For regression they are in
    units of the output.
    """

    scorer_: AdditiveScorer
    encoder_: Any
    guarantee_: Any

    def scorecard(self, outcome: Any = None) -> pd.DataFrame:
        """The model as a table.

        Parameters
        ----------
        outcome : label of a class, optional
            Whose points; ``classes_[-1]`` if not given.

        Returns
        -------
        DataFrame
            ``column``; ``range`` of numbers, or the category; ``points`` at the start of the range and ``points at
            end``; ``allowed``, the largest change of points that the metric allows over this range, between two
            categories, or from a missing number to any other; and ``binds``, whether the model uses it up: there the
            metric holds it back. Where a ``missing`` number binds, its weight holds the whole column back. Outside
            the ranges points stay what they are at the ends.
        """
        return card_of(self._scorer(), self.encoder_, self._signs(outcome))

    def explain(self, X: Any, outcome: Any = None) -> pd.DataFrame:
        """Points per person and column; a row adds up to the person's score, exactly and in any order.

        Exactly: points are multiples of a power of two, chosen so that no sum of them is rounded. The outputs of the
        model are computed from these sums.

        Returns
        -------
        DataFrame
            One row per person: ``intercept``, one column per column that matters, and the sum. For classes this is the
            log-odds of the outcome (the logit, where there are several), for regression the prediction before it is cut
            to the output range.
        """
        people, scorer, signs = self._people(X), self._scorer(), self._signs(outcome)  # type: ignore[attr-defined]
        names = [self.encoder_.names[shape.column] for shape in scorer.model.shapes]
        table = pd.DataFrame(scorer.points(people) @ signs, columns=names, index=_index(people))
        table.insert(0, "intercept", scorer.model.intercepts @ signs, allow_duplicates=True)
        total = "prediction" if scorer.guarantee.output_range else LINKS[scorer.link].score
        table.insert(table.shape[1], total, scorer.scores(people) @ signs, allow_duplicates=True)
        return table

    def reasons(self, X: Any, n: int = 4, outcome: Any = None) -> pd.DataFrame:
        """What speaks most for each person's outcome, in words, as notices of adverse action need.

        The reference is the average person: points are centred, so that each column's mean over the people the model
        has learned from is 0. Columns that raise the outcome are named in the order of how much they do.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        n : int, default=4
            Reasons per person, at most.
        outcome : label of a class, optional
            What is explained; for regression "higher" or "lower" than the average person. None explains, for each
            person, the outcome that is more likely than for the average person; where there are several, the one whose
            probability is the largest multiple of the average person's.

        Returns
        -------
        DataFrame
            One row per person: ``outcome``, what is explained; and ``reason 1`` to ``reason n``, with empty text where
            fewer columns raise it.

        Examples
        --------
        >>> from likewise import AdditiveClassifier, WeightedLp
        >>> people = pd.DataFrame({"debt": [1, 2, 3, 4]})
        >>> model = AdditiveClassifier(WeightedLp({"debt": 0.1}), penalty=0.01).fit(people, list("ynyn"))
        >>> model.reasons(people.head(1), n=1).iloc[0].tolist()
        ['y', "debt is 1: +0.25 log-odds of 'y' against the average person"]
        >>> model.reasons(people.head(1), n=1, outcome="n").iloc[0].tolist()
        ['n', '']
        """
        people, scorer = self._people(X), self._scorer()  # type: ignore[attr-defined]
        outcomes: list[Any] = ["lower", "higher"] if scorer.guarantee.output_range else self._labels()
        if outcome is not None and scorer.guarantee.output_range and not _among(outcome, outcomes):
            raise InvalidInputError(
                f"outcome must be 'higher', 'lower' or None for regression; got {in_a_line(outcome)}."
            )
        if outcome is not None and not scorer.guarantee.output_range:
            outcome = self._outcome(outcome)
        chosen = None if outcome is None else outcomes.index(outcome)
        return reasons_of(scorer, people, outcomes, chosen, n, _index(people))

    def prices(self, X: Any, y: Any, sample_weight: Any = None, *, cv: int | None = 5) -> pd.DataFrame:
        """What each weight of the metric costs, and what each column is worth.

        Parameters
        ----------
        X, y, sample_weight : as for `fit`
            People with known outcomes, usually those that the model was fitted to.
        cv : int or None, default=5
            Folds for the cost of doing without a column; equal people share one. None leaves this cost out (NaN), which
            takes about as long as one fit.

        Returns
        -------
        DataFrame
            One row per column that matters and per weight of blanks, the largest gain first. ``gain if 10% looser`` is
            what the training objective (mean loss and roughness) would gain, to first order and at most, if this weight
            alone were 10% larger. ``cost if it must not matter`` is the rise of the Brier score (or squared error) of
            people held out if the column had the weight 0, with its ``standard error``.

        Examples
        --------
        >>> import numpy as np
        >>> from likewise import AdditiveClassifier, WeightedLp
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 2))
        >>> y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
        >>> AdditiveClassifier(WeightedLp([0.2, 0.2])).fit(X, y).prices(X, y)["column"].tolist()
        ['feature 0', 'feature 1']
        """
        from likewise.additive.prices import column_prices

        check_fitted(self)
        model: Any = self
        with checking():
            people, outcomes = clone(model)._read(X, y, model.guarantee_.metric)
            weights = check_sample_weight(sample_weight, len(people))
        return column_prices(model, people, outcomes, weights, None if cv is None else check_count("cv", cv, least=2))

    def to_csv(self, path: str | Path, outcome: Any = None) -> None:
        """Write `scorecard` as a CSV file, with all digits.

        Text that a spreadsheet would take for a formula, such as a category ``=A1``, gets a single quote in front.
        """
        card = self.scorecard(outcome)
        with atomic_write(path) as temporary:
            write_csv(card, temporary, index=False)

    def to_json(self, path: str | Path | None = None, outcome: Any = None) -> str:
        """The whole model as JSON text, with all digits; also written to `path` if given.

        Points at knots (linear between them, constant outside), of categories, of missing numbers and unseen
        categories; the link; the guarantee in words; and the metric. A category is ``{"value": ..., "points": ...}``
        with its value as it is, so that 1 and "1" are two; null is a missing one. What JSON has no form for is text,
        with its ``"type"``.
        """
        scorer, signs = self._scorer(), self._signs(outcome)
        columns = []
        for shape in scorer.model.shapes:
            kind = self.encoder_.columns[shape.column]
            entry: dict[str, Any] = {"column": str(self.encoder_.names[shape.column])}
            points = (signs @ shape.values).tolist()
            other = None if shape.other is None else float(signs @ shape.other)
            if shape.knots is not None:
                entry |= {"knots": shape.knots.tolist(), "points": points, "missing": other}
                if kind.categories is not None:
                    entry["order"] = [plain(level) for level in kind.categories]
            else:
                levels = [*map(plain, kind.levels), *([{"value": None}] if kind.has_missing else [])]
                entry |= {
                    "categories": [level | {"points": p} for level, p in zip(levels, points, strict=True)],
                    "unseen": other,
                }
            columns.append(entry)
        text = json.dumps(
            {
                "model": type(self).__name__,
                "outcome": None if scorer.guarantee.output_range else plain(self._outcome(outcome))["value"],
                "link": scorer.link,
                "output_range": scorer.guarantee.output_range,
                "intercept": float(signs @ scorer.model.intercepts),
                "columns": columns,
                "guarantee": scorer.guarantee.statement,
                "metric": scorer.guarantee.metric.definition,
            },
            indent=2,
        )
        if path is not None:
            with atomic_write(path) as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")
        return text

    def to_sql(self, outcome: Any = None) -> str:
        """An SQL expression that a database evaluates to the probability of the outcome, or to the prediction.

        Columns are referred to by name; text of categories is compared as it is. It is plain SQL with ``CASE``,
        ``EXP`` and arithmetic in double precision, and agrees with `predict_proba` (or `predict`) to 1e-12.

        Examples
        --------
        >>> from likewise import AdditiveClassifier, WeightedLp
        >>> model = AdditiveClassifier(WeightedLp({"x": 0.5}), penalty=1.0).fit(pd.DataFrame({"x": [0, 1]}), [0, 1])
        >>> model.to_sql()[:22]
        '1.0e0 / (1.0e0 + EXP(-'
        """
        position = 0 if self._scorer().guarantee.output_range else self._labels().index(self._outcome(outcome))
        return expression(self._scorer(), self.encoder_, position)

    def _scorer(self) -> AdditiveScorer:
        _ = self.guarantee_  # raises if not fitted
        return self.scorer_

    def _labels(self) -> list[Any]:
        return list(np.asarray(self.classes_).tolist())  # type: ignore[attr-defined]

    def _outcome(self, outcome: Any) -> Any:
        labels = self._labels()
        if outcome is None:
            return labels[-1]
        if not _among(outcome, labels):
            raise InvalidInputError(f"outcome must be one of the classes, {labels}; got {in_a_line(outcome)}.")
        return outcome

    def _signs(self, outcome: Any) -> FloatArray:
        """Weights of the functions in the points for an outcome."""
        if self._scorer().guarantee.output_range:
            if outcome is not None:
                raise InvalidInputError(f"outcome must be None for regression; got {in_a_line(outcome)}.")
            return np.ones(1)
        position = self._labels().index(self._outcome(outcome))
        n_functions = len(self.scorer_.model.intercepts)
        if n_functions == 1:
            return np.array([2.0 * position - 1])
        return np.asarray(np.eye(n_functions)[position])


def plain(level: Any) -> dict[str, Any]:
    """A value as JSON has it, and the name of its type where it is written as text.

    Examples
    --------
    >>> from decimal import Decimal
    >>> plain(1), plain("1"), plain(Decimal("1.50"))
    ({'value': 1}, {'value': '1'}, {'value': '1.50', 'type': 'Decimal'})
    """
    level = level.item() if isinstance(level, np.generic) else level
    if isinstance(level, (bool, int, str)) or (isinstance(level, float) and np.isfinite(level)):
        return {"value": level}
    return {"value": str(level), "type": type(level).__name__}


def _among(outcome: Any, outcomes: list[Any]) -> bool:
    try:
        return outcome in outcomes
    except (TypeError, ValueError):  # arrays, and what is neither equal nor different
        return False


def _index(people: People) -> npt.NDArray[Any] | pd.Index[Any]:
    index = getattr(people.table, "index", None)
    return index if isinstance(index, pd.Index) else np.arange(len(people))
