"""Notices say what lowers a chance, name nothing they must not, and ask for the smallest change that does."""

import itertools
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric, ThresholdDecision
from likewise.scorecard.notices import Notice
from likewise.scorecard.recourse import Column, changeable_columns, smallest_change
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
    "directions": {"income": "increase", "debt": "decrease", "children": "any"},
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


def tell(model, X, *, favourable=1, policy=None, **parameters):
    """Notices where classes are 1 and 0, and everything can change unless a policy says otherwise."""
    if policy is None or (isinstance(policy, dict) and not {"directions", "text"} & set(policy)):
        fixed = [*(policy or {}).get("immutable", ()), *(policy or {}).get("protected", ())]
        ways = {name: "any" for name in model.feature_names_in_ if name not in fixed}
        policy = {"directions": ways, **(policy or {})}
    return model.notice(X, favourable=favourable, policy=policy, **parameters)


def fed_back(person, changes):
    """A person with the values that a notice shows, read from its text as people would."""
    table = person.copy()
    for change in changes:
        number = re.fullmatch(r"(-?)\$?([\d,.]+).*", change.to)
        if not number:
            table[change.column] = change.to
            continue
        value = float(number[1] + number[2].replace(",", ""))
        table[change.column] = value / 1000 if "$" in change.to else value
    return table


def test_reasons_are_what_lowers_the_favourable_outcome_most(model):
    X = people(60, seed=1)[0]
    for favourable in (1, 0):
        points = model.explain(X, outcome=favourable).drop(columns=["intercept", "log-odds"])
        for notice in tell(model, X, favourable=favourable, n=3):
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
    found = tell(model, X, threshold=0.9, policy=POLICY, n=6)
    texts = [notice.to_text() for notice in found]
    assert not any(re.search(r"\bage\b", text) for text in texts)
    assert any(re.search(r"\bage\b", notice.to_text()) for notice in tell(model, X, n=6))  # control
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


def test_what_a_notice_shows_is_enough_and_a_step_less_is_not(model):
    """Read from the text, and asked of the model itself."""
    X, changed = people(60, seed=3)[0], 0
    for notice in tell(model, X, threshold=0.7):
        if notice.probability >= 0.7:
            assert notice.changes is None
            continue
        assert notice.changes
        person = X.loc[[notice.person]]
        assert model.predict_proba(fed_back(person, notice.changes))[0, 1] == notice.changed_probability >= 0.7
        text = notice.to_text()
        for change in notice.changes:
            assert f"- {change.name}: {change.to} instead of {change.now}" in text
            if not isinstance(change.value, str):
                now = person[change.column].iloc[0]
                less = fed_back(person, notice.changes)
                less[change.column] = change.value - 0.1 * np.sign(change.value - now)
                assert model.predict_proba(less)[0, 1] < notice.changed_probability
        changed += 1
    assert changed > 10


def test_steps_are_those_that_people_can_make(model):
    """Whole years, whole children, and round numbers of dollars and of what has no unit."""
    found = set()
    for notice in tell(model, people(80, seed=3)[0], threshold=0.8):
        for change in notice.changes or ():
            found.add(change.column)
            assert re.fullmatch(r"\$\d{1,3}(,\d{3})*|\d+|north|south|west", change.to), change
    assert {"income", "children"} <= found


@pytest.mark.parametrize("favourable", [1, 0])
def test_directions_are_followed_and_nothing_else_changes(model, favourable):
    """Nobody is told to earn less, and a debt that is not known cannot be paid back."""
    X, seen = people(60, seed=3)[0], set()
    policy = {"directions": {"income": "increase", "debt": "decrease"}}
    for notice in tell(model, X, threshold=0.6, favourable=favourable, policy=policy):
        for change in notice.changes or ():
            now = X.loc[notice.person, change.column]
            assert (change.value > now) if change.column == "income" else (change.value < now)
            seen.add(change.column)
    assert seen == ({"income", "debt"} if favourable else set())  # earning more makes the other class less likely


def test_without_a_direction_nothing_is_advised_but_what_the_model_was_fitted_to():
    """A monotone column changes the way it is; age does not, unless it is said."""
    X, y = people()
    rising = AdditiveClassifier(METRIC, penalty=1e-3, max_knots=8, monotone={"income": 1, "debt": -1, "age": 1})
    rising.fit(X, y)
    ways = {"income": 1, "debt": -1}
    for favourable, allowed in ((1, set(ways)), (0, {"income", "debt"})):
        columns = set()
        for notice in tell(
            rising, people(60, seed=3)[0], threshold=0.6, favourable=favourable, policy={"directions": {}}
        ):
            for change in notice.changes or ():
                way = ways[change.column] * (1 if favourable else -1)
                assert np.sign(change.value - people(60, seed=3)[0].loc[notice.person, change.column]) == way
                columns.add(change.column)
        assert columns == allowed
    aged = {"directions": {"age": "increase"}}
    changed = [n.changes for n in tell(rising, people(60, seed=3)[0], threshold=0.7, policy=aged)]
    assert any(change.column == "age" for changes in changed for change in changes or ())
    plain = AdditiveClassifier(METRIC, penalty=1e-3, max_knots=8).fit(X, y)
    for notice in tell(plain, X[:20], threshold=0.99, policy={"directions": {}}):
        assert (notice.changes, notice.considered) == ((), ())
        assert "enough" not in notice.to_text()


def test_to_be_unknown_is_no_advice():
    X = pd.DataFrame({"purpose": ["car", "house", "Unknown", "n.a.", None] * 40})
    card = AdditiveClassifier(TableMetric({}, {"purpose": 0.5}), penalty=0.01).fit(X, X["purpose"] != "car")
    policy = {"directions": {"purpose": "any"}}
    (notice,) = tell(card, X[:1], threshold=0.6, favourable=True, policy=policy)
    assert [change.to for change in notice.changes] == ["house"]
    (other,) = tell(card, X[2:3], threshold=0.99, favourable=True, policy=policy)
    assert other.considered == ()


def test_the_favourable_outcome_is_never_guessed(model):
    """Of 0 and 1, either may be a default."""
    with pytest.raises(ValueError, match=r"favourable must be one of the classes \[0, 1\], as no word says which"):
        model.notice(people(3)[0], threshold=0.5)


def random_column(rng, i):
    values = rng.permutation(30)[: int(rng.integers(0, 8))].astype(float)
    return i, values, rng.uniform(0.02, 0.5, len(values)).round(2), rng.normal(size=len(values)).round(2)


def by_brute_force(columns, gain):
    """Fewest columns, and of these the smallest sum of distances, over all combinations."""
    choices = [[(0, 0.0, 0.0), *((1, d, g) for d, g in zip(*column[2:], strict=True))] for column in columns]
    sums = [tuple(map(sum, zip(*each, strict=True))) for each in itertools.product(*choices)]
    return min(((n, d) for n, d, g in sums if g >= gain), default=None)


@pytest.mark.parametrize("seed", range(60))
def test_the_fewest_columns_and_then_the_smallest_change_are_found_exactly(seed):
    rng = np.random.default_rng(seed)
    columns, gain = [random_column(rng, i) for i in range(4)], float(rng.uniform(0.1, 4))
    found, best = smallest_change([Column.of(*each) for each in columns], gain), by_brute_force(columns, gain)
    if best is None:
        assert found is None
        return
    places = {i: columns[i][1].tolist().index(value) for i, value in found.items()}
    assert len(places) == best[0]
    assert sum(columns[i][3][k] for i, k in places.items()) >= gain - 1e-12
    assert sum(columns[i][2][k] for i, k in places.items()) == pytest.approx(best[1], abs=1e-12)


def test_control_the_smallest_change_of_all_is_often_one_of_more_columns():
    """The brute force above would notice a search that looks at distances alone."""
    rng, more = np.random.default_rng(0), 0
    for _ in range(60):
        columns, gain = [random_column(rng, i) for i in range(4)], float(rng.uniform(0.1, 4))
        best = by_brute_force(columns, gain)
        halves = [(i, v, d * (1 + 99 * (i == 0)), g) for i, v, d, g in columns]
        more += best is not None and by_brute_force(halves, gain)[1] > best[1]
    assert more > 5


@pytest.mark.parametrize(("left", "right", "expected"), [(1.0, 0.5, 6.0), (0.5, 1.0, 14.0)])
def test_the_nearer_of_two_sides_is_taken(left, right, expected):
    """From 10, points rise on both sides: 4 units of the steeper side are enough."""
    values = np.arange(21.0)
    gains = np.interp(values, [0.0, 10.0, 20.0], [10 * left, 0.0, 10 * right])
    assert smallest_change([Column.of(0, values, np.abs(values - 10), gains)], 4.0) == {0: expected}


def test_columns_tied_with_the_last_reason_are_listed_as_well(model):
    """Two columns that take away the same are both a reason, even if one is asked for."""
    X = people(40, seed=5)[0]
    tied = AdditiveClassifier(TableMetric({}, {"a": 0.2, "b": 0.2}), penalty=0.1)
    table = pd.DataFrame({"a": list("xyxyxyxy"), "b": list("xyxyxyxy")})
    (notice,) = tied.fit(table, [1, 0] * 4).notice(pd.DataFrame({"a": ["y"], "b": ["y"]}), n=1, favourable=1)
    assert [reason.column for reason in notice.reasons] == ["a", "b"]
    assert all(len(each.reasons) <= 1 for each in tell(model, X, n=1))


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
    notice = next(n for n in tell(model, X, threshold=0.9, policy=POLICY) if "Location" in n.to_text())
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
    assert tell(model, X[:1], threshold=reached)[0].changes is None
    assert ", at least the " in tell(model, X[:1], threshold=reached)[0].to_text()
    everything = {"immutable": ["income", "debt", "age", "children", "region"]}
    for notice in tell(model, X, threshold=0.999, policy=everything):
        assert notice.changes == ()
        assert "enough" not in notice.to_text()
    assert all(notice.changes is None for notice in tell(model, X))


def test_policies_are_read_from_files(model, tmp_path):
    X = people(5, seed=6)[0]
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    (tmp_path / "policy.toml").write_text(
        'outcome = "being approved"\nprotected = ["age"]\nimmutable = ["region"]\n'
        '[reasons]\ndebt = "Level of debt"\nregion = "Location <of> the property"\n[steps]\n'
        "children = 1\nincome = 0.5\n[directions]\nincome = 'increase'\ndebt = 'decrease'\nchildren = 'any'\n"
    )
    expected = tell(model, X, threshold=0.9, policy=POLICY)
    for name in ("policy.json", "policy.toml"):
        assert tell(model, X, threshold=0.9, policy=tmp_path / name) == expected


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"threshold": 0}, "threshold must be a positive number below 1; got 0"),
        ({"threshold": 1.5}, "threshold must be a positive number below 1; got 1.5"),
        ({"favourable": "yes"}, r"favourable must be one of the classes \[0, 1\]; got 'yes'"),
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
        (
            {"policy": {"directions": {"age": "up"}}},
            "policy directions must be increase, decrease or any; 'age' has 'up'",
        ),
        ({"policy": {"directions": {"region": "increase"}}}, "directions of 'region' must be any: its categories have"),
        (
            {"policy": {"directions": {"age": "any"}, "immutable": ["age"]}},
            "policy directions must not name protected or immutable columns; got 'age'",
        ),
    ],
)
def test_bad_input_is_refused_in_a_line(model, parameters, words):
    with pytest.raises(ValueError, match=words):
        tell(model, people(3)[0], **parameters)


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
    """Fewest columns and smallest distance to anyone whose chance reaches the end of the band; distances add up.

    What the model does not know of a person, or nothing of, stays as it is.
    """
    values = {name: [k * step for k in range(-1, int(180 / step))] for name, step in STEPS.items()}
    values |= {"region": ["north", "south", "west"], "grade": LEVELS}
    fixed = [name for name, now in person.items() if now in (None, "abroad")]
    options = {name: [now, *([] if name in fixed else values[name])] for name, now in person.items()}
    table = pd.DataFrame(itertools.product(*options.values()), columns=list(person))
    enough = card.predict_proba(table.astype({"income": float, "debt": float}))[:, column] >= end
    far = [[(k > 0, away(card, person, {name: x})) for k, x in enumerate(each)] for name, each in options.items()]
    sums = (tuple(map(sum, zip(*each, strict=True))) for each in itertools.product(*far))
    return min((each for each, is_enough in zip(sums, enough, strict=True) if is_enough), default=None)


def away(card, person, changes):
    """The distance of a change, from the description of the metric."""
    return float(Described(card.metric, list(person)).distance(person, person | changes))


@pytest.mark.parametrize("favourable", [1, 0])
@pytest.mark.parametrize("kind", CARDS)
def test_the_change_crosses_the_whole_band_and_none_of_fewer_columns_or_smaller_does(changeable, kind, favourable):
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
        for notice in tell(card, X, **band, favourable=favourable, policy={"steps": STEPS}):
            person = {name: None if pd.isna(value) else value for name, value in X.loc[notice.person].items()}
            end = threshold + width / 2
            best = smallest_by_brute_force(card, person, favourable, end)
            if notice.changes is None:
                assert best == (0, 0)
                continue
            if not notice.changes:
                assert best is None
                continue
            changes = {change.column: change.value for change in notice.changes}
            assert (len(changes), away(card, person, changes)) == pytest.approx(best, abs=1e-9)
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
    (notice,) = tell(model, X[:1], threshold=float((inside + beyond) / 2), policy=policy)
    assert [change.value for change in notice.changes] == [sign * 91.0]


def test_steps_that_are_too_many_to_compare_are_refused(model):
    """Rather than said to be not enough."""
    with pytest.raises(
        ValueError, match=r"policy step of 'income' must be at least 0\.00\d+, .* got 1e-06. Use a larger"
    ):
        tell(model, people(5)[0], threshold=0.99, policy={"steps": {"income": 1e-6}})


def test_control_a_change_to_the_threshold_alone_leaves_the_decision_to_a_draw(model):
    decision = ThresholdDecision.from_model(model, **BAND, favourable=1)
    X = people(40, seed=8)[0]
    left = 0
    for notice in tell(model, X, threshold=0.6, policy=IN_STEPS):
        if notice.changes:
            after = X.loc[[notice.person]].assign(**{change.column: change.value for change in notice.changes})
            left += 0 < decision.predict_proba(after)[0, 1] < 1
    assert left >= 5


def test_where_people_stand_in_the_band_is_said(model):
    X = people(200, seed=9)[0]
    said = {"below": 0, "inside": 0, "above": 0}
    for notice in ThresholdDecision.from_model(model, **BAND, favourable=1).notice(
        X, policy={"outcome": "being approved"}
    ):
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
    texts = "\n".join(notice.to_text() for notice in tell(model, X, threshold=0.9, policy=policy))
    assert "Level of debt (what you owe: " in texts
    assert "- your income: $" in texts
    assert not re.search(r"\b(income|debt): ", texts.replace("your income", ""))


def test_a_band_that_ends_beyond_1_is_certain_for_nobody(model):
    X = people(20, seed=2)[0]
    for notice in tell(model, X, threshold=0.96, width=0.1):
        assert notice.changes == ()
        assert " or region would be enough without a draw." in notice.to_text()


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
    (notice,) = tell(card, pd.DataFrame([person]), threshold=start + 0.02, favourable=True)
    enough = card.predict_proba(pd.DataFrame([person | other for other in others]))[:, 1] >= start + 0.02
    assert enough.all()
    changes = {change.column: change.value for change in notice.changes}
    assert away(card, person, changes) == pytest.approx(min(away(card, person, other) for other in others))
    assert changes.get("job") == "teacher" or shape == "one distance"


def test_nobody_is_advised_to_have_a_special_code_nor_to_change_one_into_a_number():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"pay": rng.integers(-30, 30, 300).astype(float)})
    metric = TableMetric({"pay": 0.02}, special={"pay": {-9: 0.2}})
    model = AdditiveClassifier(metric, penalty=1e-3).fit(X, X["pay"] + rng.normal(size=300) > 0)
    asked = model._people(pd.DataFrame({"pay": [-20.0, -9.0]}))
    number, code = (changeable_columns(model.scorer_, asked, row, 1.0, {"pay": "any"}, {"pay": 1}) for row in (0, 1))
    assert {-10.0, -9.0, -8.0} & {*number[0].values} == {-10, -8}
    assert code == []
