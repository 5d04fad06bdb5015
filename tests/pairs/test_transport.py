import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog

from likewise import WeightedLp, ceiling
from likewise.exceptions import UnsolvedError
from likewise.pairs import transport
from likewise.pairs.points import Columns
from likewise.pairs.transport import min_cost_transport, potentials

POWERS = [1.0, 1.5, 2.0, 3.0, np.inf]


def all_pairs_optimum(D, mass):
    """The linear program with a constraint for every pair, in both directions."""
    n = len(mass)
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    rows = np.zeros((len(i), n))
    rows[np.arange(len(i)), i], rows[np.arange(len(i)), j] = 1, -1
    return -linprog(-mass, rows, D[i, j], bounds=(0, 1)).fun


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 45))
    X = np.column_stack([rng.normal(size=(n, 2)).round(draw(st.integers(0, 2))), rng.integers(0, 3, n)])
    mass = rng.choice([-3.0, -1.0, 1.0, 2.0], size=n, p=rng.dirichlet(np.ones(4)))
    scales = rng.choice([0.02, 0.1, 0.5], size=3) * rng.choice([0, 1, 1, 1], size=3)
    return X, mass, scales, draw(st.sampled_from(POWERS))


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from([1, 4, 24]), st.sampled_from([5, 200]))
def test_the_optimum_is_that_of_the_program_with_all_pairs(problem, near, smallest):
    X, mass, scales, p = problem
    kinds = np.array([0, 0, 2], dtype=np.int8)
    distinct = np.unique(X[:, scales > 0], axis=0, return_index=True)[1] if scales.any() else [0]
    X, mass = X[distinct], mass[distinct]
    with pytest.MonkeyPatch.context() as patch:  # few pairs and several levels, so that every branch is taken
        patch.setattr(transport, "_NEAR", near)
        patch.setattr(transport, "_SMALLEST", smallest)
        found = potentials(Columns(X.T, kinds, scales, p), mass)
    D = WeightedLp([1.0, 1.0], p).pairwise(X[:, :2] * scales[:2]) + scales[2] * (X[:, 2:] != X[:, 2:].T)
    assert mass @ found.h == pytest.approx(all_pairs_optimum(D, mass), abs=1e-7)
    assert ((found.h >= 0) & (found.h <= 1)).all()
    between = np.ix_(mass > 0, mass < 0)
    assert (np.subtract.outer(found.h, found.h)[between] <= D[between] + 1e-9).all()


def test_many_people_agree_with_the_best_assignment():
    """One to one, the ceiling is 1 - sum (1 - D)+ / n over the best matching of the two classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    y = rng.random(1500) < 1 / (1 + np.exp(-X.sum(axis=1)))
    metric = WeightedLp([0.2, 0.1, 0.05])
    gain = np.maximum(0, 1 - metric.pairwise(X[y], X[~y]))
    expected = 1 - gain[linear_sum_assignment(gain, maximize=True)].sum() / 1500
    assert ceiling(X, y, metric).value == pytest.approx(expected, abs=1e-9)
    assert ceiling(X, y, metric.scaled(1.01)).value > expected + 1e-4  # the control


def test_the_same_people_in_another_order_have_the_same_optimum():
    rng = np.random.default_rng(1)
    X, mass = rng.normal(size=(600, 2)), rng.choice([-1.0, 1.0, 5.0], size=600)
    kinds, scales = np.zeros(2, dtype=np.int8), np.array([0.3, 0.2])
    turned = np.arange(600)[::-1]
    one, other = (potentials(Columns(X[k].T, kinds, scales, 2.0), mass[k]).h for k in (np.arange(600), turned))
    assert mass @ one == pytest.approx(mass[turned] @ other, abs=1e-6)


def test_two_people_nearly_a_whole_apart():
    """Mass is dropped at the price 1: just below that, it is still sent."""
    metric = WeightedLp([0.995])
    assert ceiling([[0.0], [1.0]], [0, 1], metric).value == pytest.approx((1 + 0.995) / 2, abs=1e-12)


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e-5], ids=["far", "near", "nearer"])
def test_pairs_that_were_not_in_the_program_are_within_the_distance(unit, monkeypatch):
    monkeypatch.setattr(transport, "_NEAR", 1)  # nearly all pairs are looked for only after a solution
    rng = np.random.default_rng(0)
    X, mass, scales = rng.normal(size=(60, 2)), rng.choice([-1.0, 1.0], size=60), np.array([0.1, 0.05]) * unit
    h = potentials(Columns(X.T, np.zeros(2, dtype=np.int8), scales, 1.0), mass).h
    between = np.ix_(mass > 0, mass < 0)
    D = WeightedLp(scales).pairwise(X)
    assert (np.subtract.outer(h, h) - D)[between].max() <= 1e-9


def test_a_search_that_finds_nothing_new_ends_in_an_error(monkeypatch):
    """Outputs that are never within the distance: pairs are asked for until all are known, and no longer."""
    monkeypatch.setattr(
        transport, "min_cost_transport", lambda pairs, prices, amount, n, h: (np.arange(len(h)) < n) * 1.0
    )
    rng = np.random.default_rng(0)
    X, mass = rng.normal(size=(60, 2)), rng.choice([-1.0, 1.0], size=60)
    with pytest.raises(UnsolvedError, match="did not converge"):
        potentials(Columns(X.T, np.zeros(2, dtype=np.int8), np.array([0.1, 0.05]), 1.0), mass)


@st.composite
def flows(draw):
    """Sources and targets with several units of mass each, all pairs between them, and an h to start from."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_sources, n_targets = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    amount = rng.integers(1, 6, n_sources + n_targets).astype(float)
    places = rng.random((n_sources + n_targets, 2)) * draw(st.sampled_from([0.4, 1.0, 2.0]))
    D = np.abs(places[:, None] - places).sum(axis=2)
    start = draw(st.sampled_from(["zeros", "ones", "half", "within"]))
    far = np.minimum(1.0, D[rng.integers(len(D))])  # a distance to someone is within all distances
    h = {"zeros": np.zeros(len(D)), "ones": np.ones(len(D)), "half": np.full(len(D), 0.5), "within": far}[start]
    return D, amount, n_sources, h


@settings(max_examples=200, deadline=None)
@given(flows())
def test_flows_of_several_units_are_the_cheapest_from_wherever_they_start(problem):
    """Units are sent on, taken back and dropped: the optimum is that of the program with all pairs."""
    D, amount, n_sources, h = problem
    n = len(amount)
    pairs = np.array([(i, j) for i in range(n_sources) for j in range(n_sources, n)])
    prices = D[pairs[:, 0], pairs[:, 1]]
    found = min_cost_transport(pairs, prices, amount, n_sources, h.copy())
    mass = np.where(np.arange(n) < n_sources, amount, -amount)
    rows = np.zeros((len(pairs), n))
    rows[np.arange(len(pairs)), pairs[:, 0]], rows[np.arange(len(pairs)), pairs[:, 1]] = 1, -1
    expected = -linprog(-mass, rows, prices, bounds=(0, 1)).fun
    assert ((found >= 0) & (found <= 1)).all()
    assert (found[pairs[:, 0]] - found[pairs[:, 1]] <= prices + 1e-12).all()
    assert mass @ found == pytest.approx(expected, abs=1e-9)
