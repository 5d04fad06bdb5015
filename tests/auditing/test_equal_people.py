"""Equal people in audits, in memory and in files: each is counted, and the first of them is named."""

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, WeightedLp, audit
from likewise.distributed import buckets

METRIC = TableMetric({"x": 0.1}, missing={"x": 0.25})
# Three rows of a, two of b, two whose x is missing, two of c; they stand apart, so that a cut parts equal ones.
A, B, GONE, C = (0.0, 0.0), (1.0, 1.0), (np.nan, 0.5), (2.0, 0.0)
ROWS = [GONE, A, B, A, C, GONE, B, A, C]
TABLE = pd.DataFrame(ROWS, columns=["x", "score"])


def in_memory(place, n_parts):
    return audit(None, TABLE[["x"]], METRIC, predictions=TABLE["score"])


def in_files(place, n_parts):
    parts = np.array_split(np.arange(len(TABLE)), n_parts)
    for k, rows in enumerate(parts):
        TABLE.iloc[rows].to_parquet(place / f"{k}.parquet", index=False)
    return audit(None, place, METRIC, predictions="score")


CUTS = [(in_memory, 1)] + [(in_files, n_parts) for n_parts in (1, 2, 3, 9)]


@pytest.mark.parametrize(("search", "n_parts"), CUTS)
@pytest.mark.parametrize("bucket", [2, 100])
def test_every_pair_of_equal_people_is_counted_and_listed_once(search, n_parts, bucket, tmp_path, monkeypatch):
    """a and b: 1 apart where 0.1 is allowed, b and c likewise; x and what is missing: 0.5 where 0.25 is."""
    monkeypatch.setattr(buckets, "BUCKET_SIZE", bucket)
    found = search(tmp_path, n_parts)
    assert (found.n_samples, found.n_distinct, found.n_pairs) == (9, 4, 36)
    listed = found.violations[["row_a", "row_b", "difference", "distance", "n_pairs"]].to_numpy().tolist()
    assert sorted(listed) == [
        pytest.approx(row)
        for row in (
            [0, 1, 0.5, 0.25, 2 * 3],  # missing, a
            [0, 2, 0.5, 0.25, 2 * 2],  # missing, b
            [0, 4, 0.5, 0.25, 2 * 2],  # missing, c
            [1, 2, 1.0, 0.1, 3 * 2],  # a, b
            [2, 4, 1.0, 0.1, 2 * 2],  # b, c
        )
    ]
    assert found.n_violations == 6 + 4 + 4 + 6 + 4
    assert (found.max_excess, found.max_ratio) == pytest.approx((0.9, 10.0))
    assert found.violations["excess"].is_monotonic_decreasing
    assert found.n_compared <= 6  # pairs of 4 distinct people
    assert "every pair of the 9 people of the table (4 of them different), 36 pairs" in found.coverage
    assert "24 pairs exceed it; the worst by 90 points (largest ratio 10)" in found.coverage


def test_columns_that_differ_are_listed_by_what_they_count():
    """1,000 of income count 0.1, 2 years count 0.2, and a job 0.15."""
    metric = TableMetric({"income": 1e-4, "age": 0.1}, {"job": 0.15})
    people = pd.DataFrame({"income": [3000.0, 4000.0], "age": [30.0, 32.0], "job": ["cook", "nurse"]})
    found = audit(None, people, metric, predictions=[0.0, 1.0])
    (words,) = found.violations["differs"]
    assert words.index("age") < words.index("job") < words.index("income")
    assert found.violations["distance"].tolist() == pytest.approx([0.45])
    assert found.violations["ratio"].tolist() == pytest.approx([1 / 0.45])


@pytest.mark.parametrize("limits", [(0.0, 1000.0), (-500.0, 500.0)])
def test_numbers_in_files_are_shares_of_their_range_as_in_memory(limits, tmp_path):
    people = pd.DataFrame({"x": [0.0, 1.0, 5.0], "score": [100.0, 400.0, 350.0]})
    people.to_parquet(tmp_path / "people.parquet", index=False)
    found = audit(None, tmp_path / "people.parquet", METRIC, predictions="score", output_range=limits)
    memory = audit(None, people[["x"]], METRIC, predictions=people["score"], output_range=limits)
    for one in (found, memory):
        assert one.violations[["row_a", "row_b"]].to_numpy().tolist() == [[0, 1]]
        assert one.violations["difference"].tolist() == pytest.approx([0.3])
        assert one.max_excess == pytest.approx(0.2)
        assert sorted(set(one.sample["difference"].round(9))) == [0.05, 0.25, 0.3]


def test_without_a_range_differences_and_distances_are_in_the_unit_of_the_output():
    """Outputs of 100, 400 and 350, and distances of 50, 200 and 250."""
    found = audit(lambda rows: np.array([100.0, 400.0, 350.0]), np.array([[0.0], [1.0], [5.0]]), WeightedLp([50.0]))
    listed = found.violations[["row_a", "row_b", "difference", "distance", "excess", "ratio"]].to_numpy().tolist()
    assert listed == [pytest.approx([0, 1, 300.0, 50.0, 250.0, 6.0])]
    assert (found.max_excess, found.max_ratio) == pytest.approx((250.0, 6.0))
    assert sorted(set(found.sample["distance"])) == [50.0, 200.0, 250.0]
    assert found.tolerance == pytest.approx(1e-9 * 512)  # the next power of two above 300
