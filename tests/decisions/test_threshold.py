"""Soft thresholds: closed forms, a search for pairs that are decided differently too often, and controls."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from chance import too_many
from contract import run_check
from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    RecalibratedClassifier,
    SmoothedClassifier,
    TableMetric,
    WeightedLp,
    attack,
    load_model,
    save_model,
)
from likewise.decisions.threshold import ThresholdDecision, ThresholdScorer
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.bounds import Bound
from likewise.kernel.certificate import Estimate
from likewise.kernel.metric import BoundMetric
from promised import promise

KEY = b"a key of 21 bytes...!"
METRIC = WeightedLp([0.4, 0.1])
ROUNDS = 4000
# Two-sided Hoeffding bound for a mean of ROUNDS indicators at 1e-6, the suite's rate of false alarms.
MARGIN = math.sqrt(math.log(2e6) / (2 * ROUNDS))


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.where(rng.random(n) < expit(2 * X[:, 0]), "yes", "no")


@parametrize_with_checks([ThresholdDecision(AdditiveClassifier(max_knots=4, penalty=0.01))])
def test_scikit_learn_contract(estimator, check):
    run_check(estimator, check)


@pytest.fixture(scope="module")
def card():
    return AdditiveClassifier(METRIC, penalty=0.01).fit(*people(500))


@pytest.mark.parametrize("favourable", ["yes", "no"])
@pytest.mark.parametrize(("threshold", "width"), [(0.5, 1.0), (0.6, 0.2), (0.3, 0.05)])
def test_chances_are_those_of_a_uniform_cut_off(card, favourable, threshold, width):
    decision = ThresholdDecision.from_model(card, threshold=threshold, width=width, favourable=favourable)
    X, _ = people(300, 1)
    column = list(card.classes_).index(favourable)
    expected = np.clip((card.predict_proba(X)[:, column] - (threshold - width / 2)) / width, 0, 1)
    np.testing.assert_allclose(decision.predict_proba(X)[:, column], expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(decision.predict_proba(X).sum(axis=1), 1, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("favourable", "threshold", "width"), [("yes", 0.6, 0.2), ("no", 0.5, 1.0)])
def test_decisions_are_as_frequent_as_their_chances(card, favourable, threshold, width):
    decision = ThresholdDecision.from_model(card, threshold=threshold, width=width, favourable=favourable)
    X, _ = people(20, 1)
    chances = decision.predict_proba(X)[:, list(card.classes_).index(favourable)]
    assert ((chances > 0) & (chances < 1)).any()
    outcomes = np.array([decision.decide(X, round=str(i), key=KEY) for i in range(ROUNDS)])
    np.testing.assert_allclose((outcomes == favourable).mean(axis=0), chances, rtol=0, atol=MARGIN)


def test_people_outside_the_band_are_decided_for_sure_and_so_is_everyone_within_their_sure_distance(card):
    decision = ThresholdDecision.from_model(card, threshold=0.5, width=0.2)
    X, _ = people(400, 1)
    band = decision.band(X)
    assert band["in_band"].any()
    assert not band["in_band"].all()
    assert (band["sure_distance"][band["in_band"]] == 0).all()
    sure = decision.predict_proba(X)[~band["in_band"]]
    assert set(np.unique(sure)) == {0.0, 1.0}
    # Someone almost as far away as the sure distance allows, in the direction of the other decision.
    far = band["sure_distance"].to_numpy()
    towards = np.where(band["score"] > 0.5, -1, 1) * far / decision.guarantee_.metric.weights[0] * (1 - 1e-9)
    moved = X + np.column_stack([towards, np.zeros(len(X))])
    keep = ~band["in_band"].to_numpy()
    np.testing.assert_array_equal(decision.predict_proba(moved)[keep], decision.predict_proba(X)[keep])


@pytest.mark.parametrize("thresholds", [[0.5], [0.3, 0.5, 0.7]])
def test_those_in_a_band_are_those_whom_the_draw_decides(card, thresholds):
    grades = [*"DCBA"[: len(thresholds) + 1]]
    decision = ThresholdDecision.from_model(card, threshold=thresholds, width=0.1, grades=grades)
    X, _ = people(200, 1)
    rounds = np.array([decision.decide(X, round=str(i), key=KEY) for i in range(200)])
    several = (rounds != rounds[0]).any(axis=0)
    reached = decision.predict_proba(X).max(axis=1)
    inside = decision.band(X)["in_band"].to_numpy()
    assert not (several & ~inside).any()
    assert (several | ~inside)[reached < 0.9].all()  # by chance, 0.9^200 is nobody
    assert (several & inside).any()
    assert (~inside).any()


def test_no_pair_is_decided_differently_more_often_than_the_guarantee_says(card):
    for width in (0.05, 0.3, 1.0):
        decision = ThresholdDecision.from_model(card, threshold=0.55 if width < 1 else 0.5, width=width)
        found = attack(
            decision, decision.guarantee_.metric, people(200)[0], n_pairs=30_000, tolerance=1e-12, random_state=0
        )
        assert found.n_violations == 0
        pairs = np.random.default_rng(3).uniform(-2, 2, (2, 100_000, 2))
        gaps = np.abs(decision.predict_proba(pairs[0])[:, 1] - decision.predict_proba(pairs[1])[:, 1])
        assert (gaps <= decision.decision_bound(decision.guarantee_.metric(*pairs)) + 1e-12).all()


def test_control_a_band_narrower_than_claimed_is_found(card):
    narrow = ThresholdDecision.from_model(card, threshold=0.55, width=0.1)
    claimed = ThresholdDecision.from_model(card, threshold=0.55, width=0.12).guarantee_
    found = attack(
        lambda X: narrow.predict_proba(X)[:, 1], claimed.metric, people(200)[0], n_pairs=30_000, random_state=0
    )
    assert found.n_violations > 0


def test_shared_cut_offs_differ_as_often_as_the_closed_form_says_and_independent_draws_more_often(card):
    decision = ThresholdDecision.from_model(card, threshold=0.5, width=0.4)
    X = np.array([[0.0, 0.0], [0.05, 0.0]])
    a, b = decision.predict_proba(X)[:, 1]
    shared = np.array([decision.decide(X, round=str(i), key=KEY) for i in range(ROUNDS)])
    different = (shared[:, 0] != shared[:, 1]).mean()
    assert abs(different - abs(a - b)) <= MARGIN
    assert different <= decision.decision_bound(decision.guarantee_.metric(X[:1], X[1:]))[0] + MARGIN
    independent = np.array([decision.decide(X, random_state=i) for i in range(ROUNDS // 4)])
    assert (independent[:, 0] != independent[:, 1]).mean() > abs(a - b) + 2 * MARGIN


def test_a_metric_enforced_at_width_times_d_gives_decisions_within_d():
    width = 0.25
    decision = ThresholdDecision(AdditiveClassifier(METRIC.scaled(width), penalty=0.01), width=width).fit(*people(500))
    np.testing.assert_allclose(decision.guarantee_.metric.weights, METRIC.weights, rtol=1e-15)
    D = np.linspace(0, 1, 20)
    assert (decision.decision_bound(D) <= D * (1 + 1e-14)).all()


def test_grades_have_a_band_at_each_threshold_and_one_draw(card):
    decision = ThresholdDecision.from_model(card, threshold=[0.3, 0.5, 0.7], width=0.1, grades=["D", "C", "B", "A"])
    X, _ = people(300, 1)
    score, chances = card.predict_proba(X)[:, 1], decision.predict_proba(X)
    at_least = np.clip((score[:, None] - np.array([0.25, 0.45, 0.65])) / 0.1, 0, 1)
    np.testing.assert_allclose(chances[:, ::-1].cumsum(axis=1)[:, :-1][:, ::-1], at_least, rtol=0, atol=1e-12)
    order = {grade: i for i, grade in enumerate("DCBA")}
    for i in range(50):
        grades = [order[grade] for grade in decision.decide(X, round=str(i), key=KEY)]
        assert (np.diff(np.array(grades)[np.argsort(score)]) >= 0).all()
    pairs = np.random.default_rng(3).uniform(-2, 2, (2, 50_000, 2))
    gaps = np.abs(decision.predict_proba(pairs[0]) - decision.predict_proba(pairs[1])).sum(axis=1) / 2
    assert (gaps <= decision.decision_bound(decision.guarantee_.metric(*pairs)) + 1e-12).all()
    certificate = decision.certify(X)
    assert set(certificate.outcome) <= set("DCBA")


def test_sampled_scores_have_intervals_and_their_error_counts():
    X, y = people(200)
    inner = SmoothedClassifier(
        DecisionTreeClassifier(max_depth=2, random_state=0),
        metric=METRIC,
        noise="laplace",
        n_draws=2000,
        random_state=0,
    ).fit(X, y)
    decision = ThresholdDecision.from_model(inner, width=0.5)
    certificate = decision.certify(X)
    assert (certificate.lower <= certificate.estimate).all()
    assert (certificate.estimate <= certificate.upper).all()
    assert decision.guarantee_.epsilon == pytest.approx(inner.guarantee_.epsilon / 0.5)
    assert (decision.guarantee_.level, decision.guarantee_.delta) == ("sampled", inner.guarantee_.delta)


class Interval:
    """A model of two classes that knows its first probability up to an interval."""

    def __init__(self, curve):
        self.guarantee = promise(METRIC, curve, "sampled", "", 0.02)
        centre = np.linspace(0, 1, 101)
        half = np.random.default_rng(0).choice([0.0, 0.03, 0.1], 101)
        ends = np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
        self.lower, self.upper = (np.column_stack([one, 1 - other]) for one, other in (ends, ends[::-1]))
        self.mean = np.column_stack([centre, 1 - centre])

    def estimate(self, people, *, verbose=False):
        return Estimate(self.mean, self.lower, self.upper, np.zeros(101, dtype=np.int64))

    def recode(self, people):
        return people


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("thresholds", [[0.5], [0.3, 0.55, 0.8]])
def test_the_interval_of_a_decision_holds_its_chance_at_every_score_of_the_interval(column, thresholds):
    inner = Interval(Bound())
    scorer = ThresholdScorer(inner, inner, column, np.array(thresholds), 0.2, len(thresholds) > 1)
    shares = np.linspace(0, 1, 201)[:, None]
    scores = inner.lower[:, column] + shares * (inner.upper[:, column] - inner.lower[:, column])
    reached = np.clip((scores[:, :, None] - thresholds) / 0.2 + 0.5, 0, 1)
    ends = np.ones((*scores.shape, 1))
    chances = np.concatenate([ends, reached, 0 * ends], axis=2)
    chances = chances[:, :, :-1] - chances[:, :, 1:]
    if len(thresholds) == 1 and column == 0:  # the first class is the favourable one
        chances = chances[:, :, ::-1]
    found = scorer.estimate(None)
    assert (found.lower <= chances.min(axis=0) + 1e-12).all()
    assert (found.upper >= chances.max(axis=0) - 1e-12).all()
    for k in {0, len(thresholds)}:  # only one end of these moves: nothing is given away
        np.testing.assert_allclose(found.lower[:, k], chances[:, :, k].min(axis=0), atol=1e-12)
        np.testing.assert_allclose(found.upper[:, k], chances[:, :, k].max(axis=0), atol=1e-12)
    assert (found.upper - found.lower).max() > 0.5  # control: some intervals are wide


def test_a_frozen_model_and_one_that_is_fitted_here_and_a_saved_one_agree(card, tmp_path):
    X, y = people(500)
    frozen = ThresholdDecision(FrozenEstimator(card), threshold=0.4).fit(X, y)
    fitted = ThresholdDecision(AdditiveClassifier(METRIC, penalty=0.01), threshold=0.4).fit(X, y)
    np.testing.assert_array_equal(frozen.predict_proba(X), fitted.predict_proba(X))
    save_model(frozen, tmp_path / "decision.skops")
    loaded = load_model(tmp_path / "decision.skops")
    np.testing.assert_array_equal(loaded.decide(X, round="r", key=KEY), frozen.decide(X, round="r", key=KEY))


def test_a_frozen_model_in_another_order_keeps_the_costs_of_its_blanks():
    """By name: each number, and what a blank in it costs."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)}).mask(rng.random((60, 2)) < 0.1)
    metric = TableMetric({"a": 0.2, "b": 0.1}, missing={"a": 0.3, "b": 0.5})
    inner = AdditiveClassifier(metric, penalty=0.1).fit(X, rng.random(60) < 0.5)
    for wrapped in (
        ThresholdDecision(FrozenEstimator(inner), width=0.5),
        RecalibratedClassifier(FrozenEstimator(inner)),
    ):
        bound = wrapped.fit(X[["b", "a"]], rng.random(60) < 0.5).guarantee_.bound_metric
        factor = 2 if isinstance(wrapped, ThresholdDecision) else 1
        assert dict(zip(bound.schema.names, bound.missing, strict=True)) == {"a": 0.3 * factor, "b": 0.5 * factor}
        pair = X.dropna()[["b", "a"]].iloc[[0]]
        blank = bound.between(bound.read(pair), bound.read(pair.assign(b=np.nan)))[0]
        assert blank == pytest.approx(0.5 * factor)


def test_the_width_that_a_guarantee_needs_and_back(card):
    for distance in np.random.default_rng(0).uniform(0, 0.09, 50):  # rounded up: never decided differently too often
        width = ThresholdDecision.width_for(0.1, distance)
        assert (
            Fraction(distance) / Fraction(width)
            <= Fraction(0.1)
            < Fraction(distance) / Fraction(width) * (1 + Fraction(1e-14))
        )
    width = ThresholdDecision.width_for(0.1, 0.02, card.guarantee_.curve)
    decision = ThresholdDecision.from_model(card, width=width)
    assert decision.decision_bound(0.02 / width) <= 0.1 * (1 + 1e-12)
    assert decision.decision_bound(0.02 / width) == pytest.approx(0.1, rel=1e-9)
    with pytest.raises(
        InvalidInputError, match=r"different must be at least 0\.0\d+ for people at a distance of 0\.02"
    ):
        ThresholdDecision.width_for(0.01, 0.02, card.guarantee_.curve)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width must be a positive number below 1 or 1; got 0"),
        ({"width": 1.5}, "width must be a positive number below 1 or 1; got 1.5"),
        ({"threshold": 1.0}, "threshold must be between 0 and 1"),
        ({"threshold": "high"}, "threshold must be between 0 and 1, or several such numbers; got 'high'"),
        ({"threshold": [0.5, 0.55]}, "threshold must be increasing, with at least width"),
        ({"threshold": [0.3, 0.7]}, "grades must name 3 grades for 2 thresholds, lowest first; got None"),
        (
            {"threshold": [0.3, 0.7], "grades": ["a", "a", "b"]},
            "grades must be None or a list of labels that differ, lowest first; got",
        ),
        ({"favourable": "maybe"}, "favourable must be one of the classes"),
    ],
)
def test_bad_input_is_refused(card, options, message):
    with pytest.raises(InvalidInputError, match=message):
        ThresholdDecision.from_model(card, **options)
    with pytest.raises(InvalidInputError, match=message):
        ThresholdDecision(FrozenEstimator(card), **options).fit(*people(50))


def test_models_without_a_guarantee_and_keys_that_are_no_keys_are_refused(card):
    with pytest.raises(InvalidTypeError, match="got LogisticRegression, which has no guarantee"):
        ThresholdDecision.from_model(LogisticRegression())
    with pytest.raises(InvalidTypeError, match="got AdditiveRegressor, which is a regressor"):
        ThresholdDecision.from_model(AdditiveRegressor())
    X = people(10)[0]
    with pytest.raises(InvalidInputError, match="random_state is for independent draws"):
        card.decide(X, 0, round="r", key=KEY)
    with pytest.raises(InvalidTypeError, match="key must be bytes; got NoneType"):
        card.decide(X, round="r")


# -- metrics of tables, whose weights of categories and blanks are capped at 1 when divided by the width --

JOBS = {"job": {"within": 0.3, "groups": [["clerk", "teacher"], ["farmer"]]}}
HOURS = {"job": {"clerk": {"teacher": 2, "farmer": 8}, "teacher": {"farmer": 7}}}


def workers(n, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"job": rng.choice(["clerk", "teacher", "farmer"], n), "years": rng.integers(0, 5, n).astype(float)}
    )
    X.loc[rng.random(n) < 0.2, "years"] = np.nan
    chance = X["job"].map({"clerk": 0.02, "teacher": 0.5, "farmer": 0.98}) + np.where(X["years"].isna(), 0.3, 0)
    return X, np.where(rng.random(n) < chance, "yes", "no")


def excess_of_decisions(metric, width, threshold):
    """Largest difference of chances over the bound, and of sure distances over the distance of who is decided else."""
    X, y = workers(3000)
    card = AdditiveClassifier(metric, penalty=1e-6).fit(X, y)
    decision = ThresholdDecision.from_model(card, threshold=threshold, width=width)
    everybody = X.drop_duplicates()
    chances = decision.predict_proba(everybody)[:, 1]
    distances = decision.guarantee_.metric.pairwise(everybody)
    apart = np.abs(chances[:, None] - chances)
    sure = decision.band(everybody)["sure_distance"].to_numpy()
    closer = (distances < sure[:, None]) & (apart > 1e-9)
    return float((apart - decision.decision_bound(distances)).max()), bool(closer.any())


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("width", [0.05, 0.1, 0.5])
@pytest.mark.parametrize("shape", [{}, {"groups": JOBS}, {"distances": HOURS}], ids=["plain", "groups", "matrix"])
def test_decisions_are_within_a_metric_of_tables(shape, width, threshold):
    metric = TableMetric({"years": 0.02}, {"job": 0.9}, missing={"years": 0.4}, **shape)
    excess, contradicted = excess_of_decisions(metric, width, threshold)
    assert excess <= 1e-12
    assert not contradicted


@pytest.mark.parametrize("broken", ["curve", "shapes"])
def test_control_a_metric_that_is_capped_but_taken_for_exact_is_found_out(broken, monkeypatch):
    if broken == "curve":
        monkeypatch.setattr(BoundMetric, "caps_at", lambda self, factor: False)
        metric = TableMetric({"years": 0.02}, {"job": 0.9}, missing={"years": 0.4})
    else:
        scaled = TableMetric.scaled
        keep = lambda self, factor: scaled(self, factor).with_params(groups=self.groups)  # noqa: E731
        monkeypatch.setattr(TableMetric, "scaled", keep)
        metric = TableMetric({"years": 0.02}, {"job": 0.9}, missing={"years": 0.4}, groups=JOBS)
    found = [excess_of_decisions(metric, width, threshold) for width in (0.1, 0.5) for threshold in (0.3, 0.5, 0.8)]
    assert max(excess for excess, _ in found) > 0.01 or any(contradicted for _, contradicted in found)


@pytest.mark.parametrize("favourable", ["yes", "no"])
def test_two_grades_are_in_the_order_given_whichever_class_is_favourable(card, favourable):
    X, _ = people(100, 1)
    options = {"threshold": 0.5, "width": 0.1, "favourable": favourable}
    graded = ThresholdDecision.from_model(card, grades=["reject", "accept"], **options)
    plain = ThresholdDecision.from_model(card, **options)
    accepted = plain.predict_proba(X)[:, list(card.classes_).index(favourable)]
    np.testing.assert_array_equal(graded.predict_proba(X)[:, 1], accepted)
    sure = (accepted == 0) | (accepted == 1)
    decided = graded.decide(X, round="a round", key=KEY)
    np.testing.assert_array_equal(decided[sure], np.where(accepted[sure] == 1, "accept", "reject"))
    np.testing.assert_array_equal(decided[sure], graded.predict(X)[sure])


HALF = 1e-3  # half a period
BANKS = 400


def square_wave(rows):
    """Two people half a period apart get opposite votes under every draw, so their sampled scores are opposite."""
    return (np.floor(rows[:, 0] / HALF) % 2).astype(int)


@cache
def banks(kind, delta=0.05):
    """Decisions and claims for one pair of people, each around a model with its own bank of draws."""
    X, y, pair = np.linspace(-3, 3, 50)[:, None], np.arange(50) % 2, np.array([[HALF / 4], [HALF * 5 / 4]])
    options = {"n_draws": 400} if kind != "adaptive" else {"epsilon": 0.2}
    found = []
    for seed in range(BANKS):
        model = SmoothedClassifier(
            square_wave,
            metric=WeightedLp([0.3]),
            noise="gaussian",
            delta=delta,
            random_state=seed,
            batch=True,
            **options,
        ).fit(X, y)
        if kind == "recalibrated":
            model = RecalibratedClassifier(FrozenEstimator(model)).fit(X, y)
        decision = ThresholdDecision.from_model(model, threshold=0.465, width=0.02)
        found.append((model, decision, pair))
    return found


@pytest.mark.parametrize("kind", ["fixed", "adaptive", "recalibrated"])
def test_claims_around_a_sampled_model_fail_no_more_often_than_delta(kind):
    failed = {"sure": 0, "decisions": 0, "range": 0, "interval": 0, "tie": 0}
    for model, decision, pair in banks(kind):
        D = float(decision.guarantee_.metric(pair[:1], pair[1:])[0])
        chance, score = decision.predict_proba(pair)[:, 1], model.predict_proba(pair)[:, 1]
        failed["sure"] += bool(decision.band(pair)["sure_distance"][0] > D) and chance[0] != chance[1]
        failed["decisions"] += abs(chance[0] - chance[1]) > float(decision.decision_bound(D))
        low, high = model.guarantee_.range_at(score[0], float(model.guarantee_.metric(pair[:1], pair[1:])[0]))
        failed["range"] += not low <= score[1] <= high
        # h is 1/2 to 1e-9 everywhere; its recalibrated value is not known here.
        person, decided = model.certify(pair[:1]), decision.certify(pair[:1])
        if kind != "recalibrated":
            failed["interval"] += not person.lower[0, 1] <= 0.5 <= person.upper[0, 1]
            failed["tie"] += bool(decided.distance[0] > 0) and decided.outcome[0] != 1
    assert not [name for name, count in failed.items() if too_many(count, BANKS, 0.05)], failed


def test_control_the_interval_of_one_person_does_not_make_the_other_sure():
    broken = 0
    for _, decision, pair in banks("fixed"):
        inner, scorer = decision.estimator_.certify(pair), decision.scorer_
        claimed = scorer._distance_at(inner.lower, inner.upper, scorer.width / 2)
        chance = decision.predict_proba(pair)[:, 1]
        D = float(decision.guarantee_.metric(pair[:1], pair[1:])[0])
        broken += bool(claimed[0] > D) and chance[0] != chance[1]
    assert too_many(broken, BANKS, 0.05)
