"""Comparative file review against all pairs."""

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, review_files
from likewise.exceptions import InvalidInputError

METRIC = TableMetric({"income": 0.01, "debt": 0.02}, {"region": 0.1, "sex": 0})


def applications(seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": rng.integers(10, 90, n).astype(float),
            "debt": rng.integers(0, 40, n),
            "region": rng.choice(["north", "south"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    decided = np.where(X["income"] - X["debt"] + 8 * (X["sex"] == "m") + rng.normal(scale=8, size=n) > 30, "yes", "no")
    return X, decided


def comparators(X, decided, i, *, better=True, threshold=None):
    """By the definition."""
    found, distances = [], METRIC.pairwise(X.iloc[[i]], X)[0]
    for j in range(len(X)):
        no_better = X["income"][j] <= X["income"][i] and X["debt"][j] >= X["debt"][i]
        close = threshold is None or distances[j] <= threshold
        if decided[j] == "yes" and (no_better or not better) and close:
            found.append(j)
    return found


@pytest.mark.parametrize(("better", "threshold"), [(True, None), (True, 0.2), (False, 0.2)])
def test_all_comparators_are_found_and_ranked(better, threshold):
    X, decided = applications()
    directions = {"income": "higher", "debt": "lower"} if better else None
    found = review_files(X, decided, better=directions, metric=METRIC, threshold=threshold, n_comparators=200)
    truth = {
        i: comparators(X, decided, i, better=better, threshold=threshold) for i in range(len(X)) if decided[i] == "no"
    }
    truth = {i: others for i, others in truth.items() if others}
    assert {row: sorted(part["comparator"]) for row, part in found.pairs.groupby("row")} == truth
    assert found.n_pairs == sum(map(len, truth.values()))
    assert dict(zip(found.files["row"], found.files["n_comparators"], strict=True)) == {
        i: len(o) for i, o in truth.items()
    }
    assert found.files["n_comparators"].is_monotonic_decreasing
    first = found.pairs.groupby("row", sort=False)["distance"].first()
    np.testing.assert_allclose(first.to_numpy(), found.files["distance"])
    assert (found.n_denied, found.n_approved) == ((decided == "no").sum(), (decided == "yes").sum())


def test_categories_compare_with_the_same_alone_and_blanks_with_nothing():
    X, decided = applications()
    X.loc[::7, "income"] = np.nan
    found = review_files(X, decided, better={"income": "higher", "region": "same"}, n_comparators=1000)
    assert len(found.pairs)
    for row in found.pairs.itertuples():
        assert X["region"][row.row] == X["region"][row.comparator]
        assert X["income"][row.comparator] <= X["income"][row.row]


def test_what_cannot_be_compared_is_refused():
    X, decided = applications()
    with pytest.raises(InvalidInputError, match="Give better"):
        review_files(X, decided)
    with pytest.raises(InvalidInputError, match="one of"):
        review_files(X, decided, better={"income": "more"})
    with pytest.raises(InvalidInputError, match="two values"):
        review_files(X, np.arange(len(X)), better={"income": "higher"})
    with pytest.raises(InvalidInputError, match="come with a metric"):
        review_files(X, decided, threshold=0.1)
    with pytest.raises(InvalidInputError, match="hold numbers"):
        review_files(X, decided, better={"sex": "higher"})
