"""Splitting: no pair of people is further apart than promised, counted in whole numbers where possible."""

import itertools
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from likewise import SmoothedClassifier, Splitting, TableMetric, WeightedLp
from likewise.smoothing.splitting import MIN_DRAWS, ShiftedGrids, find_step


def cells_for(X, weights, *, p=1, n_draws=100, steps="auto", epsilon=0.01):
    noise = Splitting.for_metric(WeightedLp(weights, p=p), steps=steps)
    return ShiftedGrids.from_training_data(noise, np.asarray(X, dtype=float), n_draws=n_draws, epsilon=epsilon)


def all_rows(grids, X):
    """Perturbed rows of each person, shape (n_people, n_draws, n_features)."""
    people, owner, _ = grids.corners(grids.prepare(np.asarray(X, dtype=float)))
    assert len(owner) == len(X)  # nobody is between two points of a grid
    return np.array([np.concatenate([d.apply(x) for _, d in grids.iter_draws([grids.n_draws])]) for x in people])


def share_differing(grids, X):
    """Share of draws in which two people's rows differ in any bit, for all pairs."""
    rows = all_rows(grids, X)
    return np.array([[(a != b).any(axis=1).mean() for b in rows] for a in rows])


def exact_distance(a, b, scales):
    return sum(Fraction(s) * abs(Fraction(float(x)) - Fraction(float(y))) for x, y, s in zip(a, b, scales, strict=True))


def assert_no_pair_above(grids, X, scales):
    """The promise in rational arithmetic: no rounding in the check itself."""
    X = np.asarray(X, dtype=float)
    K, rows = grids.n_draws, all_rows(grids, X)
    loose = grids.steps == 0
    visible = grids.noise.visible
    for i in range(len(X)):
        for j in range(i):
            n_differing = int((rows[i] != rows[j]).any(axis=1).sum())
            n_diff = int(((X[i] != X[j])[visible] & loose).sum())
            limit = exact_distance(X[i], X[j], scales) * K + n_diff
            assert n_differing <= limit, (X[i], X[j], n_differing, float(limit))


def test_on_a_grid_the_share_of_differing_draws_is_the_distance():
    X = np.arange(12.0)[:, None]
    grids = cells_for(X, [0.125], n_draws=16)  # two positions per step: 16 * 0.125
    expected = np.minimum(1, 0.125 * np.abs(X - X.T))
    np.testing.assert_array_equal(share_differing(grids, X), expected)
    assert grids.noise.excess == 0


def test_off_a_grid_each_differing_feature_adds_at_most_one_draw():
    X = np.random.default_rng(0).normal(size=(25, 3))
    grids = cells_for(X, [0.3, 1.0, 2.0], n_draws=50)
    assert grids.noise.excess == 3 / 50
    assert_no_pair_above(grids, X, [0.3, 1.0, 2.0])


def test_cells_are_as_wide_as_the_metric_says():
    """One feature and 1,000 shifts: people 0.9 apart are in different grids in 900 of them, or one more."""
    X = np.array([[0.0], [0.9], [0.45], [0.1234], [-0.00077]])
    grids = cells_for(X, [1.0], n_draws=1000, steps=None)
    assert_no_pair_above(grids, X, [1.0])
    assert abs(share_differing(grids, X) - np.abs(X - X.T)).max() <= 2 / 1000


def test_narrower_cells_break_the_promise():
    """Negative control: with grids for half the weights, some pair exceeds its bound."""
    X = np.arange(12.0)[:, None]
    grids = cells_for(X, [0.25], n_draws=16)
    with pytest.raises(AssertionError):
        assert_no_pair_above(grids, X, [0.125])


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("origin", [0.0, 1.0, -1e6, 1e9])
def test_tiny_and_huge_scales(scale, origin):
    rng = np.random.default_rng(1)
    X = origin + rng.normal(size=(24, 2)) / scale
    # Neighbouring floating-point numbers, and values exactly on the borders of grids.
    X[1] = np.nextafter(X[0], np.inf)
    X[2] = np.nextafter(X[1], np.inf)
    X[3:8] = np.median(X, axis=0) + np.arange(5)[:, None] / scale / 64
    X[8:12] = np.median(X, axis=0) + np.arange(4)[:, None] / scale
    for steps in (None, "auto"):
        assert_no_pair_above(cells_for(X, [scale, scale], n_draws=64, steps=steps), X, [scale, scale])


@given(
    values=st.lists(st.floats(-1e300, 1e300, allow_nan=False), min_size=2, max_size=6),
    weight=st.floats(1e-12, 1e12),
    n_draws=st.integers(1, 40),
)
@settings(max_examples=200, deadline=None)
def test_any_numbers_at_all(values, weight, n_draws):
    X = np.array(values)[:, None]
    assert_no_pair_above(cells_for(X, [weight], n_draws=n_draws, steps=None), X, [weight])
    assert_no_pair_above(cells_for(X, [weight], n_draws=n_draws), X, [weight])


@given(
    whole=st.lists(st.integers(-(2**40), 2**40), min_size=2, max_size=6),
    weight=st.floats(1e-3, 1e3),
    step=st.sampled_from([1.0, 0.1, 0.3, 7.0]),
    n_draws=st.integers(1, 60),
)
@settings(max_examples=200, deadline=None)
def test_any_grid_at_all(whole, weight, step, n_draws):
    X = np.array([n % 2**20 * step for n in whole])[:, None]
    grids = cells_for(X, [weight], n_draws=n_draws, steps=[step])
    assert_no_pair_above(grids, X, [weight])


def test_float32_input_is_the_same_person():
    rng = np.random.default_rng(2)
    X = rng.normal(1e6, 3, size=(30, 2)).astype(np.float32)
    assert_no_pair_above(cells_for(X, [0.5, 0.2], n_draws=40), X, [0.5, 0.2])
    y = rng.integers(2, size=30)
    model = SmoothedClassifier(
        DecisionTreeClassifier(random_state=0), metric=WeightedLp([0.5, 0.2]), noise="splitting", n_draws=40
    ).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(X.astype(np.float64)))


def test_duplicates_get_the_same_bits_and_hidden_columns_never_matter():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 3))
    grids = cells_for(X, [1.0, 0.0, 1.0])
    other = X.copy()
    other[:, 1] = rng.normal(1e6, 1e6, size=20)
    np.testing.assert_array_equal(all_rows(grids, X), all_rows(grids, other))
    # What replaces them are training values.
    assert np.isin(all_rows(grids, X)[0, :, 1], X[:, 1]).all()


@pytest.mark.parametrize("n_cells_per_period", [1, 2, 3])
@pytest.mark.parametrize("steps", [None, "auto"])
def test_checkerboards_in_step_with_the_grid(n_cells_per_period, steps):
    """The worst models: they change their vote at every border of the grid, or at each of its positions."""
    K, scale = 12, 0.25
    rng = np.random.default_rng(4)
    X = np.concatenate(
        [np.arange(16.0).reshape(8, 2), rng.uniform(0, 16, size=(12, 2)) if steps is None else []][
            : 1 + (steps is None)
        ]
    )
    for period in (1 / scale / n_cells_per_period, 1 / scale / K, 2 / scale / K):
        grids = cells_for(X, [scale, scale], n_draws=K, steps=steps)
        votes = (np.floor(all_rows(grids, X) / period).sum(axis=2) % 2).mean(axis=1)
        variation = np.abs(votes[:, None] - votes)
        n_diff = ((X[:, None] != X)[..., grids.steps == 0]).sum(axis=2)
        D = WeightedLp([scale, scale]).pairwise(X)
        assert (variation <= np.minimum(1, D) + n_diff / K + 1e-12).all()


def test_a_model_that_sees_one_border_meets_the_bound_exactly():
    X = np.arange(-8.0, 9.0)[:, None]
    grids = cells_for(X, [0.125], n_draws=400)
    votes = (all_rows(grids, X)[..., 0] >= 0).mean(axis=1)
    assert abs(votes[9] - votes[8]) == pytest.approx(0.125, abs=1e-12)


@pytest.mark.parametrize("p", [1.5, 2, np.inf])
def test_other_exponents(p):
    X = np.random.default_rng(5).normal(size=(25, 3))
    metric = WeightedLp([0.5, 1.0, 0.2], p=p)
    grids = cells_for(X, [0.5, 1.0, 0.2], p=p, n_draws=200)
    assert (share_differing(grids, X) <= metric.pairwise(X) + 3 / 200 + 1e-12).all()


@pytest.mark.parametrize("p", [1.5, 2, np.inf])
def test_other_exponents_on_a_grid(p):
    X = np.random.default_rng(5).integers(0, 9, size=(25, 3)).astype(float)
    metric = WeightedLp([0.05, 0.1, 0.02], p=p)
    grids = cells_for(X, [0.05, 0.1, 0.02], p=p, n_draws=200)
    assert grids.noise.excess == 0
    assert (share_differing(grids, X) <= metric.pairwise(X) + 1e-12).all()


def test_positions_per_step_are_counted_exactly():
    """0.3 is a little less than three tenths, so that a step counts 2 of 10 positions, and not 3."""
    X = np.arange(6.0)[:, None]
    grids = cells_for(X, [0.3], n_draws=10)
    assert grids.per_step.tolist() == [2]
    assert_no_pair_above(grids, X, [0.3])


def test_values_off_a_fractional_grid_by_the_tolerance_are_paid_for():
    """Two values, off their points towards each other, are closer than the step, and told apart by less."""
    grids = cells_for(np.tile([[0.5], [1.0], [2.5]], (4, 1)), [0.1], n_draws=40)
    assert grids.steps.tolist() == [0.5]  # 2 of 40 positions, were it not for the tolerance
    off = 0.45 * 2.0**-20
    X = np.array([[1.0 + off], [1.5 - off], [2.0], [2.5]])
    assert largest_excess(grids, X, np.array([0.1])) <= 1e-12


def test_far_from_the_origin_rounding_is_within_the_slack_of_cells():
    """One person just before a border near the origin, one just behind a border 10^10 positions away: as many borders
    are between them as D allows, and not one more, though the width of a cell is rounded."""
    K, s = 1000, 0.3
    grids = cells_for(np.array([[0.0], [0.1], [-0.1]]), [s], n_draws=K, steps=None)
    steps, rng = np.arange(-3, 4), np.random.default_rng(0)
    near, far = np.arange(1, 9) / (K * s), rng.integers(2**33, 2**35, size=2000) / (K * s)
    x, y = ((z[:, None] + steps * np.spacing(z)[:, None]).ravel() for z in (near, far))
    gap = y[:, None].astype(np.longdouble) - x[None]
    limit = gap * (K * np.longdouble(s)) + 1
    a, b = (grids.prepare(z[:, None])[:, 0] for z in (x, y))
    assert (b[:, None] - a[None] <= limit).all()
    # The control: without slack there are people with one border too many between them.
    bare = [np.floor(z * (K / (1 / s))) for z in (x, y)]
    assert (bare[1][:, None] - bare[0][None] > limit).any()


def test_the_displacement_of_one_person_is_uniform():
    """Each feature: K equally spaced displacements, as many as there are positions. Kolmogorov distance <= 1/K."""
    X = np.random.default_rng(6).normal(size=(50, 2))
    grids = cells_for(X, [0.5, 2.0], n_draws=1000)
    moved = all_rows(grids, X[:1])[0] - X[0]
    for i, width in enumerate([2.0, 0.5]):
        wide = width * (1 + 2**-12)
        assert stats.kstest(moved[:, i], stats.uniform(-wide / 2, wide).cdf).statistic <= 2 / 1000


def test_displacements_are_those_of_k_different_shifts():
    """The centres of K grids, one position apart: each within half a cell of the person, and in the mean at them."""
    K = 16
    X = np.arange(12.0)[:, None]
    grids = cells_for(X, [0.125], n_draws=K)  # a position is half a step
    for moved in all_rows(grids, X)[..., 0] - X:
        np.testing.assert_allclose(np.sort(moved), (np.arange(K) - (K - 1) / 2) / 2, rtol=0, atol=1e-12)
    X = np.random.default_rng(0).normal(size=(20, 1))
    unit = 2.0 / K * (1 + 2**-12)
    for moved in all_rows(cells_for(X, [0.5], n_draws=K), X)[..., 0] - X:
        np.testing.assert_allclose(np.diff(np.sort(moved)), unit, rtol=1e-3)
        assert abs(moved.mean()) <= unit / 2 * 1.001


def test_features_are_displaced_independently():
    """Correlation of permuted positions: standard deviation 1/sqrt(K - 1); 6.2 of them for 1e-9 per check."""
    X = np.random.default_rng(7).normal(size=(50, 5))
    rows = all_rows(cells_for(X, np.ones(5), n_draws=4000), X[:1])[0]
    off_diagonal = np.corrcoef(rows.T)[~np.eye(5, dtype=bool)]
    assert np.abs(off_diagonal).max() <= 6.2 / np.sqrt(3999)


def test_draws_follow_from_epsilon():
    X = np.random.default_rng(8).normal(size=(50, 30))
    assert cells_for(X, np.ones(30), n_draws=None, epsilon=0.001).n_draws == 30_000
    assert cells_for(X, np.ones(30), n_draws=None, epsilon=0.5).n_draws == MIN_DRAWS
    assert cells_for(np.rint(X), np.ones(30), n_draws=None, epsilon=1e-9).noise.excess == 0


def test_a_grid_too_fine_for_the_draws_counts_as_none():
    X = np.arange(20.0)[:, None]
    assert cells_for(X, [0.001], n_draws=500).noise.excess == 1 / 500
    assert cells_for(X, [0.001], n_draws=1000).noise.excess == 0


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([1, 2, 7], 1.0),
        ([0.5, 1.0, 2.5, 0.5, 1.0, 2.5], 0.5),
        ([0.1, 0.2, 0.3, 0.7] * 3, 0.1),
        ([0.1, 0.2, 0.35, 0.7], 0.0),  # nothing repeats
        ([np.pi, np.e, 1.0, np.sqrt(2)] * 3, 0.0),  # no common step
        ([0.5] * 5, 0.0),
    ],
)
def test_steps_are_found(values, step):
    assert find_step(np.array(values, dtype=float)) == pytest.approx(step)


def test_standardised_whole_numbers_are_a_grid():
    ages = np.random.default_rng(9).integers(17, 90, size=2000).astype(float)
    scaled = (ages - ages.mean()) / ages.std()
    assert find_step(scaled) == pytest.approx(1 / ages.std())
    grids = cells_for(scaled[:, None], [0.9], n_draws=1000)
    assert grids.noise.excess == 0
    assert_no_pair_above(grids, np.unique(scaled)[::3, None], [0.9])


def test_values_off_a_declared_grid_are_refused_with_a_cure():
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    metric = WeightedLp({"age": 0.1, "score": 0.2})
    noise = Splitting.for_metric(metric, steps={"age": 1, "score": 1})
    model = SmoothedClassifier(DecisionTreeClassifier(), noise=noise, n_draws=100)
    model.fit(pd.DataFrame(X, columns=["age", "score"]), y)
    with pytest.raises(ValueError, match=r"step 1 .*'score'.*got .*2\.5.*Round it"):
        model.predict_proba(pd.DataFrame([[1.0, 2.0], [1.0, 2.5]], columns=["age", "score"]))  # one of them is enough
    with pytest.raises(ValueError, match=r"'age'.*got .*0\.5"):
        model.fit(pd.DataFrame(X + 0.5, columns=["age", "score"]), y)
    loose = SmoothedClassifier(
        DecisionTreeClassifier(), noise=Splitting.for_metric(WeightedLp([0.1, 0.2]), steps=None), n_draws=100
    ).fit(X, y)
    assert loose.predict_proba([[1.0, 2.5]]).shape == (1, 2)
    assert loose.guarantee_.epsilon == 0.02


# -- between two points of a grid that was found ------------------------------------------------------------------


def law(grids, x):
    """Probability of each perturbed row of a person, by the bytes of the row."""
    rows, _, shares = grids.corners(grids.prepare(np.asarray(x, dtype=float)[None]))
    probability = defaultdict(float)
    for row, share in zip(rows, shares, strict=True):
        for _, draws in grids.iter_draws([grids.n_draws]):
            for perturbed in draws.apply(row):
                probability[perturbed.tobytes()] += share / grids.n_draws
    return probability


def largest_excess(grids, X, weights):
    """Over all pairs: total variation between the laws of the perturbed rows, minus distance and promised excess."""
    laws, most = [law(grids, x) for x in X], -np.inf
    for i, j in itertools.combinations(range(len(X)), 2):
        keys = {*laws[i], *laws[j]}
        variation = sum(abs(laws[i].get(key, 0.0) - laws[j].get(key, 0.0)) for key in keys) / 2
        distance = float(np.abs(X[i] - X[j]) @ weights)
        most = max(most, variation - min(1.0, distance + grids.noise.excess))
    return most


@pytest.mark.parametrize("scale", [1.0, 1 / 3], ids=["whole", "fractional"])
@pytest.mark.parametrize("loose", [False, True])
def test_values_between_points_of_a_found_grid_keep_the_promise(scale, loose):
    rng = np.random.default_rng(3)
    grid = rng.integers(0, 12, size=(60, 3)) * scale
    if loose:
        grid[:, 2] = rng.normal(size=60)
    weights = np.array([0.11, 0.05, 0.2]) / scale
    grids = cells_for(grid, weights, n_draws=40)
    assert grids.noise.excess == (1 / 40 if loose else 0)
    X = grid[:14].copy()
    X[3:12] += rng.choice([0, 0.5, 0.25, 1e-3, 0.999], size=(9, 3)) * scale
    X[12], X[13] = np.nextafter(X[3], np.inf), X[3] + 2.0**-21 * scale
    assert largest_excess(grids, X, weights) <= 1e-9


@pytest.mark.parametrize("scale", [1.0, 1 / 3], ids=["whole", "fractional"])
def test_on_both_sides_of_the_middle_between_two_points_people_differ_by_their_distance(scale):
    grids = cells_for(np.tile(np.arange(12.0), 3)[:, None] * scale, [0.125 / scale], n_draws=16)
    for a, b in ((3.4, 3.6), (3.49, 3.51), (2.5, 3.5)):
        excess = largest_excess(grids, np.array([[a], [b]]) * scale, [0.125 / scale])
        if scale == 1:
            assert excess == pytest.approx(0, abs=1e-12)
        else:  # grids are wider by what the tolerance of a fractional grid may cost
            assert -0.125 * (b - a) < excess <= 0


def test_far_from_the_origin_fractions_keep_their_digits():
    """10 million steps from the origin, people 5e-9 apart may differ by that, and not by what rounding leaves."""
    grid = 1e7 + np.arange(40.0)[:, None]
    grid[0] = 0.0
    grids = cells_for(grid, [1.0], n_draws=8)
    X = np.array([[0.3], [0.3 + 5e-9], [0.3 + 5e-11]])
    assert largest_excess(grids, X, [1.0]) <= 1e-15


def test_control_rounding_to_the_nearest_point_breaks_the_promise(monkeypatch):
    monkeypatch.setattr(ShiftedGrids, "corners", lambda self, seen: (
        (np.rint(seen[:, :1] + seen[:, 1:]) * self.per_step).astype(np.int64), np.arange(len(seen)), np.ones(len(seen))
    ))  # fmt: skip
    grids = cells_for(np.arange(12.0)[:, None], [0.125], n_draws=16)
    assert largest_excess(grids, np.array([[3.4], [3.6]]), [0.125]) > 0.09


def test_one_value_off_a_found_grid_does_not_reject_a_batch():
    X, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    for metric, people in (
        (WeightedLp([0.1, 0.2]), X),
        (TableMetric({"age": 0.1, "score": 0.2}, missing={"age": 0.5}), pd.DataFrame(X, columns=["age", "score"])),
    ):
        model = SmoothedClassifier(
            DecisionTreeClassifier(random_state=0), metric=metric, noise="splitting", n_draws=100
        )
        model.fit(people, y)
        assert model.guarantee_.epsilon == 0
        some = people[:4].copy()
        if isinstance(some, pd.DataFrame):
            some.loc[1, "score"] = 2.5
        else:
            some[1, 1] = 2.5
        scores = model.predict_proba(some)
        np.testing.assert_array_equal(scores[[0, 2, 3]], model.predict_proba(people)[[0, 2, 3]])
        gap = np.abs(scores[:, None, 1] - scores[:, 1])
        assert (gap <= model.guarantee_.bound(metric.pairwise(some)) + 1e-12).all()
        share = (
            model.decide(people.iloc[[1] * 4000] if hasattr(people, "iloc") else people[[1] * 4000], 0) == 1
        ).mean()
        assert abs(share - model.predict_proba(people)[1, 1]) < 0.05
    assert cross_val_score(model, people.assign(age=people.age + (people.index == 7) / 2), y, cv=5).shape == (5,)


def test_steps_are_checked():
    metric = WeightedLp({"age": 0.1, "score": 0.2})
    with pytest.raises(ValueError, match="'wage'"):
        Splitting.for_metric(metric, steps={"wage": 1})
    with pytest.raises(ValueError, match="2 features"):
        Splitting.for_metric(metric, steps=[1])
    with pytest.raises(ValueError, match="one number per feature"):
        Splitting.for_metric(metric, steps="often")


def test_the_estimator_reports_the_level_and_says_what_holds():
    X, y = make_classification(200, 6, random_state=0)
    model = SmoothedClassifier(MLPClassifier((8,), max_iter=2000, random_state=0), random_state=0).fit(X, y)
    promise = model.guarantee_
    assert (promise.level, promise.delta, promise.n_draws) == ("deterministic", 0.0, 1000)
    assert promise.epsilon == 6 / 1000
    assert "D(x, x') + 0.006" in promise.statement
    assert "n/1,000 for the n = 6 features" in promise.statement
    assert "probability at least" not in promise.statement
    h = model.predict_proba(X)
    D = promise.metric.pairwise(X)
    assert (np.abs(h[:, None, 1] - h[None, :, 1]) <= promise.bound(D) + 1e-12).all()


def test_one_draw_per_decision_follows_the_smoothed_law():
    X, y = make_classification(100, 3, n_redundant=0, random_state=0)
    model = SmoothedClassifier(
        DecisionTreeClassifier(random_state=0), metric=WeightedLp([0.5] * 3), noise="splitting", n_draws=50
    ).fit(X, y)
    p = model.predict_proba(X[:1])[0, 1]
    n = 20_000
    k = (model.decide(np.repeat(X[:1], n, axis=0), random_state=0) == 1).sum()
    assert stats.binomtest(int(k), n, float(p)).pvalue > 1e-9


def excess_near(values, weight, rows):
    """Largest total variation between neighbours of these values over the bound, by a model with them as borders."""
    borders = np.unique(np.asarray(values))
    sees = lambda Z: np.searchsorted(borders, Z[:, 0])  # noqa: E731
    metric, y = WeightedLp([weight]), np.arange(len(rows)) % (len(borders) + 1)
    model = SmoothedClassifier(sees, metric=metric, noise="splitting", batch=True).fit(rows, y)
    ends = np.array([side for v in values for side in (np.nextafter(v, -np.inf), v, np.nextafter(v, np.inf))])
    h = model.predict_proba(ends[:, None])
    bound = model.guarantee_.bound(metric.pairwise(ends[:, None]))
    return float((np.abs(h[:, None] - h).sum(axis=2) / 2 - bound).max())


EDGE = 2.0**20  # places further out are moved there
EXTREMES = [0.0, -0.0, 1e-310, -1e-310, 1e-200, 1.0, 2.5, -1.0, EDGE, EDGE - 1, -EDGE, 1 - EDGE, 1e16, -1e99]
GRID = np.repeat(np.arange(-20.0, 21.0), 10)[:, None]
NO_GRID = np.sin(np.arange(-20.5, 21.0))[:, None]


@pytest.mark.parametrize("rows", [GRID, NO_GRID], ids=["grid", "no grid"])
@pytest.mark.parametrize("weight", [1e-90, 0.01, 0.3, 1.0, 1e6, 1e90])
def test_neighbouring_huge_and_tiny_numbers_are_within_the_bound(weight, rows):
    assert excess_near(EXTREMES, weight, rows) <= 1e-9


def test_control_a_value_between_the_last_points_of_a_grid_that_is_cut_is_found_out(monkeypatch):
    prepare = ShiftedGrids.prepare

    def cut(self, rows):
        whole, fraction = np.hsplit(prepare(self, rows), 2)
        return np.hstack([whole, np.where(np.abs(whole) >= EDGE, 0.0, fraction)])

    monkeypatch.setattr(ShiftedGrids, "prepare", cut)
    assert excess_near(EXTREMES, 0.3, GRID) > 0.1


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("declared", [True, False])
def test_where_a_grid_ends_nobody_is_further_along_it_than_people_beyond(side, declared):
    """Positions never fall, and rise by no more than the steps between two people: also past the last of the grid."""
    grids = cells_for(np.arange(50.0)[:, None], [0.04], n_draws=1000, steps=(1.0,) if declared else "auto")
    last = 2.0**38 // grids.per_step[0] if declared else 2.0**20
    values = grids.origins[0] + side * (last + np.arange(-3.0, 3.5, 1.0 if declared else 0.125))
    prepared = grids.prepare(values[:, None])
    steps = side * np.diff(prepared.sum(axis=1))
    assert (steps >= 0).all()
    assert (steps <= side * np.diff(values) + 1e-6).all()
    assert abs(prepared.sum(axis=1)[-1]) == last  # control: the last ones are beyond it
    assert (steps > 0).any()
