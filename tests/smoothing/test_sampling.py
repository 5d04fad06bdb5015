"""Draws as needed: intervals hold at all looks at once, errors keep the promise, easy people are cheap."""

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from likewise import SmoothedClassifier, SmoothedRegressor, WeightedLp
from likewise.kernel.concentration import clopper_pearson, empirical_bernstein, hoeffding, subset_margin
from likewise.smoothing.sampling import Schedule, adaptive_votes


class Coins:
    """A model and its draws in one: votes for class 1 with a known probability per person, whatever the seed says."""

    def __init__(self, seed, soft=False):
        self.rng, self.soft = np.random.default_rng(seed), soft

    def iter_draws(self, stops):
        for start, stop in zip([0, *stops], stops, strict=False):
            yield stop, range(stop - start)

    def sums(self, draws, people):
        p = people[:, 0]
        if not self.soft:
            ones = self.rng.binomial(len(draws), p).astype(float)
            total = np.stack([len(draws) - ones, ones], axis=1)
            return total, total
        votes = self.rng.beta(8 * p, 8 * (1 - p), size=(len(draws), len(p)))  # mean p
        total = np.stack([(1 - votes).sum(axis=0), votes.sum(axis=0)], axis=1)
        return total, np.stack([((1 - votes) ** 2).sum(axis=0), (votes**2).sum(axis=0)], axis=1)


def run(p, schedule, seed, soft=False):
    coins = Coins(seed, soft)
    return adaptive_votes(coins, np.asarray(p)[:, None], coins, schedule, advance=lambda n: None)


@pytest.mark.parametrize("soft", [False, True])
def test_the_error_is_kept_at_least_as_often_as_promised(soft):
    """delta / 2 = 0.1 per person. 1e-9 critical value of the number of failures if each fails with 0.1."""
    schedule = Schedule(epsilon=0.1, delta=0.2, n_outputs=2, hard=not soft)
    p = np.tile(np.linspace(0.01, 0.99, 25), 160)
    found = run(p, schedule, 0, soft)
    failures = int((np.abs(found.mean[:, 1] - p) > 0.05).sum())
    outside = int(((p < found.lower[:, 1]) | (p > found.upper[:, 1])).sum())
    critical = stats.binom.isf(1e-9, len(p), 0.1)
    assert failures <= critical
    assert outside <= critical


def test_intervals_of_half_the_width_fail():
    """Negative control: halved intervals stop too early, and miss the truth more often than promised."""

    class Halved(Schedule):
        def interval(self, mean, squares, n, *, last):
            lower, upper = super().interval(mean, squares, n, last=last)
            return mean - (mean - lower) / 2, mean + (upper - mean) / 2

    schedule = Halved(epsilon=0.1, delta=0.2, n_outputs=2, hard=True)
    p = np.full(4000, 0.3)
    found = run(p, schedule, 0)
    outside = int(((p < found.lower[:, 1]) | (p > found.upper[:, 1])).sum())
    assert outside > stats.binom.isf(1e-9, len(p), 0.1)


def test_easy_people_cost_few_draws():
    schedule = Schedule(epsilon=0.01, delta=1.8e-4, n_outputs=2, hard=True)
    found = run([0.0, 0.001, 0.01, 0.1, 0.5], schedule, 0)
    assert (np.diff(found.n_draws) >= 0).all()
    assert found.n_draws[0] <= 3_500
    assert found.n_draws[2] <= 25_000
    assert found.n_draws[4] <= schedule.looks[-1]
    assert schedule.looks[-1] <= 225_000


@pytest.mark.parametrize("n_outputs", [1, 2, 3, 10])
@pytest.mark.parametrize("hard", [True, False])
def test_shares_of_delta_add_up_and_the_last_look_ends_it(n_outputs, hard):
    schedule = Schedule(epsilon=0.03, delta=1e-3, n_outputs=n_outputs, hard=hard)
    last = schedule.looks[-1]
    assert subset_margin(last, schedule.delta / 4, max(2, n_outputs)) <= schedule.epsilon / 2
    spent = schedule._early_share * (len(schedule.looks) - 1) + schedule.delta / 4
    assert spent <= schedule.delta / 2 * (1 + 1e-12)
    assert schedule.looks == sorted(set(schedule.looks))


@pytest.mark.parametrize("n_outputs", [1, 2, 3, 10])
def test_the_intervals_of_all_classes_of_all_looks_hold_at_once(n_outputs):
    """15 looks share delta / 4, and the classes of a look its share; the last look has delta / 4 of its own."""
    delta, n, mean = 0.1, 2560, np.full((1, n_outputs), 0.3)
    share = delta / 4 / 15 / (n_outputs if n_outputs > 2 else 1)
    hard, soft = (Schedule(0.05, delta, n_outputs, hard=hard) for hard in (True, False))
    np.testing.assert_array_equal(hard.interval(mean, mean, n, last=False), clopper_pearson(mean, n, share))
    squares = mean**2 + 0.01
    expected = empirical_bernstein(mean, squares, n, share)
    np.testing.assert_array_equal(soft.interval(mean, squares, n, last=False), expected)
    margin = subset_margin(n, delta / 4, max(2, n_outputs))
    np.testing.assert_allclose(hard.interval(mean, mean, n, last=True), (mean - margin, mean + margin))
    assert len(hard.looks) <= 16


def test_votes_suffice_at_half_of_epsilon_in_total_variation():
    mean = np.array([[0.2, 0.3, 0.5]])
    two, three = Schedule(0.1, 0.1, 2, hard=True), Schedule(0.1, 0.1, 3, hard=True)
    assert two.suffices(mean[:, 1:], mean[:, 1:] - 0.0499, mean[:, 1:] + 0.01)[0]
    assert not two.suffices(mean[:, 1:], mean[:, 1:] - 0.0501, mean[:, 1:] + 0.01)[0]
    # Errors of 0.03, 0.03 and 0.03 in three classes are a total variation of 0.045.
    assert three.suffices(mean, mean - 0.03, mean + 0.01)[0]
    assert not three.suffices(mean, mean - 0.034, mean + 0.01)[0]


@pytest.mark.parametrize("interval", ["hoeffding", "clopper_pearson", "empirical_bernstein"])
@pytest.mark.parametrize("p", [0.0, 0.003, 0.2, 0.5, 1.0])
def test_intervals_cover_at_their_rate(interval, p):
    n, delta, n_runs = 400, 0.05, 4000
    share = np.random.default_rng(0).binomial(n, p, n_runs) / n
    if interval == "empirical_bernstein":
        lower, upper = empirical_bernstein(share, share, n, delta)
    else:
        lower, upper = {"hoeffding": hoeffding, "clopper_pearson": clopper_pearson}[interval](share, n, delta)
    misses = ((p < lower) | (p > upper)).sum()
    assert misses <= stats.binom.isf(1e-9, n_runs, delta)


def test_sampled_forests_come_within_epsilon_of_the_formula():
    X, y = make_classification(300, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    forest = RandomForestClassifier(8, max_depth=5, random_state=0).fit(X, y)
    options = {"metric": WeightedLp(np.ones(5)), "noise": "uniform", "random_state": 0}
    exact = SmoothedClassifier(FrozenEstimator(forest), vote="trees", **options).fit(X, y).predict_proba(X[:40])
    # A plain function has no formula. Its votes are soft: each tree's share.
    votes = lambda rows: np.mean([np.eye(3)[t.predict(rows).astype(int)] for t in forest.estimators_], axis=0)  # noqa: E731
    model = SmoothedClassifier(votes, vote="soft", epsilon=0.06, delta=1e-6, **options).fit(X, y)
    assert model.guarantee_.level == "sampled"
    found = model.certify(X[:40])
    # 40 people at 5e-7 each: 2e-5 in all; the seed is fixed.
    assert (np.abs(found.estimate - exact).sum(axis=1) / 2).max() <= 0.03
    assert ((found.lower <= exact + 1e-12) & (exact <= found.upper + 1e-12)).all()


def test_hard_votes_of_a_tree_come_within_epsilon_of_the_formula_for_every_noise():
    X, y = make_classification(300, 4, n_redundant=0, random_state=0)
    tree = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X, y)
    for noise in ("gaussian", "laplace", "uniform"):
        options = {"metric": WeightedLp(np.ones(4)), "noise": noise, "random_state": 0}
        exact = SmoothedClassifier(FrozenEstimator(tree), **options).fit(X, y).predict_proba(X[:30])
        model = SmoothedClassifier(lambda rows: tree.predict(rows), epsilon=0.04, delta=1e-6, **options).fit(X, y)
        found = model._estimate(model._people(X[:30]))
        assert np.abs(found.mean - exact).max() <= 0.02
        assert found.n_draws.min() < found.n_draws.max() <= model.guarantee_.n_draws


def test_regression_in_its_own_units():
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = 1e6 + X[:, 0]
    model = SmoothedRegressor(
        Ridge(), metric=WeightedLp([1.0, 1.0]), noise="gaussian", epsilon=0.05, random_state=0,
        output_range=(1e6 - 2, 1e6 + 2),
    ).fit(X, y)  # fmt: skip
    assert model.guarantee_.level == "sampled"
    found = model.certify(X[:20])
    # E[clip(mu + sigma Z)] over a fine grid of quantiles.
    z = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    spread = np.linalg.norm(model.estimator_.coef_) / np.sqrt(2 * np.pi)
    truth = np.clip(model.estimator_.predict(X[:20])[:, None] + spread * z, 1e6 - 2, 1e6 + 2).mean(axis=1)
    assert np.abs(found.estimate[:, 0] - truth).max() <= 0.05 / 2 * 4
    assert ((found.lower[:, 0] <= truth) & (truth <= found.upper[:, 0])).all()


def test_a_number_of_draws_stays_a_number_of_draws():
    X, y = make_classification(100, 4, random_state=0)
    model = SmoothedClassifier(LogisticRegression(), noise="gaussian", n_draws=777, random_state=0).fit(X, y)
    assert (model._estimate(model._people(X)).n_draws == 777).all()
    assert model.guarantee_.n_draws == 777


def test_the_same_person_gets_the_same_result_in_any_company():
    X, y = make_classification(200, 4, n_redundant=0, random_state=0)
    inner = LogisticRegression().fit(X, y)
    model = SmoothedClassifier(
        FrozenEstimator(inner),
        vote="soft",
        noise="gaussian",
        epsilon=0.05,
        random_state=0,
        metric=WeightedLp(np.ones(4)),
    ).fit(X, y)
    h = model.predict_proba(X)
    np.testing.assert_array_equal(h[::-1], model.predict_proba(X[::-1]))
    np.testing.assert_array_equal(h[5:6], model.predict_proba(X[5:6]))
    np.testing.assert_array_equal(np.repeat(h[3:4], 3, axis=0), model.predict_proba(np.repeat(X[3:4], 3, axis=0)))
