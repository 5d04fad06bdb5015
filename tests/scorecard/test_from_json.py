"""A card read from its JSON is the same model, to the last bit, and one that is not proven is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric
from likewise.exceptions import FileError, InvalidInputError


def metric():
    return TableMetric(
        {"income": 0.02, "age": 0.01, "debt": 0.02, "school": 0.05},
        {"region": 0.1, "owner": 0.1, "race": 0.0},
        missing={"debt": 0.3},
        units={"income": "$"},
    )


def table(n=300, seed=0):
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
    y = (0.08 * (X["income"] - 45) - 0.8 * (X["region"] == "south") + rng.logistic(size=n) > 0).astype(int).to_numpy()
    X["school"] = pd.Categorical.from_codes(rng.integers(0, 3, n), ["low", "middle", "high"], ordered=True)
    X["owner"] = rng.random(n) < 0.5
    X.loc[rng.random(n) < 0.1, "region"] = None
    return X, y


def fitted(kind):
    X, y = table()
    if kind == "regression":
        return AdditiveRegressor(metric(), penalty=1e-3).fit(X, 10.0 * y + X["income"])
    labels = np.array(["no", "yes", "maybe"])[y + (X["age"] > 50)] if kind == "several" else y.astype(bool)
    link = kind if kind in ("probit", "clip") else "logistic"
    model = AdditiveClassifier(metric(), penalty=1e-3, link=link).fit(X, labels)
    if kind.startswith("points"):
        return model.in_points(whole_numbers=["age"], outcome=model.classes_[0 if "first" in kind else 1])
    return model


def between(model, X, seed=0):
    """People at knots, next to them, and anywhere between."""
    rng, X = np.random.default_rng(seed), X.copy()
    for shape in model.scorer_.model.shapes:
        name = model.encoder_.names[shape.column]
        if name in ("income", "age", "debt"):
            near = [shape.knots, np.nextafter(shape.knots, 1e9), rng.uniform(shape.knots[0], shape.knots[-1], 99)]
            X[name] = rng.choice(np.concatenate(near), len(X))
    X.loc[::9, "debt"] = np.nan
    X.loc[::11, "region"] = "elsewhere"
    return X


def output(model, X):
    return model.predict(X) if isinstance(model, AdditiveRegressor) else model.predict_proba(X)


@pytest.mark.parametrize(
    "kind", ["logistic", "probit", "clip", "several", "regression", "points", "points of the first class"]
)
def test_a_card_that_is_read_back_has_the_same_bits(kind, tmp_path):
    model = fitted(kind)
    model.to_json(tmp_path / "card.json")
    read = type(model).from_json(tmp_path / "card.json")
    X = between(model, table(500, 1)[0])

    assert (output(read, X) == output(model, X)).all()
    assert (output(read, X.drop(columns="race")) == output(model, X)).all()
    assert read.to_json() == model.to_json()
    assert read.guarantee_.statement == model.guarantee_.statement
    assert read.scorecard().equals(model.scorecard())
    assert read.explain(X).equals(model.explain(X))
    if kind.startswith("points"):
        assert read.to_sql() == model.to_sql()


GROUPS = {"region": {"within": 0.2, "groups": [["north", "west"], ["south", "island"]]}}
SHAPES = {
    "groups": {"groups": GROUPS},
    "one group": {"groups": {"region": {"within": 0.3, "groups": [["north", "west", "south"]]}}},
    "matrix": {"distances": {"region": {"north": {"south": 8, "west": 4}, "west": {"south": 6}}}},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["logistic", "several", "regression", "points"])
def test_distances_between_categories_are_read_back(kind, shape, monkeypatch):
    shaped = metric().with_params(zero_reasons={"race": "protected"}, **SHAPES[shape])
    monkeypatch.setattr(f"{__name__}.metric", lambda: shaped)
    model = fitted(kind)
    read = type(model).from_json(model.to_json())
    X = between(model, table(300, 1)[0])
    assert (output(read, X) == output(model, X)).all()
    assert read.to_json() == model.to_json()
    assert read.guarantee_.metric.zero_reasons == {"race": "protected"}
    people = X[list(shaped.columns)]
    here, there = (each.guarantee_.metric.pairwise(people[:40]) for each in (read, model))
    assert (here == there).all()
    plain = shaped.with_params(groups={}, distances={}).pairwise(people[:40])
    assert (here < plain - 0.01).any()  # control: the shape counts


@pytest.mark.parametrize("blanks", [True, False])
def test_distances_of_a_column_that_is_off_the_card_are_read_back(blanks):
    """Whole points leave a column out that moves nobody by half a point; the metric still has its categories."""
    X, y = table()
    X = X[["income", "region"]].assign(region=X["region"] if blanks else X["region"].fillna("north"))
    shaped = TableMetric({"income": 0.02}, {"region": 0.1}, groups={"region": GROUPS["region"]})
    card = AdditiveClassifier(shaped, penalty={"income": 1e-3, "region": 1e9}).fit(X, y).in_points()
    assert [entry["column"] for entry in json.loads(card.to_json())["columns"]] == ["income"]
    read = AdditiveClassifier.from_json(card.to_json())
    assert read.to_json() == card.to_json()
    people = pd.DataFrame({"income": 30.0, "region": ["north", "west", "south", "island", None, "elsewhere"]})
    here, there = (each.guarantee_.metric.pairwise(people) for each in (read, card))
    assert (here == there).all()
    assert here[0, 1] < here[0, 2]  # control: the groups count


def test_columns_of_weight_0_that_training_lacked_are_known():
    described = metric().with_params(zero_reasons={"race": "protected"})
    X, score = table(300)
    model = AdditiveRegressor(described, penalty=1e-3).fit(X.drop(columns="race"), score)
    read = AdditiveRegressor.from_json(model.to_json())

    assert (read.predict(X) == model.predict(X.drop(columns="race"))).all()
    assert read.to_json() == model.to_json()
    assert read.guarantee_.metric.zero_reasons == {"race": "protected"}
    with pytest.raises(InvalidInputError, match="wealth"):  # control: not any other column
        read.predict(X.assign(wealth=0.0))
    for change in ({"weight": 0.1}, {"order": [{"value": "x"}]}, {"column": "age"}):
        card = json.loads(model.to_json())
        card["metric"]["absent"][0] |= change
        with pytest.raises(InvalidInputError, match=r"weight 0|twice"):
            AdditiveRegressor.from_json(json.dumps(card))


def test_either_outcome_is_the_same_model():
    model = fitted("logistic")
    X = table(100, 2)[0]

    for label in model.classes_.tolist():
        read = AdditiveClassifier.from_json(model.to_json(outcome=label))
        assert (read.predict_proba(X) == model.predict_proba(X)).all()


def test_control_another_grid_has_other_bits():
    model = fitted("logistic")
    card = json.loads(model.to_json())
    card["bits"] -= 4
    X = between(model, table(500, 1)[0])

    assert (AdditiveClassifier.from_json(json.dumps(card)).predict_proba(X) != model.predict_proba(X)).any()


def test_what_cannot_be_read_is_refused_in_one_line(tmp_path):
    model = fitted("several")
    card = json.loads(model.to_json())
    card["columns"][0]["points"][0][0] += 9.0
    with pytest.raises(InvalidInputError, match=r"steeper between .* than the metric allows"):
        AdditiveClassifier.from_json(json.dumps(card))
    with pytest.raises(InvalidInputError, match="between knots, scores would jump"):
        AdditiveClassifier.from_json(json.dumps(json.loads(model.to_json()) | {"bits": 10}))
    with pytest.raises(InvalidInputError, match=r"Use AdditiveClassifier\.from_json"):
        AdditiveRegressor.from_json(model.to_json())
    with pytest.raises(InvalidInputError, match="points for each class"):
        AdditiveClassifier.from_json(model.to_json(outcome="yes"))
    with pytest.raises(InvalidInputError, match="must have the entries"):
        AdditiveClassifier.from_json("{}")
    with pytest.raises(FileError, match="not JSON"):
        AdditiveClassifier.from_json('{"format": ')
    with pytest.raises(FileError, match="No such file"):
        AdditiveClassifier.from_json(tmp_path / "nothing.json")


def points_by_table(card, X):
    """Points of people by the rows of the printed table alone."""
    total = np.full(len(X), float(card.loc[card["column"] == "base points", "points"].iloc[0]))
    for name in card["column"].unique()[1:]:
        rows, cells = card[card["column"] == name], X[name]
        by_range = rows.set_index(rows["range"].astype(str))
        if "any other" in by_range.index:
            text = cells.map(lambda value: "missing" if pd.isna(value) else str(value))
            total += text.map(lambda value, at=by_range: at["points"].get(value, at["points"]["any other"]))
            continue
        lines = [row for row in rows.itertuples() if " to " in str(row.range) and not str(row.range).startswith("up")]
        ends = [str(row.range).split(" to ") for row in lines]
        rank = {"low": 0, "middle": 1, "high": 2}
        knots = [rank[a] if a in rank else float(a) for a in [ends[0][0], *(end[1] for end in ends)]]
        values = [lines[0].points, *(row[4] for row in lines)]
        x = cells.astype(str).map(rank).astype(float) if name == "school" else cells.astype(float)
        at = np.interp(x.fillna(0.0), knots, values)
        total += np.where(x.isna(), by_range["points"].get("missing", np.nan), at)
    return total


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_the_printed_table_of_whole_points_is_enough_to_score(kind, tmp_path):
    card, path = fitted("points"), tmp_path / f"card.{kind}"
    X = table(300, 3)[0]
    if kind == "csv":
        card.to_csv(path)
        printed = pd.read_csv(path)
    else:
        pytest.importorskip("openpyxl")
        card.to_excel(path)
        printed = pd.read_excel(path)

    assert np.allclose(points_by_table(printed, X), card.explain(X)["points"], rtol=0, atol=1e-9)
    assert not np.allclose(points_by_table(printed.assign(points=printed["points"] + 1), X), card.explain(X)["points"])
