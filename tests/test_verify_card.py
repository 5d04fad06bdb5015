"""A card is proven from its own numbers, without likewise, and a falsified one is not."""

import copy
import json
import math
import shutil
import subprocess
import sys
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric, verify_card
from likewise.exceptions import InvalidInputError
from likewise.verify_card import LN2, ROOT_2PI, NotProvenError, check_scores, outputs, prove, scores

METRIC = TableMetric(
    {"income": 0.02, "age": 0.01, "school": 0.05, "debt": 0.01},
    {"region": 0.1, "owner": 0.05, "race": 0.0},
    missing={"debt": 0.2},
)


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": rng.gamma(3, 15, n).round(),
            "age": rng.uniform(18, 80, n),
            "school": pd.Categorical.from_codes(rng.integers(0, 3, n), ["low", "middle", "high"], ordered=True),
            "debt": np.where(rng.random(n) < 0.2, np.nan, rng.gamma(2, 10, n)),
            "region": rng.choice(["north", "south", "o'west", None], n),
            "owner": rng.random(n) < 0.5,
            "race": rng.choice(["x", "y"], n),
        }
    )
    score = 0.08 * (table["income"] - 45) - (table["region"] == "south") - 0.03 * table["debt"].fillna(40)
    return table, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int).to_numpy()


def fitted(kind, metric=METRIC):
    X, y = people()
    if kind == "regression":
        return AdditiveRegressor(metric, penalty=1e-3, max_knots=8).fit(X, 10.0 * y + X["income"])
    labels = y + (X["age"] > 50) if kind == "softmax" else y
    link = kind if kind in ("probit", "clip") else "logistic"
    return AdditiveClassifier(metric, penalty=1e-3, link=link, max_knots=8).fit(X, labels)


@pytest.fixture(scope="module")
def card():
    return json.loads(fitted("logistic").to_json())


def proven(card):
    try:
        prove(card)
    except NotProvenError:
        return False
    return True


def scored(model, path, n=60):
    """A CSV file of people and their scores, as `likewise score --keep` writes."""
    X = people(n, seed=1)[0]
    X.loc[3, "region"] = "abroad"
    if hasattr(model, "classes_"):
        for label, column in zip(model.classes_, model.predict_proba(X).T, strict=True):
            X[f"p_{label}"] = column
    else:
        X["prediction"] = model.predict(X)
    X.to_csv(path, index=False)
    return X


@pytest.mark.parametrize("kind", ["logistic", "probit", "clip", "softmax", "regression"])
def test_every_kind_of_card_is_proven_and_so_are_its_scores(kind, tmp_path):
    model = fitted(kind)
    card = json.loads(model.to_json())
    prove(card)
    X = scored(model, tmp_path / "people.csv")
    n_outputs = len(getattr(model, "classes_", [0]))
    assert check_scores(card, tmp_path / "people.csv") == (len(X), len(X) * n_outputs)


def test_the_other_outcome_of_two_is_proven_as_well_and_one_of_several_is_not_enough(card):
    prove(json.loads(fitted("logistic").to_json(outcome=0)))
    with pytest.raises(NotProvenError, match="points for each class"):
        prove(json.loads(fitted("softmax").to_json(outcome=1)))


def column(card, name):
    return next(entry for entry in card["columns"] if entry["column"] == name)


def weight(card, name):
    return next(entry for entry in card["metric"]["columns"] if entry["column"] == name)


def steeper(card):
    """One knot of income, further away than its gap allows by one millionth."""
    entry = column(card, "income")
    steps = np.diff(entry["points"]) / np.diff(entry["knots"])
    k = int(np.argmax(np.abs(steps)))
    entry["points"][k + 1] = entry["points"][k] + np.sign(steps[k]) * (1 + 1e-6) * 0.08 * (
        entry["knots"][k + 1] - entry["knots"][k]
    )
    entry["points"] = [float(value) for value in entry["points"]]


def cancel(card, size):
    """Points so large that nothing else is left of a sum in double precision."""
    card["intercept"] -= size
    entry = column(card, "age")
    entry["points"] = [size] * len(entry["points"])


def distances(card, change):
    """All categories of a region at its weight, but for a change."""
    n = len(column(card, "region")["categories"]) + 1
    found = (1.0 - np.eye(n)).tolist()
    weight(card, "region")["distances"] = found
    change(found)


FALSIFICATIONS = {
    "a slope beyond the metric by a millionth": steeper,
    "a column of numbers doubled": lambda c: column(c, "income").update(
        points=[3 * value for value in column(c, "income")["points"]]
    ),
    "two knots moved together": lambda c: column(c, "income")["knots"].__setitem__(
        1, column(c, "income")["knots"][0] + 1e-9
    ),
    "a knot twice": lambda c: column(c, "age")["knots"].__setitem__(1, column(c, "age")["knots"][0]),
    "knots out of order": lambda c: column(c, "age")["knots"].reverse(),
    "a category beyond its range": lambda c: column(c, "region")["categories"][0].update(points=0.9),
    "an unseen category beyond its range": lambda c: column(c, "region").update(unseen=-0.9),
    "a missing number beyond its weight": lambda c: column(c, "debt").update(missing=5.0),
    "a smaller weight in the metric": lambda c: weight(c, "income").update(weight=0.01),
    "a smaller missing weight": lambda c: weight(c, "debt").update(missing=0.001),
    "a smaller weight of a category": lambda c: weight(c, "region").update(weight=0.001),
    "a column made protected": lambda c: weight(c, "income").update(weight=0.0),
    "a protected column on the card": lambda c: c["columns"].append(
        {"column": "race", "categories": [{"value": "x", "points": 0.1}, {"value": "y", "points": 0.0}], "unseen": 0.0}
    ),
    "a column that the metric does not name": lambda c: c["columns"].append(
        {"column": "shoe size", "knots": [40.0, 41.0], "points": [0.0, 0.01], "missing": None}
    ),
    "a column twice": lambda c: c["columns"].append(copy.deepcopy(column(c, "age"))),
    "a column twice in the metric": lambda c: c["metric"]["columns"].append(weight(c, "age") | {"weight": 9.0}),
    "another exponent": lambda c: c["metric"].update(p="inf"),
    "an exponent below 1": lambda c: c["metric"].update(p=0.5),
    "another link": lambda c: c.update(link="clip"),
    "a sharper bound": lambda c: c["guarantee"].update(bound="tanh(D / 2)"),
    "a stronger statement": lambda c: c["guarantee"].update(
        statement=c["guarantee"]["statement"].replace("D(x, x')", "D(x, x') / 2")
    ),
    "less used than is": lambda c: c["guarantee"].update(used=0.5),
    "more used than allowed": lambda c: c["guarantee"].update(used=1.5),
    "a number that is none": lambda c: column(c, "age")["points"].__setitem__(0, float("nan")),
    "points as text": lambda c: column(c, "age")["points"].__setitem__(0, "0"),
    "an entry that changes scores unseen": lambda c: c.update(adjustment=0.1),
    "a grid so coarse that scores jump": lambda c: c.update(bits=6),
    "a grid a little too coarse": lambda c: c.update(bits=30),
    "a grid that is none": lambda c: c.update(bits=40.5),
    "a knot lost": lambda c: column(c, "age")["knots"].pop(),
    "numbers called categories": lambda c: weight(c, "income").update(kind="categorical"),
    "a category twice": lambda c: column(c, "region")["categories"].append(column(c, "region")["categories"][0]),
    "a third class": lambda c: c["classes"].append(2),
    "an outcome that is no class": lambda c: c.update(outcome=7),
    "another order than the metric's": lambda c: column(c, "school")["order"].reverse(),
    "an order of the metric alone": lambda c: column(c, "school").pop("order"),
    "an order with a category twice": lambda c: [
        each["order"].__setitem__(0, each["order"][1]) for each in (column(c, "school"), weight(c, "school"))
    ],
    "an order of numbers that are one": lambda c: [
        each.update(order=[{"value": 1}, {"value": "1.0"}, {"value": 2}])
        for each in (column(c, "school"), weight(c, "school"))
    ],
    "a category under two spellings": lambda c: (
        column(c, "region")["categories"].insert(0, {"value": 2, "points": 0.0})
        or column(c, "region")["categories"].insert(0, {"value": "2.0", "points": 0.0})
    ),
    "a missing category that is not the last": lambda c: column(c, "region")["categories"].reverse(),
    "a category that is a list": lambda c: column(c, "region")["categories"][0].update(value=["north"]),
    "huge points that cancel": lambda c: cancel(c, 2.0**70),
    "huge points that cancel, on a coarse grid": lambda c: cancel(c, 2.0**70) or c.update(bits=-20),
    "points of two columns that are huge together": lambda c: [
        column(c, name).update(points=[0.7 * 2.0 ** (53 - c["bits"])] * len(column(c, name)["knots"]))
        for name in ("age", "income")
    ],
    "a column that may be absent, with distances": lambda c: c["metric"].update(
        absent=[{"column": "sex", "kind": "categorical", "weight": 0.0, "missing": None, "distances": [[0.0]]}]
    ),
    "sums that double precision rounds": lambda c: c.update(bits=c["bits"] + 8),
    "a negative weight off the card": lambda c: weight(c, "race").update(weight=-0.1),
    "a negative weight of blanks": lambda c: weight(c, "income").update(missing=-0.1),
    "a weight that is none": lambda c: weight(c, "race").update(weight=float("nan")),
    "a weight as text": lambda c: weight(c, "race").update(weight="0"),
    "a kind that is none": lambda c: weight(c, "race").update(kind="ordinal"),
    "categories in an array": lambda c: c.update(input="array"),
    "an input that is none": lambda c: c.update(input="file"),
    "distances of a column of numbers": lambda c: weight(c, "income").update(distances=[[0.0]]),
    "an order of categories": lambda c: weight(c, "race").update(order=[{"value": "x"}, {"value": "y"}]),
    "distances without all categories": lambda c: weight(c, "region").update(distances=[[0.0, 1.0], [1.0, 0.0]]),
    "distances that differ both ways": lambda c: distances(c, lambda d: d[0].__setitem__(1, 3.0)),
    "a negative distance": lambda c: distances(c, lambda d: [d[i].__setitem__(1 - i, -0.5) for i in (0, 1)]),
    "a distance to itself": lambda c: distances(c, lambda d: d[0].__setitem__(0, 0.5)),
    "a distance of 0 between points that differ": lambda c: distances(
        c, lambda d: [d[i].__setitem__(1 - i, 0.0) for i in (0, 1)]
    ),
    "distances that are no square": lambda c: distances(c, lambda d: d[0].pop()),
    "categories other than the metric's": lambda c: (
        distances(c, lambda d: None)
        or weight(c, "region").update(categories=[{"value": "a"}, {"value": "b"}, {"value": "c"}])
    ),
    "an entry of a column that is heeded elsewhere": lambda c: column(c, "income").update(offset=1.0),
    "a column of numbers with categories": lambda c: column(c, "income").update(categories=[], unseen=0.0),
    "no knots": lambda c: column(c, "income").update(knots=[], points=[]),
    "a class twice": lambda c: c.update(classes=[1, 1]),
    "two classes of one text": lambda c: c.update(classes=[1, "1"], outcome=1),
    "distances with a category too many": lambda c: distances(
        c, lambda d: [row.append(1.0) for row in d] + [d.append([1.0] * len(d) + [0.0])]
    ),
    "a negative share": lambda c: c["guarantee"].update(used=-0.5),
    "a scale of points over log-odds": lambda c: c.update(
        scale={"points_to_double": 20, "base_score": 600, "base_odds": 50}
    ),
}


def test_control_the_card_that_is_falsified_below_is_proven(card):
    prove(card)
    assert len(FALSIFICATIONS) >= 20
    same = copy.deepcopy(card)
    distances(same, lambda found: None)
    same["metric"]["absent"] = [{"column": "sex", "kind": "categorical", "weight": 0.0, "missing": None}]
    prove(same)


def test_an_entry_given_twice_is_refused(card, tmp_path, capsys):
    """Readers of JSON differ on which one counts."""
    text = json.dumps(card)
    for entry in ('"weight": 0.02', '"p": 1.0', '"used": '):
        assert entry in text
        twice = text.replace(entry, f"{entry.split(':')[0]}: 0.5, {entry}", 1)
        (tmp_path / "card.json").write_text(twice)
        assert verify_card.main([str(tmp_path / "card.json")]) == 1
        assert capsys.readouterr().out.startswith("Not proven: An entry is given twice")
        with pytest.raises(InvalidInputError, match="given twice"):
            AdditiveClassifier.from_json(twice)


@pytest.mark.parametrize("falsify", FALSIFICATIONS.values(), ids=FALSIFICATIONS)
def test_a_falsified_card_is_found(card, falsify, tmp_path, capsys):
    false = copy.deepcopy(card)
    falsify(false)
    (tmp_path / "card.json").write_text(json.dumps(false))
    assert verify_card.main([str(tmp_path / "card.json")]) == 1
    assert capsys.readouterr().out.startswith("Not proven: ")


@pytest.mark.parametrize("what", ["score", "intercept", "points", "person"])
def test_scores_that_are_not_the_cards_are_found(what, card, tmp_path):
    """A card may be changed so that its guarantee still holds. Its scores are then others."""
    model = fitted("logistic")
    X = scored(model, tmp_path / "people.csv")
    false = copy.deepcopy(card)
    if what == "score":
        X.loc[5, "p_1"] += 1e-9
    elif what == "intercept":
        false["intercept"] += 1e-6
    elif what == "points":
        column(false, "region")["categories"][0]["points"] *= 0.99
    else:
        X.loc[7, "income"] += 1
    X.to_csv(tmp_path / "people.csv", index=False)
    prove(false)
    with pytest.raises(NotProvenError, match="and the card says"):
        check_scores(false, tmp_path / "people.csv")


def test_it_runs_as_one_file_without_likewise(card, tmp_path):
    """Isolated (-I -S): neither the package nor anything that is installed can be imported."""
    shutil.copy(verify_card.__file__, tmp_path / "verify_card.py")
    (tmp_path / "card.json").write_text(json.dumps(card))
    X = scored(fitted("logistic"), tmp_path / "people.csv")
    command = [sys.executable, "-I", "-S", "verify_card.py", "card.json", "people.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Proven: For any two people x and x', the class probabilities differ by at most D")
    assert f"{2 * len(X)} in the table are the card's" in done.stdout
    control = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import likewise"], cwd=tmp_path, capture_output=True, timeout=60
    )
    assert control.returncode != 0


def test_files_that_are_not_there_or_no_cards_are_said_in_a_line(tmp_path, capsys):
    (tmp_path / "text.json").write_text("no card")
    (tmp_path / "list.json").write_text("[]")
    assert verify_card.main([str(tmp_path / "none.json")]) == 2
    assert verify_card.main([]) == 2
    assert verify_card.main([str(tmp_path / "text.json")]) == 1
    assert verify_card.main([str(tmp_path / "list.json")]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 4


POOLS = [
    [30, 2.5, "b", None],
    [True, False],
    [0, 1],
    ["True", "true", "b"],
    ["True", "true", "false", 0, 1],
    [1.0, 2.5],
]
CELLS = [
    "30",
    "30.0",
    "030",
    "2.5",
    "2.50",
    "b",
    "B",
    "True",
    "true",
    "TRUE",
    "false",
    "0",
    "1",
    "1.0",
    "01",
    "1e0",
    "maybe",
]


@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_categories_are_found_as_the_model_finds_them(pool):
    """Of numbers, truth values and text, written in several ways."""
    values = np.empty(60, dtype=object)
    values[:] = (pool * 60)[:60]
    X = pd.DataFrame({"code": pd.Series(values, dtype=object)})
    y = np.arange(60) % len(pool) % 2 ^ (np.arange(60) % 7 == 0)
    model = AdditiveClassifier(TableMetric({}, {"code": 0.5}), penalty=0.01).fit(X, y)
    card = json.loads(model.to_json())
    for cell in CELLS:
        found = outputs(card, scores(card, {"code": cell}))["p_1"]
        person = pd.DataFrame({"code": pd.Series([cell], dtype=object)})
        assert found == pytest.approx(model.predict_proba(person)[0, 1], abs=1e-12), cell


UNITS = {"logistic": 4, "softmax": 2, "probit": Fraction(math.sqrt(2 * math.pi)), "clip": 1}


class Spots:
    """The points of a column, for one function of the card: at its knots and blanks, or of its categories."""

    def __init__(self, card, entry, function):
        self.rule, several = weight(card, entry["column"]), card["link"] == "softmax"
        holders = [(level, "points") for level in entry.get("categories", [])]
        if "knots" in entry:
            line = entry["points"][function] if several else entry["points"]
            holders = [(line, k) for k in range(len(line))]
        last = "missing" if "knots" in entry else "unseen"
        inside = several and "knots" not in entry
        self.holders = [(holder[key], function) if inside else (holder, key) for holder, key in holders]
        if entry[last] is not None:
            self.holders.append((entry[last], function) if several else (entry, last))
        self.knots = [*entry["knots"], None] if "knots" in entry else None

    def get(self, i):
        holder, key = self.holders[i]
        return Fraction(holder[key])

    def put(self, i, value):
        holder, key = self.holders[i]
        holder[key] = value

    def far(self, i, j):
        """The distance between two of them."""
        if self.knots is None:
            shares = self.rule.get("distances")
            return Fraction(self.rule["weight"]) * (Fraction(shares[i][j]) if shares else 1)
        if self.knots[j] is None:
            return Fraction(self.rule["missing"])
        return Fraction(self.rule["weight"]) * (Fraction(self.knots[j]) - Fraction(self.knots[i]))


def limit_of(card):
    """How far a score may move at distance 1."""
    unit = UNITS[card["link"]]
    if card["output_range"] is not None:
        unit = Fraction(card["output_range"][1]) - Fraction(card["output_range"][0])
    if card["scale"] is not None:
        unit = 4 * Fraction(card["scale"]["points_to_double"]) / Fraction(str(Decimal(2).ln(Context(prec=60))))
    return Fraction(card["guarantee"]["used"]) * unit


def all_spots(card):
    n = len(card["classes"]) if card["link"] == "softmax" else 1
    return [Spots(card, entry, function) for entry in card["columns"] for function in range(n)]


def by_brute_force(card):
    """Whether no two people are further apart in score than allowed; with p = 1 that is so column by column."""
    limit = limit_of(card)
    return all(
        abs(spots.get(i) - spots.get(j)) <= limit * spots.far(i, j)
        for spots in all_spots(card)
        for i, j in combinations(range(len(spots.holders)), 2)
    )


def shrunk(card, factor):
    for spots in all_spots(card):
        for i in range(len(spots.holders)):
            value = float(spots.get(i)) * factor
            spots.put(i, float(round(value)) if card["scale"] else value)


GROUPED = METRIC.with_params(groups={"region": {"groups": [["north", "south"]], "within": 0.4}})


@pytest.mark.parametrize("kind", ["logistic", "probit", "clip", "softmax", "regression", "points", "groups"])
def test_a_card_is_proven_exactly_where_no_pair_is_beyond_the_guarantee(kind):
    """Two places of a column are set apart by what is allowed, and a billionth (or a point) less or more."""
    model = fitted("logistic", GROUPED) if kind == "groups" else fitted("logistic" if kind == "points" else kind)
    start = json.loads((model.in_points(400) if kind == "points" else model).to_json())
    start["guarantee"]["used"] = 0.9
    weight(start, "debt")["missing"] = 0.004  # less than a unit of debt
    shrunk(start, 0.002)
    rng, seen = np.random.default_rng(0), {True: 0, False: 0}
    assert by_brute_force(start)
    for _ in range(150):
        card = copy.deepcopy(start)
        every = all_spots(card)
        spots = every[int(rng.integers(len(every)))]
        i, j = sorted(rng.choice(len(spots.holders), 2, replace=False).tolist())
        i, j = (i, j) if rng.random() < 0.5 else (j, i)
        most, sign = limit_of(card) * spots.far(*sorted((i, j))), int(rng.choice([-1, 1]))
        more = rng.random() < 0.5
        if kind == "points":
            spots.put(j, float(spots.get(i) + sign * (math.floor(most) + more)))
        else:
            spots.put(j, float(spots.get(i) + sign * most * (1 + Fraction(1, 10**9) * (1 if more else -1))))
        truth = by_brute_force(card)
        assert not (more and truth)
        assert proven(card) == truth, (spots.rule, i, j)
        seen[truth] += 1
    assert min(seen.values()) > 15


@pytest.mark.parametrize("p", [2, 1.5, "inf", True, "1", None])
def test_a_card_under_another_exponent_is_not_proven(card, p):
    """For p > 1 columns that are steep together move a score by more than the distance."""
    prove(card)
    other = copy.deepcopy(card)
    other["metric"]["p"] = p
    with pytest.raises(NotProvenError, match="p must be 1"):
        prove(other)


@pytest.mark.parametrize(("points", "proof"), [(-0.06, True), (-0.1, False)])
def test_two_special_codes_are_as_far_apart_as_the_larger_of_their_weights_and_no_further(points, proof):
    """Numbers have 0 points; one code has 0.13 of the 0.2 that its weight allows, the other up to 0.12."""
    X = pd.DataFrame({"pay": [*range(60), *[-9.0] * 9, *[-8.0] * 9]})
    metric = TableMetric({"pay": 0.02}, special={"pay": {-9: 0.05, -8: 0.03}})
    card = json.loads(AdditiveClassifier(metric, max_knots=2).fit(X, X["pay"] > 30).to_json())
    (column,) = card["columns"]
    column["points"] = [0.0, 0.0]
    column["special"][0]["points"], column["special"][1]["points"] = 0.13, points
    card["guarantee"]["used"] = 1.0
    assert proven(card) == proof


def test_constants_are_rounded_to_the_safe_side():
    with localcontext(prec=60):
        assert Decimal(2).ln() < Decimal(LN2.numerator) / LN2.denominator < Decimal(2).ln() * (1 + Decimal("1e-36"))
        root = (2 * Decimal("3.14159265358979323846264338327950288419716939937510582")).sqrt()
        assert root * (1 - Decimal("1e-36")) < Decimal(ROOT_2PI.numerator) / ROOT_2PI.denominator < root
