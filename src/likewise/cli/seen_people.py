"""The people that a metric was made from: who they are, who is kept apart, and how it is made again without some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._subsample import evenly_spaced
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.cli.category_shapes import GivenShapes
from likewise.exceptions import InvalidInputError, LikewiseError
from likewise.kernel.columns import canonical_texts, is_numeric
from likewise.metric_file import MetricFile
from likewise.metrics.table import TableMetric
from likewise.pairs.points import RowHashes, row_hashes

CURE = "--holdout 0.25"
_MADE_FROM_PEOPLE = ("designed", "revealed", "judged")
_MOST_VALUES = 150_000  # of a table from which a metric is made again in each fold, which takes minutes beyond
_CHOICE = ("mean_distance", "keep", "bind")  # by which a point of a frontier is chosen


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


def origin_of(X: pd.DataFrame, columns: Sequence[Any], share: float = 0.0, **made_with: Any) -> dict[str, Any]:
    """Who a metric with these columns was made from and with what, as fields of its file; None is left out."""
    people = X[[name for name in X.columns if name in columns]]
    made = {name: value for name, value in made_with.items() if value is not None}
    return {"people": len(people), "rows": digest_of(people), "kept_apart": share, "made_with": made}


@dataclass(frozen=True, eq=False)
class MadeAgain:
    """Makes the metric of a file again, from other people and outcomes."""

    file: MetricFile

    def __call__(self, X: pd.DataFrame, y: npt.NDArray[Any]) -> TableMetric:
        """The metric of these people, made as the file says; all weights are 0 where none can be made."""
        from likewise.cli.training import directions, reveal_model
        from likewise.design.frontier import design_metric

        file, made = self.file, {**self.file.made_with}
        old, rounded, kind = file.metric, made.pop("rounded", False), made.pop("model", None)
        protected = [name for name in file.protected if name in X.columns]
        shapes = GivenShapes.of(old, X, {})
        blank = {name: X[name].astype(float).mask(X[name].isin([*codes])) for name, codes in old.special.items()}
        people = shapes.applied_to(X.assign(**blank))
        try:
            if kind is None:
                choice = {name: made.pop(name) for name in _CHOICE if name in made}
                rises, falls = ([name for name in made.pop(way, []) if name in X] for way in ("rises", "falls"))
                frontier = design_metric(
                    people,
                    y,
                    protected=protected,
                    categorical=[name for name in old.categorical if name in X.columns],
                    groups=shapes.groups,
                    distances=shapes.distances,
                    monotone=directions(rises, falls, X, y, file.favourable, classify=file.output_range is None),
                    output_range=file.output_range,
                    task="classification" if file.output_range is None else "regression",
                    references=False,
                    **made,
                )
                told = frontier.gain[0] > 0 or "keep" not in choice  # else the strictest is nearest to a constant
                metric: Any = (frontier.at(**choice or {"keep": 0.95}) if told else frontier.points[0]).metric
            else:
                found = reveal_model(people, y, kind, int(made["seed"]), output_range=file.output_range, shapes=shapes)
                metric = found.metric.reweighted(dict.fromkeys(protected, 0.0))
        except LikewiseError:  # as of outcomes that no column tells: a constant is what is left
            return old.reweighted(dict.fromkeys(old.columns, 0.0))
        worth = {name: metric.missing.get(name) or 1.0 for name in old.special if name in metric.numeric}
        special = {name: dict.fromkeys(old.special[name], weight) for name, weight in worth.items()}
        metric = metric.with_params(order=shapes.order, special=special)
        metric = metric.without_negligible(people).rounded() if rounded else metric
        return metric.scaled(file.scaled_by)  # type: ignore[no-any-return]

    def scaled(self, factor: float) -> MadeAgain:
        """The same for the metric scaled."""
        return MadeAgain(self.file.scaled(factor))


@dataclass(frozen=True, eq=False)
class Unseen:
    """What the file of a metric says about the people of a table.

    Attributes
    ----------
    apart : ndarray of int, or None
        People whom the metric has not seen, where the others are exactly those it was made from.
    caveat : str
        What is to be said of every cost that is measured on the table; empty if nothing is.
    again : MadeAgain or None
        Makes the metric again from some of the people, where all of them, or all but those apart, have made it.
    """

    apart: IntArray | None = None
    caveat: str = ""
    again: MadeAgain | None = None

    @classmethod
    def find(cls, file: MetricFile, X: pd.DataFrame, metric_file: Any, design: str) -> Unseen:
        """Compare the rows of a table with the digest in a metric file; `design` is the command that can keep some."""
        if not file.rows and file.source not in _MADE_FROM_PEOPLE:
            return cls()
        made = {"": "made", "by hand": "set by hand"}.get(file.source, file.source)
        cure = f"To measure it on people whom the metric has not seen: {design} {CURE}"
        if not file.rows:
            return cls(
                None,
                f"{metric_file} was {made} and does not say from whom: if from people of this table, what it costs is "
                f"understated here. {cure}",
            )
        why = _why_not_again(file, X)
        again = None if why else MadeAgain(file)
        if len(X) == file.people and digest_of(X) == file.rows:
            said = f"{metric_file} was {made} on these people, so what it costs is understated here. {why} {cure}"
            return cls(None, said if why else "", again)
        if file.kept_apart:
            apart = kept_apart(X, file.kept_apart)
            if (~apart).sum() == file.people and digest_of(X[~apart]) == file.rows:
                return cls(np.flatnonzero(apart), "", again)
        return cls(
            None,
            f"{metric_file} was {made} on {file.people:,} people: if any of them are in this table, what it costs is "
            f"understated here. {cure}",
        )

    @property
    def made_by(self) -> MadeAgain | None:
        """What makes the metric again in each fold, where nobody is kept apart for measuring."""
        return self.again if self.apart is None else None

    def among(self) -> Unseen:
        """What is said where nobody is kept apart for measuring, as where a method is chosen before."""
        if self.apart is None or self.again is not None:
            return replace(self, apart=None)
        return Unseen(None, "The metric has seen these people, so what it costs is understated here.")

    def scaled(self, factor: float) -> Unseen:
        """The same for the metric scaled."""
        return replace(self, again=None if self.again is None else self.again.scaled(factor))

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


def _why_not_again(file: MetricFile, X: pd.DataFrame) -> str:
    """Why a metric cannot be made again in each fold, in a sentence; empty if it can."""
    if not file.as_written and file.made_with:
        return "It was edited since, so it is not made again without those who are measured."
    if not file.made_with:
        return "The file does not say how to make it again without those who are measured."
    if "weights" in file.made_with:
        return "People counted by their weights, so it is not made again without those who are measured."
    if X.size > _MOST_VALUES:
        return f"To make it again in each fold would take long for {len(X):,} people."
    return ""


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
