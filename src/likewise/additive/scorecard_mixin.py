"""Methods of fitted scorecards: tables, reasons, notices, exports. `likewise.scorecard` is imported when needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from likewise import _onnx
from likewise._optional import need
from likewise._typing import FloatArray
from likewise._validation import short_repr
from likewise._writing import atomic_write, quoted, write_csv
from likewise.additive.scorer import AdditiveScorer, PointsScorer
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from likewise.scorecard.notices import Notice


class ScorecardMixin:
    """Explanations and exports of additive models.

    For two classes, points count towards `outcome`, ``classes_[1]`` by default; those of the other class are their
    negatives. For more classes, they are the logit of the outcome. For regression they are in units of the output.
    """

    scorer_: AdditiveScorer
    encoder_: Any
    guarantee_: Any

    def scorecard(self, outcome: Any = None, *, prices: pd.DataFrame | None = None) -> pd.DataFrame:
        """The model as a table.

        Parameters
        ----------
        outcome : label of a class, optional
            Whose points; ``classes_[-1]`` if not given.
        prices : DataFrame, optional
            What `prices` returned. The table then has a last column ``gain if 10% looser``, of the weight that limits
            the row.

        Returns
        -------
        DataFrame
            ``column``; ``range`` of numbers, or the category; ``points`` at the start of the range and ``points at
            end``; ``allowed``, the largest change of points that the metric allows over this range, between two
            categories, or from a missing number to any other; and ``binds``, whether the model uses it up: there the
            metric holds it back. Where a ``missing`` number binds, its weight holds the whole column back. Outside
            the ranges points stay what they are at the ends. In whole points (`in_points`), also the points that
            everybody has, and the ranges outside the first and last knot.
        """
        from likewise.scorecard import prices as pricing
        from likewise.scorecard import tables

        table = tables.scorecard_table(self, outcome)
        return table if prices is None else pricing.with_gains(table, prices)

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
        from likewise.scorecard.tables import explanation

        return explanation(self, X, outcome)

    def reasons(self, X: Any, n: int = 4, outcome: Any = None) -> pd.DataFrame:
        """The main reasons for each person's outcome, in words, as notices of adverse action need.

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
        from likewise.scorecard.tables import reasons_table

        return reasons_table(self, X, n, outcome)

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
        from likewise.scorecard.prices import column_prices

        return column_prices(self, X, y, sample_weight, cv)

    def notice(
        self,
        X: Any,
        *,
        threshold: float | None = None,
        width: float = 0.0,
        favourable: Any = None,
        policy: Any = None,
        n: int = 4,
    ) -> list[Notice]:
        """For each person, what lowers the chance of the favourable outcome, and the smallest change that is enough.

        Reasons are the columns that lower the points most, compared with the average person, strongest first; a column
        with less than 5% of the total is not a main reason, and columns tied with the last one are listed as well. The
        change is the one of the fewest columns that reaches the threshold, and of these the smallest, by the sum of
        their distances under the metric: exact among all changes, in steps, of the columns that can change. Those are
        the ones that the policy gives a direction, or that the model was fitted to as `monotone`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        threshold : float, optional
            Probability of the favourable outcome that is needed. None skips the search for a change.
        width : float, default=0
            Of the band around the threshold in which a draw decides (`ThresholdDecision`, which has a `notice` of its
            own). The change then crosses the whole band: the decision is favourable in every round.
        favourable : label of a class, optional
            Needed unless it is stored with the model (``favourable_``) or known by its word, such as approved.
        policy : path or mapping, optional
            Your own TOML or JSON file, or its entries: ``outcome``, the favourable outcome in words; ``names`` of
            columns as people know them; ``reasons``, approved texts by column; ``protected``, columns that are never
            named; ``immutable``, columns that a person cannot change, marked as such; ``directions``, how others can
            change ("increase", "decrease" or "any"); ``steps`` of columns of numbers, such as 1 or 100.
        n : int, default=4
            Reasons per person, ties aside.

        Returns
        -------
        list of Notice
            With `to_text`, `to_html` and `to_json`.

        Examples
        --------
        >>> from likewise import AdditiveClassifier, WeightedLp
        >>> people = pd.DataFrame({"debt": [10, 20, 30, 40]})
        >>> model = AdditiveClassifier(WeightedLp({"debt": 0.01}), penalty=1e-4).fit(people, [1, 1, 0, 0])
        >>> policy = {"outcome": "being approved", "directions": {"debt": "decrease"}}
        >>> (notice,) = model.notice(people.tail(1), threshold=0.5, favourable=1, policy=policy)
        >>> print(notice.to_text().splitlines()[0])
        The chance of being approved is 35%, below the 50% that is needed.
        >>> notice.reasons[0].text, notice.changes[0].to
        ('debt: 40', '25')
        """
        from likewise.scorecard.notices import notices

        return notices(self, X, threshold, width, favourable, policy, n)

    def in_points(
        self,
        points_to_double: float = 20,
        base_score: int = 600,
        base_odds: float = 50,
        *,
        outcome: Any = None,
        max_bins: int = 8,
        whole_numbers: Sequence[Any] = (),
    ) -> Self:
        """The same card in whole points, as lenders print them, within the same metric.

        Points are whole at knots and for categories, and linear between knots: a step in a column of numbers would
        separate people whose values are nearly equal. Rounding keeps every slope and range within the metric, the
        guarantee is computed from the rounded card, and `likewise.verify_card` proves it (`docs/theory.md` §17).

        Parameters
        ----------
        points_to_double : float, default=20
            Points that double the odds of `outcome`.
        base_score, base_odds : default=600 and 50
            A person with `base_score` points, a whole number, has the odds `base_odds`: 50 means 50 to 1.
        outcome : label of a class, optional
            Whose odds rise with points; ``classes_[-1]`` if not given.
        max_bins : int, default=8
            Ranges of a column of numbers, at most. Fewer are used where that adds no more error than rounding does, on
            average over the people the model has learned from. Their ends are round numbers where that adds no more.
        whole_numbers : sequence of str, optional
            Columns of whole numbers, such as dependants, that have whole points for each of them. Their points change
            from one number to the next, in steps that the metric must allow.

        Returns
        -------
        AdditiveClassifier
            A fitted copy. Its `scorecard`, `explain` and exports are in points; `predict_proba`, `certify` and
            ``guarantee_`` are those of the rounded card. It is without columns that are worth less than half a point,
            or in which the metric allows less than one; `rounding_cost` says what that costs.

        Examples
        --------
        >>> from likewise import AdditiveClassifier, TableMetric
        >>> people = pd.DataFrame({"debt": [10, 20, 30, 40, 50, 60], "owner": list("ynynyn")})
        >>> model = AdditiveClassifier(TableMetric({"debt": 0.02}, {"owner": 0.1}), penalty=0.01)
        >>> card = model.fit(people, [1, 1, 1, 0, 1, 0]).in_points()
        >>> print(card.scorecard()[["column", "range", "points"]].tail(3).to_string(index=False))
        column     range  points
         owner         n      -6
         owner         y       5
         owner any other       0
        """
        from likewise.scorecard.points import in_points

        return in_points(  # type: ignore[no-any-return]
            self, points_to_double, base_score, base_odds, outcome, max_bins, whole_numbers
        )

    def rounding_cost(self, card: Any, X: Any, y: Any) -> pd.DataFrame:
        """The cost of whole points: this model compared with its `card` in points, on people with known outcomes.

        Parameters
        ----------
        card : fitted classifier
            From `in_points`.
        X, y : people and their classes
            Held out, for an honest figure.

        Returns
        -------
        DataFrame
            ``Brier score`` and ``log loss`` of ``model`` and ``points``, their difference, ``cost``, and the
            ``largest change`` of a person's probability.
        """
        from likewise.scorecard.points import rounding_cost

        return rounding_cost(self, card, X, y)

    def to_excel(self, path: str | Path, outcome: Any = None) -> None:
        """Write `scorecard` as an Excel file; needs openpyxl. Text that looks like a formula gets a single quote."""
        need("openpyxl", "An Excel file")
        table = self.scorecard(outcome)
        safe = pd.DataFrame({name: table[name].map(quoted) for name in table.columns})
        with atomic_write(path) as temporary:
            safe.to_excel(temporary, index=False, sheet_name="scorecard", engine="openpyxl")

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
        categories; the link; the metric; and the guarantee, which ``likewise verify-card`` proves from these numbers.
        A category is ``{"value": ..., "points": ...}`` with its value as it was in training; null is a missing one, and
        1 and "1" are one category. Values that JSON cannot represent are text, with their ``"type"``. For more than two
        classes, points are lists with one value per class; with `outcome`, those of one class, which prove nothing on
        their own.
        """
        from likewise.scorecard.export import card_document

        text = json.dumps(card_document(self, outcome), indent=2)
        if path is not None:
            with atomic_write(path) as temporary:
                temporary.write_text(text + "\n", encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, card: str | Path) -> Self:
        """The model that a card describes: the text of `to_json`, or the path of its file.

        Its probabilities have the same bits. The guarantee is proven from the card's numbers (`likewise.verify_card`);
        a card without a proof is refused. Column names are text. Parameters of the fit are the defaults.

        Examples
        --------
        >>> from likewise import AdditiveClassifier, WeightedLp
        >>> model = AdditiveClassifier(WeightedLp([0.5]), penalty=1.0).fit([[0], [1]], [0, 1])
        >>> same = AdditiveClassifier.from_json(model.to_json())
        >>> bool((same.predict_proba([[0.3]]) == model.predict_proba([[0.3]])).all())
        True
        """
        from likewise.scorecard.export import read_card

        model = cls()
        read_card(model, card)
        return model

    def to_sql(self, outcome: Any = None) -> str:
        """An SQL expression for the probability of the outcome, the prediction, or, after `in_points`, the points.

        The expression is plain SQL with ``CASE``, ``CAST``, ``EXP`` and arithmetic in double precision, and agrees with
        `predict_proba` (or `predict`) to 1e-12. Columns are referred to by name. Those of numbers, and of categories
        that are numbers, must have a numeric type in the database; other categories are compared as text. ``NULL`` and
        NaN are missing. What the model would read otherwise is refused: the score is NULL, or the database raises an
        error.

        Examples
        --------
        >>> from likewise import AdditiveClassifier, WeightedLp
        >>> model = AdditiveClassifier(WeightedLp({"x": 0.5}), penalty=1.0).fit(pd.DataFrame({"x": [0, 1]}), [0, 1])
        >>> model.to_sql()[:22]
        '1.0e0 / (1.0e0 + EXP(-'
        """
        from likewise.scorecard.export import expression, whole_points

        if isinstance(self._scorer(), PointsScorer):
            self._signs(outcome)
            return whole_points(self._scorer(), self.encoder_)
        position = 0 if self._scorer().guarantee.output_range else self._labels().index(self._outcome(outcome))
        return expression(self._scorer(), self.encoder_, position)

    def to_onnx(self, path: str | Path | None = None) -> Any:
        """The model as an ONNX graph in double precision; also written to `path` if given. Needs the extra ``onnx``.

        Its output ``probabilities`` (``prediction`` for regression) is that of `predict_proba` (`predict`), to within
        the ``likewise_error_bound`` in its metadata: 1e-15 for two classes, and 0 for the link "clip" and for
        regression (`docs/theory.md` §19). A card in whole points has an output ``points`` as well, without any error.

        Inputs are one array ``X`` for a model of arrays, and otherwise one of shape (n, 1) per column on the card:
        doubles for numbers, and for categories that are numbers or booleans (1 and 0); text for other categories. NaN
        and empty text are missing, and what is not listed is unseen. Where `predict_proba` refuses a value, the output
        is NaN.

        Returns
        -------
        onnx.ModelProto
        """
        from likewise.scorecard.export import onnx_model

        model = onnx_model(self)
        _onnx.write(model, path)
        return model

    def _scorer(self) -> AdditiveScorer:
        _ = self.guarantee_  # raises if not fitted
        return self.scorer_

    def _labels(self) -> list[Any]:
        return list(np.asarray(self.classes_).tolist())  # type: ignore[attr-defined]

    def _outcome(self, outcome: Any) -> Any:
        labels = self._labels()
        if outcome is None:
            return labels[self._scorer().scored_class if len(labels) == 2 else -1]
        if not is_one_of(outcome, labels):
            raise InvalidInputError(f"outcome must be one of the classes, {labels}; got {short_repr(outcome)}.")
        return outcome

    def _signs(self, outcome: Any) -> FloatArray:
        """Weights of the functions in the points for an outcome."""
        if self._scorer().guarantee.output_range:
            if outcome is not None:
                raise InvalidInputError(f"outcome must be None for regression; got {short_repr(outcome)}.")
            return np.ones(1)
        position = self._labels().index(self._outcome(outcome))
        n_functions = len(self.scorer_.model.intercepts)
        if isinstance(self.scorer_, PointsScorer):
            if position != self.scorer_.scored_class:
                raise InvalidInputError(
                    f"outcome must be the one that points count for, {self._outcome(None)!r}; got "
                    f"{short_repr(outcome)}. Use in_points(outcome=...)."
                )
            return np.ones(1)
        if n_functions == 1:
            return np.array([2.0 * position - 1])
        return np.asarray(np.eye(n_functions)[position])


def is_one_of(outcome: Any, outcomes: list[Any]) -> bool:
    """Whether `outcome`, of any type, is one of the labels."""
    try:
        return outcome in outcomes
    except (TypeError, ValueError):  # arrays and NA values, whose comparison has no truth value
        return False
