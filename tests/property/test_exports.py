"""One property over everything that leaves the library: an export gives the model's score, or none.

SQL in two databases, ONNX, JSON and the independent checker are asked about the people of the catalogue, and about
values spelt in every way that somebody might. A score that is missing (NULL, NaN or an error) is a refusal; where the
values are of the types that the export is documented to take, it must not refuse.
"""

import contextlib
import copy
import json
import math
import sqlite3
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import likewise as lw
from catalogue import ADDITIVE, FORMS, METRICS, MODELS, Cell, accepts, covering, fit, persons, strangers
from likewise import verify_card
from likewise.exceptions import InvalidInputError, LikewiseError
from promised import falsified
from property.promises import SAME

duckdb = pytest.importorskip("duckdb")
onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
runtime.set_default_logger_severity(4)

REFUSED = None
CLOSE = 1e-12


# -- exports: from a model and people, to each one's outputs (None if refused) and values, as the export holds them ----


def of_model(model, person):
    """The model's outputs for one person, or None where it refuses."""
    names = [name for name in model.feature_names_in_ if name in person]
    frame = pd.DataFrame({name: pd.Series([person[name]], dtype=object) for name in names})
    try:
        return outputs_of(model, frame)[0]
    except LikewiseError:
        return REFUSED


def outputs_of(model, table):
    values = model.predict_proba(table) if hasattr(model, "classes_") else model.predict(table)
    return np.asarray(values, dtype=float).reshape(len(table), -1)


SQL_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", Decimal: "DECIMAL(18, 4)", str: "VARCHAR"}


def sql_type(value, column, model):
    """What a database declares for a value; a blank is in a column of the type that the model was fitted to."""
    if value is not None:
        return SQL_TYPES[type(value)]
    levels = model.encoder_.columns[model.encoder_.names.index(column)]
    known = getattr(levels, "levels", None) or levels.categories or (0.5,)
    return SQL_TYPES.get(type(known[0]), "VARCHAR")


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def in_database(model, people, connect):
    """Scores and people as a database holds them, in tables whose columns have the types of their values."""
    queries, columns = [model.to_sql(label) for label in labels_of(model)], model.encoder_.names
    groups, found = {}, [None] * len(people)
    for i, person in enumerate(people):
        types = tuple((name, sql_type(value, name, model)) for name, value in person.items() if name in columns)
        groups.setdefault(types, []).append((i, [person[name] for name, _ in types]))
    with contextlib.closing(connect()) as connection:
        for types, rows in groups.items():
            together = answers(connection, queries, types, rows)
            each = together or [(answers(connection, queries, types, [row]) or [None])[0] for row in rows]
            for (i, _), row in zip(rows, each, strict=True):
                scores = REFUSED if row is None or None in row[: len(queries)] else np.array(row[: len(queries)])
                held = people[i] if row is None else dict(zip([n for n, _ in types], row[len(queries) :], strict=True))
                found[i] = scores, held
    return found


def answers(connection, queries, types, rows):
    """Rows of scores and values; None if the database refuses any of them."""
    names = [quoted(name) for name, _ in types]
    declared = ", ".join(f"{name} {kind}" for name, (_, kind) in zip(names, types, strict=True))
    marks = ", ".join("?" * (len(names) + 1))
    try:
        connection.execute("DROP TABLE IF EXISTS people")
        connection.execute(f"CREATE TABLE people (place_ BIGINT, {declared})")
        connection.executemany(f"INSERT INTO people VALUES ({marks})", [[i, *map(storable, row)] for i, row in rows])
        return connection.execute(f"SELECT {', '.join(queries + names)} FROM people ORDER BY place_").fetchall()
    except duckdb.BinderException:  # whatever the values
        return [(None,) * len(queries) + tuple(row) for _, row in rows]
    except (duckdb.Error, sqlite3.Error):
        return None


def storable(value):
    return str(value) if isinstance(value, Decimal) else value  # the column has a numeric type


def labels_of(model):
    """What `to_sql` is asked for: every class, or one score."""
    if not hasattr(model, "classes_") or model.scorer_.scale:
        return [None]
    return model.classes_.tolist()


def in_points(model, values):
    """Outputs, or the points of a card in whole points, which are what its SQL computes."""
    if values is REFUSED or not model.scorer_.scale:
        return values
    scale = model.scorer_.scale
    h = values[model.scorer_.position]
    log_odds = math.log(h / (1 - h)) - math.log(scale["base_odds"])
    return np.array([scale["base_score"] + log_odds * scale["points_to_double"] / math.log(2)])


def sqlite():
    return sqlite3.connect(":memory:")


def in_onnx(model, people):
    session = runtime.InferenceSession(model.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    found = []
    for person in people:
        texts = [each.name for each in session.get_inputs() if "string" in each.type]
        held = person | {name: str(person[name]) for name in texts if person[name] is not None}
        try:
            given = {each.name: fed(held, each, model) for each in session.get_inputs()}
        except (TypeError, ValueError):
            found.append((REFUSED, person))
            continue
        named = dict(zip([each.name for each in session.get_outputs()], session.run(None, given), strict=True))
        row = named.get("probabilities", named.get("prediction"))[0]
        found.append((REFUSED if np.isnan(row).any() else row, held))
    return found


def fed(person, each, model):
    """A value as the graph takes it: text, in which a blank is empty, or a number, in which it is NaN."""
    if each.name == "X" and each.shape[1] != 1:
        return np.array([[person[name] for name in model.encoder_.names]], dtype=float)
    value = person[each.name]
    if "string" in each.type:
        return np.array([["" if value is None else value]], dtype=object)
    if isinstance(value, str):
        raise TypeError("text, where the graph takes numbers")
    return np.array([[math.nan if value is None else float(value)]])


def in_json(model, people):
    again = type(model).from_json(model.to_json())
    return [(of_model(again, person), person) for person in people]


def in_checker(model, people):
    card = verify_card.load(model.to_json())
    verify_card.prove(card)
    found, names = [], [f"p_{label}" for label in card["classes"]] if card["classes"] else ["prediction"]
    for person in people:
        cells = {name: "" if value is None else str(value) for name, value in person.items()}
        try:
            named = verify_card.outputs(card, verify_card.scores(card, cells))
            scores = np.array([named[name] for name in names])
        except verify_card.NotProvenError:
            scores = REFUSED
        missing = verify_card.MISSING.split("|")  # as `likewise score` reads a file
        found.append((scores, {name: None if text in missing else text for name, text in cells.items()}))
    return found


EXPORTS = {
    "DuckDB": (lambda m, people: in_database(m, people, duckdb.connect)),
    "SQLite": (lambda m, people: in_database(m, people, sqlite)),
    "ONNX": in_onnx,
    "JSON": in_json,
    "checker": in_checker,
}


def disagreements(export, model, people):
    """People of whom the export gives another score than the model, and those whom it refuses and the model does not.

    The model is asked about people as the export holds them: SQLite has no booleans, and a CSV file has only text.
    """
    wrong, refused = [], []
    for person, (found, held) in zip(people, EXPORTS[export](model, people), strict=True):
        expected = of_model(model, held)
        expected = in_points(model, expected) if export in ("DuckDB", "SQLite") else expected
        if found is REFUSED:
            refused += [person] if expected is not REFUSED else []
        elif expected is REFUSED or not np.allclose(found, expected, rtol=CLOSE, atol=CLOSE):
            wrong.append((person, found, expected))
    return wrong, refused


def plain(value):
    return value.item() if isinstance(value, np.generic) else str(value) if isinstance(value, pd.Interval) else value


# -- the catalogue -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExportCell:
    """An additive model, how it came about, its metric, the form it was fitted to and is asked in, and an export."""

    model: str
    way: str
    metric: str
    given: str
    asked: str
    export: str

    def __str__(self):
        return " | ".join(vars(self).values())

    @property
    def cell(self):
        return Cell(self.model, "none", self.way, self.metric, self.given, SAME)

    @property
    def is_possible(self):
        if self.export in ("DuckDB", "SQLite", "ONNX") and self.model == "additive, probit":
            return False
        if self.metric == "intervals of the table" and (self.way != "fit" or self.export in ("JSON", "checker")):
            return False  # categories of other types than text, numbers and booleans are refused in files
        if self.way == "whole points" and MODELS[self.model].promise != "logistic":
            return False
        return self.cell.is_possible and self.given != "array" and accepts(self.asked, self.metric, given=False)


READ_OTHERWISE = [
    "all text",
    "codes as 2.0",
    "codes of several types",
    "whole numbers as floats",
    "objects",
    "decimals",
]
"""Forms in which values are of other types; those that only move columns are the model's concern."""

FACTORS = {
    "model": [name for name, entry in MODELS.items() if entry.card],
    "way": ["fit", "saved and loaded", "JSON", "whole points"],
    "metric": [name for name in METRICS if name not in ADDITIVE["refuses"]],
    "given": [SAME, "columns reversed", "nullable dtypes", "category dtype", "ordered dtype", *READ_OTHERWISE],
    "asked": [SAME, "hidden columns dropped", "negative zero", "category dtype", *READ_OTHERWISE],
    "export": list(EXPORTS),
}
CELLS, N_PAIRS = covering(2, factors=FACTORS, make=ExportCell)


def of_cell(cell, n=16):
    """People of a form, one per row, as the values that it holds."""
    entry = METRICS[cell.metric]
    table = strangers(cell.metric, 5)
    table = FORMS[cell.asked](table.iloc[np.random.default_rng(0).permutation(len(table))[:n]], entry)
    needed = fit(cell.cell).model.required_features_
    return [{name: plain(value) for name, value in each.items() if name in needed} for each in persons(table)]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_an_export_gives_the_score_of_the_model_or_none(cell):
    model, people = fit(cell.cell).model, of_cell(cell)
    if cell.export == "ONNX" and not model.scorer_.model.shapes:
        with pytest.raises(InvalidInputError, match="at least one column"):
            model.to_onnx()
        return
    wrong, refused = disagreements(cell.export, model, people)
    assert wrong == []
    if cell.given == cell.asked == SAME or cell.export in ("JSON", "checker"):
        assert refused == []


@pytest.mark.parametrize("export", EXPORTS)
def test_control_an_export_of_another_model_is_found(export, monkeypatch):
    """One point of one category is moved by 1e-6 in the model, and not in its export."""
    cell = ExportCell("additive", "fit", "table", SAME, SAME, export)
    model, people = fit(cell.cell).model, of_cell(cell)
    ask = EXPORTS[export]
    moved = copy.copy(model)
    shapes = [replace(s, values=s.values + (1e-6 if s.knots is None else 0)) for s in model.scorer_.model.shapes]
    moved.scorer_ = falsified(model.scorer_, model=replace(model.scorer_.model, shapes=tuple(shapes)))
    monkeypatch.setitem(EXPORTS, export, lambda m, people: ask(model, people))
    assert disagreements(export, model, people) == ([], [])
    assert len(disagreements(export, moved, people)[0]) == len(people)


# -- values, spelt in every way ----------------------------------------------------------------------------------------

LEVELS = {
    "integers": [2, 7, 30, 0],
    "integers with blanks": [2, 7, 30, None],
    "floats": [2.0, 7.0, 2.5, None],
    "text of numbers": ["2", "7", "030", "0"],
    "text with blanks": ["2", "7", "-1", None],
    "large numbers as text": ["10000000000000000", "10000000000000000000000", "2"],
    "booleans": [True, False],
    "booleans with blanks": [True, False, None],
    "words": ["True", "false", "maybe"],
    "words twice": ["True", "TRUE", "no"],
    "words and blanks": ["None", "nan", "b", None],
    "odd text": ["it's", 'say "x"', "a;b", "--", "line\nbreak", "ü", "ﬁ", "%_", "\\", "é", "e\u0301", " b"],
}
SPELT = [2, 7, 30, 0, 1, 3, -1, 2.0, 7.0, 0.0, -0.0, 1.0, 2.5, 2.0000000000000004, 1e16, 1e22, 1e300, True, False, None]
SPELT += [
    "2",
    "2.0",
    "2.00",
    " 2 ",
    "02",
    "+2",
    "2e0",
    "2E0",
    "20e-1",
    "0.2e1",
    "\t2",
    "\xa02",
    "2_0",
    "٢",
    "30",
    "030",
]
SPELT += ["0", "-0", "-0.0", "0.0", "1", "1.0", "01", "-1", "-1.0", "2.5", "2.50", "25e-1", "1e+16", "1e+22", "1.0e+16"]
SPELT += ["10000000000000000", "True", "TRUE", "true", "tRUE", " true", "true ", "False", "FALSE", "false"]
SPELT += ["fal\u017fe"]
SPELT += ["", " ", "nan", "NaN", "None", "none", "null", "NULL", "inf", "b", "B", "maybe", "never", "untrue", "t", "f"]
SPELT += [
    "it's",
    "it''s",
    'say "x"',
    "a;b",
    "--",
    "line\nbreak",
    "line",
    "ü",
    "u\u0308",
    "ﬁ",
    "fi",
    "%_",
    "x%",
    "\\",
    "\\\\",
]
SPELT += [" b", "b ", "é", "e\u0301", Decimal(2), Decimal("2.00"), Decimal("2.50"), Decimal("30.0"), Decimal(1)]
ODD_NAMES = ["x", 'a "b"', "it's", "select", "a;b--", "line\nbreak", "ü ß", "%s", ":x", "?", "[x]", "`x`", "A B", "0"]


@lru_cache
def card_of(levels, name="code"):
    """A card with a column of these categories, each with points of its own."""
    values = LEVELS[levels]
    column = pd.Series([values[i % len(values)] for i in range(240)], dtype=object, name=name)
    if None not in values:
        column = column.infer_objects()
    steps = np.arange(240) % len(values)
    metric = lw.TableMetric({"age": 0.01}, {name: 0.9})
    X = pd.DataFrame({"age": np.arange(240) % 50, name: column})
    y = np.random.default_rng(0).random(240) < (1 + steps) / (2 + len(values))
    model = lw.AdditiveClassifier(metric, penalty=1e-4).fit(X, y.astype(int))
    values = model.scorer_.model.shapes[-1].all_values
    assert len(np.unique(values)) == values.size  # another category is another score
    return model


def takes(export, levels, value):
    """Whether a value is of a type that the export is documented to take for such categories."""
    if export in ("JSON", "checker"):
        return True
    numbers = all(isinstance(each, (int, float)) for each in LEVELS[levels] if each is not None)
    if isinstance(LEVELS[levels][0], bool):
        return value is None or isinstance(value, bool)
    if numbers:
        return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
    return value is None or value in LEVELS[levels] or value in ("2.0", "B", "never")


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("export", EXPORTS)
def test_a_category_is_the_same_in_an_export_however_it_is_spelt(export, levels):
    model = card_of(levels)
    spelt = [value for value in SPELT if not (export == "ONNX" and value == "")]  # where empty text is a blank
    people = [{"age": 30, "code": value} for value in spelt]
    wrong, refused = disagreements(export, model, people)
    assert wrong == []
    assert [person["code"] for person in refused if takes(export, levels, person["code"])] == []


def test_control_spellings_that_count_as_others_are_found(monkeypatch):
    """An export that compares the text of values as it stands gives other scores."""
    naive = lw.kernel.columns.LevelIndex
    monkeypatch.setattr(naive, "texts", lambda self: {text: int(place) for text, place in self._known.items()})
    for export in ("DuckDB", "SQLite", "ONNX"):
        for levels, value in (("text of numbers", "2.0"), ("words", "FALSE")):
            wrong, refused = disagreements(export, card_of(levels), [{"age": 30, "code": value}])
            assert wrong or refused, (export, levels)


@pytest.mark.parametrize("export", EXPORTS)
def test_names_of_columns_are_quoted(export):
    for name in ODD_NAMES:
        model = card_of("text of numbers", name)
        people = [{"age": age, name: value} for age in (3, 30) for value in ("2", "7", "new")]
        wrong, refused = disagreements(export, model, people)
        assert (name, wrong, refused) == (name, [], [])


NUMBERS = [3, 3.5, -0.0, 0, 49, 1e99, -1e99, 1e101, -1e101, math.inf, -math.inf, 5e-324, np.nextafter(3, 4), None]
NUMBERS += ["3", " 3 ", "3.5", "03", "", " ", "abc", "1e1", "nan", "1_0", "inf", Decimal("3.50"), True, 10**18]


@pytest.mark.parametrize("missing", ["refuse", "category"])
@pytest.mark.parametrize("export", EXPORTS)
def test_a_number_is_the_same_in_an_export_however_it_is_held(export, missing):
    X = pd.DataFrame({"age": np.arange(200) % 50, "job": ["a", "b"] * 100})
    if missing == "category":
        X["age"] = X["age"].astype(float).mask(np.arange(200) % 7 == 0)
    y = (np.random.default_rng(0).random(200) < X["age"].fillna(70) / 60).astype(int)
    model = lw.AdditiveClassifier(lw.TableMetric({"age": 0.02}, {"job": 0.1}, missing=missing), penalty=1e-3).fit(X, y)
    wrong, refused = disagreements(export, model, [{"age": plain(value), "job": "a"} for value in NUMBERS])
    assert wrong == []
    taken = [each["age"] for each in refused if type(each["age"]) in (int, float, type(None))]
    assert taken == []


# -- the verdict of the checker ----------------------------------------------------------------------------------------


def broken_by(card):
    """Columns of a card in which two people differ by more than the card says, by its own words; p = 1."""
    found, limits, scale = [], card["output_range"], card["scale"]
    unit = {"logistic": Fraction(4), "softmax": Fraction(2), "clip": Fraction(1)}[card["link"]]
    if limits:
        unit = Fraction(limits[1]) - Fraction(limits[0])
    elif scale:
        unit = 4 * Fraction(scale["points_to_double"]) / Fraction(Decimal(2).ln(Context(prec=50)))
    metric = {entry["column"]: entry for entry in card["metric"]["columns"]}
    for entry in card["columns"]:
        about = metric[entry["column"]]
        for k in range(len(card["classes"])) if card["link"] == "softmax" else [None]:
            for a, b in combinations(states_of(entry, k), 2):
                allowed = Fraction(card["guarantee"]["used"]) * unit * apart(a[0], b[0], about)
                if abs(Fraction(a[1]) - Fraction(b[1])) > allowed:
                    found.append((entry["column"], a, b))
    return found


def states_of(entry, function):
    """What somebody can be in a column, with the points of one function."""

    def of(points):
        return points if function is None else points[function]

    if "knots" not in entry:
        known = [(level["value"], of(level["points"])) for level in entry["categories"]]
        return [*known, (Ellipsis, of(entry["unseen"]))]
    blank = [] if entry["missing"] is None else [(None, of(entry["missing"]))]
    blank += [(("code", code["value"]), of(code["points"])) for code in entry.get("special", ())]
    if "order" not in entry:
        return [*zip(entry["knots"], of(entry["points"]), strict=True), *blank]
    levels, lines = [each["value"] for each in entry["order"]], (entry["knots"], of(entry["points"]))
    return [*((level, between(Fraction(i), *lines)) for i, level in enumerate(levels)), *blank]


def between(x, knots, points):
    """The value of a line through knots, constant outside."""
    knots, points = [*map(Fraction, knots)], [*map(Fraction, points)]
    x = min(max(x, knots[0]), knots[-1])
    for a, b, c, d in zip(knots, knots[1:], points, points[1:], strict=False):
        if a <= x <= b:
            return c + (d - c) * (x - a) / (b - a)
    return points[0]


def apart(a, b, about):
    """Distance between two states of a column, as the metric of the card has it; unseen is `...`."""
    weight = Fraction(about["weight"])
    if about["kind"] == "categorical":
        if "distances" not in about:
            return weight
        names = [each["value"] for each in about["categories"]]
        place = [
            len(about["distances"]) - 1 if x is Ellipsis else len(names) if x is None else names.index(x)
            for x in (a, b)
        ]
        return weight * Fraction(about["distances"][place[0]][place[1]])
    costs = {None: about["missing"]} | {("code", each["value"]): each["weight"] for each in about.get("special", ())}
    if a in costs or b in costs:
        return max(Fraction(costs.get(each) or 0) for each in (a, b))
    if "order" in about:
        ranks = [each["value"] for each in about["order"]]
        a, b = ranks.index(a), ranks.index(b)
    return weight * abs(Fraction(a) - Fraction(b))


def proven(card):
    try:
        verify_card.prove(verify_card.load(json.dumps(card)))
    except (verify_card.NotProvenError, *verify_card.DAMAGE):
        return False
    return True


def forged(card, rng):
    """A card in which one number, order or category was changed at random, by a little or by much."""
    card = copy.deepcopy(card)
    entry = card["columns"][int(rng.integers(len(card["columns"])))]
    about = next(each for each in card["metric"]["columns"] if each["column"] == entry["column"])
    size = float(rng.choice([0.1, 0.9, 0.999999, 1.0, 1.000001, 2.0, 9.0, -1.0]))
    several = card["link"] == "softmax"
    changes = {
        "weight": lambda: about.update(weight=about["weight"] * size),
        "used": lambda: card["guarantee"].update(used=min(1.0, card["guarantee"]["used"] * abs(size))),
    }
    if about["missing"] and "knots" in entry:
        changes["missing"] = lambda: about.update(missing=about["missing"] * abs(size))
    if "special" in entry:
        k = int(rng.integers(len(entry["special"])))
        code, cost = entry["special"][k], about["special"][k]
        changes["special"] = lambda: cost.update(weight=cost["weight"] * abs(size))
        changes["code"] = lambda: rng.choice([code, cost]).update(value=code["value"] + size)
        if not (card["scale"] or several):
            changes["points of a code"] = lambda: code.update(points=code["points"] * size)
    if "distances" in about:
        i, j = rng.choice(len(about["distances"]), 2, replace=False)
        moved = abs(size) * about["distances"][i][j]
        changes["distances"] = lambda: [about["distances"][a].__setitem__(b, moved) for a, b in ((i, j), (j, i))]
    if "order" in entry:
        place = rng.permutation(len(entry["order"]))
        changes["order"] = lambda: entry.update(order=[entry["order"][i] for i in place])
        changes["both orders"] = lambda: [
            each.update(order=[entry["order"][i] for i in place]) for each in (about, entry)
        ]
    elif len(entry.get("knots", ())) > 1:
        k = int(rng.integers(len(entry["knots"]) - 1))
        near = entry["knots"][k + 1] - min(abs(size), 1.0) * (entry["knots"][k + 1] - entry["knots"][k])
        changes["knots"] = lambda: entry["knots"].__setitem__(k, near)
    if not card["scale"]:
        # Of one function, where there are several.
        lines = entry["points"] if "knots" in entry else [level["points"] for level in entry["categories"]]
        line = (lines[0] if several else lines) if "knots" in entry else [p[0] if several else p for p in lines]
        k = int(rng.integers(len(line)))
        moved = line[0] + size * (line[k] - line[0]) + (0.1 if size == 1 else 0.0)

        def move():
            if "knots" in entry:
                line[k] = moved
            else:
                level = entry["categories"][k]
                level["points"] = [moved, *level["points"][1:]] if several else moved

        changes["points"] = move
    changes[str(rng.choice([*changes]))]()
    return card


CARDS = [cell for cell in CELLS if cell.export == "checker" and MODELS[cell.model].promise != "probit"]


@pytest.mark.parametrize("cell", CARDS, ids=str)
def test_the_verdict_of_the_checker_is_that_of_the_oracle(cell):
    card, rng = json.loads(fit(cell.cell).model.to_json()), np.random.default_rng(7)
    assert broken_by(card) == []
    assert proven(card)
    for _ in range(25 if card["columns"] else 0):
        other = forged(card, rng)
        assert proven(other) == (is_metric(other) and not broken_by(other))


def is_metric(card):
    """Whether the metric of a card has no negative weights, and the orders of its columns are those of the card."""
    about = {each["column"]: each for each in card["metric"]["columns"]}
    same = all(about[entry["column"]].get("order") == entry.get("order") for entry in card["columns"])
    codes = [
        [{c["value"] for c in part.get("special", ())} for part in (e, about[e["column"]])] for e in card["columns"]
    ]
    return same and all(a == b for a, b in codes) and all(each["weight"] >= 0 for each in about.values())


def test_control_the_forger_makes_cards_of_both_verdicts():
    rng, verdicts = np.random.default_rng(7), []
    for cell in CARDS[:5]:
        card = json.loads(fit(cell.cell).model.to_json())
        verdicts += [proven(forged(card, rng)) for _ in range(40)]
    assert 40 < sum(verdicts) < 160
