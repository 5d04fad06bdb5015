"""Comparative file review: denied people for whom an approved person is no better qualified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise._favourable import known_favourable, label_of
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise._validation import NON_NEGATIVE, check_count, counted, list_words, plain, short_repr
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.columns import is_numeric
from likewise.kernel.distance import CODE
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.metrics.base import Metric, check_metric
from likewise.pairs.model_outputs import OutputLabels
from likewise.pairs.points import Points, splits_of
from likewise.verification.domain import frame_of

_AT_ONCE = 2**20  # pairs that are compared at once, without a search
_MOST_LISTED = 1_000_000
_MOST_GROUPS = 20
_DIRECTIONS = ("higher", "lower", "same")


@dataclass(frozen=True, eq=False, repr=False)
class FileReview:
    """Denied people with comparators: approved people who are no better qualified.

    Attributes
    ----------
    files : DataFrame
        One row per denied person with a comparator, those with most of them first: ``row`` (position in X),
        ``n_comparators``, ``comparator`` (the closest one; without a metric, the first of the table) and ``distance``
        to it, NaN without a metric.
    pairs : DataFrame
        The closest comparators of each, or all: ``row``, ``comparator``, ``distance``, and ``differs``, all columns in
        which the two differ, those of weight 0 first. With groups, also ``group`` and ``comparator_group``.
    n_denied, n_approved : int
        People who were decided each way.
    n_pairs : int
        All pairs of a denied person and a comparator.
    rule : str
        What makes an approved person a comparator.
    better : mapping from column to "higher", "lower" or "same"
        The directions that were given.
    decisions : tuple
        The unfavourable and the favourable decision.
    recognised : bool
        Whether the favourable decision was known by its word, and not named.
    blanks : DataFrame
        People with a blank in a column of `better`: ``row``, ``decision``, ``columns`` (a list of these) and
        ``n_comparators`` (0 for those who were approved).
    groups : DataFrame or None
        With groups, for every group of the denied and every group of the approved: ``n_denied`` and ``n_approved``, how
        many of these denied people have a comparator among these approved (``n_files``), as a ``share``, and
        ``n_pairs``.
    """

    files: pd.DataFrame
    pairs: pd.DataFrame
    n_denied: int
    n_approved: int
    n_pairs: int
    rule: str
    better: Mapping[Any, str]
    decisions: tuple[Any, Any]
    recognised: bool
    blanks: pd.DataFrame
    groups: pd.DataFrame | None

    @property
    def headline(self) -> str:
        """What was found, in a line."""
        n, (no, yes) = len(self.files), self.decisions
        verb = "has" if n == 1 else "have"
        return (
            f"{n:,} of {counted(self.n_denied, 'person', 'people')} with the decision '{no}' {verb} a comparator, a "
            f"person with the decision '{yes}' {self.rule}; {counted(self.n_pairs, 'pair')} in all, of "
            f"{counted(self.n_denied + self.n_approved, 'person', 'people')}"
        )

    @property
    def coverage(self) -> str:
        """Which decision is taken for the favourable one, and who is compared with whom."""
        how = "recognised by the word" if self.recognised else "as named"
        text = f"Favourable decision: '{self.decisions[1]}' ({how}). All pairs of a person with '{self.decisions[0]}' "
        text += f"and a person with '{self.decisions[1]}' were compared."
        if len(self.blanks):
            alone = self.blanks["decision"].eq(self.decisions[0]) & self.blanks["n_comparators"].eq(0)
            among = set(self.blanks["columns"].explode())
            columns = list_words([name for name in self.better if name in among], "or")
            text += (
                f" {counted(len(self.blanks), 'person has', 'people have')} a blank in {columns}. A blank is compared "
                "with a blank only, as nobody knows whether it is better than a value. Of those with a blank and the "
                f"decision '{self.decisions[0]}', {int(alone.sum()):,} have no comparator."
            )
        return text

    def __repr__(self) -> str:
        return f"<FileReview: {self.headline}>"


def review_files(
    X: Any,
    decisions: Any,
    *,
    approved: Any = None,
    better: Mapping[Any, str] | None = None,
    metric: Metric | None = None,
    threshold: float | None = None,
    groups: Any = None,
    n_comparators: int | None = 5,
    output_range: tuple[float, float] | None = None,
) -> FileReview:
    """Find denied people for whom an approved person exists who is no better qualified.

    As examiners of fair lending compare files by hand. A comparator of a denied person is an approved person who

    - is no better in any column of `better` (dominance), and
    - is within `threshold` of them under `metric`,

    whichever is given, or both. The result is that of comparing all pairs of a denied and an approved person; a tree of
    boxes makes it fast, unless the metric is a function.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n_samples, n_features)
    decisions : array-like of shape (n_samples,)
        Two values.
    approved : object, optional
        The value of `decisions` that is the favourable one. Known words need none: approved and denied, granted and
        refused, paid and default, and the like; yes and no, 1 and 0 under a name such as ``decision`` or
        ``loan_approved``. Of other values it must be given.
    better : mapping from column to "higher", "lower" or "same", optional
        Which values of a column qualify better. Under "same" only equal values compare. A blank compares with a blank
        only: see ``FileReview.blanks`` for the people with one.
    metric : Metric, optional
        Also orders comparators: the closest comes first. It says how far a blank is away.
    threshold : float, optional
        Largest distance; needs `metric`.
    groups : array-like of shape (n_samples,), optional
        A group for each person, such as their sex, to count the denied people of each group with a comparator in each:
        denied women beside approved men, say.
    n_comparators : int or None, default=5
        How many comparators to list for each person; None lists all.
    output_range : tuple of float, optional
        Lowest and highest score, if the metric is of scores that are no probabilities: the threshold, a share of this
        range, is said in their unit.

    Returns
    -------
    FileReview

    Examples
    --------
    >>> X = pd.DataFrame({"income": [50, 40, 60], "debt": [10, 12, 5]})
    >>> found = review_files(X, ["denied", "granted", "granted"], better={"income": "higher", "debt": "lower"})
    >>> found.files[["row", "n_comparators", "comparator"]]
       row  n_comparators  comparator
    0    0              1           1
    """
    frame = frame_of(X)
    if better is not None and not isinstance(better, Mapping):
        raise InvalidTypeError(
            f"better must map columns to 'higher', 'lower' or 'same', such as {{'income': 'higher'}}; got "
            f"{short_repr(better)}."
        )
    if threshold is not None:
        NON_NEGATIVE.check("threshold", threshold)
    denied, granted, both = _sides(decisions, approved, len(frame))
    if better is None and threshold is None:
        raise InvalidInputError("Give better, the directions in which columns qualify, or metric and threshold.")
    if threshold is not None and metric is None:
        raise InvalidInputError(f"threshold must come with a metric; got {float(threshold):g} alone.")
    if n_comparators is not None:
        n_comparators = check_count("n_comparators", n_comparators)
    metric = None if metric is None else check_metric(metric)
    search = _Search(frame, better or {}, metric, X, np.inf if threshold is None else float(threshold))
    found = search.comparators(denied, granted, n_comparators)
    order = np.lexsort((denied, found.distances[:, 0], -found.counts))
    order = order[found.counts[order] > 0]
    rows, held = denied[order], _Found(found.counts[order], found.nearest[order], found.distances[order])
    closest, distances = granted[held.nearest[:, 0]], held.distances[:, 0]
    files = pd.DataFrame({"row": rows, "n_comparators": held.counts, "comparator": closest, "distance": distances})
    pairs = search.pairs(held, rows, granted, n_comparators)
    if metric is None:
        files["distance"] = pairs["distance"] = np.nan
    hidden = [] if metric is None else metric.hidden
    pairs["differs"] = _differs(frame, pairs["row"], pairs["comparator"], hidden)
    counts = np.zeros(len(frame), np.int64)
    counts[denied] = found.counts
    tally = None
    if groups is not None:
        kinds = _group_names(groups, len(frame))
        tally = search.groups(denied, granted, kinds)
        pairs = pairs.assign(group=kinds[pairs["row"]], comparator_group=kinds[pairs["comparator"]])
    return FileReview(
        files=files,
        pairs=pairs,
        n_denied=len(denied),
        n_approved=len(granted),
        n_pairs=int(found.counts.sum()),
        rule=_rule(better or {}, threshold, OutputLabels.of_range(output_range)),
        better=dict(better or {}),
        decisions=both,
        recognised=approved is None,
        blanks=_blanks(search.blank, granted, both, counts),
        groups=tally,
    )


def _rule(better: Mapping[Any, str], threshold: float | None, labels: OutputLabels) -> str:
    """What makes an approved person a comparator, in words."""
    ordered = list_words([name for name, direction in better.items() if direction != "same"], "or")
    equal = list_words([name for name, direction in better.items() if direction == "same"])
    near = "" if threshold is None else f"within a distance of {labels.written(threshold)}"
    parts = [ordered and f"no better in {ordered}", equal and f"the same in {equal}", near]
    return "who is " + list_words([part for part in parts if part])


def _sides(decisions: Any, approved: Any, n: int) -> tuple[Any, Any, tuple[Any, Any]]:
    """Positions of denied and of approved people, and the two decisions."""
    try:
        values = pd.Series(decisions).reset_index(drop=True)
        values.map(hash)
    except (TypeError, ValueError):
        raise InvalidTypeError(f"decisions must be one value for each person; got {short_repr(decisions)}.") from None
    kinds = sorted(values.dropna().unique().tolist(), key=lambda value: (str(type(value)), value))
    if len(values) != n or values.isna().any() or len(kinds) != 2:
        raise InvalidInputError(
            f"decisions must be one of two values for each of {n:,} people, none missing; got {len(values):,} with "
            f"{short_repr(kinds[:5])}."
        )
    if approved is None:
        wanted = known_favourable(kinds, "decision" if values.name is None else values.name)
        if wanted is None:
            raise InvalidInputError(
                f"approved must be given, the favourable one of the decisions {kinds}: no word among them says so."
            ).in_commands(
                f"Give --approved, the favourable one of the decisions {kinds[0]!r} and {kinds[1]!r}: it is not known "
                "from these words."
            )
    else:
        wanted = label_of(approved, kinds, "approved", "--approved")
    yes = (values == wanted).to_numpy()
    other = next(kind for kind in kinds if kind != wanted)
    return np.flatnonzero(~yes), np.flatnonzero(yes), (other, wanted)


def _group_names(groups: Any, n: int) -> Any:
    """The group of each person as text."""
    if np.ndim(groups) > 1:
        raise InvalidInputError(
            f"groups must hold one value per person; got the shape {np.shape(groups)}. Pass one column."
        )
    values = pd.Series(groups).reset_index(drop=True)
    names = values.astype(object).where(values.notna(), "blank").map(str).to_numpy(dtype=object)
    n_kinds = len(set(names.tolist()))
    if len(names) != n or not 2 <= n_kinds <= _MOST_GROUPS:
        raise InvalidInputError(
            f"groups must hold one of 2 to {_MOST_GROUPS} values for each of {n:,} people; got {len(names):,} with "
            f"{n_kinds} values."
        )
    return names


def _blanks(blank: Mapping[Any, BoolArray], granted: Any, both: tuple[Any, Any], counts: IntArray) -> pd.DataFrame:
    """Everybody with a blank in a column by which files are compared."""
    rows = np.flatnonzero(np.any([*blank.values(), np.zeros(len(counts), bool)], axis=0))
    return pd.DataFrame(
        {
            "row": rows,
            "decision": [both[int(row)] for row in np.isin(rows, granted)],
            "columns": [[name for name, absent in blank.items() if absent[row]] for row in rows],
            "n_comparators": counts[rows],
        }
    )


class _Found(NamedTuple):
    """Comparators of each denied person: how many, the closest as positions among the approved, and their distances."""

    counts: IntArray
    nearest: IntArray
    distances: FloatArray


class _Search:
    """Approved people who are close to denied ones and no better, among any of both.

    A comparator must not exceed the `numbers`, of which less is no better, and must have the same `codes`. Whether a
    number is `blank` is one of the codes, so that two blanks compare, and a blank and a value do not.
    """

    def __init__(
        self, frame: pd.DataFrame, better: Mapping[Any, str], metric: Metric | None, X: Any, threshold: float
    ) -> None:
        numbers, codes, self.blank = [], [], dict[Any, BoolArray]()
        for name, direction in better.items():
            if name not in frame or not isinstance(direction, str) or direction not in _DIRECTIONS:
                raise InvalidInputError(
                    f"better must map columns of X, {short_repr(list(frame))}, to one of {_DIRECTIONS}; got "
                    f"{short_repr(direction)} for {name!r}."
                )
            column = frame[name]
            absent = self.blank[name] = column.isna().to_numpy()
            if direction == "same":
                codes.append(pd.factorize(column, use_na_sentinel=False)[0].astype(np.float64))
                continue
            if not is_numeric(column):
                raise InvalidInputError(f"{name!r} must hold numbers to be higher or lower. Use 'same' for categories.")
            values: FloatArray = np.where(absent, 0.0, column.to_numpy(np.float64, na_value=np.nan))
            numbers.append(values if direction == "higher" else -values)
            if absent.any():
                codes.append(absent.astype(np.float64))
        none = np.empty((len(frame), 0))
        self.numbers, self.codes = (np.column_stack([none, *parts]) for parts in (numbers, codes))
        self.metric: BoundMetric | None
        self.people: People | None
        self.metric, self.people = (None, None) if metric is None else metric.read(X)
        self.threshold = threshold

    def comparators(self, denied: Any, granted: Any, n: int | None) -> _Found:
        """How many there are, and the `n` closest (None: the closest)."""
        from likewise.pairs.comparators import Qualifications, find_comparators

        n = n or 1
        # Boxes bound no distance of a function, or of a matrix of categories without `splits_of`.
        has_boxes = self.metric is None or splits_of(self.metric) is not None
        if len(denied) * len(granted) <= _AT_ONCE or not has_boxes:
            return self._every_pair(denied, granted, n)
        points, kinds, scales, p = np.empty((len(self.numbers), 0)), np.empty(0, np.int8), np.empty(0), 1.0
        if self.people is not None and self.metric is not None:
            held = Points.among(self.people, np.array(self.people.missing(), dtype=np.int64), self.metric)
            scales, p = held.scales, self.metric.p
            used = np.flatnonzero(scales > 0)
            used = used[np.argsort(held.kinds[used] == CODE, kind="stable")]
            points, kinds, scales = held.X[:, used], held.kinds[used], scales[used]
        everybody = Qualifications(np.ascontiguousarray(points), self.numbers, self.codes)
        sides = everybody.take(denied), everybody.take(granted)
        return _Found(*find_comparators(*sides, kinds, scales, p, self.threshold, n))

    def pairs(self, found: _Found, denied: Any, granted: Any, n: int | None) -> pd.DataFrame:
        """The closest comparators of denied people, as `found`, or with no `n` all of them."""
        n_pairs, listed = int(found.counts.sum()), found.nearest >= 0
        rows, near, away = np.nonzero(listed)[0], found.nearest[listed], found.distances[listed]
        if n is None and n_pairs > _MOST_LISTED:
            raise InvalidInputError(
                f"n_comparators must be a number, such as 5: there are {n_pairs:,} pairs, and at most "
                f"{_MOST_LISTED:,} can be listed."
            ).in_commands(
                f"Give --comparators, such as 5, how many to write for each person: there are {n_pairs:,} pairs, "
                f"and at most {_MOST_LISTED:,} can be written."
            )
        if n is None and n_pairs:
            every = [(np.full(len(order), i), order, far) for i, (order, far) in self._blocks(denied, granted)]
            rows, near, away = (np.concatenate(part) for part in zip(*every, strict=True))
        return pd.DataFrame({"row": denied[rows], "comparator": granted[near], "distance": away})

    def groups(self, denied: Any, granted: Any, kinds: Any) -> pd.DataFrame:
        """How many denied people of each group have a comparator in each group."""
        rows, names = [], sorted(set(kinds.tolist()))
        for other in names:
            some = granted[kinds[granted] == other]
            counts = self.comparators(denied, some, 1).counts
            for own in names:
                here = counts[kinds[denied] == own]
                n_files = int((here > 0).sum())
                share = n_files / len(here) if len(here) else np.nan
                rows.append((own, other, len(here), len(some), n_files, share, int(here.sum())))
        head = ["denied", "approved", "n_denied", "n_approved", "n_files", "share", "n_pairs"]
        return pd.DataFrame(rows, columns=head).sort_values(["denied", "approved"], ignore_index=True)

    def _every_pair(self, denied: Any, granted: Any, n: int) -> _Found:
        """The same by comparing every pair."""
        counts = np.zeros(len(denied), np.int64)
        nearest, kept = np.full((len(denied), n), -1), np.full((len(denied), n), np.inf)
        for i, (order, distances) in self._blocks(denied, granted):
            counts[i] = len(order)
            nearest[i, : len(order)], kept[i, : len(order)] = order[:n], distances[:n]
        return _Found(counts, nearest, kept)

    def _blocks(self, denied: Any, granted: Any) -> Iterator[tuple[int, tuple[IntArray, FloatArray]]]:
        """Every denied person who has comparators, and all of these, the closest first, with their distances."""
        size = max(1, _AT_ONCE // max(1, len(granted)))
        for start in range(0, len(denied), size):
            block = denied[start : start + size]
            fine = (self.numbers[granted][None] <= self.numbers[block][:, None]).all(axis=2)
            fine &= (self.codes[granted][None] == self.codes[block][:, None]).all(axis=2)
            distances = np.zeros(fine.shape)
            if self.metric is not None and self.people is not None:
                distances = self.metric.cross(self.people.take(block), self.people.take(granted))
            fine &= distances <= self.threshold
            for i in np.flatnonzero(fine.any(axis=1)):
                order = np.flatnonzero(fine[i])
                order = order[np.argsort(distances[i, order], kind="stable")]
                yield start + int(i), (order, distances[i, order])


def _differs(frame: pd.DataFrame, rows: Any, others: Any, hidden: Sequence[Any]) -> list[str]:
    """All columns in which two people differ, with both values; those that must not matter first."""
    parts: list[list[str]] = [[] for _ in range(len(rows))]
    for name in [*(name for name in hidden if name in frame), *(name for name in frame if name not in set(hidden))]:
        values, blank = frame[name].to_numpy(dtype=object), frame[name].isna().to_numpy()
        a, b = values[rows], values[others]
        for i in np.flatnonzero((a != b) & ~(blank[rows] & blank[others])):
            parts[i].append(f"{name}: {plain(a[i])} / {plain(b[i])}")
    return [", ".join(each) for each in parts]
