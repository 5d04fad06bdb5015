"""Pipelines of tables."""

import warnings

import numpy as np
import pandas as pd
import pytest

from likewise import InvalidInputError
from likewise.inspection.baselines import MODELS, table_model
from likewise.inspection.batch_invariance import is_rowwise

ORDER = ["low", "mid", "high"]


def people_of_all_kinds(n=600):
    """Ordered categories whose names are in another order, nullable counts, and a column that is empty."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "school": pd.Categorical.from_codes(rng.integers(-1, 3, n), ORDER, ordered=True),
            "children": pd.Series(rng.integers(0, 4, n), dtype="Int64").mask(rng.random(n) < 0.2),
            "empty": np.full(n, np.nan),
            "region": rng.choice(["north", "south"], n),
        }
    )


@pytest.mark.parametrize("kind", MODELS)
def test_ordered_nullable_and_empty_columns_are_learned_from(kind):
    X = people_of_all_kinds()
    y = (X["school"].cat.codes == 2).astype(int) + (X["children"] > 2).fillna(False).astype(int) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Stochastic Optimizer")  # a network that is not done says so
        model = table_model(X, kind)
        model.set_params(**{f"{model.steps[-1][0]}__random_state": 0}).fit(X, y)
        assert (model.predict(X) == y).mean() > 0.9
    assert is_rowwise(model) is (None if kind in ("logistic", "network") else True)
    other = X.assign(school=pd.Categorical(["unheard of"] * len(X), ["unheard of"], ordered=True))
    missing = X.assign(school=pd.Categorical([None] * len(X), ORDER, ordered=True))
    assert np.array_equal(model.predict(other), model.predict(missing))  # what is not known is missing


def test_ordered_categories_are_numbers_by_their_places():
    X = people_of_all_kinds()[["school"]].dropna()
    model = table_model(X, "logistic").fit(X, X["school"].cat.codes > 0)
    low, mid, high = model.decision_function(pd.DataFrame({"school": pd.Categorical(ORDER, ORDER, ordered=True)}))
    assert low < mid < high
    assert mid - low == pytest.approx(high - mid)


def test_columns_that_share_a_name_are_refused():
    X = pd.DataFrame([[1, 2.0], [3, 4.0]], columns=["age", "age"])
    with pytest.raises(InvalidInputError, match="X must have distinct column names; 'age' occurs twice"):
        table_model(X, "logistic")
    X.columns = ["age", "years"]  # the control
    assert table_model(X, "logistic").fit(X, [0, 1]).predict(X).tolist() == [0, 1]
