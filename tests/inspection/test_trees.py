"""Trees as they are read off a model add up to what it says."""

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from likewise.inspection.trees import leaf_range, read_trees

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
NUMBERS = X[:, 0] + np.sin(3 * X[:, 1])
LABELS = np.digitize(NUMBERS, [-0.5, 0.5])


def walked(trees, baseline, rows):
    """Values of the leaves that people come to, added up; by the borders, which are in the units of the rows."""
    out = np.repeat(np.atleast_2d(baseline), len(rows), axis=0).astype(float)
    out = np.broadcast_to(out, (len(rows), trees[0].values.shape[1])).copy()
    for tree in trees:
        for r, row in enumerate(rows):
            node = 0
            while tree.left[node] >= 0:
                node = tree.left[node] if row[tree.feature[node]] <= tree.border[node] else tree.right[node]
            out[r] += tree.values[node]
    return out


CASES = [
    (DecisionTreeRegressor(max_depth=3), "value"),
    (DecisionTreeClassifier(max_depth=2), "soft"),
    (DecisionTreeClassifier(max_depth=2), "hard"),
    (RandomForestRegressor(7, max_depth=3, random_state=0), "value"),
    (ExtraTreesRegressor(4, max_depth=3, random_state=0), "value"),
    (RandomForestClassifier(7, max_depth=2, random_state=0), "soft"),
    (RandomForestClassifier(7, max_depth=2, random_state=0), "trees"),
    (GradientBoostingRegressor(n_estimators=6, learning_rate=0.3, random_state=0), "value"),
    (GradientBoostingRegressor(n_estimators=6, learning_rate=0.05, init="zero", random_state=0), "value"),
    (HistGradientBoostingRegressor(max_iter=5, learning_rate=0.4, random_state=0), "value"),
]


@pytest.mark.parametrize(("model", "vote"), CASES)
def test_the_trees_of_a_model_add_up_to_its_votes(model, vote):
    classify = hasattr(model, "predict_proba")
    model.fit(X, LABELS if classify else NUMBERS)
    rows = RNG.normal(size=(40, 3)).astype(np.float32).astype(np.float64)
    found = walked(*read_trees(model, vote), rows)
    if not classify:
        expected = model.predict(rows)[:, None]
    elif vote == "soft":
        expected = model.predict_proba(rows)
    elif vote == "hard":
        expected = np.eye(3)[model.predict(rows)]
    else:
        expected = np.mean([np.eye(3)[tree.predict(rows).astype(int)] for tree in model.estimators_], axis=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_no_sum_of_trees_leaves_the_range_of_its_leaves():
    model = GradientBoostingRegressor(n_estimators=6, learning_rate=0.3, random_state=0).fit(X, NUMBERS)
    trees, baseline = read_trees(model, "value")
    low, high = leaf_range(trees, baseline)
    leaves = [tree.values[tree.left < 0, 0] for tree in trees]
    assert low == pytest.approx(baseline[0] + sum(leaf.min() for leaf in leaves))
    assert high == pytest.approx(baseline[0] + sum(leaf.max() for leaf in leaves))
    answers = model.predict(RNG.normal(size=(500, 3)) * 3)
    assert ((answers >= low) & (answers <= high)).all()
