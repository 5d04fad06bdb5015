"""What a distance is, and what a model promises, written down again from the documentation.

Exact fractions and the plainest code. Nothing of the library is imported: a metric is read through the public
attributes of its description (`docs/tables.md`, `docs/theory.md`), so that no reader, binding or kernel can make the
same mistake twice. A person is a mapping from column to value, as somebody would say it: 30, "north", True, None.
"""

import math
import re
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pandas as pd

BLANK = "(blank)"
UP = 1 + 1e-12  # pays for a root that is no fraction


def category(value):
    """The text by which categories are compared: whole numbers by their digits, also those written as 2.0."""
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return BLANK
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, str):
        whole = re.fullmatch(r"-?(0|[1-9]\d{0,14})\.0", value)
        return value[:-2] if whole else value
    if isinstance(value, (int, float, np.number)):
        return str(int(value)) if value == int(value) else repr(float(value))
    return str(value)


def is_blank(value):
    return category(value) == BLANK or (isinstance(value, str) and not value.strip())


@dataclass(frozen=True)
class Described:
    """A metric's description, with what it leaves to the table that a model was fitted to.

    `columns` are that table's columns in the order in which it was given, for metrics that go by position, and `ranks`
    the categories of its ordered columns.
    """

    metric: object
    columns: list
    ranks: dict = field(default_factory=dict)

    def distance(self, a, b):
        """D(a, b), never too small: a fraction where p is 1 or infinite, else a float rounded up."""
        kind = type(self.metric).__name__
        return {
            "WeightedLp": self._weighted_lp,
            "TableMetric": self._table,
            "MahalanobisMetric": self._mahalanobis,
            "FunctionMetric": self._function,
        }[kind](a, b)

    def matrix(self, people):
        """Distances between all people, as floats that are not too small."""
        found = np.zeros((len(people), len(people)))
        for i, a in enumerate(people):
            for j in range(i):
                exact = self.distance(a, people[j])
                near = float(exact)
                found[i, j] = found[j, i] = near if near >= exact else np.nextafter(near, np.inf)
        return found

    def _weighted_lp(self, a, b):
        names = self.metric.feature_names or self.columns
        terms = [(w, a[name], b[name]) for name, w in zip(names, self.metric.weights.tolist(), strict=True)]
        return norm([(Fraction(w), gap(x, y)) for w, x, y in terms], self.metric.p)

    def _table(self, a, b):
        metric, numbers, rest = self.metric, [], Fraction(0)
        for name, weight in metric.numeric.items():
            if not weight:
                continue  # whatever it holds, and whether it is there
            x, y = a[name], b[name]
            costs = [self._cost_of_state(name, value) for value in (x, y)]
            if any(costs):  # of a blank and a code, or two codes, the one further from numbers says how far
                same = is_blank(x) if is_blank(y) else not is_blank(x) and Fraction(x) == Fraction(y)
                rest += 0 if same else max(costs)
            elif is_blank(x) == is_blank(y) and not is_blank(x):
                ranks = metric.order.get(name) or self.ranks.get(name)
                if ranks:
                    x, y = (rank(value, ranks) for value in (x, y))
                numbers.append((Fraction(weight), gap(x, y)))
        for name, weight in metric.categorical.items():
            if weight:
                rest += Fraction(weight) * self._share(name, category(a[name]), category(b[name]))
        return norm(numbers, metric.p) + rest

    def _cost_of_state(self, name, value):
        """Distance from any number, if it is a blank or a special code; 0 for numbers."""
        if is_blank(value):
            return Fraction(self.metric.missing[name])
        codes = {Fraction(code): Fraction(cost) for code, cost in self.metric.special.get(name, {}).items()}
        return codes.get(Fraction(value), Fraction(0)) if codes else Fraction(0)

    def _share(self, name, x, y):
        """Share of the column's weight between two categories."""
        if x == y:
            return Fraction(0)
        if name in self.metric.groups:
            groups = [[category(each) for each in group] for group in self.metric.groups[name]["groups"]]
            together = any(x in group and y in group for group in groups)
            return Fraction(self.metric.groups[name]["within"]) if together else Fraction(1)
        if name in self.metric.distances:
            rows = self.metric.distances[name]
            known = {(category(p), category(q)): Fraction(d) for p, row in rows.items() for q, d in row.items()}
            found = known.get((x, y), known.get((y, x)))
            return Fraction(1) if found is None else found / max(known.values())
        return Fraction(1)

    def _mahalanobis(self, a, b):
        names = self.metric.feature_names or self.columns
        moved = [Fraction(a[name]) - Fraction(b[name]) for name in names]
        rows = [abs(sum(Fraction(c) * m for c, m in zip(row, moved, strict=True))) for row in self.metric.components]
        return norm([(Fraction(1), size) for size in rows], self.metric.p)

    def _function(self, a, b):
        rows = [pd.DataFrame([{name: each[name] for name in self.columns}]) for each in (a, b)]
        if not self.metric.takes_tables:
            rows = [row.to_numpy(dtype=float) for row in rows]
        return Fraction(self.metric.scale) * Fraction(float(np.ravel(self.metric.function(*rows))[0]))


def gap(x, y):
    return abs(Fraction(x) - Fraction(y))


def rank(value, ranks):
    texts = [category(each) for each in ranks]
    return texts.index(category(value))


def norm(terms, p):
    """``(sum w |x|^p)^(1/p)``, and ``max w |x|`` for an infinite p: the weight is inside the power."""
    if not terms:
        return Fraction(0)
    if p == 1:
        return sum((w * x for w, x in terms), Fraction(0))
    if math.isinf(p):
        return max(w * x for w, x in terms)
    largest = max(x for _, x in terms)
    if not largest:
        return Fraction(0)
    inside = math.fsum(float(w) * float(x / largest) ** p for w, x in terms)
    return float(largest) * inside ** (1 / p) * UP


# -- what a method promises at a distance ------------------------------------------------------------------------------

PROMISES = {
    "logistic": math.tanh,  # log-odds differ by at most 4 D
    "probit": lambda D: math.erf(math.sqrt(math.pi) / 2 * D),
    "gaussian": lambda D: math.erf(math.sqrt(math.pi) / 2 * D),
    "laplace": lambda D: -math.expm1(-D),
    "line": lambda D: min(1.0, D),
}
"""Largest total variation at a distance D, by what limits it (`docs/theory.md` §4, §10, §11)."""


def variation(outputs):
    """Total variation between all people's class probabilities, or differences of single numbers."""
    share = 0.5 if outputs.shape[1] > 1 else 1.0
    return share * np.abs(outputs[:, None] - outputs[None]).sum(axis=-1)


def sets_of_classes(n):
    """Every set of classes that is neither empty nor everything, up to complements."""
    return [[k for k in range(n) if code >> k & 1] for code in range(1, 2 ** (n - 1))]
