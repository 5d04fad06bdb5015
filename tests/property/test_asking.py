"""What is found about a stranger's model is what brute force finds, however people are written down.

A finding is what `audit`, `attack`, `effect` or a minimal metric says. The model is fitted to the people as they are
given, with its columns in an order of its own; distances are the oracle's. A finding may also refuse.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import likewise as lw
from catalogue import (
    FORMS,
    METRICS,
    JaggedClassifier,
    accepts,
    by_position,
    covering,
    outcomes,
    persons,
    training_table,
)
from likewise.exceptions import LikewiseError
from oracle import Described, variation

ROUNDING = 1e-9
N_PEOPLE = 36
METRICS_USED = (
    "named, other order",
    "unnamed",
    "p = 2, unnamed",
    "Mahalanobis, unnamed",
    "function",
    "function of tables",
    "numbers of a table",
    "table",
    "blanks weigh 1",
    "order given",
    "intervals of the table",
    "groups",
)


def _two_spellings(frame, entry):
    """Codes as text, every second one with a decimal point."""
    if "code" not in frame:
        return frame
    odd = np.arange(len(frame)) % 2 == 1
    return frame.assign(code=[f"{int(c)}.0" if o else f"{int(c)}" for c, o in zip(frame["code"], odd, strict=True)])


def _two_blanks(frame, entry):
    """Every second blank None, the others NaN."""
    odd = np.arange(len(frame)) % 2 == 1
    changed = {
        name: pd.Series(
            [(np.nan if o else None) if pd.isna(v) else v for v, o in zip(frame[name], odd, strict=True)], dtype=object
        )
        for name in frame.columns
        if name in ("job", "race")
    }
    return frame.assign(**changed)


FORMS_USED = {
    name: FORMS[name]
    for name in (
        "as it is",
        "columns reversed",
        "columns sorted",
        "whole numbers as floats",
        "nullable dtypes",
        "objects",
        "decimals",
        "codes as 2.0",
        "codes of several types",
        "category dtype",
        "ordered dtype",
        "polars",
        "other index",
        "array",
    )
} | {"two spellings": _two_spellings, "two blanks": _two_blanks}


def _pipeline(X, last):
    """Categories one-hot coded, ordered ones too; numbers imputed."""
    numbers = [name for name in X.columns if name in ("age", "income", "wealth")]
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(make_column_transformer((SimpleImputer(), numbers), remainder=encode), last)


class Typed(JaggedClassifier):
    """A model that tells text from numbers, and a blank from another kind of blank."""

    def waves(self, X):
        codes = [(column if column.dtype == object else column.astype(object)) for _, column in X.items()]
        return super().waves(X) + sum(column.map(lambda v: type(v) in (str, float)).to_numpy() for column in codes)


MODELS = {
    "typed": lambda X: Typed(),
    "linear": lambda X: _pipeline(X, LogisticRegression(C=100, max_iter=2000)),
    "tree": lambda X: _pipeline(X, DecisionTreeClassifier(max_depth=6, random_state=0)),
    "jagged": lambda X: JaggedClassifier(),
    "linear, of an array": lambda X: LogisticRegression(C=100, max_iter=2000),
}


@dataclass(frozen=True)
class Found:
    """What is asked about a model of people in a form, and under which metric."""

    finding: str
    model: str
    metric: str
    given: str

    def __str__(self):
        return " | ".join(vars(self).values())

    @property
    def is_possible(self):
        entry = METRICS[self.metric]
        if self.model == "linear, of an array" and (not entry.is_array or self.metric == "numbers of a table"):
            return False
        refused = self.given == "codes of several types" or (self.given == "nullable dtypes" and entry.blanks)
        if refused and self.model in ("linear", "tree"):
            return False  # by scikit-learn's encoders
        if ("codes" in self.given or self.given == "two spellings") and "code" not in entry.columns:
            return False  # nothing would change
        if self.given == "two blanks" and not {*entry.blanks} & {"job", "race"}:
            return False
        return self.given not in FORMS or accepts(self.given, self.metric, given=True)


class Case:
    """A cell's model and people; what they get, and how far they are apart."""

    def __init__(self, cell):
        self.cell, self.entry = cell, METRICS[cell.metric]
        self.people = training_table(cell.metric, N_PEOPLE)
        self.X = FORMS_USED[cell.given](self.people, self.entry)
        self.metric = self.entry.make()
        self.columns = list(getattr(self.X, "columns", by_position(self.entry)))
        frame = self.X.to_pandas() if hasattr(self.X, "to_pandas") else self.X
        self.frame = frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(frame, columns=self.columns)
        self.as_array = cell.model == "linear, of an array"
        y = outcomes(self.people, "two", 2)
        self.model = MODELS[cell.model](self.frame)
        self.true_model = self.model.fit(self.taken(self.frame), y)
        self.outputs = self.ask(self.frame)
        self.D = self.described(self.metric).matrix(persons(self.people))

    def taken(self, frame):
        """People as the model was fitted to them: an order of its own, or that of the array."""
        if self.as_array:
            return frame[self.columns].to_numpy(dtype=float)
        if isinstance(self.X, np.ndarray):
            return frame[self.columns]
        return frame[sorted(self.columns, key=lambda name: name[::-1])]

    def ask(self, frame):
        if not isinstance(frame, pd.DataFrame):
            frame = pd.DataFrame(frame, columns=self.columns)
        return self.true_model.predict_proba(self.taken(frame))

    def described(self, metric):
        return Described(metric, self.columns, self.entry.ranks)

    def excess(self, metric=None):
        """How far the outputs of people exceed their distance; without pairs of equal people."""
        D = self.D if metric is None else self.described(metric).matrix(persons(self.people))
        return (variation(self.outputs) - D)[np.triu_indices(len(D), 1)]

    def pair(self, found):
        """Difference and distance of a pair that was found."""
        found = found.drop(columns="score", errors="ignore") if isinstance(found, pd.DataFrame) else found
        outputs = self.ask(found)
        frame = found if isinstance(found, pd.DataFrame) else pd.DataFrame(found, columns=self.columns)
        return variation(outputs)[0, 1], self.described(self.metric).matrix(persons(frame))[0, 1]


@lru_cache(maxsize=128)
def case_of(cell):
    return Case(cell)


def audited(case):
    """The audit counts the pairs that exceed the distance."""
    found, excess = lw.audit(case.model, case.X, case.metric), case.excess()
    if not (excess > 2 * ROUNDING).sum() <= found.n_violations <= (excess > ROUNDING / 2).sum():
        yield f"audit counts {found.n_violations}, and {(excess > ROUNDING).sum()} exceed"
    if abs(found.max_excess - max(0.0, excess.max())) > 2 * ROUNDING:
        yield f"audit says {found.max_excess:.3g}, and {excess.max():.3g} is true"


def attacked(case, **options):
    """The pair that an attack finds is as far apart as it says."""
    found = lw.attack(case.model, case.metric, case.X, n_pairs=2000, random_state=0, **options)
    if found.pair is not None:
        difference, distance = case.pair(found.pair)
        if abs(difference - found.difference) > 1e-6 or abs(distance - found.distance) > 1e-6 * (1 + distance):
            yield f"attack says {found.difference:.3g} at {found.distance:.3g}, and {difference:.3g} at {distance:.3g}"


def effect(case):
    """No exchange of a column between people changes an output by more than is proven."""
    column, worst = ("code" if "code" in case.columns else case.columns[0]), 0.0
    name = column if not isinstance(case.X, np.ndarray) else "feature 0"
    found = lw.effect(case.model, case.X, name, n_queries=200, max_seconds=2)
    for row in range(len(case.frame)):
        value = case.frame[column].iloc[[row] * len(case.frame)].set_axis(case.frame.index)
        worst = max(worst, float(variation_between(case.outputs, case.ask(case.frame.assign(**{column: value})))))
    if found.proven is not None and worst > found.proven + ROUNDING:
        yield f"effect proves {found.proven:.3g}, and {worst:.3g} is true"
    if found.pair is not None and not isinstance(case.X, np.ndarray):
        difference, _ = case.pair(found.pair)
        if abs(difference - found.found) > 1e-6:
            yield f"effect finds {found.found:.3g}, and {difference:.3g} is true"


def excess(case, **options):
    """No pair exceeds the distance by more than is proven, nor does one that differs in a column alone matter more."""
    column = "code" if "code" in case.columns else case.columns[0]
    name = column if not isinstance(case.X, np.ndarray) else "feature 0"
    whole = lw.effect(case.model, case.X, name, metric=case.metric, n_queries=200, max_seconds=2, **options)
    found, true, worst = whole.excess, case.excess().max(), whole.on_people["effect"].max()
    if whole.proven is not None and worst > whole.proven + ROUNDING:
        yield f"effect proves {whole.proven:.3g} under a metric, and {worst:.3g} is true"
    if found.proven is not None and true > found.proven + ROUNDING:
        yield f"an excess of {found.proven:.3g} is proven, and {true:.3g} is true"
    if found.pair is not None and not isinstance(case.X, np.ndarray):
        difference, distance = case.pair(found.pair)
        if abs(difference - distance - found.found) > 1e-6:
            yield f"an excess of {found.found:.3g} is found, and {difference - distance:.3g} is true"


def in_a_domain(finding):
    """The same where the domain is learned from the people, who may write codes as numbers."""
    return lambda case: finding(case, domain=lw.Domain.learn(case.X))


def minimal(case):
    """No pair of people of the domain exceeds the exact metric."""
    metric = lw.minimal_metric(case.model, case.frame, domain=lw.Domain.learn(case.frame))
    true = case.excess(metric).max()
    for name in case.frame.columns if case.cell.given.startswith("two") else ():
        # Somebody with everybody's value of a column, as it is written.
        table = case.frame.iloc[[0] * N_PEOPLE].set_axis(case.frame.index).assign(**{name: case.frame[name]})
        apart = variation(case.ask(table)) - case.described(metric).matrix(persons(table))
        true = max(true, float(apart.max()))
    if true > ROUNDING:
        yield f"the exact metric is exceeded by {true:.3g}"


def estimated(case):
    """No pair of the people exceeds the estimate, nor does a person with a value of another's."""
    metric = lw.estimate_minimal_metric(case.model, case.X).metric
    true = case.excess(metric).max()
    if true > 1e-8:
        yield f"the estimate is exceeded by {true:.3g}"


def variation_between(a, b):
    return 0.5 * np.abs(a - b).sum(axis=1).max()


FINDINGS = {
    "audit": audited,
    "attack": attacked,
    "effect": effect,
    "excess": excess,
    "attack in a domain": in_a_domain(attacked),
    "excess in a domain": in_a_domain(excess),
    "minimal": minimal,
    "estimate": estimated,
}
FACTORS = {"finding": list(FINDINGS), "model": list(MODELS), "metric": list(METRICS_USED), "given": list(FORMS_USED)}
PAIRS, _ = covering(2, factors=FACTORS, make=Found)
FOUND_BEFORE = [  # what was said of these was not true
    Found("audit", "typed", "table", "codes of several types"),
    Found("attack", "linear", "named, other order", "as it is"),
    Found("excess", "linear", "unnamed", "as it is"),
    Found("effect", "linear", "table", "two spellings"),
    Found("minimal", "linear", "table", "two spellings"),
    Found("minimal", "linear", "blanks weigh 1", "two blanks"),
    Found("excess in a domain", "linear", "table", "as it is"),
    Found("attack in a domain", "linear", "table", "as it is"),
    Found("audit", "linear, of an array", "named, other order", "columns sorted"),
]


def wrong(cell):
    """What a finding says that is not true; None if it refuses."""
    try:
        return list(FINDINGS[cell.finding](case_of(cell)))
    except LikewiseError:
        return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cell", list(dict.fromkeys([*FOUND_BEFORE, *PAIRS])), ids=str)
def test_what_is_found_is_true(cell):
    assert not wrong(cell)


class SwappedColumns(BaseEstimator, ClassifierMixin):
    """A model around another one, which it asks about the columns in another order under the right names.

    Its answers are drawn towards one half: the largest excess is that of people who get 0 and 1 in either order.
    """

    def __init__(self, inner):
        self.inner, self.classes_, self.feature_names_in_ = inner, inner.classes_, inner.feature_names_in_

    def predict_proba(self, X):
        return 0.05 + 0.9 * self.inner.predict_proba(pd.DataFrame(X.to_numpy()[:, ::-1], columns=X.columns))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("finding", ["audit", "attack", "excess"])
def test_control_a_model_that_is_asked_in_another_order_is_noticed(finding, monkeypatch):
    cell = Found(finding, "linear", "unnamed", "as it is")
    assert wrong(cell) == []
    case = Case(cell)
    monkeypatch.setattr(case, "model", SwappedColumns(case.model))
    assert [*FINDINGS[finding](case)]
