"""A corner of the domain where nobody is: searches find what is planted there, and nothing in an innocent model."""

import re

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, attack, effect

METRIC = TableMetric({"income": 0.002, "debt": 0.002, "age": 0.002, "tenure": 0.002}, {"sex": 0})


def people(seed, n=600):
    """Applicants with skewed incomes and debts, few of which are high, and never both."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": np.minimum(np.rint(rng.exponential(6, n)), 60.0),
            "debt": np.minimum(np.rint(rng.exponential(6, n)), 60.0),
            "age": rng.integers(18, 80, n).astype(float),
            "tenure": rng.integers(0, 30, n).astype(float),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    ends = X.iloc[:2].assign(income=[0.0, 100.0], debt=[100.0, 0.0])
    return pd.concat([X, ends], ignore_index=True)


def in_corner(X):
    """Where a fifth of the range of incomes meets a fifth of that of debts: 4% of the domain."""
    return X["income"].between(70, 89) & X["debt"].between(70, 89)


def innocent(X):
    return 0.3 + 0.001 * X["income"].to_numpy(dtype=float)


def planted(X):
    """Men in the corner get 8 points more."""
    return innocent(X) + 0.08 * (in_corner(X) & (X["sex"] == "m")).to_numpy()


@pytest.mark.parametrize("seed", range(4))
def test_an_effect_is_found_where_nobody_is(seed):
    X = people(seed)
    assert not in_corner(X).any()
    found = effect(planted, X, "sex", random_state=seed, n_queries=20_000)
    assert found.proven is None
    assert float(found.on_people["effect"].max()) == 0
    assert found.found == pytest.approx(0.08)
    assert in_corner(found.pair).all()
    uniform, stratified = re.match(
        r"([\d,]+) pairs drawn uniformly .*, ([\d,]+) from equal slices", found.searched
    ).groups()
    assert uniform == stratified == "2,000"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("options", [{}, {"only": "sex"}], ids=["all", "only"])
def test_an_attack_finds_it_with_few_pairs(seed, options):
    found = attack(planted, METRIC, people(seed), n_pairs=20_000, random_state=seed, **options)
    assert found.excess == pytest.approx(0.08, abs=1e-3)
    assert found.tried["uniform"] == pytest.approx(found.tried["stratified"], rel=0.01)
    assert found.tried["uniform"] > 800
    assert f"{found.tried['uniform']:,} drawn uniformly" in found.coverage


def test_the_excess_over_a_metric_is_found_there():
    found = effect(planted, people(0), "sex", METRIC, n_queries=20_000).excess
    assert found.found == pytest.approx(0.08, abs=1e-3)
    assert found.searched.startswith("2,000 pairs drawn uniformly")


def test_the_control_nothing_is_found_in_an_innocent_model():
    X = people(0)
    found = effect(innocent, X, "sex", n_queries=20_000)
    assert (found.found, found.pair) == (0.0, None)
    assert "finding none does not prove that there is none" in found.headline
    result = attack(innocent, METRIC, X, n_pairs=20_000, random_state=0)
    assert result.n_violations == 0
    assert "Finding no violation does not prove there is none" in result.coverage


def test_the_draws_fill_the_domain():
    """Of 4% of the domain, 2,000 draws hold 80; of equal slices of a column, each holds one."""
    from likewise.auditing.coordinate_ascent import drawn_people, shares_of_ranges
    from likewise.verification.base import InputSpace

    space = InputSpace.of(innocent, people(0))
    rng = np.random.default_rng(0)
    for stratified in (False, True):
        rows = space.people(drawn_people(space, rng, 2000, stratified=stratified))
        # Binomial, n = 2000, p = 0.04 or so: below 38 or above 126 in less than 1e-6 of seeds.
        assert 38 <= in_corner(rows).sum() <= 126
        assert set(rows["sex"]) == {"f", "m"}
    shares = shares_of_ranges(rng, 500, 3, stratified=True)
    assert (np.sort(np.floor(500 * shares), axis=0) == np.arange(500)[:, None]).all()
