"""What is attacked: all methods, under metrics and outputs of all kinds, each as steep as its metric lets it be.

Outcomes are steeper than the metrics allow, so what is fitted uses up what is allowed, and an error of a percent shows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    FunctionMetric,
    LipschitzClassifier,
    LipschitzRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
    SmoothedClassifier,
    SmoothedRegressor,
    TableMetric,
    WeightedLp,
)
from promised import falsified, promise

EXPONENTS = (1, 1.5, 2, 3, np.inf)
NETWORK = {"hidden_layer_sizes": (16, 16), "n_steps": 150, "random_state": 0}


@dataclass(frozen=True)
class Case:
    """A model to attack.

    Attributes
    ----------
    method, metric, columns, outputs : str
        In words, for the table.
    make : callable
        Gives the fitted model and the people it was fitted on.
    thinned : int
        A case that costs so many times what others do has that many times fewer pairs.
    """

    method: str
    metric: str
    columns: str
    outputs: str
    make: Callable[[], tuple[Any, Any]]
    thinned: int = 1

    @property
    def name(self) -> str:
        """For files and tests."""
        return " ".join([self.method, self.metric, self.columns, self.outputs])


@lru_cache(maxsize=1)
def numbers():
    """Four columns of numbers, the last of which must not matter, and an outcome that jumps."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * [1.0, 10.0, 0.1, 1.0]
    return X, np.sin(2 * X[:, 0]) + X[:, 1] / 10 + 3 * X[:, 2] + 2 * X[:, 3]


def weighted(p):
    scales = np.array([0.2, 0.03, 1.5, 0.0])
    return WeightedLp(scales ** (1 if np.isinf(p) else p), p)


@lru_cache(maxsize=1)
def applicants():
    """Every kind of column: whole numbers, missing ones, ordered and other categories, some that must not matter."""
    rng = np.random.default_rng(1)
    n = 300
    people = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.normal(50, 20, n),
            "stage": pd.Categorical.from_codes(rng.integers(0, 4, n), ["a", "b", "c", "d"], ordered=True),
            "zip": rng.normal(size=n),
            "region": rng.choice(["north", "south", "west"], n),
            "owner": rng.random(n) < 0.5,
            "code": pd.Categorical(rng.choice(["k", "l", "m"], n)),
            "race": rng.choice(["x", "y"], n),
        }
    )
    score = (people.age - 50) / 8 + people.income / 20 - 2.5 + 2 * (people.region == "north") - 2 * people.owner
    score += people.stage.cat.codes - 1.5 + 3 * people.zip + 3 * (people.race == "x")
    people.loc[rng.random(n) < 0.2, "income"] = np.nan
    people.loc[rng.random(n) < 0.1, "region"] = None
    return people, score.to_numpy()


def tabular():
    return TableMetric(
        {"age": 0.01, "income": 0.006, "stage": 0.05, "zip": 0},
        {"region": 0.12, "owner": 0.08, "code": 0.03, "race": 0},
        missing={"income": 0.1},
    )


def angle(A, B):
    """A distance of one's own: between directions, and the lengths besides."""
    a, b = (np.column_stack([M[:, 0], M[:, 1] / 10]) for M in (A, B))
    turned = np.abs(np.arctan2(a[:, 0], a[:, 1]) - np.arctan2(b[:, 0], b[:, 1]))
    return 0.1 * np.minimum(turned, 2 * np.pi - turned) + 0.2 * np.abs(a - b).max(axis=1)


def unlike(A, B):
    """A distance between rows of tables: years, and 0.2 for another region."""
    return 0.01 * np.abs(A["age"] - B["age"]) + 0.2 * (A["region"].map(str) != B["region"].map(str))


def checkered(rows):
    """A model that jumps everywhere."""
    return (np.floor(3 * rows[:, 0]) + np.floor(rows[:, 1] / 4) + (rows[:, 3] > 0)) % 2


def checkered_table(table):
    region = table["region"].astype(object).eq("north")
    return (np.floor(table["age"] / 10) + region + table["owner"].astype(bool) + table["income"].isna()) % 2


def tree_of_tables():
    """A tree that sees all columns."""
    text = ["stage", "region", "owner", "code", "race"]
    encode = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
    return make_pipeline(
        make_column_transformer((encode, text), remainder="passthrough"),
        DecisionTreeClassifier(max_depth=3, random_state=0),
    )


def fitted(model, data, outcome):
    X, score = data()
    y = {
        "classes": score > 0,
        "three": np.digitize(score, [-1.0, 1.0]),
        "numbers": score,
    }[outcome]
    return model.fit(X, y), X


def jump(people):
    """0 or 1, by one number."""
    column = people[:, 0] if isinstance(people, np.ndarray) else people["age"] - 50
    return np.asarray(column > 0, dtype=float)


def claiming(model, metric):
    """The same model, with a guarantee about another metric."""
    own = model.guarantee_
    claim = promise(metric, own.curve, own.level, own.basis, own.slack, own.delta, own.n_draws, own.output_range)
    model.scorer_ = falsified(model.scorer_, guarantee=claim)
    return model


def controls():
    """Models of each way that were allowed 1% more than they claim: a search must find that."""
    found = []
    stump = DecisionTreeClassifier(max_depth=1, random_state=0)

    def add(method, columns, p, model, thinned=1):
        metric, data = (weighted(p), numbers) if columns == "numbers" else (tabular(), applicants)

        def make():
            X, score = data()
            y = score > 0 if method == "additive" else jump(X)  # where each is steepest
            return claiming(model.with_metric(metric.scaled(1.01)).fit(X, y), metric), X

        kind = "Lp" if columns == "numbers" else "table"
        found.append(Case(method, f"{kind} p={p:g}", columns, "1% too much", make, thinned))

    for columns, exponents in (("numbers", (1, 2, np.inf)), ("all kinds", (1,))):
        add("additive", columns, 1, AdditiveClassifier(penalty=1e-4))
        for p in exponents:
            add("network", columns, p, LipschitzClassifier(**NETWORK))
            add("projection", columns, p, ProjectedClassifier(jump, base=0.5))
    # Under other norms, the noise of a splitting is wider than it must be; on a grid, its cells are cut to whole steps.
    add("smoothing", "numbers", 1, SmoothedClassifier(stump, noise="splitting", n_draws=1000), thinned=3)
    add("smoothing", "numbers", 2, SmoothedClassifier(LogisticRegression(), noise="gaussian"))
    return found


def cases():
    """All of them, in the order of the table."""
    found = []

    def add(method, metric, columns, outputs, model, data, outcome="classes", thinned=1):
        found.append(Case(method, metric, columns, outputs, lambda: fitted(model, data, outcome), thinned))

    for method, classifier, regressor, options in (
        ("additive", AdditiveClassifier, AdditiveRegressor, {"penalty": 1e-4}),
        ("network", LipschitzClassifier, LipschitzRegressor, NETWORK),
    ):
        for p in EXPONENTS if method == "network" else (1,):
            add(method, f"Lp p={p:g}", "numbers", "logistic", classifier(weighted(p), **options), numbers)
        add(method, "table p=1", "all kinds", "logistic", classifier(tabular(), **options), applicants)
        for link in ("probit", "clip"):
            linked = {"link": link, **({"loss": "hinge"} if (method, link) == ("network", "clip") else {}), **options}
            add(method, "table p=1", "all kinds", link, classifier(tabular(), **linked), applicants)
            if method == "network":
                add(method, "Lp p=2", "numbers", link, classifier(weighted(2), **linked), numbers)
        add(method, "Lp p=1", "numbers", "3 classes", classifier(weighted(1), **options), numbers, "three")
        add(method, "table p=1", "all kinds", "a number", regressor(tabular(), **options), applicants, "numbers")
        if method == "network":
            add(method, "Lp p=inf", "numbers", "a number", regressor(weighted(np.inf), **options), numbers, "numbers")

    tree, seeded = DecisionTreeClassifier(random_state=0), {"random_state": 0}
    add(
        "projection", "Lp p=1", "numbers", "2 classes", ProjectedClassifier(tree, metric=weighted(1), **seeded), numbers
    )
    add("projection", "table p=1", "all kinds", "2 classes, constant base",
        ProjectedClassifier(checkered_table, metric=tabular(), base=0.4, **seeded), applicants)  # fmt: skip
    add("projection", "table p=1", "all kinds", "2 classes, additive base",
        ProjectedClassifier(checkered_table, metric=tabular(), base=AdditiveClassifier(penalty=1e-4), **seeded),
        applicants)  # fmt: skip
    add("projection", "Lp p=2", "numbers", "a number",
        ProjectedRegressor(DecisionTreeRegressor(random_state=0), metric=weighted(2), **seeded), numbers,
        "numbers")  # fmt: skip
    add("projection", "function", "numbers", "2 classes",
        ProjectedClassifier(tree, metric=FunctionMetric(angle), n_anchors=100, **seeded), numbers)  # fmt: skip
    add("projection", "function of tables", "all kinds", "2 classes",
        ProjectedClassifier(checkered_table, metric=FunctionMetric(unlike, takes_tables=True), n_anchors=50, **seeded),
        applicants, thinned=200)  # fmt: skip

    def smooth(metric, columns, outputs, inner, data, outcome="classes", regress=False, **options):
        kind = SmoothedRegressor if regress else SmoothedClassifier
        add("smoothing", metric[0], columns, outputs, kind(inner, metric=metric[1], **seeded, **options), data, outcome)

    for p in EXPONENTS:
        smooth((f"Lp p={p:g}", weighted(p)), "numbers", "hard, linear formula",
               LogisticRegression(), numbers, noise="gaussian")  # fmt: skip
    shallow = DecisionTreeClassifier(max_depth=3, random_state=0)
    for p in (1, 2, np.inf):
        smooth((f"Lp p={p:g}", weighted(p)), "numbers", "hard, cells", shallow, numbers, noise="splitting",
               n_draws=100)  # fmt: skip
        smooth((f"Lp p={p:g}", weighted(p)), "numbers", "soft, tree formula",
               DecisionTreeClassifier(max_depth=5, random_state=0), numbers, vote="soft",
               noise="uniform" if p == 1 else "gaussian")  # fmt: skip
    smooth(("table p=1", tabular()), "all kinds", "hard, cells", tree_of_tables(), applicants,
           noise="splitting", n_draws=50)  # fmt: skip
    smooth(("Lp p=1", weighted(1)), "numbers", "3 classes, forest formula", RandomForestClassifier(5, max_depth=4),
           numbers, "three", vote="trees", noise="uniform")  # fmt: skip
    smooth(("Lp p=1", weighted(1)), "numbers", "a number, tree formula",
           DecisionTreeRegressor(max_depth=5, random_state=0), numbers, "numbers", regress=True)  # fmt: skip
    smooth(("Lp p=2", weighted(2)), "numbers", "hard, sampled", shallow, numbers, noise="gaussian",
           n_draws=200)  # fmt: skip
    smooth(("Lp p=3", weighted(3)), "numbers", "hard, sampled", shallow, numbers, noise="laplace",
           n_draws=200)  # fmt: skip
    return found
