"""What is published about a round of decisions, and decisions recomputed from it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._shared_draw import SharedDraw
from likewise._typing import BoolArray, FloatArray
from likewise.base import ConstrainedClassifier
from likewise.decisions.threshold import ThresholdDecision, chance_above
from likewise.exceptions import FileError, InvalidInputError

_FORMAT = "likewise round 1"
_ROUNDING = 1e-9


@dataclass(frozen=True)
class DecisionRule:
    """How the draw of a round and a model's probabilities become decisions.

    Attributes
    ----------
    labels : tuple of str
        Of the decisions: in the order of the model's classes, or with thresholds the least favourable first.
    thresholds : tuple of float
        Middles of the bands; empty for outcomes drawn from the probabilities themselves.
    width : float or None
        Of each band.
    column : int
        Of the favourable class among the model's probabilities, if there are thresholds.
    """

    labels: tuple[str, ...]
    thresholds: tuple[float, ...] = ()
    width: float | None = None
    column: int = 1

    @classmethod
    def of(cls, model: Any) -> Self:
        """The rule by which a fitted classifier decides."""
        if not isinstance(model, ConstrainedClassifier):
            raise InvalidInputError("Decisions are for classifiers; this model is a regressor.")
        if not isinstance(model, ThresholdDecision):
            return cls(_texts(model.classes_))
        scorer = model.scorer_
        thresholds = tuple(float(threshold) for threshold in scorer.thresholds)
        return cls(_texts(model.ranked_classes_), thresholds, scorer.width, scorer.column)

    def scores(self, model: Any, people: Any) -> pd.DataFrame:
        """Probability of each decision, and with thresholds the score that is compared with the cut-off."""
        if not self.thresholds:
            return pd.DataFrame(model.predict_proba(people), columns=self.names)
        inner = model.estimator_ if isinstance(model, ThresholdDecision) else model
        score = inner.predict_proba(people)[:, self.column]
        return pd.DataFrame(self._chances(score), columns=self.names).assign(score=score)

    @property
    def names(self) -> list[str]:
        """Columns with the probability of each decision."""
        return [f"p_{label}" for label in self.labels]

    @property
    def columns(self) -> list[str]:
        """Columns that `scores` returns."""
        return self.names + ["score"] * bool(self.thresholds)

    def choose(self, scores: pd.DataFrame, draw: SharedDraw) -> npt.NDArray[np.intp]:
        """Position of each decision among the labels."""
        if not self.thresholds:
            return draw.choose(scores[self.names].to_numpy(dtype=np.float64), self.labels)
        return draw.grade(self._reaching(scores["score"].to_numpy(dtype=np.float64)))

    def faults(self, scores: pd.DataFrame) -> BoolArray:
        """Rows whose probabilities cannot be those of a model."""
        given = scores[self.columns].to_numpy(dtype=np.float64)
        sums = given[:, : len(self.names)].sum(axis=1)
        wrong = ~((given >= 0) & (given <= 1)).all(axis=1) | ~(np.abs(sums - 1) < _ROUNDING)
        if self.thresholds:
            wrong |= ~(np.abs(self._chances(given[:, -1]) - given[:, :-1]) < _ROUNDING).all(axis=1)
        return np.asarray(wrong)

    def _reaching(self, score: FloatArray) -> FloatArray:
        assert self.width is not None
        return chance_above(score[:, None], np.array(self.thresholds), self.width)

    def _chances(self, score: FloatArray) -> FloatArray:
        n = len(score)
        reached = np.hstack([np.ones((n, 1)), self._reaching(score), np.zeros((n, 1))])
        return np.asarray(reached[:, :-1] - reached[:, 1:])


@dataclass(frozen=True)
class RoundRecord:
    """What is published after a round: enough to recompute every decision from the stored probabilities.

    Attributes
    ----------
    round : str
    key_commitment : str
        Of the secret key, the same in every round.
    draw_commitment : str
        Published before the round.
    opening : str
        From which the draw follows, in hexadecimal digits.
    rule : DecisionRule
    n_people : int
    model, table, decisions : str
        SHA-256 digests of the files.
    """

    round: str
    key_commitment: str
    draw_commitment: str
    opening: str
    rule: DecisionRule
    n_people: int
    model: str
    table: str
    decisions: str

    @property
    def draw(self) -> SharedDraw:
        """The draw of the round; raises if it is not the one committed to."""
        return SharedDraw.from_opening(self.round, self.opening, self.draw_commitment)

    def to_json(self) -> str:
        """Text of the record."""
        return json.dumps({"format": _FORMAT, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, name: str) -> Self:
        """Read a record; `name` is for errors."""
        try:
            found = json.loads(text)
            if found.pop("format") != _FORMAT:
                raise ValueError
            rule = found.pop("rule")
            rule |= {part: tuple(rule[part]) for part in ("labels", "thresholds")}
            record = cls(**found, rule=DecisionRule(**rule))
            texts = (record.round, record.opening, record.draw_commitment, *record.rule.labels)
            if not all(isinstance(text, str) for text in texts):
                raise ValueError
        except (AttributeError, KeyError, TypeError, ValueError):
            raise FileError(f"{name} must be a record of a round, as likewise decide writes it.") from None
        return record


def _texts(labels: npt.NDArray[Any]) -> tuple[str, ...]:
    return tuple(str(label) for label in labels.tolist())
