"""Means over all pairs, against looking at each of them."""

import itertools

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric
from likewise._subsample import fixed_sample
from likewise.distributed.frames import describe
from likewise.kernel.distance import CODE, NULLABLE, NUMBER
from likewise.pairs.cutting_planes import mean_powers
from likewise.pairs.points import Points, gaps_between, groups_of

X = np.array([[0.0, 1.0, 4.0, -2.0, 4.0], [3.0, np.nan, 5.0, np.nan, 9.0], [0.0, 1.0, 1.0, 2.0, 0.0]])
KINDS = np.array([NUMBER, NULLABLE, CODE], dtype=np.int8)


@pytest.mark.parametrize("p", [1, 2, 3, 16])
def test_the_mean_power_of_a_gap_is_over_all_pairs(p):
    """A gap to a missing number is 0, and 1 between different codes."""
    gaps = [gaps_between(X.T[[a]], X.T[[b]], KINDS)[0] for a, b in itertools.combinations(range(5), 2)]
    np.testing.assert_allclose(mean_powers(X, p, KINDS), np.mean(np.array(gaps) ** p, axis=0), rtol=1e-9)


def test_between_whole_powers_the_logarithm_is_interpolated_and_beyond_16_the_norm_stays():
    two, three = (mean_powers(X[:1], p, KINDS[:1])[0] for p in (2, 3))
    assert mean_powers(X[:1], 2.25, KINDS[:1])[0] == pytest.approx(two**0.75 * three**0.25)
    sixteen = mean_powers(X[:1], 16, KINDS[:1])[0]
    assert mean_powers(X[:1], 32, KINDS[:1])[0] == pytest.approx(sixteen**2)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 7, 16])
def test_mean_powers_are_those_of_all_pairs(p):
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(size=120), rng.lognormal(size=120) + 1e4, rng.integers(0, 2, 120), np.full(120, 3.0)])
    X[1, ::3] = np.nan
    kinds = np.array([0, 1, 0, 0], dtype=np.int8)
    i, j = np.triu_indices(120, 1)
    expected = np.nan_to_num(np.abs(X[:, i] - X[:, j])) ** p
    np.testing.assert_allclose(mean_powers(X, p, kinds), expected.mean(axis=1), rtol=1e-9)


def test_mean_powers_of_a_table_count_differing_codes():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"n": np.where(rng.random(90) < 0.2, np.nan, rng.normal(size=90)), "c": rng.choice([*"abc"], 90)}
    )
    points = Points.of(TableMetric({"n": 1}, {"c": 1}, missing="category").encode_rows(table))
    assert (points.kinds == CODE).sum() == 2
    i, j = np.triu_indices(90, 1)
    np.testing.assert_allclose(mean_powers(points.X.T, 1, points.kinds), points.gaps(i, j).mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("p", [1.5, 2.5, 6.2, 20, 40, 500])
def test_other_powers_have_positive_means_of_about_the_size(p):
    X = np.random.default_rng(0).normal(size=(1, 200))
    i, j = np.triu_indices(200, 1)
    kinds = np.zeros(1, dtype=np.int8)
    gap = np.abs(X[0, i] - X[0, j])
    with np.errstate(under="ignore"):
        expected = gap.max() * ((gap / gap.max()) ** p).mean() ** (1 / p)
    assert mean_powers(X, p, kinds)[0] ** (1 / p) == pytest.approx(expected, rel=0.05 if p < 16 else 0.5)
    assert mean_powers(np.array([[0.0, 1e-300, 1e300]]), p, kinds)[0] > 0


def test_equal_rows_are_one_group_named_by_their_first():
    rows = np.array([[2.0, 0.0], [1.0, 5.0], [2.0, 0.0], [1.0, 5.0], [1.0, 4.0], [2.0, 0.0]])
    found = groups_of(rows)
    assert (found.first.tolist(), found.count.tolist()) == ([0, 1, 4], [3, 2, 1])
    assert found.of_row.tolist() == [0, 1, 0, 1, 2, 0]


def test_a_digest_has_every_category_the_ends_of_numbers_and_what_is_missing():
    table = pd.DataFrame({"x": [3.0, np.nan, 9.0, 1.0, 5.0], "c": ["a", "b", "a", None, "a"]})
    found = describe(table, ["c"])
    assert {found["x"].min(), found["x"].max()} == {1.0, 9.0}
    assert found["x"].isna().any()
    assert set(found["c"].dropna()) == {"a", "b"}
    assert found["c"].isna().any()


def test_a_fixed_sample_is_everyone_if_they_are_few():
    assert fixed_sample(5, 5).tolist() == [0, 1, 2, 3, 4]
    some = fixed_sample(1000, 50)
    assert len(some) <= 50
    assert (np.diff(some) > 0).all()
    assert some.max() > 900
    assert some.tolist() == fixed_sample(1000, 50).tolist()
