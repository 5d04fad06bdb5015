"""The cheapest transport against the linear program of which it is the dual, on problems small enough for both."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from likewise.pairs.transport import min_cost_transport


def optimum(pairs, prices, amount, n_sources):
    """Largest ``sum over sources - sum over targets`` of ``amount * h``, h in [0, 1], ``h_i - h_j <= price``."""
    sign = np.where(np.arange(len(amount)) < n_sources, 1.0, -1.0)
    rows = np.zeros((len(pairs), len(amount)))
    rows[np.arange(len(pairs)), pairs[:, 0]], rows[np.arange(len(pairs)), pairs[:, 1]] = 1, -1
    return -linprog(-sign * amount, rows, prices, bounds=(0, 1)).fun, sign


@pytest.mark.parametrize("seed", range(60))
def test_potentials_respect_all_prices_and_are_the_best(seed):
    rng = np.random.default_rng(seed)
    n_sources, n_targets = rng.integers(1, 12, 2)
    amount = rng.integers(1, 10, n_sources + n_targets).astype(float)
    every = np.array([*itertools.product(range(n_sources), n_sources + np.arange(n_targets))])
    pairs = every[np.sort(rng.permutation(len(every))[: rng.integers(1, len(every) + 1)])]
    prices = rng.integers(0, 11, len(pairs)) / 8  # many are equal, and some above 1
    start = np.full(len(amount), float(rng.random()))  # all alike, which respects every price
    h = min_cost_transport(pairs, prices, amount, int(n_sources), start)
    value, sign = optimum(pairs, prices, amount, n_sources)
    assert ((h >= 0) & (h <= 1)).all()
    assert (h[pairs[:, 0]] - h[pairs[:, 1]] <= prices + 1e-9).all()
    assert (sign * amount) @ h == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize(
    ("amount", "prices", "expected"),
    [
        ([1, 1], [0.25], 0.25),  # one source, one target
        ([3, 1], [0.25], 0.25 + 2),  # what finds no target is dropped at the price 1
        ([1, 3], [0.25], 0.25),  # a target need not be filled
        ([2, 2], [1.5], 2.0),  # nobody pays more than for dropping
    ],
)
def test_one_source_and_one_target(amount, prices, expected):
    h = min_cost_transport(np.array([[0, 1]]), np.array(prices), np.array(amount, float), 1, np.zeros(2))
    assert amount[0] * h[0] - amount[1] * h[1] == pytest.approx(expected)
