"""What is published about a round of decisions, and decisions recomputed from it."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._shared_draw import SharedDraw, key_commitment
from likewise._typing import BoolArray, FloatArray
from likewise.base import ConstrainedClassifier
from likewise.decisions.threshold import ThresholdDecision, chance_above
from likewise.exceptions import FileError, InvalidInputError

_FORMAT, _EARLIER = "likewise round 2", "likewise round 1"
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

    The seal binds all of it to the key, and so the file of decisions to the last byte: whose decision is in which row,
    with which probabilities, in which round. Only a holder of the key can check the seal, and could write another one.
    The digest can be computed by anyone: published after the round, it binds the holder of the key, too.

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
    kept : tuple of str
        Columns of the table that are repeated beside the decisions, such as an id.
    model, table, decisions : str
        SHA-256 digests of the files.
    seal : str
        HMAC-SHA256 of all the above, by the key.
    digest : str
        SHA-256 of all the above, to publish after the round.
    """

    round: str
    key_commitment: str
    draw_commitment: str
    opening: str
    rule: DecisionRule
    n_people: int
    kept: tuple[str, ...]
    model: str
    table: str
    decisions: str
    seal: str = ""
    digest: str = ""

    def sealed(self, key: bytes) -> Self:
        """The record with its seal and its digest."""
        sealed = replace(self, seal=self._seal(key))
        return replace(sealed, digest=sealed._digest)

    def changes(self, key: bytes | None = None) -> str | None:
        """What shows that the record is not as it was written; None if nothing does. A key allows to check the seal."""
        if key is not None and key_commitment(key) != self.key_commitment:
            return "The key is not the key of the record."
        if key is not None and SharedDraw.from_key(key, self.round).opening.hex() != self.opening:
            return "The draw does not follow from the key and the round."
        if key is not None and not hmac.compare_digest(self._seal(key), self.seal):
            return "The record was changed after the round: its seal is not that of the key."
        if self._digest != self.digest:
            return "The record was changed after the round: its digest is not that of what it says."
        return None

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
            made = found.pop("format")
            if made == _EARLIER and "rule" in found:
                raise FileError(
                    f"{name} is a record of likewise 0.2, which does not bind ids to decisions. Verify it with that "
                    "version, and compare the ids with the table."
                )
            if made != _FORMAT:
                raise ValueError
            rule = found.pop("rule")
            rule |= {part: tuple(rule[part]) for part in ("labels", "thresholds")}
            record = cls(**found | {"kept": tuple(found["kept"])}, rule=DecisionRule(**rule))
            digests = (record.model, record.table, record.decisions, record.seal, record.digest, record.key_commitment)
            texts = (record.round, record.opening, record.draw_commitment, *record.rule.labels, *record.kept, *digests)
            if not all(isinstance(text, str) for text in texts):
                raise ValueError
        except FileError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError):
            raise FileError(f"{name} must be a record of a round, as likewise decide writes it.") from None
        return record

    def _seal(self, key: bytes) -> str:
        return hmac.new(key, b"likewise record\0" + self._content("seal", "digest"), "sha256").hexdigest()

    @property
    def _digest(self) -> str:
        return hashlib.sha256(b"likewise record\0" + self._content("digest")).hexdigest()

    def _content(self, *without: str) -> bytes:
        fields = {name: value for name, value in asdict(self).items() if name not in without}
        return json.dumps({"format": _FORMAT, **fields}, sort_keys=True).encode()


def _texts(labels: npt.NDArray[Any]) -> tuple[str, ...]:
    return tuple(str(label) for label in labels.tolist())
