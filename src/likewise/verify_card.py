"""Proves the guarantee of a scorecard, and its scores on a CSV file, without likewise: one file, standard library only.

    python verify_card.py card.json [people.csv]

The card is what ``model.to_json()`` writes. Its numbers are read as exact fractions, and the conditions of the theorem
are checked on them (`docs/theory.md` §11, §17). Exit code 0: proven; 1: not proven, with the reason; 2: no such file.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from bisect import bisect_right
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

LN2 = Fraction("0.69314718055994530941723212145817656808")  # rounded up
ROOT_2PI = Fraction("2.50662827463100050241576528481104525300")  # rounded down
UNITS = {"logistic": Fraction(4), "softmax": Fraction(2), "probit": ROOT_2PI, "clip": Fraction(1)}
BOUNDS = {"logistic": "tanh(D)", "softmax": "tanh(D)", "probit": "erf(sqrt(pi) D / 2)", "clip": "min(1, D)"}
ENTRIES = ["bits", "classes", "columns", "format", "guarantee", "input", "intercept", "link", "metric", "model"]
ENTRIES += ["outcome", "output_range", "scale"]
MISSING = "#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|nan|null|"
TOLERANCE = 1e-12  # of the output range: the rounding of a model in double precision
DAMAGE = (KeyError, TypeError, AttributeError, ValueError, OverflowError)


class NotProvenError(Exception):
    """A condition that the card does not meet, or a score that is not the card's."""


class Column(NamedTuple):
    """Points of each function at knots, or of each category; and of a missing number, or an unseen category."""

    name: str
    knots: list[Fraction]
    values: list[list[Fraction]]
    other: list[Fraction] | None
    levels: Any


def need(condition: Any, text: str) -> None:
    """Raise unless a condition holds."""
    if not condition:
        raise NotProvenError(text)


def exact(value: Any, what: str) -> Fraction:
    """A number of the card, as the fraction that it is."""
    need(type(value) in (int, float) and abs(value) < math.inf, f"{what}: {value!r} must be a finite number.")
    return Fraction(value)


def functions(card: Any, value: Any, what: str) -> list[Any]:
    """What each function of the card has: there is one, or one per class where there are several classes."""
    several = card["link"] == "softmax"
    complete = not several or (isinstance(value, list) and len(value) == len(card["classes"]))
    need(complete, f"{what} must have points for each class. Write the card with to_json(), without an outcome.")
    return list(value) if several else [value]


def read(card: Any) -> list[Column]:
    """The columns of a card."""
    found = []
    for entry in card["columns"]:
        name, knots = entry["column"], [exact(knot, entry["column"]) for knot in entry.get("knots", [])]
        need(all(a < b for a, b in pairwise(knots)), f"The knots of {name!r} must rise.")
        if knots:
            lines, other, levels = functions(card, entry["points"], name), entry["missing"], entry.get("order")
            need(all(len(line) == len(knots) for line in lines), f"{name!r} must have points for each knot.")
        else:
            other, levels = entry["unseen"], entry["categories"]
            lines = list(zip(*(functions(card, level["points"], name) for level in levels), strict=True))
            texts = {(type(level["value"]).__name__, str(level["value"])) for level in levels}
            need(len(texts) == len(levels) > 0, f"{name!r} has a category twice, or none.")
            need(other is not None, f"{name!r} must have points for unseen categories.")
        values = [[exact(value, name) for value in line] for line in lines]
        others = None if other is None else [exact(value, name) for value in functions(card, other, name)]
        found.append(Column(name, knots, values, others, levels))
    return found


def prove(card: Any) -> None:
    """Raise `NotProvenError` unless the score moves by at most ``used * unit * D`` between any two people."""
    need(isinstance(card, dict) and sorted(card) == ENTRIES, f"A card must have the entries {', '.join(ENTRIES)}.")
    columns, p, weights = read(card), card["metric"]["p"], {c["column"]: c for c in card["metric"]["columns"]}
    limit, slopes = check_claim(card, columns), []
    need(p == "inf" or exact(p, "p") >= 1, f"p must be at least 1; it is {p!r}.")
    need(len(weights) == len(card["metric"]["columns"]), "The metric names a column twice.")
    need(len({column.name for column in columns}) == len(columns), "The card has a column twice.")
    for name, knots, values, other, _ in columns:
        need(name in weights, f"{name!r} is on the card and not in the metric.")
        weight, missing, kind = (weights[name][key] for key in ("weight", "missing", "kind"))
        need(exact(weight, name) > 0, f"{name!r} has the weight 0, so that it must not matter, and is on the card.")
        need((kind == "numeric") == bool(knots), f"{name!r} must be {kind}, as in the metric.")
        need(not knots or (other is None) == (missing is None), f"{name!r}: may it be missing, or not?")
        for line, extra in zip(values, other or [], strict=True) if other else ():
            far = max(abs(value - extra) for value in line) if knots else max(*line, extra) - min(*line, extra)
            most = limit * exact(missing if knots else weight, name)
            text = "from a missing number" if knots else "between two categories"
            need(far <= most, f"{name!r}: {float(far):g} points {text}; the metric allows {float(most):g}.")
            points, shares = [*line, extra], weights[name].get("distances") or []
            need(not shares or [len(row) for row in shares] == [len(points)] * len(points), f"{name!r}: distances.")
            for i, j in combinations(range(len(shares)), 2):
                near = abs(points[i] - points[j]) <= most * min(exact(shares[i][j], name), exact(shares[j][i], name))
                need(near, f"{name!r}: more between two categories than the metric allows.")
        lines = [zip(knots, knots[1:], line, line[1:], strict=False) for line in values]
        steepest = [max((abs(d - c) / (b - a) for a, b, c, d in line), default=Fraction(0)) for line in lines]
        slopes.append([(slope, Fraction(weight)) for slope in steepest])
    for together in zip(*slopes, strict=True):
        need(norm_at_most(limit, list(together), p), "The columns of numbers are steeper than the metric allows.")


def check_claim(card: Any, columns: list[Column]) -> Fraction:
    """Check what the card says of itself; how far its score may move at distance 1, ``used * unit``."""
    link, classes, limits, claim = card["link"], card["classes"], card["output_range"], card["guarantee"]
    need(card["format"] == 1 and link in UNITS, f"Format {card['format']!r} or link {link!r} is not known.")
    unit, differ = UNITS[link], "the class probabilities differ by at most D(x, x') in total variation"
    if classes is None:
        unit = exact(limits[1], "output_range") - exact(limits[0], "output_range")
        need(link == "clip" and unit > 0 and card["outcome"] is None, "This is not a regression.")
        differ = f"the predictions differ by at most D(x, x') times {float(unit):g}, the width of the output range"
    else:
        need(limits is None and card["outcome"] in classes, "The outcome must be one of the classes.")
        need(len(classes) > 1 and (len(classes) > 2) == (link == "softmax"), "The link does not fit the classes.")
    statement = f"For any two people x and x', {differ}."
    need(claim["statement"] == statement, f"The statement must be: {statement}")
    need(claim["bound"] == BOUNDS[link], f"The bound must be {BOUNDS[link]}; the card has {claim['bound']!r}.")
    need(exact(claim["used"], "used") <= 1, f"used must be at most 1; it is {claim['used']!r}.")
    numbers = [exact(value, "intercept") for value in functions(card, card["intercept"], "intercept")]
    if card["scale"] is not None:
        double, base, odds = (exact(card["scale"][k], k) for k in ("points_to_double", "base_score", "base_odds"))
        need(link == "logistic" and double > 0 and odds > 0, "Points need the link 'logistic' and a positive scale.")
        numbers += [base, *(value for c in columns for line in [*c.values, c.other or []] for value in line)]
        need(all(number.denominator == 1 for number in numbers), "Points must be whole numbers.")
        unit = 4 * double / LN2
    largest = unit + max(map(abs, numbers)) + sum(max(map(abs, line)) for c in columns for line in c.values)
    fine = type(card["bits"]) is int and abs(card["bits"]) < 1000 and Fraction(2) ** -card["bits"] <= largest / 2**40
    need(fine, f"bits: a grid of 2^-{card['bits']!r} is too coarse; between knots, scores would jump.")
    return Fraction(claim["used"]) * unit


def norm_at_most(limit: Fraction, slopes: list[tuple[Fraction, Fraction]], p: Any) -> bool:
    """Whether ``||slope / weight^(1/p)||_q <= limit``, 1/p + 1/q = 1, over pairs (slope, weight)."""
    slopes = [(slope, weight) for slope, weight in slopes if slope > 0]
    if p == 1 or not slopes or limit <= 0:
        return all(slope <= limit * weight for slope, weight in slopes)
    if p == "inf":
        return sum(slope / weight for slope, weight in slopes) <= limit
    if p == 2:
        return sum(slope**2 / weight for slope, weight in slopes) <= limit**2
    with localcontext(prec=100):  # ((slope / limit)^p / weight)^(1 / (p - 1)) add up to at most 1
        rises = [(Decimal((s / limit).numerator) / (s / limit).denominator, w) for s, w in slopes]
        logs = [Decimal(p) * rise.ln() - (Decimal(w.numerator) / w.denominator).ln() for rise, w in rises]
        return sum((log / (Decimal(p) - 1)).exp() for log in logs) <= 1 - Decimal("1e-40")  # more than all roundings


def scores(card: Any, person: Any, columns: list[Column] | None = None) -> list[Fraction]:
    """Exact sums of points of one person, a mapping from column to text; one per function."""
    total = [Fraction(value) for value in functions(card, card["intercept"], "intercept")]
    for column in read(card) if columns is None else columns:
        need(column.name in person, f"The table has no column {column.name!r}.")
        total = [a + b for a, b in zip(total, points_of(column, person[column.name]), strict=True)]
    return total


def points_of(column: Column, cell: str) -> list[Fraction]:
    """Points of a cell, of each function."""
    name, knots, values, other, levels = column
    if not knots or cell in MISSING.split("|"):
        place = None if knots else find(cell, levels)
        need(place is not None or other is not None, f"{name!r} is missing, which the card refuses.")
        return list(other or []) if place is None else [line[place] for line in values]
    rank = find(cell, levels) if levels is not None else float(cell)
    need(rank is not None, f"{name!r} has the value {cell!r}, which is not among its ordered categories.")
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
    word = cell.strip().casefold()
    if word in ("true", "false"):
        alike = [i for i, text in enumerate(known) if text is not None and text.casefold() == word]
        digit = str(int(word == "true"))
        return alike[0] if len(alike) == 1 else known.index(digit) if not alike and digit in known else None
    try:
        number = Fraction(word)
    except (ValueError, ZeroDivisionError):
        return None
    values = [level["value"] for level in levels]
    alike = [i for i, value in enumerate(values) if type(value) in (int, float, bool) and value == number]
    return alike[0] if alike else None


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
    with open(path, encoding="utf-8-sig", newline="") as file:
        for people, row in enumerate(csv.DictReader(file), 1):
            for name, value in outputs(card, scores(card, row, columns)).items():
                if name in row:
                    far = abs(float(row[name]) - value) / max(high - low, abs(value) if name == "points" else 0.0)
                    need(far <= TOLERANCE, f"Row {people}: {name} is {row[name]}, and the card says {value!r}.")
                    compared += 1
    return people, compared


def damaged(error: Exception) -> str:
    """What to say of a card, or a table, that is not in the form of one."""
    return f"the card or the table is damaged ({type(error).__name__}: {error})."


def main(arguments: list[str]) -> int:
    """Print what was proven, and return the exit code."""
    try:
        card = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
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
