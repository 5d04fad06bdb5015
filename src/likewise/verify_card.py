"""Proves the guarantee of a scorecard, and its scores on a CSV file, without likewise: one file, standard library only.

    python verify_card.py card.json [people.csv]

The card is what ``model.to_json()`` writes. Its numbers are read as exact fractions, and the conditions of the theorem
are checked on them (`docs/theory.md` §11, §17). Exit code 0: proven; 1: not proven, with the reason; 2: no such file.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from bisect import bisect_right
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

LN2 = Fraction("0.69314718055994530941723212145817656808")  # rounded up
ROOT_2PI = Fraction("2.50662827463100050241576528481104525300")  # rounded down
UNITS = {"logistic": Fraction(4), "softmax": Fraction(2), "probit": ROOT_2PI, "clip": Fraction(1)}
BOUNDS = {"logistic": "tanh(D)", "softmax": "tanh(D)", "probit": "erf(sqrt(pi) D / 2)", "clip": "min(1, D)"}
ENTRIES = {  # of each part of a card: those that it must have, and those that it may have
    "card": ("bits classes columns format guarantee input intercept link metric model outcome output_range scale", ""),
    "column of numbers": ("column knots missing points", "order special"),
    "special code": ("points value", ""),
    "special code of the metric": ("value weight", ""),
    "column of categories": ("categories column unseen", ""),
    "category": ("points value", "type"),
    "metric": ("columns p", "absent"),
    "column of the metric": ("column kind missing weight", "categories distances order special unit zero_reason"),
    "guarantee": ("bound statement used", ""),
    "scale": ("base_odds base_score points_to_double", ""),
}
MISSING = "#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|nan|null|"
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
SPACE = " \t\n\r\x0b\x0c"  # around a number
LARGEST = 10**100  # of a number that a model takes
TOLERANCE = 1e-12  # of the output range, beside the card's own grid: the rounding of a model in double precision
DAMAGE = (KeyError, TypeError, AttributeError, ValueError, OverflowError)


class NotProvenError(Exception):
    """A condition that the card does not meet, or a score that is not the card's."""


class Column(NamedTuple):
    """Points of each function at knots, or of categories; of a missing number, or an unseen one; of special codes."""

    name: str
    knots: list[Fraction]
    values: list[list[Fraction]]
    other: list[Fraction] | None
    levels: Any
    special: dict[Fraction, list[Fraction]]


def need(condition: Any, text: str) -> None:
    """Raise unless a condition holds."""
    if not condition:
        raise NotProvenError(text)


def exact(value: Any, what: str) -> Fraction:
    """A number of the card, as the fraction that it is."""
    need(type(value) in (int, float) and abs(value) < math.inf, f"{what}: {value!r} must be a finite number.")
    return Fraction(value)


def check_entries(part: Any, what: str) -> None:
    """Raise unless a part of the card has its entries and no others, which another reader might heed."""
    must, may = (set(names.split()) for names in ENTRIES[what])
    fits = isinstance(part, dict) and must <= {*part} <= must | may
    need(fits, f"A {what} must have the entries {', '.join(sorted(must))}.")


def load(text: str) -> Any:
    """The card in a JSON text; an entry given twice is refused, as readers differ on which one counts."""

    def once(entries: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(entries)
        need(len(found) == len(entries), f"An entry is given twice: {', '.join(name for name, _ in entries)}.")
        return found

    return json.loads(text, object_pairs_hook=once)


def functions(card: Any, value: Any, what: str) -> list[Any]:
    """What each function of the card has: there is one, or one per class where there are several classes."""
    several = card["link"] == "softmax"
    complete = not several or (isinstance(value, list) and len(value) == len(card["classes"]))
    need(complete, f"{what} must have points for each class. Write the card with to_json(), without an outcome.")
    return list(value) if several else [value]


def check_levels(levels: Any, name: str, *, ordered: bool = False) -> None:
    """Raise unless categories are plain values that differ as a model compares them, with a missing one last."""
    values = [level["value"] for level in levels]
    known = values[:-1] if values[-1:] == [None] and not ordered else values
    plain = all(type(value) in (str, int, float, bool) for value in known)
    need(values and plain, f"{name!r} must have categories that are text, numbers or truth values, a missing one last.")
    need(len({text_of(value) for value in known}) == len(known), f"{name!r} has a category twice.")


def typed(level: Any) -> tuple[str, ...]:
    """A category, of which 1, 1.0, True and "1" are four."""
    return type(level["value"]).__name__, str(level["value"]), str(level.get("type"))


def read(card: Any) -> list[Column]:
    """The columns of a card."""
    found = []
    for entry in card["columns"]:
        is_number = isinstance(entry, dict) and "knots" in entry
        check_entries(entry, "column of numbers" if is_number else "column of categories")
        name, knots = entry["column"], [exact(knot, entry["column"]) for knot in entry.get("knots", [])]
        need(all(a < b for a, b in pairwise(knots)), f"The knots of {name!r} must rise.")
        if is_number:
            lines, other, levels = functions(card, entry["points"], name), entry["missing"], entry.get("order")
            need(knots and all(len(line) == len(knots) for line in lines), f"{name!r} must have points for each knot.")
        else:
            other, levels = entry["unseen"], entry["categories"]
            for level in levels:
                check_entries(level, "category")
            check_levels(levels, name)
            lines = list(zip(*(functions(card, level["points"], name) for level in levels), strict=True))
            need(other is not None, f"{name!r} must have points for unseen categories.")
        values = [[exact(value, name) for value in line] for line in lines]
        others = None if other is None else [exact(value, name) for value in functions(card, other, name)]
        special = {}
        for code in entry.get("special", []):
            check_entries(code, "special code")
            special[exact(code["value"], name)] = [exact(each, name) for each in functions(card, code["points"], name)]
        need(len(special) == len(entry.get("special", [])), f"{name!r} has a special code twice.")
        need(not special or levels is None, f"{name!r} has special codes, and an order.")
        found.append(Column(name, knots, values, others, levels, special))
    return found


def read_metric(card: Any) -> dict[str, Any]:
    """What the metric says of each column, on the card or not: no part of a distance may be negative."""
    check_entries(card["metric"], "metric")
    found: dict[str, Any] = {}
    absent = card["metric"].get("absent", [])
    none_counts = all(entry["weight"] == 0 and not {"distances", "order", "special"} & {*entry} for entry in absent)
    need(none_counts, "Columns that a table may lack must have the weight 0, and no distances or order.")
    need(card["input"] == "table" or not absent, "An array has all columns.")
    for entry in [*card["metric"]["columns"], *absent]:
        check_entries(entry, "column of the metric")
        name, is_number = entry["column"], entry["kind"] == "numeric"
        need(isinstance(name, str) and name not in found, f"The metric names a column twice: {name!r}.")
        need(is_number or entry["kind"] == "categorical", f"{name!r} must be numeric or categorical.")
        sizes = [entry["weight"], *([] if entry["missing"] is None else [entry["missing"]])]
        need(all(exact(size, name) >= 0 for size in sizes), f"{name!r} must have no negative weights.")
        alien = {"categories", "distances"} if is_number else {"order", "special"}
        need(not alien & {*entry}, f"{name!r} must not have {' or '.join(sorted(alien))}.")
        plain = is_number and entry["missing"] is None and not {"order", "special"} & {*entry}
        need(card["input"] == "table" or plain, f"{name!r}: an array has only numbers, and none is missing.")
        if "order" in entry:
            check_levels(entry["order"], name, ordered=True)
        shares = [[exact(share, name) for share in row] for row in entry.get("distances", [])]
        for i, row in enumerate(shares):
            even = len(row) == len(shares) and all(row[j] == shares[j][i] >= 0 for j in range(i + 1))
            need(even and row[i] == 0, f"The distances of {name!r} must be the same both ways, and 0 to itself.")
        special = {}
        for code in entry.get("special", []):
            check_entries(code, "special code of the metric")
            special[exact(code["value"], name)] = exact(code["weight"], name)
        need(len(special) == len(entry.get("special", [])), f"The metric has a special code of {name!r} twice.")
        need(all(cost > 0 for cost in special.values()), f"{name!r} must have special codes of positive weight.")
        found[name] = entry | {"distances": shares, "special": special}
    return found


def prove(card: Any) -> None:
    """Raise `NotProvenError` unless the score moves by at most ``used * unit * D`` between any two people."""
    check_entries(card, "card")
    need(card["input"] in ("array", "table"), "input must be 'array' or 'table'.")
    columns, p, weights = read(card), card["metric"]["p"], read_metric(card)
    limit = check_claim(card, columns)
    need(type(p) in (int, float) and p == 1, f"p must be 1, so that the distances of the columns add up; it is {p!r}.")
    need(len({column.name for column in columns}) == len(columns), "The card has a column twice.")
    for name, knots, values, other, levels, special in columns:
        need(name in weights, f"{name!r} is on the card and not in the metric.")
        weight, missing, kind, shares = (weights[name][key] for key in ("weight", "missing", "kind", "distances"))
        need(exact(weight, name) > 0, f"{name!r} has the weight 0, so that it must not matter, and is on the card.")
        need((kind == "numeric") == bool(knots), f"{name!r} must be {kind}, as in the metric.")
        listed = weights[name].get("order" if knots else "categories")
        known = None if levels is None else [typed(each) for each in levels if each["value"] is not None]
        same = known == (None if listed is None else [typed(each) for each in listed])
        need(
            same or (not knots and listed is None), f"{name!r} must have the categories of the metric, in their order."
        )
        need(not knots or (other is None) == (missing is None), f"{name!r}: may it be missing, or not?")
        for line, extra in zip(values, other or [], strict=True) if other else ():
            far = max(abs(value - extra) for value in line) if knots else max(*line, extra) - min(*line, extra)
            most = limit * exact(missing if knots else weight, name)
            text = "from a missing number" if knots else "between two categories"
            need(far <= most, f"{name!r}: {float(far):g} points {text}; the metric allows {float(most):g}.")
            points = [*line, extra]
            need(not shares or len(shares) == len(points), f"{name!r} must have distances between all its categories.")
            for i, j in combinations(range(len(shares)), 2):
                near = abs(points[i] - points[j]) <= most * shares[i][j]
                need(near, f"{name!r}: more between two categories than the metric allows.")
        codes = weights[name]["special"]
        need({*special} == {*codes}, f"{name!r} must have points for the special codes of the metric, and no others.")
        states = [(exact(missing, name), other)] if knots and other else []
        states += [(codes[code], points) for code, points in special.items()]
        for (cost, points), (further, others) in combinations(states, 2):
            near = all(abs(a - b) <= limit * max(cost, further) for a, b in zip(points, others, strict=True))
            need(near, f"{name!r}: more between two special codes, or one and a blank, than the metric allows.")
        for cost, points in states:
            near = all(abs(v - own) <= limit * cost for line, own in zip(values, points, strict=True) for v in line)
            need(near, f"{name!r}: more from a special code, or a blank, to a number than the metric allows.")
        for line in values:
            for a, b, c, d in zip(knots, knots[1:], line, line[1:], strict=False):
                steep = abs(d - c) <= limit * Fraction(weight) * (b - a)
                need(steep, f"{name!r} is steeper between {float(a):g} and {float(b):g} than the metric allows.")


def check_claim(card: Any, columns: list[Column]) -> Fraction:
    """Check what the card says of itself; how far its score may move at distance 1, ``used * unit``."""
    link, classes, limits, claim = card["link"], card["classes"], card["output_range"], card["guarantee"]
    check_entries(claim, "guarantee")
    need(card["format"] == 1 and link in UNITS, f"Format {card['format']!r} or link {link!r} is not known.")
    unit, differ = UNITS[link], "the class probabilities differ by at most D(x, x') in total variation"
    if classes is None:
        unit = exact(limits[1], "output_range") - exact(limits[0], "output_range")
        need(link == "clip" and unit > 0 and card["outcome"] is None, "This is not a regression.")
        differ = f"the predictions differ by at most D(x, x') times {float(unit):g}, the width of the output range"
    else:
        need(limits is None and card["outcome"] in classes, "The outcome must be one of the classes.")
        need(len({*map(text_of, classes)}) == len(classes), "The card has a class twice.")
        need(len(classes) > 1 and (len(classes) > 2) == (link == "softmax"), "The link does not fit the classes.")
    statement = f"For any two people x and x', {differ}."
    need(claim["statement"] == statement, f"The statement must be: {statement}")
    need(claim["bound"] == BOUNDS[link], f"The bound must be {BOUNDS[link]}; the card has {claim['bound']!r}.")
    need(0 <= exact(claim["used"], "used") <= 1, f"used must be between 0 and 1; it is {claim['used']!r}.")
    numbers = [exact(value, "intercept") for value in functions(card, card["intercept"], "intercept")]
    lines = [[*c.values, c.other or [], *c.special.values()] for c in columns]
    parts = [max(abs(value) for line in each for value in line) for each in lines]
    base = Fraction(0)
    if card["scale"] is not None:
        check_entries(card["scale"], "scale")
        double, base, odds = (exact(card["scale"][k], k) for k in ("points_to_double", "base_score", "base_odds"))
        need(link == "logistic" and double > 0 and odds > 0, "Points need the link 'logistic' and a positive scale.")
        numbers += [base, *(value for each in lines for line in each for value in line)]
        need(all(number.denominator == 1 for number in numbers), "Points must be whole numbers.")
        unit = 4 * double / LN2
    # Sums of up to 2^53 steps of the grid are exact in double precision; between knots, points are rounded to it.
    step = Fraction(2) ** -card["bits"] if type(card["bits"]) is int and abs(card["bits"]) < 1000 else Fraction(0)
    need(step <= unit / 2**36, f"bits: a grid of 2^-{card['bits']!r} is too coarse; between knots, scores would jump.")
    largest = abs(base) + max(map(abs, numbers)) + sum(parts)
    need(largest <= step * 2**53, f"bits: sums up to {float(largest):g} are rounded on a grid of 2^-{card['bits']!r}.")
    return Fraction(claim["used"]) * unit


def scores(card: Any, person: Any, columns: list[Column] | None = None) -> list[Fraction]:
    """Exact sums of points of one person, a mapping from column to text; one per function."""
    total = [Fraction(value) for value in functions(card, card["intercept"], "intercept")]
    for column in read(card) if columns is None else columns:
        need(column.name in person, f"The table has no column {column.name!r}.")
        total = [a + b for a, b in zip(total, points_of(column, person[column.name]), strict=True)]
    return total


def points_of(column: Column, cell: str) -> list[Fraction]:
    """Points of a cell, of each function."""
    name, knots, values, other, levels, special = column
    if not knots or cell in MISSING.split("|") or not cell.strip():
        place = None if knots else find(cell, levels)
        need(place is not None or other is not None, f"{name!r} is missing, which the card refuses.")
        return list(other or []) if place is None else [line[place] for line in values]
    rank = find(cell, levels) if levels is not None else float(cell) if NUMBER.fullmatch(cell.strip()) else None
    need(rank is not None and abs(rank) <= LARGEST, f"{name!r} has the value {cell!r}, which the card refuses.")
    if rank in special:
        return special[Fraction(rank or 0)]
    x = min(max(Fraction(rank or 0), knots[0]), knots[-1])
    k = min(bisect_right(knots, x), len(knots) - 1)
    share = (knots[k] - x) / (knots[k] - knots[k - 1]) if k else Fraction(0)
    return [line[k] - share * (line[k] - line[k - 1]) for line in values]


def find(cell: str, levels: Any) -> int | None:
    """Position of a category: by its text, or by the number or truth value that the text stands for."""
    known = [None if level["value"] is None else text_of(level["value"]) for level in levels]
    if cell in MISSING.split("|"):
        return known.index(None) if None in known else None
    if text_of(cell) in known:
        return known.index(text_of(cell))
    word = cell.lower()
    if word in ("true", "false"):
        alike = [i for i, text in enumerate(known) if text is not None and text.lower() == word]
        digit = str(int(word == "true"))
        numbers = [i for i, level in enumerate(levels) if type(level["value"]) in (int, float) and known[i] == digit]
        return alike[0] if len(alike) == 1 else numbers[0] if numbers and not alike else None
    if not NUMBER.fullmatch(cell.strip(SPACE)):
        return None
    number = Fraction(cell.strip(SPACE))
    written = str(number.numerator) if number.denominator == 1 else repr(float(number))
    values = [int(level["value"]) if type(level["value"]) is bool else level["value"] for level in levels]
    return next((i for i, v in enumerate(values) if type(v) in (int, float) and text_of(v) == written), None)


def text_of(value: Any) -> str:
    """Text by which categories are compared: whole numbers without a decimal point."""
    if isinstance(value, str):
        written = (value.endswith(".0") or "e+" in value) and value.strip("0123456789.e+-") == ""
        return str(int(float(value))) if written and repr(float(value)) == value else value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def outputs(card: Any, sums: list[Fraction]) -> dict[str, float]:
    """Outputs by the names that `likewise score` gives them."""
    classes, score, points = card["classes"], float(sums[0]), {}
    if classes is None:
        return {"prediction": min(max(score, card["output_range"][0]), card["output_range"][1])}
    if card["link"] == "softmax":
        parts = [math.exp(float(value - max(sums))) for value in sums]
        return {f"p_{label}": part / sum(parts) for label, part in zip(classes, parts, strict=True)}
    if card["scale"] is not None:
        double, base, odds = (card["scale"][k] for k in ("points_to_double", "base_score", "base_odds"))
        points, score = {"points": score}, math.log(odds) + float(sums[0] - Fraction(base)) * math.log(2) / double
    signs = {label: 1 if label == card["outcome"] else -1 for label in classes}
    return points | {f"p_{label}": linked(card["link"], sign * score) for label, sign in signs.items()}


def linked(link: str, score: float) -> float:
    """A probability from a score."""
    if link == "logistic":
        return math.exp(min(score, 0.0)) / (1 + math.exp(-abs(score)))
    return math.erfc(-score * math.sqrt(0.5)) / 2 if link == "probit" else min(1.0, max(0.0, 0.5 + score))


def check_scores(card: Any, path: str | Path) -> tuple[int, int]:
    """Compare the scores in a table with the card's, where it has them; the number of people and scores."""
    people, compared, columns = 0, 0, read(card)
    low, high = card["output_range"] or (0.0, 1.0)
    tolerance = TOLERANCE + 2 * len(columns) * 2.0 ** -card["bits"] / (high - low)
    with open(path, encoding="utf-8-sig", newline="") as file:
        for people, row in enumerate(csv.DictReader(file), 1):
            for name, value in outputs(card, scores(card, row, columns)).items():
                if name in row:
                    far = abs(float(row[name]) - value) / max(high - low, abs(value) if name == "points" else 0.0)
                    need(far <= tolerance, f"Row {people}: {name} is {row[name]}, and the card says {value!r}.")
                    compared += 1
    return people, compared


def damaged(error: Exception) -> str:
    """What to say of a card, or a table, that is not in the form of one."""
    return f"the card or the table is damaged ({type(error).__name__}: {error})."


def main(arguments: list[str]) -> int:
    """Print what was proven, and return the exit code."""
    try:
        card = load(Path(arguments[0]).read_text(encoding="utf-8"))
        prove(card)
        print(f"Proven: {card['guarantee']['statement']} The bound is {card['guarantee']['bound']}.")
        if len(arguments) > 1:
            people, compared = check_scores(card, arguments[1])
            print(f"Scores of {people:,} people computed; {compared:,} in the table are the card's, to {TOLERANCE:g}.")
    except (NotProvenError, *DAMAGE) as problem:
        print(f"Not proven: {problem if isinstance(problem, NotProvenError) else damaged(problem)}")
        return 1
    except (IndexError, OSError) as error:
        print(f"Cannot read the file ({error}). Usage: python verify_card.py card.json [people.csv]")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
