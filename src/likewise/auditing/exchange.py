"""What exchanging columns does to the people of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from likewise._typing import FloatArray
from likewise.verification.base import InputSpace
from likewise.verification.domain import CategoricalDomain

_ALTERNATIVES = 16  # values of a column, or of several together, that people are given
_LEVEL = 0.95
_BATCH = 100_000  # rows that a model is asked about at once


@dataclass(frozen=True, eq=False)
class Exchange:
    """Outputs of people with other values in some columns.

    Attributes
    ----------
    space : InputSpace
    columns : list of int
    alternatives : ndarray of shape (n_alternatives, n_columns)
        The values that everybody was given.
    outputs : ndarray of shape (n_samples, n_alternatives + 1, n_outputs)
        The last of them with the person's own values.
    probable : bool
        Whether outputs are probabilities.
    """

    space: InputSpace
    columns: list[int]
    alternatives: FloatArray
    outputs: FloatArray
    probable: bool

    @classmethod
    def of(cls, space: InputSpace, columns: Sequence[int]) -> Exchange:
        """Ask the model about everybody with every alternative."""
        alternatives = alternatives_of(space, columns)
        n, m = len(space.rows), len(alternatives)
        given = np.repeat(space.rows[:, None], m + 1, axis=1)
        for j, column in enumerate(columns):
            given[:, :m, column] = alternatives[:, j]
        rows = given.reshape(n * (m + 1), -1)
        parts = [space.answers(rows[start : start + _BATCH]) for start in range(0, len(rows), _BATCH)]
        outputs = np.concatenate([part for part, _ in parts])
        return cls(space, list(columns), alternatives, outputs.reshape(n, m + 1, -1), parts[0][1])

    @property
    def effects(self) -> FloatArray:
        """Largest difference between two alternatives, for everybody."""
        return self._extremes()[2]

    def _extremes(self) -> tuple[Any, Any, FloatArray]:
        """For everybody the two alternatives whose outputs differ most, the lower one first; and by how much."""
        outputs = self.outputs
        n, m, k = outputs.shape
        if k == 1:
            low, high = outputs[:, :, 0].argmin(axis=1), outputs[:, :, 0].argmax(axis=1)
        else:
            best = np.full(n, -1.0)
            low, high = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
            for i in range(m):
                for j in range(i):
                    gap = np.abs(outputs[:, i] - outputs[:, j]).sum(axis=1)
                    low, high = np.where(gap > best, j, low), np.where(gap > best, i, high)
                    best = np.maximum(best, gap)
        each = np.arange(n)
        gaps = outputs[each, high] - outputs[each, low]
        falls = gaps[each, np.abs(gaps).argmax(axis=1)] < 0  # of the class in which the two differ most
        low, high = np.where(falls, high, low), np.where(falls, low, high)
        return low, high, np.abs(gaps).sum(axis=1)

    def pairs(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Everybody with the two alternatives, as encoded people a (lower) and b, and the difference."""
        low, high, effects = self._extremes()
        a, b = self.space.rows.copy(), self.space.rows.copy()
        m = len(self.alternatives)
        for rows, chosen in ((a, low), (b, high)):
            other = chosen < m
            rows[np.ix_(other, self.columns)] = self.alternatives[chosen[other]]
        return a, b, effects

    def table(self) -> pd.DataFrame:
        """One row per person: their score, the lowest and the highest with what gave them, and the effect."""
        low, high, effects = self._extremes()
        each, labels = np.arange(len(low)), self.space.labels(probable=self.probable)
        ends = labels.pairs(self.outputs[each, low], self.outputs[each, high])
        own = labels.pairs(self.outputs[each, -1], self.outputs[each, high])
        table = pd.DataFrame({"row": self.space.table.index, "score": own["score_a"]})
        if self.outputs.shape[2] > 1:  # of the class in which the two differ most
            table["score"] = np.nan
        for name, chosen, score in (("lowest", low, ends["score_a"]), ("highest", high, ends["score_b"])):
            table[name] = score
            table[f"{name} if"] = self._words(chosen)
        table["effect"] = effects
        if ends["outcome"].notna().any():
            table["outcome"] = ends["outcome"]
        return table

    def _words(self, chosen: Any) -> list[Any]:
        """The alternatives that were chosen; the person's own values are those of their row."""
        made = self._filled(self.alternatives)
        shown = self.space.words(self.space.people(made), made, self.columns)
        own = self.space.words(self.space.table, self.space.rows, self.columns)
        words = []
        for i, k in enumerate(chosen.tolist()):
            values = (shown.iloc[k] if k < len(shown) else own.iloc[i]).tolist()
            words.append(values[0] if len(values) == 1 else ", ".join(map(str, values)))
        return words

    def _filled(self, values: FloatArray) -> FloatArray:
        rows = np.repeat(self.space.rows[:1], len(values), axis=0)
        rows[:, self.columns] = values
        return rows

    def directions(self) -> pd.DataFrame:
        """For every two alternatives: by how much the first is favoured, on average, and for how many people.

        Only for one output, and up to eight alternatives.
        """
        names = ["favoured", "over", "mean", "mean_low", "mean_high", "share", "share_low", "share_high", "largest"]
        m = len(self.alternatives)
        if self.outputs.shape[2] > 1 or m > 8:
            return pd.DataFrame(columns=names)
        words, rows = self._words(np.arange(m)), []
        for i in range(m):
            for j in range(i):
                gap = self.outputs[:, i, 0] - self.outputs[:, j, 0]
                first, second, sign = (i, j, 1.0) if gap.mean() >= 0 else (j, i, -1.0)
                favoured = int((sign * gap > 0).sum())
                rows.append(
                    (
                        words[first],
                        words[second],
                        float(sign * gap.mean()),
                        *mean_interval(sign * gap),
                        favoured / len(gap),
                        *share_interval(favoured, len(gap)),
                        float((sign * gap).max()),
                    )
                )
        table = pd.DataFrame(rows, columns=names)
        return table.sort_values("mean", ascending=False, kind="stable", ignore_index=True)

    def groups(self) -> pd.DataFrame:
        """Mean and largest effect for people by their own values, with confidence intervals of the means."""
        names = [self.space.names[i] for i in self.columns]
        effects, rows = pd.Series(self.effects), []
        own = self.space.words(self.space.table, self.space.rows, self.columns)
        own = own.where(own.notna(), "blank")
        if len(names) > 1 or own[names[0]].nunique() > _ALTERNATIVES:
            return pd.DataFrame(columns=["group", "n", "mean", "mean_low", "mean_high", "largest"])
        for value, members in effects.groupby(own[names[0]].map(str).to_numpy()):
            sizes = members.to_numpy()
            rows.append((value, len(sizes), float(sizes.mean()), *mean_interval(sizes), float(sizes.max())))
        return pd.DataFrame(rows, columns=["group", "n", "mean", "mean_low", "mean_high", "largest"])


def alternatives_of(space: InputSpace, columns: Sequence[int]) -> FloatArray:
    """Values that everybody is given: all categories, numbers over the range, or the most frequent combinations."""
    if len(columns) > 1:
        given = space.rows[:, list(columns)]
        # NaN differs from itself: each blank would be a combination of its own. Values are finite.
        seen, counts = np.unique(np.where(np.isnan(given), np.inf, given), axis=0, return_counts=True)
        seen = seen[np.argsort(-counts, kind="stable")[:_ALTERNATIVES]]
        return np.where(np.isinf(seen), np.nan, seen)
    (column,) = columns
    held = space.held[column]
    if isinstance(held, CategoricalDomain):
        return space.codes(column)[:, None]
    return spread_numbers(space, column, _ALTERNATIVES)[:, None]


def spread_numbers(space: InputSpace, column: int, n_values: int) -> FloatArray:
    """Numbers of a column: the ends of its domain, quantiles of the people, and a blank if there may be one."""
    held = space.held[column]
    assert not isinstance(held, CategoricalDomain)
    seen = space.rows[:, column]
    seen = seen[~np.isnan(seen) & held.holds(seen)]
    quantiles = np.quantile(seen, np.linspace(0, 1, n_values), method="nearest") if len(seen) else np.empty(0)
    ends = held.at(np.array([held.first, held.last]))
    values = np.unique(np.concatenate([quantiles, ends]))
    return np.append(values, np.nan) if held.blank else values


def mean_interval(values: FloatArray) -> tuple[float, float]:
    """Confidence interval of the mean in the population that these people were drawn from (Student's t, 95%)."""
    if len(values) < 2:
        return -np.inf, np.inf
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    width = float(stats.t.ppf((1 + _LEVEL) / 2, len(values) - 1)) * error
    return float(values.mean()) - width, float(values.mean()) + width


def share_interval(count: int, n: int) -> tuple[float, float]:
    """Confidence interval of a share (Clopper and Pearson, 95%)."""
    found = stats.binomtest(count, n).proportion_ci(_LEVEL, "exact")
    return float(found.low), float(found.high)


def shown_pair(space: InputSpace, a: FloatArray, b: FloatArray) -> pd.DataFrame:
    """Two encoded people as a table, with their scores."""
    outputs, probable = space.answers(np.stack([a, b]))
    scores = space.labels(probable=probable).pairs(outputs[:1], outputs[1:])
    table = space.people(np.stack([a, b]))
    name = "score"
    while name in table:  # a column of the people
        name = f"model's {name}"
    table[name] = [float(scores["score_a"].iloc[0]), float(scores["score_b"].iloc[0])]
    return table
