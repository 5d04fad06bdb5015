"""Notices say what lowers a chance, name nothing they must not, and ask for the smallest change that does."""

import itertools
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric, ThresholdDecision
from likewise.scorecard.notices import Notice
from likewise.scorecard.recourse import Column, smallest_change
from oracle import Described

METRIC = TableMetric(
    {"income": 0.02, "debt": 0.02, "age": 0.01, "children": 0.05},
    {"region": 0.1, "race": 0.0},
    missing={"debt": 0.3},
    units={"income": "$1000"},
)
POLICY = {
    "outcome": "being approved",
    "reasons": {"debt": "Level of debt", "region": "Location <of> the property"},
    "protected": ["age"],
    "immutable": ["region"],
    "steps": {"children": 1, "income": 0.5},
}


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": rng.gamma(3, 15, n).round(1),
            "debt": np.where(rng.random(n) < 0.2, np.nan, rng.gamma(2, 10, n)),
            "age": rng.uniform(18, 80, n),
            "children": rng.integers(0, 5, n),
            "region": rng.choice(["north", "south", "west"], n),
            "race": rng.choice(["x", "y"], n),
        },
        index=[f"p{i}" for i in range(n)],
    )
    score = 0.08 * (X["income"] - 45) - (X["region"] == "south") - 0.1 * X["debt"].fillna(30) + 2 + 0.02 * X["age"]
    return X, (rng.random(n) < 1 / (1 + np.exp(-score + 0.3 * X["children"]))).astype(int).to_numpy()


@pytest.fixture(scope="module")
def model():
    return AdditiveClassifier(METRIC, penalty=1e-3, max_knots=8).fit(*people())


def test_reasons_are_what_lowers_the_favourable_outcome_most(model):
    X = people(60, seed=1)[0]
    for favourable in (1, 0):
        points = model.explain(X, outcome=favourable).drop(columns=["intercept", "log-odds"])
        for notice in model.notice(X, favourable=favourable, n=3):
            lowering = -points.loc[notice.person]
            expected = lowering[lowering > 0].sort_values(ascending=False)
            expected = expected[expected >= 0.05 * expected.sum()]
            assert [reason.column for reason in notice.reasons] == list(expected.index[:3])
            assert [reason.effect for reason in notice.reasons] == expected[:3].tolist()
            assert [reason.share for reason in notice.reasons] == pytest.approx(
                (expected[:3] / lowering[lowering > 0].sum()).tolist()
            )
            assert notice.others_count == (len(notice.reasons) < (lowering > 0).sum())
            assert "race" not in notice.to_text()  # weight 0


def test_a_policy_gives_texts_marks_what_cannot_change_and_hides_what_is_protected(model):
    X = people(80, seed=2)[0]
    found = model.notice(X, threshold=0.9, policy=POLICY, n=6)
    texts = [notice.to_text() for notice in found]
    assert not any(re.search(r"\bage\b", text) for text in texts)
    assert any(re.search(r"\bage\b", notice.to_text()) for notice in model.notice(X, n=6))  # control
    assert any("Other facts, which are not listed, lower it as well." in text for text in texts)
    south = [text for text in texts if "Location <of> the property (region: south)" in text]
    assert south
    assert all("Location <of> the property (region: south). This cannot be changed." in text for text in south)
    assert any("Level of debt (debt: " in text for text in texts)
    for notice in found:
        for change in notice.changes or ():
            assert change.column in ("income", "debt", "children")
            if change.column == "children":
                assert change.value == int(change.value)
            if change.column == "income":
                assert change.value * 2 == int(change.value * 2)
                assert change.to.startswith("$")


def test_the_change_reaches_the_threshold_and_nothing_a_little_smaller_does(model):
    """Asked of the model itself. A tenth less of every number that was changed is not enough."""
    X = people(60, seed=3)[0]
    changed = 0
    for notice in model.notice(X, threshold=0.7):
        if notice.probability >= 0.7:
            assert notice.changes is None
            continue
        assert notice.changes
        person, less = X.loc[[notice.person]].astype(object), X.loc[[notice.person]].astype(object)
        for change in notice.changes:
            person[change.column] = change.value
            now = less[change.column].iloc[0]
            numeric = isinstance(change.value, float) and not pd.isna(now)
            less[change.column] = now + 0.9 * (change.value - now) if numeric else now
        kinds = dict.fromkeys(METRIC.numeric, float)
        assert model.predict_proba(person.astype(kinds))[0, 1] == notice.changed_probability >= 0.7
        assert model.predict_proba(less.astype(kinds))[0, 1] < 0.7
        changed += 1
    assert changed > 10


def random_column(rng, i, *, step):
    if rng.random() < 0.3:
        return Column(
            i, float(rng.integers(0, 3)), None, rng.normal(size=3), 0.0, rng.uniform(0.1, 1), np.nan, 1.0, [0, 1, 2]
        )
    knots = np.unique(rng.integers(0, 20, int(rng.integers(2, 6)))).astype(float)
    values = np.cumsum(rng.normal(size=len(knots)))
    now = np.nan if rng.random() < 0.2 else float(rng.integers(-3, 23))
    return Column(i, now, knots, values, float(values.mean()), rng.uniform(0.02, 0.2), rng.uniform(0.1, 1), step, [])


def by_brute_force(columns, gain, fine):
    """Smallest sum of distances over a grid of all columns."""
    choices = []
    for column in columns:
        options = [(0.0, 0.0)]
        if column.knots is None:
            options += [(column.scale, column.values[k] - column.points) for k in range(3) if k != column.now]
        else:
            grid = np.arange(column.knots[0], column.knots[-1] + fine / 2, fine)
            far = column.scale * np.abs(grid - column.now)
            far = np.where(np.isnan(far), column.missing, far)
            options += list(zip(far, column.at(grid) - column.points, strict=True))
        choices.append(options)
    sums = [(sum(d for d, _ in each), sum(g for _, g in each)) for each in itertools.product(*choices)]
    return min((d for d, g in sums if g >= gain), default=math.inf)


def distance(columns, found):
    total = gained = 0.0
    for column in columns:
        if column.column in found:
            value = found[column.column]
            if column.knots is None:
                total, gained = total + column.scale, gained + column.values[int(value)] - column.points
            else:
                total += column.missing if math.isnan(column.now) else column.scale * abs(value - column.now)
                gained += float(column.at(value)) - column.points
    return total, gained


@pytest.mark.parametrize("seed", range(40))
def test_steps_and_categories_are_searched_exactly(seed):
    rng = np.random.default_rng(seed)
    columns = [random_column(rng, i, step=1.0) for i in range(3)]
    gain = float(rng.uniform(0.1, 3))
    found, best = smallest_change(columns, gain), by_brute_force(columns, gain, 1.0)
    if found is None:
        assert best == math.inf
        return
    total, gained = distance(columns, found)
    assert gained >= gain - 1e-9
    assert total == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_free_numbers_are_searched_exactly(seed):
    """Never worse than a fine grid, and better by no more than its resolution."""
    rng = np.random.default_rng(100 + seed)
    columns = [random_column(rng, i, step=0.0) for i in range(2)]
    gain, fine = float(rng.uniform(0.1, 3)), 1 / 16
    found, best = smallest_change(columns, gain), by_brute_force(columns, gain, fine)
    if found is None:
        assert best == math.inf
        return
    total, gained = distance(columns, found)
    assert gained >= gain - 1e-5
    assert total <= best + 1e-5
    assert total >= best - 2 * fine * max(column.scale for column in columns) - 1e-5


@pytest.mark.parametrize(("left", "right", "expected"), [(1.0, 0.5, 6.0), (0.5, 1.0, 14.0), (1.0, 1.0, 14.0)])
def test_the_nearer_of_two_sides_is_taken(left, right, expected):
    """From 10, points rise on both sides: 4 units of the steeper side are enough. Of equals, upwards."""
    knots, values = np.array([0.0, 10.0, 20.0]), np.array([10 * left, 0.0, 10 * right])
    column = Column(0, 10.0, knots, values, None, 0.1, np.nan, 0.0, [])
    assert smallest_change([column], 4.0) == {0: expected}


def test_control_changing_one_column_alone_is_not_always_the_smallest():
    """The brute force above would notice a search that looks at one column at a time."""
    rng, worse = np.random.default_rng(0), 0
    for _ in range(40):
        columns, gain = [random_column(rng, i, step=1.0) for i in range(3)], float(rng.uniform(0.1, 3))
        best = by_brute_force(columns, gain, 1.0)
        alone = min(by_brute_force([column], gain, 1.0) for column in columns)
        worse += alone > best + 1e-9
    assert worse > 5


def test_columns_tied_with_the_last_reason_are_listed_as_well(model):
    """Two columns that take away the same are both a reason, even if one is asked for."""
    X = people(40, seed=5)[0]
    tied = AdditiveClassifier(TableMetric({}, {"a": 0.2, "b": 0.2}), penalty=0.1)
    table = pd.DataFrame({"a": list("xyxyxyxy"), "b": list("xyxyxyxy")})
    (notice,) = tied.fit(table, [1, 0] * 4).notice(pd.DataFrame({"a": ["y"], "b": ["y"]}), n=1)
    assert [reason.column for reason in notice.reasons] == ["a", "b"]
    assert all(len(each.reasons) <= 1 for each in model.notice(X, n=1))


class Words(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)

    def handle_data(self, data):
        self.words += data


def test_one_person_as_json_html_and_text(model):
    X = people(80, seed=2)[0]
    notice = next(n for n in model.notice(X, threshold=0.9, policy=POLICY) if "Location" in n.to_text())
    data = json.loads(notice.to_json())
    assert data["person"] == notice.person
    assert [reason["column"] for reason in data["reasons"]] == [reason.column for reason in notice.reasons]
    page = Words(notice.to_html())
    assert page.tags.count("li") == len(notice.reasons) + len(notice.changes)
    assert "of" not in page.tags  # "<of>" in a text is escaped
    assert "Location <of> the property" in page.words
    for line in notice.to_text().splitlines():
        assert re.sub(r"^(\d+\.|-) ", "", line) in page.words
    assert notice.to_text().startswith("The chance of being approved is ")


def test_a_threshold_that_nothing_reaches_is_said(model):
    X = people(5, seed=6)[0]
    reached = float(model.predict_proba(X)[0, 1])  # exactly what is needed
    assert model.notice(X[:1], threshold=reached)[0].changes is None
    assert ", at least the " in model.notice(X[:1], threshold=reached)[0].to_text()
    everything = {"immutable": ["income", "debt", "age", "children", "region"]}
    for notice in model.notice(X, threshold=0.999, policy=everything):
        assert notice.changes == ()
        assert "No change to the items you can change would be enough." in notice.to_text()
    assert all(notice.changes is None for notice in model.notice(X))


def test_policies_are_read_from_files(model, tmp_path):
    X = people(5, seed=6)[0]
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    (tmp_path / "policy.toml").write_text(
        'outcome = "being approved"\nprotected = ["age"]\nimmutable = ["region"]\n'
        '[reasons]\ndebt = "Level of debt"\nregion = "Location <of> the property"\n[steps]\n'
        "children = 1\nincome = 0.5\n"
    )
    expected = model.notice(X, threshold=0.9, policy=POLICY)
    for name in ("policy.json", "policy.toml"):
        assert model.notice(X, threshold=0.9, policy=tmp_path / name) == expected


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"threshold": 0}, "threshold must be a positive number below 1; got 0"),
        ({"threshold": 1.5}, "threshold must be a positive number below 1; got 1.5"),
        ({"favourable": "yes"}, r"outcome must be one of the classes, \[0, 1\]; got 'yes'"),
        ({"n": 0}, "n must be a whole number >= 1; got 0"),
        ({"policy": {"text": {}}}, "policy must have the entries outcome, names, reasons, .*; it has 'text'"),
        ({"policy": {"reasons": {"shoe": "x"}}}, "policy reasons must name columns of X, .*; it has 'shoe'"),
        ({"policy": {"immutable": "age"}}, "policy immutable must be a list of columns; got 'age'"),
        ({"policy": {"steps": {"income": 0}}}, "policy step of 'income' must be a positive finite number; got 0"),
        ({"policy": {"outcome": 1}}, "policy outcome must be text; got 1"),
        ({"policy": {"names": {"age": 3}}}, "policy names of 'age' must be text; got 3"),
        ({"policy": {"reasons": {"age": " "}}}, "policy reasons of 'age' must be text; got ' '"),
        ({"width": 0.1}, "width must be 0 without a threshold; got 0.1"),
        ({"threshold": 0.5, "width": 1.5}, "width must be a positive number below 1; got 1.5"),
        ({"threshold": 0.5, "width": "wide"}, "width must be a positive number below 1; got 'wide'"),
        ({"policy": "none.toml"}, "Cannot read none.toml"),
    ],
)
def test_bad_input_is_refused_in_a_line(model, parameters, words):
    with pytest.raises(ValueError, match=words):
        model.notice(people(3)[0], **parameters)


def test_notices_need_two_classes():
    X, _ = people(60)
    for other in (
        AdditiveClassifier(METRIC, penalty=0.1).fit(X, np.arange(60) % 3),
        AdditiveRegressor(METRIC, penalty=0.1).fit(X, X["age"]),
    ):
        with pytest.raises(ValueError, match="notice needs a binary classifier"):
            other.notice(X)


BAND = {"threshold": 0.6, "width": 0.2}
IN_STEPS = {"steps": {"children": 1, "income": 5}, "immutable": ["debt", "region"], "protected": ["age"]}
LEVELS, STEPS = ["low", "middle", "high"], {"income": 12.5, "debt": 20.1234}
CARDS = ["logistic", "probit", "clip", "points", "points of the other class"]


@pytest.fixture(scope="module")
def changeable():
    """Cards on which every kind of change counts: ordered and grouped categories, blanks, unseen values, and steps."""
    metric = TableMetric(
        {"income": 0.02, "debt": 0.01, "grade": 0.04},
        {"region": 0.08},
        missing={"debt": 0.15},
        order={"grade": LEVELS},
        groups={"region": {"groups": [["north", "south"]], "within": 0.25}},
        units={"income": "$1000"},
    )
    X, y = people()
    X = X[["income", "debt", "region"]].assign(grade=np.random.default_rng(1).choice(LEVELS, len(X)))
    X.loc[X.index[::9], "region"] = None  # nobody is told to leave it blank
    y = np.where(X["region"].isna(), 1, np.where(X["grade"] == "middle", 1 - y, y))
    cards = {link: AdditiveClassifier(metric, penalty=1e-3, max_knots=4, link=link).fit(X, y) for link in CARDS[:3]}
    cards["points"] = cards["logistic"].in_points(100)
    cards["points of the other class"] = cards["logistic"].in_points(100, outcome=0)
    return cards


def smallest_by_brute_force(card, person, column, end):
    """The smallest distance to anyone whose chance reaches the end of the band; with p = 1, a sum over columns."""
    values = {name: [k * step for k in range(-1, int(180 / step))] for name, step in STEPS.items()}
    values |= {"region": ["north", "south", "west"], "grade": LEVELS}
    options = {name: [now, *values[name]] for name, now in person.items()}
    table = pd.DataFrame(itertools.product(*options.values()), columns=list(person))
    enough = card.predict_proba(table.astype({"income": float, "debt": float}))[:, column] >= end
    far = [[away(card, person, {name: value}) for value in each] for name, each in options.items()]
    return min(
        (sum(each) for each, is_enough in zip(itertools.product(*far), enough, strict=True) if is_enough),
        default=math.inf,
    )


def away(card, person, changes):
    """The distance of a change, from the description of the metric."""
    return float(Described(card.metric, list(person)).distance(person, person | changes))


@pytest.mark.parametrize("favourable", [1, 0])
@pytest.mark.parametrize("kind", CARDS)
def test_the_change_crosses_the_whole_band_and_no_smaller_one_does(changeable, kind, favourable):
    """Asked of the model itself, about every combination of values."""
    card, found = changeable[kind], 0
    columns = {
        "income": [31.0, 50.5, 300.0, -5.0, 44.0],
        "debt": [17.3, None, 90.0, 3.0, None],
        "region": ["south", "west", "abroad", "north", "north"],
        "grade": ["low", "middle", "high", "middle", "high"],
    }
    X = pd.DataFrame(columns)
    for threshold, width in ((0.5, 0.1), (0.65, 0.0)):
        band = {"threshold": threshold, "width": width}
        for notice in card.notice(X, **band, favourable=favourable, policy={"steps": STEPS}):
            person = {name: None if pd.isna(value) else value for name, value in X.loc[notice.person].items()}
            end = threshold + width / 2
            best = smallest_by_brute_force(card, person, favourable, end)
            if notice.changes is None:
                assert best == 0
                continue
            if not notice.changes:
                assert best == math.inf
                continue
            changes = {change.column: change.value for change in notice.changes}
            assert away(card, person, changes) == pytest.approx(best, abs=1e-9)
            chance = card.predict_proba(pd.DataFrame([person | changes]).astype({"income": float, "debt": float}))[
                0, favourable
            ]
            assert chance == notice.changed_probability >= end
            for change in notice.changes:  # the words say all digits of the value, in its unit
                said = 1000 * change.value if change.column == "income" else change.value
                assert re.sub(r"[$,]", "", change.to) == (said if isinstance(said, str) else f"{said:.9g}")
            found += 1
    assert found >= 3


@pytest.mark.parametrize("sign", [1, -1])
def test_the_first_step_beyond_the_numbers_seen_may_be_what_is_enough(sign):
    """Between the last multiple within them and the first one beyond, the chance still rises."""
    X = pd.DataFrame({"income": sign * np.linspace(10.5, 90.5, 200)})
    model = AdditiveClassifier(TableMetric({"income": 0.02}), penalty=1e-3).fit(X, sign * X["income"] > 50)
    inside, beyond = model.predict_proba(pd.DataFrame({"income": [sign * 90.0, sign * 91.0]}))[:, 1]
    assert inside < beyond
    policy = {"steps": {"income": 1}}
    (notice,) = model.notice(X[:1], threshold=float((inside + beyond) / 2), policy=policy)
    assert [change.value for change in notice.changes] == [sign * 91.0]


def test_steps_that_are_too_many_to_compare_are_refused(model):
    """Rather than said to be not enough."""
    with pytest.raises(
        ValueError, match=r"policy step of 'income' must be at least 0\.00\d+, .* got 1e-06. Use a larger"
    ):
        model.notice(people(5)[0], threshold=0.99, policy={"steps": {"income": 1e-6}})


def test_control_a_change_to_the_threshold_alone_leaves_the_decision_to_a_draw(model):
    decision = ThresholdDecision.from_model(model, **BAND)
    X = people(40, seed=8)[0]
    left = 0
    for notice in model.notice(X, threshold=0.6, policy=IN_STEPS):
        if notice.changes:
            after = X.loc[[notice.person]].assign(**{change.column: change.value for change in notice.changes})
            left += 0 < decision.predict_proba(after)[0, 1] < 1
    assert left >= 5


def test_where_people_stand_in_the_band_is_said(model):
    X = people(200, seed=9)[0]
    said = {"below": 0, "inside": 0, "above": 0}
    for notice in ThresholdDecision.from_model(model, **BAND).notice(X, policy={"outcome": "being approved"}):
        text = notice.to_text()
        where = "below" if notice.probability <= 0.5 else "above" if notice.probability >= 0.7 else "inside"
        said[where] += 1
        if where == "below":
            assert "Up to 50% the decision is not favourable; scores between 50% and 70% are decided by a draw" in text
        elif where == "inside":
            share = (notice.probability - 0.6) / 0.2 + 0.5
            assert f"With this score the draw is favourable {share:.0%} of the time. From 70% on the" in text
            assert "The chance of" not in text
        else:
            assert "From 70% on the decision is favourable without a draw." in text
            assert "enough" not in text
    assert min(said.values()) > 0


@pytest.mark.parametrize("score", [0.4498, 0.4502, 0.5496, 0.55049, 0.4, 0.5, 0.6])
def test_a_score_beside_the_end_of_a_band_has_the_digits_that_tell_them_apart(score):
    text = Notice(0, "approval", score, 0.5, 0.1, (), False, None, None).to_text()
    shown, *_ = re.findall(r"[\d.]+(?=%)", text.split(". From")[0])
    assert float(shown) / 100 == pytest.approx(score, abs=5e-4)
    for end in ("45", "55"):
        assert (float(shown) < float(end)) == (100 * score < float(end))
        assert float(shown) != float(end)


def test_the_favourable_class_of_a_decision_is_that_of_its_notices(model):
    X = people(30, seed=9)[0]
    turned = ThresholdDecision.from_model(model, **BAND, favourable=0).notice(X)
    for notice, h in zip(turned, model.predict_proba(X)[:, 0], strict=True):
        assert notice.probability == h
    grades = ThresholdDecision.from_model(model, threshold=[0.3, 0.7], width=0.1, grades=["C", "B", "A"])
    with pytest.raises(ValueError, match="one threshold, on a scorecard"):
        grades.notice(X)


def test_columns_go_by_the_names_that_people_know(model):
    X = people(80, seed=2)[0]
    policy = POLICY | {"names": {"income": "your income", "debt": "what you owe", "children": "number of children"}}
    texts = "\n".join(notice.to_text() for notice in model.notice(X, threshold=0.9, policy=policy))
    assert "Level of debt (what you owe: " in texts
    assert "- your income: $" in texts
    assert not re.search(r"\b(income|debt): ", texts.replace("your income", ""))


def test_a_band_that_ends_beyond_1_is_certain_for_nobody(model):
    X = people(20, seed=2)[0]
    for notice in model.notice(X, threshold=0.96, width=0.1):
        assert notice.changes == ()
        assert "No change to the items you can change would be enough without a draw." in notice.to_text()


SHAPES = {
    "groups": {"groups": {"job": {"groups": [["clerk", "teacher"], ["farmer"]], "within": 0.1}}},
    "distances": {"distances": {"job": {"clerk": {"teacher": 1, "farmer": 10}, "teacher": {"farmer": 10}}}},
    "one distance": {},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_nearest_category_that_is_enough_is_the_smallest_change(shape):
    """A farmer gains more than a teacher, and is ten times as far from a clerk."""
    metric = TableMetric({"income": 0.01}, {"job": 0.4}, **SHAPES[shape])
    X = pd.DataFrame({"income": [20.0, 60.0] * 60, "job": ["clerk", "teacher", "farmer"] * 40})
    card = AdditiveClassifier(metric, penalty=1e-4).fit(X, X["job"] != "clerk")
    person, others = {"income": 20.0, "job": "clerk"}, [{"job": "teacher"}, {"job": "farmer"}]
    (start,) = card.predict_proba(pd.DataFrame([person]))[:, 1]
    (notice,) = card.notice(pd.DataFrame([person]), threshold=start + 0.02, favourable=True)
    enough = card.predict_proba(pd.DataFrame([person | other for other in others]))[:, 1] >= start + 0.02
    assert enough.all()
    changes = {change.column: change.value for change in notice.changes}
    assert away(card, person, changes) == pytest.approx(min(away(card, person, other) for other in others))
    assert changes.get("job") == "teacher" or shape == "one distance"
