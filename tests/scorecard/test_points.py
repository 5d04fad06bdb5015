"""Cards in whole points: within the metric whatever the card, close to the card they round, and the same everywhere."""

import itertools
import json
import math
import re
import sqlite3
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric, load_model, save_model
from likewise.additive.scorer import AdditiveScorer, PointsScorer
from likewise.additive.shapes import constrain
from likewise.kernel.evidence import Shape
from likewise.scorecard.points import _best_lines, _in_real_points, _Limits, _round_knots, left_out
from likewise.verify_card import NotProvenError, check_scores, prove
from promised import falsified

PAIRS = 20_000  # per card; with 48 cards nearly a million
ROUNDING = 1e-12
UNIT = 20 / math.log(2)  # points per log-odds


def metric_of(rng=None):
    factors = np.ones(4) if rng is None else 10.0 ** rng.uniform(-1, 1, 4)
    return TableMetric(
        dict(zip(["income", "age", "debt"], (np.array([0.02, 0.01, 0.02]) * factors[:3]).tolist(), strict=True)),
        {"region": min(1.0, 0.1 * factors[3]), "race": 0.0},
        missing={"debt": 0.3},
    )


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": rng.gamma(3, 15, n).round(1),
            "age": rng.integers(18, 80, n),
            "debt": np.where(rng.random(n) < 0.2, np.nan, rng.gamma(2, 10, n)),
            "region": rng.choice(["north", "south", "west"], n),
            "race": rng.choice(["x", "y"], n),
        }
    )
    score = 0.08 * (X["income"] - 45) - 0.8 * (X["region"] == "south") - 0.05 * X["debt"].fillna(30) + 0.03 * X["age"]
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int).to_numpy()


@pytest.fixture(scope="module")
def model():
    return AdditiveClassifier(metric_of(), penalty=1e-4).fit(*people())


def random_card(rng):
    """A classifier with shapes drawn at random, steep wherever the metric allows, or anything below that."""
    metric = metric_of(rng)
    X, y = people(40)
    model = AdditiveClassifier(metric, penalty=0.1, max_knots=3).fit(X, y)
    weights = metric.bind(model.encoder_)
    shapes = []
    for i, name in enumerate(["income", "age", "debt", "region"]):
        strength = 4 * 10.0 ** rng.uniform(-1, 1)
        if name == "region":
            levels = rng.normal(size=(1, 3)) * strength
            shapes.append(Shape(i, None, levels, levels.mean(axis=1)))
            continue
        knots = np.unique(np.round(rng.gamma(2, 20, int(rng.integers(2, 14))), int(rng.integers(0, 3))))
        values = np.cumsum(rng.normal(size=(1, len(knots))) * strength, axis=1)
        shapes.append(Shape(i, knots, values, values.mean(axis=1) if name == "debt" else None))
    sums = constrain(rng.normal(size=1), shapes, weights, 4.0)
    model.scorer_ = AdditiveScorer(sums, "logistic", None)
    return model


def pairs(rng, model, n):
    """Anywhere, close by, at knots, one step of floating point away, or different in a single column."""
    knots = {shape.column: shape.knots for shape in model.scorer_.model.shapes if shape.knots is not None}
    rows = np.empty((2, n, 5))
    for i in range(5):
        rows[:, :, i] = rng.integers(-1, 3, (2, n)) if i > 2 else rng.gamma(2, 25, (2, n))
        if i in knots:
            at = rng.random((2, n)) < 0.5
            rows[:, :, i] = np.where(at, rng.choice(knots[i], (2, n)), rows[:, :, i])
    rows[:, :, 2] = np.where(rng.random((2, n)) < 0.2, np.nan, rows[:, :, 2])
    a, b = rows
    kind, single = rng.integers(0, 4, n)[:, None], rng.integers(0, 5, n)[:, None] == np.arange(5)
    near = np.where(np.arange(5) > 2, a, a + (b - a) * 10.0 ** rng.uniform(-10, 0, (n, 1)))
    b = np.where(kind == 1, near, np.where(kind == 2, np.where(np.arange(5) > 2, a, np.nextafter(a, np.inf)), b))
    return a, np.where((kind == 3) & ~single, a, b)


def largest_excess(model, rng, n=PAIRS):
    from likewise.kernel.schema import People

    a, b = (People(rows, model.encoder_, None) for rows in pairs(rng, model, n))
    h, other = (model.scorer_.estimate(each).mean[:, 1] for each in (a, b))
    return float((np.abs(h - other) - model.guarantee_.curve.bound(model.guarantee_.bound_metric.between(a, b))).max())


@pytest.mark.parametrize("seed", range(48))
def test_no_pair_exceeds_the_guarantee_of_a_random_card_in_points(seed):
    rng = np.random.default_rng(seed)
    card = random_card(rng).in_points(points_to_double=float(rng.choice([100, 173.5, 400])), max_bins=6)
    assert isinstance(card.scorer_, PointsScorer)
    for shape in card.scorer_.model.shapes:
        assert (shape.all_values == np.rint(shape.all_values)).all()
    prove(json.loads(card.to_json()))
    assert largest_excess(card, rng) <= ROUNDING


def rounded_to_nearest(model, card):
    """What a rounding that looks at no limit makes of the same card."""
    factor = card.scorer_.points_to_double / math.log(2)
    shapes = tuple(
        replace(
            shape,
            values=np.rint(shape.values * factor),
            other=None if shape.other is None else np.rint(shape.other * factor),
        )
        for shape in model.scorer_.model.shapes
    )
    return falsified(card.scorer_, model=replace(card.scorer_.model, shapes=shapes, bits=38))


def test_control_rounding_to_the_nearest_point_exceeds_it():
    """The attack above finds pairs beyond the guarantee, and the proof fails, if limits are not looked at."""
    found = failed = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        model = random_card(rng)
        card = model.in_points(points_to_double=100)
        card.scorer_ = rounded_to_nearest(model, card)
        found += largest_excess(card, rng) > 1e-6
        try:
            prove(json.loads(card.to_json()))
        except NotProvenError:
            failed += 1
    assert found >= 3
    assert failed >= found


def test_points_double_the_odds_and_the_base_score_has_the_base_odds(model):
    X = people(100, seed=1)[0]
    for outcome, k in ((1, 1), (0, 0)):
        card = model.in_points(points_to_double=20, base_score=600, base_odds=50, outcome=outcome)
        h = card.predict_proba(X)
        table = card.explain(X)
        odds = h[:, k] / h[:, 1 - k]
        np.testing.assert_allclose(odds, 50 * 2 ** ((table["points"] - 600) / 20), rtol=1e-9)
        assert (table.drop(columns="points").sum(axis=1) == table["points"]).all()
        np.testing.assert_allclose(h, model.predict_proba(X), atol=0.05)


def test_a_card_that_has_whole_points_already_stays_as_it_is(model):
    """Points at knots that are whole, and no knot to spare: rounding has nothing to do."""
    knots, points = np.array([10.0, 30.0, 60.0]), np.array([[0.0, 10.0, -3.0]])
    income = Shape(0, knots, points / UNIT, None)
    region = Shape(3, None, np.array([[4.0, -3.0, 0.0]]) / UNIT, np.array([1.0]) / UNIT)
    written = AdditiveClassifier(metric_of(), penalty=0.1).fit(*people(40))
    written.scorer_ = replace(
        model.scorer_, model=replace(model.scorer_.model, intercepts=np.zeros(1), shapes=(income, region), bits=40)
    )
    first, second = written.in_points().scorer_.model.shapes
    assert (first.knots.tolist(), first.values.tolist()) == (knots.tolist(), points.tolist())
    assert (second.values.tolist(), second.other.tolist()) == ([[4.0, -3.0, 0.0]], [1.0])


def test_a_column_of_the_same_points_for_everybody_counts_as_base_points(model):
    level = Shape(0, np.array([10.0, 60.0]), np.array([[5.0, 5.0]]) / UNIT, None)
    region = Shape(3, None, np.array([[4.0, -3.0, 0.0]]) / UNIT, np.array([1.0]) / UNIT)
    written = AdditiveClassifier(metric_of(), penalty=0.1).fit(*people(40))
    written.scorer_ = replace(
        model.scorer_, model=replace(model.scorer_.model, intercepts=np.zeros(1), shapes=(level, region), bits=40)
    )
    without = replace(written.scorer_.model, shapes=(region,))
    card = written.in_points().scorer_.model
    written.scorer_ = replace(written.scorer_, model=without)
    assert [shape.column for shape in card.shapes] == [3]
    assert card.intercepts[0] == written.in_points().scorer_.model.intercepts[0] + 5


def test_few_bins_that_cost_little(model):
    X, y = people(3000, seed=2)
    card = model.in_points()
    for shape in card.scorer_.model.shapes:
        if shape.knots is not None:
            assert len(shape.knots) <= 9
            assert len(shape.knots) < len(next(s for s in model.scorer_.model.shapes if s.column == shape.column).knots)
    cost = model.rounding_cost(card, X, y)
    assert list(cost.index) == ["model", "points", "cost"]
    h = card.predict_proba(X)[:, 1]
    assert cost.loc["points", "Brier score"] == pytest.approx(((h - y) ** 2).mean())
    assert abs(cost.loc["cost", "Brier score"]) < 5e-4
    coarse = model.in_points(max_bins=1)
    assert max(len(s.knots) for s in coarse.scorer_.model.shapes if s.knots is not None) == 2
    assert model.rounding_cost(coarse, X, y).loc["cost", "Brier score"] > cost.loc["cost", "Brier score"]
    with pytest.raises(ValueError, match=r"y must have one of the classes \[0, 1\]"):
        model.rounding_cost(card, X, y + 5)


def test_columns_of_whole_numbers_have_whole_points_for_each(model):
    X = people(500, seed=3)[0]
    card = model.in_points(40, whole_numbers=["age"])
    points = card.explain(X)["age"]
    assert (points == np.rint(points)).all()
    assert points.nunique() > 3
    control = model.in_points(40).explain(X)["age"]
    assert (control != np.rint(control)).any()
    assert "age" in left_out(model, model.in_points(10, whole_numbers=["age"], base_odds=1))


@pytest.mark.parametrize("weight", [0.001, 0.02])
def test_a_column_with_less_than_a_point_is_left_out_and_the_rest_of_the_card_is_made(weight):
    X, y = people()
    metric = metric_of().with_params(categorical={"region": weight, "race": 0.0})
    model = AdditiveClassifier(metric, penalty=1e-4).fit(X, y)
    enough = math.ceil(math.log(2) / (4 * weight))
    kept = model.in_points(enough)
    assert "region" not in left_out(model, kept)
    card = model.in_points(enough - 1)
    moved = model.explain(X)["region"].to_numpy()
    assert left_out(model, card)["region"] == pytest.approx(np.ptp(moved) * (enough - 1) / math.log(2))
    assert card.explain(X).shape[1] == kept.explain(X).shape[1] - 1
    h, points = model.predict_proba(X)[:, 1], card.predict_proba(X)[:, 1]
    assert model.rounding_cost(card, X, y).loc["cost", "largest change"] == np.abs(h - points).max() > 0
    with pytest.raises(ValueError, match="points_to_double must be larger under this metric: with 1e-05, no column"):
        model.in_points(1e-5, base_score=0)


def test_cuts_are_the_numbers_that_people_write():
    """Every cut that may move by a few per cent has one or two digits; the control has not."""
    X, y = people()
    X = X.assign(income=1000 * X["income"] + 12.34)
    metric = metric_of().with_params(numeric={"income": 2e-5, "debt": 0.02, "age": 0.01})
    model = AdditiveClassifier(metric, penalty=1e-4).fit(X, y)
    digits = {}
    for name, card in (("points", model.in_points()), ("control", model)):
        knots = next(shape.knots for shape in card.scorer_.model.shapes if shape.column == 0)
        digits[name] = [len(f"{knot:.15g}".replace(".", "").strip("0")) for knot in knots[1:-1]]
    assert max(digits["points"]) <= 2 < min(digits["control"])
    table = model.in_points().scorecard()
    assert re.fullmatch(r"[\d,]+ to [\d,]+", table.loc[table["column"] == "income", "range"].iloc[1])


def test_the_printed_table_has_everything_and_files_hold_the_same(model, tmp_path):
    X = people(80, seed=4)[0]
    card = model.in_points()
    table = card.scorecard()
    assert table.iloc[0, :3].tolist() == ["base points", "everybody", int(card.scorer_.model.intercepts[0])]
    assert table["points"].dtype == table["points at end"].dtype == np.int64
    total = np.zeros(len(X))
    for column, rows in table.groupby("column"):
        total += [by_hand(rows, None if column == "base points" else value) for value in X.get(column, X["race"])]
    np.testing.assert_allclose(total, card.explain(X)["points"], atol=1e-9)
    card.to_csv(tmp_path / "card.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "card.csv"), pd.DataFrame(table))
    assert "+0.00" not in table._repr_html_()
    card.to_json(tmp_path / "card.json")
    h = card.predict_proba(X)
    X.assign(points=card.explain(X)["points"], p_1=h[:, 1], p_0=h[:, 0]).to_csv(tmp_path / "people.csv", index=False)
    document = json.loads((tmp_path / "card.json").read_text())
    assert check_scores(document, tmp_path / "people.csv") == (80, 240)
    document["intercept"] += 0.5
    with pytest.raises(NotProvenError, match="whole numbers"):
        prove(document)


def test_a_row_is_held_back_where_one_point_more_would_be_too_much():
    """Categories: the ends of their range alone; a missing number: if it is that far from some number."""
    seen = set()
    for seed in range(16):
        rng = np.random.default_rng(seed)
        card = random_card(rng).in_points(points_to_double=float(rng.choice([100, 400]))).scorecard()
        for column, rows in card.groupby("column"):
            points = rows[["points", "points at end"]].to_numpy()
            allowed, held = rows["allowed"].to_numpy(), rows["binds"].tolist()
            expected = ((np.abs(np.diff(points, axis=1)[:, 0]) + 1 > allowed) & (allowed > 0)).tolist()
            if column == "region":
                end = np.isin(points[:, 0], [points.min(), points.max()])
                expected = (end & (np.ptp(points) + 1 > allowed)).tolist()
            elif rows["range"].iloc[-1] == "missing":
                expected[-1] = bool(np.abs(points - points[-1, 0]).max() + 1 > allowed[-1])
            elif column == "base points":
                expected = [False]
            assert held == expected, column
            seen |= {(column == "region", each) for each in held}
    assert len(seen) == 4  # both answers, for numbers and for categories


def by_hand(rows, value):
    """Points read off the printed table."""
    for row in rows.itertuples():
        text, start, end = row.range, row.points, row._4
        if text in ("everybody", str(value)) or (text == "missing" and pd.isna(value)):
            return start
        if isinstance(value, str) or pd.isna(value):
            continue
        if text.startswith("up to ") and value <= float(text[6:]):
            return start
        if text.endswith(" and more") and value >= float(text[:-9]):
            return end
        if " to " in text and not text.startswith("up"):
            low, high = map(float, text.split(" to "))
            if low <= value <= high:
                return start + (end - start) * (value - low) / (high - low)
    return rows["points"].iloc[-1]  # any other


def test_a_database_adds_up_the_same_points_in_integers(model):
    X = people(60, seed=5)[0]
    card = model.in_points()
    with sqlite3.connect(":memory:") as connection:
        X.to_sql("people", connection)
        found = [row[0] for row in connection.execute(f'SELECT {card.to_sql()} FROM people ORDER BY "index"')]
    connection.close()
    np.testing.assert_allclose(found, card.explain(X)["points"], atol=1e-9)
    assert 'CASE CAST("region" AS VARCHAR(8000)) WHEN' in card.to_sql()
    assert "WHEN 'south' THEN (-" in card.to_sql()


def test_an_excel_file_holds_the_table(model, tmp_path):
    pytest.importorskip("openpyxl")
    card = model.in_points()
    card.to_excel(tmp_path / "card.xlsx")
    found = pd.read_excel(tmp_path / "card.xlsx")
    assert found["points"].tolist() == card.scorecard()["points"].tolist()


def test_a_card_in_points_can_be_saved_certified_and_explained(model, tmp_path):
    X = people(50, seed=6)[0]
    card = model.in_points()
    save_model(card, tmp_path / "card.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "card.skops").predict_proba(X), card.predict_proba(X))
    h = card.predict_proba(X)
    expected = np.abs(np.log(h[:, 1] / h[:, 0])) / 4
    np.testing.assert_allclose(card.certify(X).distance, expected, atol=1e-9)
    assert (card.certify(X).distance <= expected + 1e-14).all()
    assert " points of 0 against the average person" in card.reasons(X, outcome=0, n=1).iloc[:, 1].max()
    for position, outcome in enumerate((0, 1)):
        turned = model.in_points(outcome=outcome)
        assert turned.scorer_.scored_class == position
        assert (turned.reasons(X, n=1)["outcome"] == card.reasons(X, n=1)["outcome"]).mean() > 0.9


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"points_to_double": 0}, "points_to_double must be a positive finite number; got 0"),
        ({"base_odds": -1}, "base_odds must be a positive finite number; got -1"),
        ({"base_score": 600.5}, "base_score must be a whole number; got 600.5"),
        ({"base_score": "many"}, "base_score must be a whole number; got 'many'"),
        ({"base_score": 10**9}, "base_score must be at most 10,000 times points_to_double, 20; got 1,000,000,000"),
        ({"max_bins": 0}, "max_bins must be a whole number >= 1; got 0"),
        ({"outcome": 7}, r"outcome must be one of the classes, \[0, 1\]; got 7"),
        ({"whole_numbers": ["shoe"]}, "whole_numbers must list columns of X"),
        ({"whole_numbers": ["region"]}, "whole_numbers must name columns of numbers; 'region' has categories"),
    ],
)
def test_bad_input_is_refused_in_a_line(model, parameters, words):
    with pytest.raises(ValueError, match=words):
        model.in_points(**parameters)


def test_models_without_log_odds_of_two_classes_have_no_points(model):
    X, y = people(60)
    others = [
        AdditiveClassifier(metric_of(), penalty=0.1, link="clip").fit(X, y),
        AdditiveClassifier(metric_of(), penalty=0.1).fit(X, np.arange(60) % 3),
        AdditiveRegressor(metric_of(), penalty=0.1).fit(X, X["age"]),
        model.in_points(),
    ]
    for other in others:
        with pytest.raises(ValueError, match="in_points needs a classifier of two classes with the link 'logistic'"):
            other.in_points()
    with pytest.raises(ValueError, match="outcome must be the one that points count for, 1; got 0"):
        model.in_points().scorecard(outcome=0)


def fewest_lines_by_brute_force(shape, rate, weights, max_bins):
    """Smallest weighted squared error for each number of lines, over all knots and whole values near the shape's."""
    n, real = len(shape.knots), shape.values[0]
    best = np.full(max_bins + 1, np.inf)
    for size in range(1, max_bins + 2):
        for places in itertools.combinations(range(n), size):
            near = [np.floor(real[k]) + np.arange(-1, 3) for k in places]
            for values in itertools.product(*near):
                knots = shape.knots[list(places)]
                if size > 1 and (np.abs(np.diff(values)) > np.floor(rate * np.diff(knots))).any():
                    continue
                error = weights @ (np.interp(shape.knots, knots, values) - real) ** 2
                best[size - 1] = min(best[size - 1], error)
    return best


def rounded(shape, rate, max_bins):
    return _round_knots(shape, _Limits(Fraction(rate), None), max_bins, whole=False)


@pytest.mark.parametrize("seed", range(12))
def test_lines_are_the_fewest_that_are_good_enough_for_people(seed):
    rng = np.random.default_rng(seed)
    knots = np.cumsum(rng.integers(1, 4, 6)).astype(float)
    shape = Shape(0, knots, np.cumsum(rng.normal(0, 2, 6))[None], None, rng.dirichlet(np.full(6, 0.3)))
    weights = (shape.shares + 1e-3 / 6) / (1 + 1e-3)
    best = fewest_lines_by_brute_force(shape, 5, weights, 3)
    lines = int(np.flatnonzero(best <= best.min() + 1 / 12)[0])
    found = _best_lines(shape, _Limits(Fraction(5), None), knots, range(4), whole=False)
    assert len(found.cuts) == lines + 1
    error = weights @ (np.interp(knots, found.cuts, found.points) - shape.values[0]) ** 2
    assert [error, found.error] == pytest.approx([best[lines]] * 2, abs=1e-12)

    moved = rounded(shape, 5, 3)  # to round numbers
    assert len(moved.knots) == lines + 1
    assert weights @ (np.interp(knots, moved.knots, moved.values[0]) - shape.values[0]) ** 2 <= best[lines] + 1 / 12


def test_a_kink_that_few_people_see_is_merged_and_one_that_many_see_is_not():
    """The same shape with its people at the kink, and elsewhere; without people, as if they were everywhere alike."""
    knots, values = np.array([0.0, 5.0, 10.0, 15.0, 20.0]), np.array([[0.0, 0.0, 3.0, 0.0, 0.0]])
    few, many = (np.array([1, 1, share, 1, 1]) / (4 + share) for share in (0.01, 1.0))
    assert len(rounded(Shape(0, knots, values, None, few), 5, 8).knots) == 1
    assert len(rounded(Shape(0, knots, values, None, many), 5, 8).knots) > 2
    assert len(rounded(Shape(0, knots, values, None), 5, 8).knots) > 2


def test_the_shares_of_people_are_those_of_the_training_data_and_stay_with_the_model(model, tmp_path):
    X, _ = people()
    for shape in model.scorer_.model.shapes:
        name = model.encoder_.names[shape.column]
        assert shape.shares.sum() == pytest.approx(X[name].notna().mean())
        if shape.knots is None:
            assert shape.shares.tolist() == pytest.approx(X[name].value_counts(normalize=True).sort_index().tolist())
    save_model(model, tmp_path / "model.skops")
    assert load_model(tmp_path / "model.skops").in_points().to_json() == model.in_points().to_json()


def test_people_between_two_whole_numbers_count_for_both():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"age": rng.uniform(18, 30, 300)})
    model = AdditiveClassifier(TableMetric({"age": 0.1}), max_knots=12).fit(X, rng.random(300) < X["age"] / 40)
    (shape,) = model.scorer_.model.shapes
    real = _in_real_points(shape, model.encoder_, UNIT, {"age"})
    assert real.knots.tolist() == list(range(18, 31))
    assert real.shares @ real.knots == pytest.approx(shape.shares @ shape.knots)


def wavy(n=300, seed=17):
    """People of whom a second column says nothing, so that its shape is nearly flat."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * X["a"]))).astype(int)


@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize("seed", [17, 3, 5])
def test_a_column_that_only_rises_still_does_in_whole_points(seed, outcome):
    X, y = wavy(seed=seed)
    metric = TableMetric({"a": 0.3, "b": 0.3})
    model = AdditiveClassifier(metric, monotone={"a": 1, "b": 1}, penalty=1e-5).fit(X, y)
    card = model.in_points(max_bins=50, outcome=outcome)
    steps = np.linspace(-4, 4, 2001)
    for name in X.columns:
        people = pd.DataFrame({"a": 0.0 * steps, "b": 0.0 * steps}).assign(**{name: steps})
        assert (np.diff(card.predict_proba(people)[:, 1]) >= -1e-12).all()


def test_control_rounding_that_does_not_look_at_the_direction_makes_scores_fall(monkeypatch):
    X, y = wavy()
    model = AdditiveClassifier(TableMetric({"a": 0.3, "b": 0.3}), monotone={"a": 1, "b": 1}, penalty=1e-5).fit(X, y)
    monkeypatch.setattr("likewise.scorecard.points._directions", lambda real: (-np.inf, np.inf))
    shape = model.in_points(max_bins=50).scorer_.model.shapes[1]
    assert (np.diff(shape.values[0]) < 0).any()
