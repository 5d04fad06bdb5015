"""A card is proven from its own numbers, without likewise, and a falsified one is not."""

import copy
import json
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric, WeightedLp, verify_card
from likewise.verify_card import NotProvenError, check_scores, outputs, prove, scores

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


@pytest.mark.parametrize("p", [1.5, 2, 3.7, np.inf])
def test_cards_of_every_exponent_are_proven_and_steeper_ones_are_not(p):
    """Columns are steep together: each alone stays within its limit when one grows a little."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X.sum(axis=1) + 0.1 * rng.normal(size=300) > 0).astype(int)
    model = AdditiveClassifier(WeightedLp([0.2, 0.3, 0.1], p=p), penalty=1e-4, max_knots=4).fit(X, y)
    card = json.loads(model.to_json())
    assert card["guarantee"]["used"] > 0.999
    prove(card)
    entry = card["columns"][0]
    entry["points"] = [1.01 * value for value in entry["points"]]
    assert not proven(card)


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


FALSIFICATIONS = {
    "a slope beyond the metric by a millionth": steeper,
    "a column of numbers doubled": lambda c: column(c, "income").update(
        points=[3 * value for value in column(c, "income")["points"]]
    ),
    "two knots moved together": lambda c: column(c, "income")["knots"].__setitem__(
        1, column(c, "income")["knots"][0] + 1e-9
    ),
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
    "a grid that is none": lambda c: c.update(bits=40.5),
    "a knot lost": lambda c: column(c, "age")["knots"].pop(),
    "numbers called categories": lambda c: weight(c, "income").update(kind="categorical"),
    "a category twice": lambda c: column(c, "region")["categories"].append(column(c, "region")["categories"][0]),
    "an outcome that is no class": lambda c: c.update(outcome=7),
    "a scale of points over log-odds": lambda c: c.update(
        scale={"points_to_double": 20, "base_score": 600, "base_odds": 50}
    ),
}


def test_control_the_card_that_is_falsified_below_is_proven(card):
    prove(card)
    assert len(FALSIFICATIONS) >= 20


@pytest.mark.parametrize("falsify", FALSIFICATIONS.values(), ids=FALSIFICATIONS)
def test_a_falsified_card_is_found(card, falsify, tmp_path, capsys):
    false = copy.deepcopy(card)
    falsify(false)
    (tmp_path / "card.json").write_text(json.dumps(false))
    assert verify_card.main([str(tmp_path / "card.json")]) == 1
    assert capsys.readouterr().out.startswith("Not proven: ")


@pytest.mark.parametrize("sign", [1, -1])
def test_a_card_that_falls_too_steeply_is_found(card, sign):
    """A column of numbers that rises, or falls, by a millionth more than is allowed, and nothing else is steep."""
    false = copy.deepcopy(card)
    false["guarantee"]["used"] = 1.0
    for factor, expected in ((1 - 1e-12, True), (1 + 1e-6, False)):
        column(false, "income").update(knots=[0.0, 10.0], points=[0.0, sign * factor * 4 * 0.02 * 10])
        assert proven(false) == expected


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


def test_categories_are_found_as_the_model_finds_them():
    """Of numbers, truth values and text, written in several ways."""
    values = np.empty(80, dtype=object)
    values[:] = [30, 2.5, "b", None] * 20
    X = pd.DataFrame({"code": pd.Series(values, dtype=object), "yes": [True, False, True, True] * 20})
    model = AdditiveClassifier(TableMetric({}, {"code": 0.5, "yes": 0.2}), penalty=0.1).fit(X, np.arange(80) % 3 % 2)
    card = json.loads(model.to_json())
    texts = [
        ("30", "True"),
        ("30.0", "false"),
        ("030", "TRUE"),
        ("2.5", "1"),
        ("b", "0"),
        ("B", "maybe"),
        ("2.50", "1"),
    ]
    for code, yes in texts:
        person = pd.DataFrame({"code": [code], "yes": pd.Series([yes], dtype=object)})
        found = outputs(card, scores(card, {"code": code, "yes": yes}))
        assert found["p_1"] == pytest.approx(model.predict_proba(person)[0, 1], abs=1e-12), (code, yes)
