"""Equal people in audits, in memory and in files: each is counted, and the first of them is named."""

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, audit
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
