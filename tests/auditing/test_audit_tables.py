"""Every pair of people in real tables, by `audit`: before smoothing some exceed the metric, afterwards none does."""

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from likewise import SmoothedClassifier, TableMetric, audit, estimate_minimal_metric
from likewise.datasets import fetch_adult, fetch_compas, load_mortgages

needs_data = pytest.mark.skipif("LIKEWISE_DATA" not in os.environ, reason="set LIKEWISE_DATA to run on real data")
N_TRAIN, N_PEOPLE, N_DRAWS = 3000, 2000, 200

TABLES = {
    "adult": pytest.param(lambda: fetch_adult(columns="all"), marks=needs_data),
    "compas": pytest.param(fetch_compas, marks=needs_data),
    "mortgages": load_mortgages,
}


def rough_metric(X, zero, strictness=0.4):
    """One standard deviation is worth `strictness`, a mismatch half of it, a missing number as much as a mismatch."""
    numbers = [name for name in X.columns if pd.api.types.is_numeric_dtype(X[name]) and X[name].dtype != bool]
    return TableMetric(
        {name: 0 if name in zero else strictness / (X[name].std() or 1) for name in numbers},
        {name: 0 if name in zero else strictness / 2 for name in X.columns if name not in numbers},
        missing=dict.fromkeys(numbers, strictness / 2),
    )


def boosted(X):
    text = [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]
    encode = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-2, encoded_missing_value=-1)
    encode = make_column_transformer((encode, text), remainder="passthrough")
    return make_pipeline(encode, HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=15, random_state=0))


@pytest.mark.parametrize("load", TABLES.values(), ids=TABLES)
def test_no_pair_exceeds_its_bound_and_nobody_sees_race_or_sex(load):
    bunch = load()
    X, y = bunch.data, np.asarray(bunch.target)
    zero = [name for name in ("race", "sex") if name in X.columns]
    assert zero
    metric = rough_metric(X, zero)
    people = X[-N_PEOPLE:].reset_index(drop=True)
    model = SmoothedClassifier(boosted(X), metric=metric, n_draws=N_DRAWS, random_state=0)
    model.fit(X[:N_TRAIN], y[:N_TRAIN])
    guarantee = model.guarantee_
    assert (guarantee.level, guarantee.delta) == ("deterministic", 0.0)

    after = audit(model, people, metric, tolerance=guarantee.epsilon + 1e-9)
    assert after.n_pairs == len(people) * (len(people) - 1) // 2
    assert after.n_violations == 0
    # Two controls: the model inside, and a metric much smaller than the noise is made for.
    assert audit(model.estimator_, people, metric, tolerance=guarantee.epsilon + 1e-9).n_violations > 0
    assert audit(model, people[:300], metric.scaled(0.02)).n_violations > 0

    some = people[:40]
    values = [(name, value) for name in zero for value in [*X[name].dropna().unique(), None]]
    changed = [some.assign(**{name: pd.Series([value] * len(some), dtype=X[name].dtype)}) for name, value in values]
    scores = model.predict_proba(pd.concat([some, *changed], ignore_index=True))
    np.testing.assert_array_equal(scores, np.tile(scores[: len(some)], (len(values) + 1, 1)))
    assert np.ptp(scores) > 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("values", "others"),
    [([-0.0, -1.0, 5e-324, 1e16, 2.0], "vvvvv"), ([-0.0, 5e-324], "ab"), ([0.0, 5e-324, 1.0], "aba")],
)
def test_numbers_that_are_hardly_0_are_audited_and_revealed_without_a_warning(values, others):
    X = pd.DataFrame({"number": values, "word": list(others)})
    scores = np.linspace(0.1, 0.9, len(X))
    metric = TableMetric({"number": 0.5}, {"word": 0.25})
    found = audit(None, X, metric, predictions=scores)
    i, j = np.triu_indices(len(X), 1)
    assert found.n_violations == (np.abs(scores[i] - scores[j]) - metric.pairwise(X)[i, j] > 1e-9).sum()
    if others == "ab":  # elsewhere no finite weight tells 0 from 5e-324
        revealed = estimate_minimal_metric(None, X, predictions=scores).metric
        assert audit(None, X, revealed, predictions=scores).n_violations == 0
