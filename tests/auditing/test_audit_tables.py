"""Every pair of people in real tables, by `audit`: before smoothing some exceed the metric, afterwards none does."""

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, audit, estimate_minimal_metric

N_TRAIN, N_PEOPLE, N_DRAWS = 3000, 2000, 200


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
