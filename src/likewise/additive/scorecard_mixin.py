"""What people read from fitted scorecards, and take away: the methods of both estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise._validation import short_repr
from likewise.additive.scorer import AdditiveScorer, PointsScorer
from likewise.exceptions import InvalidInputError
from likewise.scorecard import export, notices, points, prices, tables


class ScorecardMixin:
    """Explanations and exports of additive models; each method is a function of `likewise.scorecard`.

    For two classes, points count towards `outcome`, ``classes_[1]`` by default; those of the other class are their
    negatives. For more classes, they are the logit of the outcome. For regression they are in units of the output.
    """

    scorer_: AdditiveScorer
    encoder_: Any
    guarantee_: Any

    scorecard = tables.scorecard
    explain = tables.explain
    reasons = tables.reasons
    prices = prices.prices
    notice = notices.notice
    in_points = points.in_points
    rounding_cost = points.rounding_cost
    to_excel = export.to_excel
    to_csv = export.to_csv
    to_json = export.to_json
    from_json = classmethod(export.from_json)
    to_sql = export.to_sql
    to_onnx = export.to_onnx

    def _scorer(self) -> AdditiveScorer:
        _ = self.guarantee_  # raises if not fitted
        return self.scorer_

    def _labels(self) -> list[Any]:
        return list(np.asarray(self.classes_).tolist())  # type: ignore[attr-defined]

    def _outcome(self, outcome: Any) -> Any:
        labels = self._labels()
        if outcome is None:
            return labels[self._scorer().scored_class if len(labels) == 2 else -1]
        if not tables.is_one_of(outcome, labels):
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
