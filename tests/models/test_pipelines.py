"""Pipelines of tables."""

import pandas as pd
import pytest

from likewise import InvalidInputError
from likewise.models.pipelines import table_model


def test_columns_that_share_a_name_are_refused():
    X = pd.DataFrame([[1, 2.0], [3, 4.0]], columns=["age", "age"])
    with pytest.raises(InvalidInputError, match="X must have distinct column names; 'age' stands twice"):
        table_model(X, "logistic")
    X.columns = ["age", "years"]  # the control
    assert table_model(X, "logistic").fit(X, [0, 1]).predict(X).tolist() == [0, 1]
