"""Designed metrics and their cards: guarantee, protected columns, choices of points, and bad input."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from likewise import (
    AdditiveClassifier,
    FrontierDisplay,
    TableMetric,
    VacuousGuaranteeWarning,
    WeightedLp,
    attack,
    audit,
    design_metric,
)
from likewise._fit_validation import TrainingData
from likewise.design.frontier import SkillCurve
from likewise.design.joint import Costs, Weights
from likewise.design.problem import DesignProblem, read_bounds, widest_metric
from likewise.reveal.empirical import read_people
from likewise.scorecard.prices import weight_gains


def people(n=700, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": np.round(rng.gamma(4, 12, n)),
            "tenure": np.where(rng.random(n) < 0.15, np.nan, rng.poisson(5, n)),
            "noise": rng.normal(size=n),
            "region": rng.choice(["north", "south", "west"], n),
            "race": rng.choice(["x", "y"], n),
        }
    )
    score = 0.06 * (X["income"] - 48) + 0.2 * X["tenure"].fillna(9) - 1.2 + (X["region"] == "west") + (X["race"] == "x")
    return X, (rng.random(n) < expit(score)).astype(int).to_numpy(), score.to_numpy()


@pytest.fixture(scope="module")
def frontier():
    X, y, _ = people()
    return design_metric(X, y, protected=["race"], n_points=6, cv=3)


def test_every_card_is_within_its_metric_under_attack(frontier):
    X, _, _ = people()
    for point in frontier.points:
        assert point.card.guarantee_.metric == point.metric
        assert (point.card.guarantee_.level, point.card.guarantee_.epsilon) == ("exact", 0.0)
        found = attack(point.card, point.metric, X, n_pairs=3000, random_state=0)
        assert found.excess <= 1e-12
        assert audit(point.card, X, point.metric).n_violations == 0


def test_a_protected_column_never_comes_back(frontier):
    """The outcome depends on it; so does nothing else that could stand in for it here."""
    X, _, _ = people()
    other = X.assign(race=np.where(X["race"] == "x", "y", "x"))
    for point in frontier.points:
        assert point.metric.categorical["race"] == 0
        assert point.card.predict_proba(X).tobytes() == point.card.predict_proba(other).tobytes()
        assert point.card.predict_proba(X.drop(columns="race")).tobytes() == point.card.predict_proba(X).tobytes()
    X, y, _ = people()
    control = design_metric(X, y, n_points=3, cv=2, references=False)
    assert control.points[-1].metric.categorical["race"] > 0.05  # it would matter if it were allowed to


def test_a_column_without_effect_gets_the_weight_0(frontier):
    assert frontier.best().metric.numeric["noise"] == 0
    assert frontier.best().metric.numeric["income"] > 0


def test_loss_falls_and_mean_distance_rises(frontier):
    table = frontier.table
    assert (np.diff(table["mean_distance"]) > 0).all()
    assert (np.diff(table["training_objective"]) < 0).all()
    slopes = -np.diff(table["training_objective"]) / np.diff(table["mean_distance"])
    assert (np.diff(slopes) < 1e-5).all()
    assert table["loss"].iloc[-1] < table["loss"].iloc[0]


def test_mean_distance_is_that_of_all_pairs(frontier):
    X, _, _ = people()
    for point in frontier.points[::3]:
        a, b = np.repeat(np.arange(200), 200), np.tile(np.arange(200), 200)
        part = X.iloc[:200]
        shares, encoder = np.full(200, 1 / 200), point.card.encoder_
        columns = point.metric.bind(encoder)
        costs = Costs.of(point.metric.bind(encoder).read(part).rows, shares, columns.is_number)
        expected = columns.scales @ costs.weights + np.nan_to_num(columns.missing) @ costs.missing
        assert point.metric(part.iloc[a], part.iloc[b]).mean() == pytest.approx(expected, rel=1e-9)


def test_the_card_is_the_joint_optimum(frontier):
    """A card fitted within the designed metric with the same penalties is as good as the shapes designed with it."""
    X, y, _ = people()
    for point in frontier.points[1:]:
        h = point.card.predict_proba(X)[:, 1]
        loss = -np.mean(np.log(np.where(y == 1, h, 1 - h)))
        assert loss <= point.training_objective + 1e-4


def test_columns_have_the_knots_that_the_data_support():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"wave": rng.uniform(size=3000), "line": rng.uniform(size=3000)})
    y = (rng.random(3000) < expit(3 * np.sin(15 * X["wave"]) + 0.3 * X["line"])).astype(int)
    point = design_metric(X, y, n_points=2, cv=2, references=False).points[-1]
    wave, line = (len(shape.knots) for shape in point.card.scorer_.model.shapes)
    assert (wave, line) == (58, 16)  # 4 n^(1/3), and the fewest


@pytest.mark.parametrize("keep", [0.5, 0.8, 0.95, 1.0])
def test_best_is_the_strictest_that_keeps_the_share(frontier, keep):
    """Between two points the share is on the line between theirs, so the strictest keeps no more than was asked for."""
    best = frontier.best(keep=keep)
    assert best.kept == pytest.approx(max(keep, frontier.points[0].kept))
    assert all(point.kept < keep for point in frontier.points if point.mean_distance < best.mean_distance)
    assert best.card.guarantee_.metric == best.metric
    stricter = frontier.best(keep=keep / 2)
    assert stricter.mean_distance <= best.mean_distance
    assert stricter.bound_share >= best.bound_share


def test_the_share_kept_is_that_of_gains_smoothed_along_the_frontier():
    """Gains rise ever more slowly: 0.17 after 0.18 is chance, and both are 0.175; the others stay as they are."""
    losses, distances = np.array([0.3, 0.22, 0.17, 0.14, 0.12, 0.13]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    people = 4000
    shares, noise = np.full(people, 1 / people), np.random.default_rng(0).normal(0, 0.3, people)
    curve = SkillCurve.of(distances, losses[:, None] + noise, shares)
    expected = np.array([0.08, 0.13, 0.16, 0.175, 0.175]) / 0.175
    assert [curve.kept(k)[0] for k in range(5)] == pytest.approx(expected)
    assert curve.kept(1.5)[0] == pytest.approx(0.145 / 0.175)
    assert curve.strictest(expected[2]) == pytest.approx(2)
    assert curve.strictest(1) == pytest.approx(3)
    assert curve.kept(2)[1] == pytest.approx(0, abs=1e-9)  # what all losses of a person share says nothing
    own = np.random.default_rng(1).normal(0, 0.3, (6, people))
    own -= own.mean(axis=1, keepdims=True)
    apart = SkillCurve.of(distances, losses[:, None] + own, shares)
    # The ratio of a - c to a - (d + e) / 2, with errors of 0.3 / sqrt(4000) for each of a, c, d and e.
    share = 0.16 / 0.175
    assert apart.kept(2)[1] == pytest.approx(
        0.3 / people**0.5 * np.sqrt((1 - share) ** 2 + 1 + share**2 / 2) / 0.175, rel=0.05
    )
    worse = np.append(0.1, losses[1:])[:, None] + noise  # a constant is better than every point
    assert np.isnan(SkillCurve.of(distances, worse, shares).kept(2)[0])


def test_equal_people_are_held_out_together_and_others_whatever_their_outcome():
    """To hold out all equal people of one outcome would teach the model the other outcome."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"prior": rng.integers(0, 6, 3000), "race": rng.choice(["x", "y"], 3000)})
    y = (rng.random(3000) < 0.2 + 0.1 * X["prior"]).astype(int).to_numpy()
    loose = design_metric(X, y, protected=["race"], n_points=4, cv=3, references=False).points[-1]
    chance = 0.2 + 0.1 * X["prior"]
    assert loose.loss == pytest.approx(np.mean((y - chance) ** 2), abs=0.004)  # it was 0.03 above


def test_folds_are_of_people_whatever_is_protected():
    X, y, _ = people(200)
    folds = []
    for protected in ([], ["race"], ["race", "income"]):
        encoded = read_people(X, None)
        bounds = read_bounds(encoded.encoder.names, encoded.encoder.is_number, protected, None, None, None)
        model = AdditiveClassifier(widest_metric(encoded, bounds, protected, {}))
        problem = DesignProblem.read(model, encoded, y, None, bounds, 4)
        order = np.lexsort(problem.people.rows[:, ~np.isnan(problem.people.rows).any(axis=0)].T)
        folds.append(problem.folds[order].tolist())
    assert folds[0] == folds[1] == folds[2]
    assert len(set(folds[0])) == 4


def test_bind_is_the_loosest_that_binds_so_many(frontier):
    point = frontier.at(bind=0.5)
    assert 0.5 <= point.bound_share < 0.51
    assert all(each.bound_share < 0.5 for each in frontier.points if each.mean_distance > point.mean_distance)
    X, _, _ = people()
    pairs = np.random.default_rng(3).integers(0, len(X), (2, 20_000))
    distances = point.metric(X.iloc[pairs[0]], X.iloc[pairs[1]])
    assert (distances < 1).mean() == pytest.approx(point.bound_share, abs=0.015)
    with pytest.raises(ValueError, match="bind must be a share"):
        frontier.at(bind=2)


def test_a_best_metric_that_allows_any_difference_comes_with_a_warning(frontier):
    changed = {"bound_share": 0.03, "_pair_distances": np.append(np.full(3, 0.5), np.full(97, 2))}
    loose = replace(frontier, points=tuple(replace(point, **changed) for point in frontier.points))
    with pytest.warns(VacuousGuaranteeWarning, match=r"skill binds 3.00% of the pairs .* at\(bind=0.5\)"):
        loose.best(keep=loose.points[2].kept)


def test_on_pure_noise_nothing_is_chosen_for_its_skill():
    rng = np.random.default_rng(2)
    X, y = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc")), rng.integers(0, 2, 300)
    frontier = design_metric(X, y, n_points=4, cv=3, references=False)
    assert not frontier.has_skill
    assert frontier.at(bind=0.9).bound_share >= 0.9
    if frontier.gain[0] <= 0:
        with pytest.raises(ValueError, match="keep needs a metric that is better than a constant"):
            frontier.best()
    signal = design_metric(X, (X["a"] > 0).astype(int), n_points=4, cv=3, references=False)
    assert signal.has_skill  # control


def test_points_between_points(frontier):
    low, high = frontier.points[2], frontier.points[3]
    wanted = 0.3 * low.mean_distance + 0.7 * high.mean_distance
    point = frontier.at(mean_distance=wanted)
    assert point.metric.numeric["income"] == pytest.approx(
        0.3 * low.metric.numeric["income"] + 0.7 * high.metric.numeric["income"]
    )
    assert point.card.guarantee_.metric == point.metric
    assert min(low.loss, high.loss) <= point.loss <= max(low.loss, high.loss)
    assert frontier.at(mean_distance=low.mean_distance) is low
    assert frontier.at(loss=low.loss).mean_distance <= low.mean_distance
    with pytest.raises(ValueError, match="mean_distance must be between"):
        frontier.at(mean_distance=1e9)
    with pytest.raises(ValueError, match="loss must be at least"):
        frontier.at(loss=0.0)
    with pytest.raises(ValueError, match="exactly one of mean_distance, loss, keep and bind"):
        frontier.at()


def test_the_same_bits_in_any_order_and_number_of_threads():
    X, y, _ = people(300)
    order = np.random.default_rng(1).permutation(300)
    options = {"protected": ["race"], "n_points": 3, "cv": 2, "references": False}
    one = design_metric(X, y, **options, n_jobs=1)
    two = design_metric(X.iloc[order], y[order], **options, n_jobs=2)
    assert one.table.to_numpy().tobytes() == two.table.to_numpy().tobytes()
    assert [point.metric for point in one.points] == [point.metric for point in two.points]
    for a, b in zip(one.points, two.points, strict=True):
        assert a.card.predict_proba(X).tobytes() == b.card.predict_proba(X).tobytes()


def test_several_classes_regression_weights_and_arrays():
    X, y, score = people(400)
    kinds = np.digitize(score + np.random.default_rng(2).normal(size=400), [-0.5, 1])
    several = design_metric(X, kinds, protected=["race"], n_points=3, cv=2)
    assert len(several.points[-1].card.classes_) == 3
    beside = ["constant", "logistic regression, no guarantee", "linear model's own metric", "boosting, no guarantee"]
    assert list(several.references) == beside
    numbers = design_metric(X, score, protected=["race"], output_range=(-4, 6), n_points=3, cv=2)
    assert numbers.points[0].card.output_range_ == (-4, 6)
    assert numbers.points[-1].loss < numbers.references["constant"].loss / 2
    Z = X[["income", "noise"]].to_numpy()
    times = np.random.default_rng(3).integers(0, 3, 400)
    weighted = design_metric(Z, y, sample_weight=times, n_points=3, cv=2, references=False)
    repeated = design_metric(np.repeat(Z, times, axis=0), np.repeat(y, times), n_points=3, cv=2, references=False)
    assert isinstance(weighted.points[0].metric, WeightedLp)
    np.testing.assert_allclose(weighted.table["mean_distance"], repeated.table["mean_distance"], rtol=1e-3)
    np.testing.assert_allclose(weighted.table["loss"], repeated.table["loss"], rtol=1e-4)


def test_blanks_are_designed_too(frontier):
    metric = frontier.points[-1].metric
    assert 0 < metric.missing["tenure"] <= 1
    ends = np.ptp(frontier.points[-1].card.scorer_.model.shapes[1].values)
    assert ends <= 2 * 4 * metric.missing["tenure"] + 1e-9


@pytest.mark.parametrize("direction", [1, -1])
def test_a_monotone_column_rises_or_falls_at_every_point(direction):
    """A column with blanks, against what the outcomes say or with it."""
    X, y, _ = people(400)
    free = design_metric(X, y, n_points=4, cv=2, references=False)
    bound = design_metric(X, y, monotone={"tenure": direction, "noise": 1}, n_points=4, cv=2, references=False)
    for point in bound.points:
        shape = point.card.scorer_.model.shapes
        for each in shape:
            name = point.card.encoder_.names[each.column]
            if name in ("tenure", "noise"):
                assert (np.diff(each.values[0]) * (direction if name == "tenure" else 1) >= -1e-12).all()
        assert audit(point.card, X, point.metric).n_violations == 0
        assert point.card.monotone == {"tenure": direction, "noise": 1}
    if direction == 1:
        assert bound.points[-1].loss == pytest.approx(free.points[-1].loss, abs=0.01)
        return
    assert bound.points[-1].metric.numeric["tenure"] < 0.5 * free.points[-1].metric.numeric["tenure"]  # control
    with pytest.raises(ValueError, match="monotone must name columns of numbers"):
        design_metric(X, y, monotone={"region": 1}, n_points=2, cv=2, references=False)


def test_weights_that_are_all_five_times_as_large_change_nothing():
    X, y, _ = people(300)
    weights = np.random.default_rng(0).uniform(0.5, 2, 300)
    one, five = (
        design_metric(X, y, sample_weight=times * weights, n_points=3, cv=2, references=False) for times in (1, 5)
    )
    np.testing.assert_allclose(one.table, five.table, rtol=1e-6)
    plain = design_metric(X, y, n_points=3, cv=2, references=False)
    assert np.abs(plain.table["loss"] / one.table["loss"] - 1).max() > 1e-3  # control


def test_what_people_have_said_is_kept():
    X, y, _ = people(300)
    told = {"fixed": {"income": 0.004}, "lower": {"region": 0.2}, "upper": {"tenure": 0.01}}
    for point in design_metric(X, y, protected=["race"], **told, n_points=3, cv=2, references=False).points:
        assert point.metric.numeric["income"] == 0.004
        assert point.metric.categorical["region"] >= 0.2
        assert point.metric.numeric["tenure"] <= 0.01


BAD = [
    ({"protected": ["income", "tenure", "noise", "region", "race"]}, "protected must leave a column that may matter"),
    ({"protected": ["age"]}, "protected must list columns of X"),
    ({"lower": {"income": 0.2}, "upper": {"income": 0.1}}, "lower must not exceed upper"),
    ({"fixed": {"income": 0.2}, "upper": {"income": 0.1}}, "fixed must be within lower and upper"),
    ({"protected": ["race"], "fixed": {"race": 0.1}}, "'race' is protected and has a positive weight"),
    ({"fixed": {"region": 1.5}}, "fixed must be within lower and upper|mismatch weight must be at most 1"),
    ({"upper": {"age": 1}}, "upper must name columns of X"),
    ({"lower": {"income": -1}}, "lower of 'income' must be a non-negative finite number"),
    ({"n_points": 1}, "n_points must be a whole number >= 2"),
    ({"cv": 1}, "cv must be a whole number >= 2"),
    ({"output_range": (0, 1), "task": "classification"}, "output_range must be None for classification"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD)
def test_bad_input_has_one_clear_error(wrong, message):
    X, y, _ = people(60)
    with pytest.raises(ValueError, match=message) as error:
        design_metric(X, y, **wrong)
    assert "\n" not in str(error.value)


def test_one_class_is_refused():
    X, _, _ = people(60)
    with pytest.raises(ValueError, match="y must hold at least two"):
        design_metric(X, np.zeros(60, dtype=int))


def test_gains_are_equal_per_unit_of_mean_distance(frontier):
    """At a designed metric, the first-order gain of a weight is the price times the distance that it makes."""
    X, y, _ = people()
    point = frontier.points[2]
    metric: TableMetric = point.metric
    encoder = point.card.encoder_
    rows = metric.bind(encoder).read(X)
    gains, blanks = weight_gains(point.card, point.card.scorer_.model.metric, TrainingData(rows, y))
    costs = Costs.of(rows.rows, np.full(len(X), 1 / len(X)), encoder.is_number)
    columns = metric.bind(encoder)
    for i in np.flatnonzero(columns.matters):
        spent = 0.1 * columns.weights[i] * costs.weights[i]
        if spent > 1e-4:
            assert gains[i] / spent == pytest.approx(point.price, rel=0.02), encoder.names[i]
    spent = 0.1 * columns.missing[1] * costs.missing[1]
    assert blanks[1] / spent == pytest.approx(point.price, rel=0.02)
    by_hand = AdditiveClassifier(metric.with_params(numeric={**metric.numeric, "income": 3 * metric.numeric["income"]}))
    loose = by_hand.set_params(penalty=point.card.penalty_).fit(X, y)
    bound = loose.scorer_.model.metric
    gains, _ = weight_gains(loose, bound, TrainingData(bound.read(X), y))
    assert gains[0] / (0.3 * metric.numeric["income"] * costs.weights[0]) < 0.7 * point.price  # control


def test_a_picture(frontier):
    pytest.importorskip("matplotlib").use("Agg")
    display = FrontierDisplay.from_frontier(frontier)
    assert display.ax_.get_ylabel() == "Brier score on held-out people (lower is better)"
    assert {text.get_text() for text in display.ax_.texts} == set(frontier.references)
    assert "skill kept" in str(frontier)
    with pytest.raises(TypeError, match="result must be what design_metric returned"):
        FrontierDisplay.from_frontier(1)


def test_people_held_out_teach_nothing():
    X, y, _ = people(200)
    encoded = read_people(X, None)
    bounds = read_bounds(encoded.encoder.names, encoded.encoder.is_number, ["race"], None, None, None)
    model = AdditiveClassifier(widest_metric(encoded, bounds, [], {}))
    problem = DesignProblem.read(model, encoded, y, None, bounds, 4)
    for fold in problem.usable_folds(4):
        weights = problem.without(fold).objective.weights
        assert (weights[problem.folds == fold] == 0).all()
        assert weights.sum() == pytest.approx(1)
        assert (weights[problem.folds != fold] > 0).all()


def test_the_error_of_a_loss_is_that_of_a_mean():
    X, y, _ = people(200)
    encoded = read_people(X, None)
    bounds = read_bounds(encoded.encoder.names, encoded.encoder.is_number, ["race"], None, None, None)
    model = AdditiveClassifier(widest_metric(encoded, bounds, [], {}))
    problem = DesignProblem.read(model, encoded, y, None, bounds, 4)
    losses = np.random.default_rng(0).uniform(0.5, 0.7, 200)  # an error of their size would be three times as large
    mean, error = problem.summary(losses, np.arange(200) < 150)
    assert mean == pytest.approx(losses[:150].mean())
    assert error == pytest.approx(losses[:150].std() / np.sqrt(150))


def test_a_blank_that_nobody_had_is_answered_if_others_had_blanks(frontier):
    X, y, _ = people()
    point = frontier.points[3]
    assert 0 < point.metric.missing["income"] <= 1
    blank = X.assign(income=np.nan)
    assert np.isfinite(point.card.predict_proba(blank)).all()
    complete = X.fillna({"tenure": 5.0})
    strict = design_metric(complete, y, protected=["race"], n_points=2, cv=2, references=False).points[-1]
    with pytest.raises(ValueError, match="Column 'income' has missing numbers, which the metric refuses"):
        strict.card.predict_proba(complete.assign(income=np.nan))


def test_columns_that_say_nothing_get_the_weight_0():
    X, y, _ = people(200)
    X = X.assign(constant=3.0, empty=np.nan, only=pd.Categorical(["a"] * 200))
    metric = design_metric(X, y, protected=["race"], n_points=2, cv=2, references=False).points[-1].metric
    assert metric.numeric["constant"] == metric.numeric["empty"] == metric.categorical["only"] == 0


def test_a_column_of_which_only_blanks_matter():
    X, y, _ = people(300)
    encoded = read_people(X, None)
    bounds = read_bounds(encoded.encoder.names, encoded.encoder.is_number, ["race"], None, None, None)
    problem = DesignProblem.read(
        AdditiveClassifier(widest_metric(encoded, bounds, [], {})), encoded, y, None, bounds, 2
    )
    nan = np.nan
    metric = problem.metric(Weights(np.array([0.01, 0, 0, 0.1, 0]), np.array([nan, 0.3, nan, nan, nan])))
    assert metric.describe().set_index("column")["one point"]["tenure"] == "only blanks matter"
    card = problem.fit(metric, {"income": 1e-3})
    scores = [card.predict_proba(X.assign(tenure=value))[:, 1] for value in (0.0, 12.0, nan)]
    assert (scores[0] == scores[1]).all()
    assert (scores[0] != scores[2]).all()
    assert attack(card, metric, X, n_pairs=1000, random_state=0).excess <= 1e-12


def test_an_effect_of_blanks_alone_is_on_the_frontier():
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"told": np.where(rng.random(600) < 0.4, np.nan, 1.0), "noise": rng.normal(size=600)})
    y = (rng.random(600) < np.where(X["told"].isna(), 0.8, 0.3)).astype(int)
    table = design_metric(X, y, n_points=4, cv=2, references=False).table
    assert table["mean_distance"].iloc[0] < 0.2  # its price is the highest, and the path begins there
    assert table["loss"].iloc[-1] < 0.2 < y.var()
