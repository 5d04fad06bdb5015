"""The people that a metric was made from: who they are, who is kept apart from them, and what costs are worth."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._subsample import evenly_spaced
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import InvalidInputError
from likewise.kernel.columns import canonical_texts, is_numeric
from likewise.metric_file import MetricFile
from likewise.pairs.points import RowHashes, row_hashes

CURE = "--holdout 0.25"
_MADE_FROM_OUTCOMES = ("designed", "revealed")  # judgements are about people, without their outcomes


def hashes_of(X: pd.DataFrame) -> RowHashes:
    """Hashes of people by the values of their rows, whatever the order of the columns and the type they are kept in."""
    columns = {str(name): X[name] for name in X.columns}
    return row_hashes(_as_numbers(columns[name]) for name in sorted(columns))


def _as_numbers(column: pd.Series[Any]) -> FloatArray:
    """Numbers as they are; a text as the first 52 bits of its hash, which a float holds exactly."""
    if is_numeric(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    known = {
        text: int(sha256(text.encode()).hexdigest()[:13], 16) for text in canonical_texts(column).dropna().unique()
    }
    return canonical_texts(column).map(known).to_numpy(dtype=np.float64, na_value=np.nan)


def digest_of(X: pd.DataFrame) -> str:
    """Digest of the rows of some people, in any order."""
    return sha256(np.sort(hashes_of(X)).astype("<u8").tobytes()).hexdigest()[:16]


def kept_apart(X: pd.DataFrame, share: float) -> BoolArray:
    """About a `share` of the people, chosen by their rows alone: the same in every command, and equal people alike."""
    return (hashes_of(X) >> np.uint64(11)).astype(np.float64) < share * 2.0**53


def origin_of(X: pd.DataFrame, columns: list[Any], share: float = 0.0) -> dict[str, Any]:
    """Who a metric with these columns was made from, as fields of its file."""
    people = X[[name for name in X.columns if name in columns]]
    return {"people": len(people), "rows": digest_of(people), "kept_apart": share}


@dataclass(frozen=True, eq=False)
class Unseen:
    """What the file of a metric says about the people of a table.

    Attributes
    ----------
    apart : ndarray of int, or None
        People whom the metric has not seen, where the others are exactly those it was made from.
    caveat : str
        What is to be said of every cost that is measured on the table; empty if nothing is.
    """

    apart: IntArray | None = None
    caveat: str = ""

    @classmethod
    def find(cls, file: MetricFile, X: pd.DataFrame, metric_file: Any, design: str) -> Unseen:
        """Compare the rows of a table with the digest in a metric file; `design` is the command that can keep some."""
        if not file.rows and file.source not in _MADE_FROM_OUTCOMES:
            return cls()
        made, cure = file.source or "made", f"To measure it on people whom the metric has not seen: {design} {CURE}"
        if not file.rows:
            return cls(
                None,
                f"{metric_file} was {made} and does not say from whom: if from people of this table, what it costs is "
                f"understated here. {cure}",
            )
        if len(X) == file.people and digest_of(X) == file.rows:
            return cls(None, f"{metric_file} was {made} on these people, so what it costs is understated here. {cure}")
        if file.kept_apart:
            apart = kept_apart(X, file.kept_apart)
            if (~apart).sum() == file.people and digest_of(X[~apart]) == file.rows:
                return cls(np.flatnonzero(apart))
        return cls(
            None,
            f"{metric_file} was {made} on {file.people:,} people: if any of them are in this table, what it costs is "
            f"understated here. {cure}",
        )

    def folds(self, y: npt.NDArray[Any], n_folds: int, *, classify: bool) -> Any:
        """Folds of which each holds out some people kept apart; all others are trained on. The number, if nobody is."""
        from sklearn.model_selection import KFold, StratifiedKFold

        if self.apart is None:
            return n_folds
        splitter = (StratifiedKFold if classify else KFold)(n_folds, shuffle=True, random_state=0)
        tests = [self.apart[test] for _, test in splitter.split(self.apart, y[self.apart])]
        return [(np.setdiff1d(np.arange(len(y)), test), test) for test in tests]

    def parts(self, n_people: int, most: int) -> tuple[IntArray, IntArray] | None:
        """Positions to train on and to measure on, at most so many, among people kept apart; None if nobody is."""
        if self.apart is None:
            return None
        return np.setdiff1d(np.arange(n_people), self.apart), self.apart[evenly_spaced(len(self.apart), most)]


def check_apart(y: npt.NDArray[Any], apart: BoolArray, share: float, *, classify: bool) -> None:
    """Raise if a share leaves too few people on either side for five folds."""
    for side in (apart, ~apart):
        fewest = int(side.sum())
        if classify:
            fewest = min(int((y[side] == label).sum()) for label in np.unique(y))
        if fewest < 5:
            raise InvalidInputError(
                f"--holdout must leave at least 5 people{' of each class' if classify else ''} on both sides; got "
                f"{share:g}, which leaves {fewest}. Use another share, or a larger table."
            )
