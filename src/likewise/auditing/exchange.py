"""What exchanging columns does to the people of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise._favourable import Direction
from likewise._typing import FloatArray
from likewise._validation import plain
from likewise.auditing.intervals import mean_interval, share_interval
from likewise.pairs.model_outputs import OutputLabels
from likewise.verification.base import InputSpace
from likewise.verification.domain import CategoricalDomain

_FEWEST, _MOST = 16, 256  # values of a column, or of several together, that people are given if there are more
_LISTED = 8  # values that are compared two by two; so few numbers may be codes, and those between them are not tried
_ROWS = 2_000_000  # that a model is asked about in all
_BATCH = 100_000  # rows that a model is asked about at once


@dataclass(frozen=True, eq=False)
class Exchange:
    """Outputs of people with other values in some columns.

    Attributes
    ----------
    space : InputSpace
    columns : list of int
    given : Alternatives
        The values that everybody was given.
    outputs : ndarray of shape (n_samples, n_alternatives + 1, n_outputs)
        The last of them with the person's own values.
    probable : bool
        Whether outputs are probabilities.
    """

    space: InputSpace
    columns: list[int]
    given: Alternatives
    outputs: FloatArray
    probable: bool

    @classmethod
    def of(cls, space: InputSpace, columns: Sequence[int]) -> Exchange:
        """Ask the model about everybody with every alternative."""
        alternatives = Alternatives.of(space, columns)
        n, m = len(space.rows), len(alternatives.values)
        size, parts = max(1, _BATCH // (m + 1)), []
        for start in range(0, n, size):
            rows = np.repeat(space.rows[start : start + size, None], m + 1, axis=1)
            rows[:, :m, list(columns)] = alternatives.values
            parts.append(space.answers(rows.reshape(-1, space.rows.shape[1])))
        outputs = np.concatenate([part for part, _ in parts])
        return cls(space, list(columns), alternatives, outputs.reshape(n, m + 1, -1), parts[0][1])

    @property
    def labels(self) -> OutputLabels:
        """What the outputs are, as they are shown."""
        return OutputLabels.shown(self.space.model, self.space.output_range, self.outputs, probable=self.probable)

    @property
    def limited(self) -> bool:
        """Whether outputs have limits, so that no two differ by more than 1."""
        return self.probable or self.space.output_range is not None

    def mean_interval(self) -> tuple[float, float] | None:
        """95% interval of the mean effect in the population.

        None for numbers without limits, as one person could move their mean by any amount; and if people have values
        that were not tried, as the largest difference between some is too small.
        """
        return mean_interval(self.effects) if self.limited and self.given.all_tried else None

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

    def worst_pairs(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Of people whose two alternatives are in the domain, the `n` with the largest effects, as encoded a and b."""
        low, high, effects = self._extremes()
        a, b = self.space.rows.copy(), self.space.rows.copy()
        for rows, chosen in ((a, low), (b, high)):
            other = chosen < len(self.given.values)
            rows[np.ix_(other, self.columns)] = self.given.values[chosen[other]]
        inside = np.flatnonzero(self.space.holds(a) & self.space.holds(b))
        order = inside[np.argsort(-effects[inside], kind="stable")[:n]]
        return a[order], b[order]

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
        made = np.repeat(self.space.rows[:1], len(self.given.values), axis=0)
        made[:, self.columns] = self.given.values
        shown = self.space.words(self.space.people(made), made, self.columns)
        own = self.space.words(self.space.table, self.space.rows, self.columns)
        words = []
        for i, k in enumerate(chosen.tolist()):
            values = (shown.iloc[k] if k < len(shown) else own.iloc[i]).tolist()
            words.append(values[0] if len(values) == 1 else ", ".join(map(str, values)))
        return words

    def directions(self, direction: Direction) -> pd.DataFrame:
        """For every two alternatives: by how much the first is favoured, on average, and for how many people.

        If no direction is known, by how much its score is higher. Only for one output that counts, and up to eight
        alternatives. Means of outputs without limits have no interval.
        """
        ends = ("favoured", "over") if direction.sign else direction.names
        names = [*ends, "mean", "mean_low", "mean_high", "share", "share_low", "share_high", "largest"]
        m = len(self.given.values)
        several = self.outputs.shape[2] > 1
        if (several and direction.position is None) or m > _LISTED:
            return pd.DataFrame(columns=names)
        words, rows = self._words(np.arange(m)), []
        gains = direction.gains(self.outputs) * (2 if several else 1)  # of several classes, outputs are halves
        for i in range(m):
            for j in range(i):
                lead = gains[:, i] - gains[:, j]
                first, second, lead = (i, j, lead) if lead.mean() >= 0 else (j, i, -lead)
                n, n_favoured = len(lead), int((lead > 0).sum())
                between = mean_interval(lead, -1, 1) if self.limited else (np.nan, np.nan)
                shares = n_favoured / n, *share_interval(n_favoured, n)
                rows.append((words[first], words[second], float(lead.mean()), *between, *shares, float(lead.max())))
        table = pd.DataFrame(rows, columns=names)
        return table.sort_values("mean", ascending=False, kind="stable", ignore_index=True)

    def groups(self) -> pd.DataFrame:
        """Mean and largest effect for people by their own values, with intervals as in `mean_interval`."""
        rows: list[tuple[Any, ...]] = []
        own = self.space.words(self.space.table, self.space.rows, self.columns).iloc[:, 0]
        own = own.where(own.notna(), "blank")
        if len(self.columns) == 1 and own.nunique() <= _FEWEST:
            has_interval = self.mean_interval() is not None
            for value, members in pd.Series(self.effects).groupby(own.map(plain).map(str).to_numpy()):
                sizes: Any = members.to_numpy()
                ends = mean_interval(sizes) if has_interval else (np.nan, np.nan)
                rows.append((value, len(sizes), float(sizes.mean()), *ends, float(sizes.max())))
        return pd.DataFrame(rows, columns=["group", "n", "mean", "mean_low", "mean_high", "largest"])


class Alternatives(NamedTuple):
    """Values of columns that everybody is given.

    Attributes
    ----------
    values : ndarray of shape (n_alternatives, n_columns)
    all_tried : bool
        Whether these are all values of the domain, or all that people have.
    statement : str
        Which they are.
    """

    values: FloatArray
    all_tried: bool
    statement: str

    @classmethod
    def of(cls, space: InputSpace, columns: Sequence[int]) -> Alternatives:
        """All values of a column; where these are too many, those that people have, or some of them."""
        most = min(_MOST, max(_FEWEST, _ROWS // len(space.rows)))
        seen = space.rows[:, list(columns)]
        if len(columns) > 1:
            # NaN differs from itself: each blank would be a combination of its own. Values are finite.
            all_seen, counts = np.unique(np.where(np.isnan(seen), np.inf, seen), axis=0, return_counts=True)
            chosen = all_seen[np.argsort(-counts, kind="stable")[:most]]
            return cls._of_people(np.where(np.isinf(chosen), np.nan, chosen), len(all_seen), most, "combinations")
        (column,) = columns
        held = space.held[column]
        if isinstance(held, CategoricalDomain):
            return cls._of_domain(space.codes(column))
        n_seen = len(np.unique(seen[~np.isnan(seen) & held.holds(seen)]))
        every = space.few_values(column, most)
        if n_seen > _LISTED and every is not None:
            return cls._of_domain(every)
        return cls._of_people(spread_numbers(space, column, most)[:, None], n_seen, most, "values")

    @classmethod
    def _of_domain(cls, values: FloatArray) -> Alternatives:
        return cls(values[:, None], True, f"{_all(len(values))} values of the domain")

    @classmethod
    def _of_people(cls, values: FloatArray, n_seen: int, most: int, what: str) -> Alternatives:
        share = _all(n_seen) if n_seen <= most else f"{len(values):,} of the {n_seen:,}"
        return cls(values, n_seen <= most, f"{share} {what} that these people have")


def _all(n: int) -> str:
    return "both" if n == 2 else f"all {n:,}"


def spread_numbers(space: InputSpace, column: int, n_values: int) -> FloatArray:
    """Numbers of a column: the ends of its domain, those of people or quantiles, and a blank if there may be one."""
    held = space.held[column]
    assert not isinstance(held, CategoricalDomain)
    seen = space.rows[:, column]
    seen = seen[~np.isnan(seen) & held.holds(seen)]
    if len(np.unique(seen)) > n_values:
        seen = np.quantile(seen, np.linspace(0, 1, n_values), method="nearest")
    values = np.unique(np.concatenate([seen, held.at(np.array([held.first, held.last]))]))
    return space.or_blank(column, values)


def shown_pair(space: InputSpace, a: FloatArray, b: FloatArray) -> pd.DataFrame:
    """Two encoded people as a table, with their scores: of several classes, of the one in which they differ most."""
    outputs, probable = space.answers(np.stack([a, b]))
    scores = space.labels(probable=probable).pairs(outputs[:1], outputs[1:])
    table = space.people(np.stack([a, b]))
    name = "score" if outputs.shape[1] == 1 else f"score of {scores['outcome'].iloc[0]!s}"
    while name in table:  # a column of the people
        name = f"model's {name}"
    table[name] = [float(scores["score_a"].iloc[0]), float(scores["score_b"].iloc[0])]
    return table
