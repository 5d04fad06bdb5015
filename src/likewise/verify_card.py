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
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

LN2 = Fraction("0.69314718055994530941723212145817656808")  # rounded up
ROOT_2PI = Fraction("2.50662827463100050241576528481104525300")  # rounded down
UNITS = {"logistic": Fraction(4), "softmax": Fraction(2), "probit": ROOT_2PI, "clip": Fraction(1)}
BOUNDS = {"logistic": "tanh(D)", "softmax": "tanh(D)", "probit": "erf(sqrt(pi) D / 2)", "clip": "min(1, D)"}
ENTRIES = ["classes", "columns", "format", "guarantee", "intercept", "link", "metric", "model"]
ENTRIES += ["outcome", "output_range", "scale"]
MISSING = "#N/A|#N/A N/A|#NA|-1.#IND|-1.#QNAN|-NaN|-nan|1.#IND|1.#QNAN|<NA>|N/A|NA|NULL|NaN|None|n/a|nan|null|"
TOLERANCE = 1e-12  # of the output range: the rounding of a model in double precision
DIGITS = Context(prec=100)
DAMAGE = (KeyError, TypeError, AttributeError, ValueError, OverflowError)


class NotProvenError(Exception):
    """A condition that the card does not meet, or a score that is not the card's."""


def need(condition: Any, text: str) -> None:
    """Raise unless a condition holds."""
    if not condition:
        raise NotProvenError(text)


def exact(value: Any, what: str) -> Fraction:
    """A number of the card, as the fraction that it is."""
    need(type(value) in (int, float) and abs(value) < math.inf, f"{what} must be a finite number; it is {value!r}.")
    return Fraction(value)


def functions(card: Any, value: Any, what: str) -> list[Any]:
    """The numbers of each function of the card: a single one, or one per class where there are several."""
    if card["link"] != "softmax":
        return [value]
    whole = isinstance(value, list) and len(value) == len(card["classes"])
    need(whole, f"{what} must have points for each class. Write the card with to_json(), without an outcome.")
    return list(value)


def prove(card: Any) -> None:
    """Raise `NotProvenError` unless the score moves by at most ``used * unit * D`` between any two people."""
    need(isinstance(card, dict) and sorted(card) == ENTRIES, f"A card must have the entries {', '.join(ENTRIES)}.")
    unit, used = check_claim(card)
    metric, p, seen, slopes = card["metric"]["columns"], card["metric"]["p"], [], []
    need(p == "inf" or exact(p, "p") >= 1, f"p must be at least 1; it is {p!r}.")
    need(len({column["column"] for column in metric}) == len(metric), "The metric names a column twice.")
    weights = {column["column"]: column for column in metric}
    for entry in card["columns"]:
        name = entry["column"]
        need(name in weights and name not in seen, f"{name!r} is on the card twice, or not in the metric.")
        seen.append(name)
        weight = exact(weights[name]["weight"], f"The weight of {name!r}")
        need(weight > 0, f"{name!r} has no positive weight, so that it must not matter, and it is on the card.")
        numeric = weights[name]["kind"] == "numeric"
        need(numeric == ("knots" in entry), f"{name!r} must be {weights[name]['kind']}, as in the metric.")
        check = check_numbers if numeric else check_categories
        slopes.append((weight, check(card, entry, weights[name], used * unit)))
    for k in range(len(functions(card, card["intercept"], "intercept"))):
        steep = [(slope[k] / unit, weight) for weight, slope in slopes]
        need(norm_at_most(used, steep, p), "The columns of numbers are steeper than the metric allows.")


def check_claim(card: Any) -> tuple[Fraction, Fraction]:
    """What the card says of itself; the unit (what the score may move at distance 1) and the share of it used."""
    link, classes, limits, claim = card["link"], card["classes"], card["output_range"], card["guarantee"]
    need(card["format"] == 1 and link in UNITS, f"Format {card['format']!r} or link {link!r} is not known.")
    unit, outputs, how = UNITS[link], "the class probabilities", "in total variation"
    if classes is None:
        low, high = (exact(limit, "output_range") for limit in limits)
        need(link == "clip" and low < high and card["outcome"] is None, "This is not a regression.")
        unit, outputs = high - low, "the predictions"
        how = f"times {float(unit):g}, the width of the output range"
    else:
        need(limits is None and card["outcome"] in classes, "The outcome must be one of the classes.")
        need(len(classes) > 1 and (len(classes) > 2) == (link == "softmax"), "The link does not fit the classes.")
    statement = f"For any two people x and x', {outputs} differ by at most D(x, x') {how}."
    need(claim["statement"] == statement, f"The statement must be: {statement}")
    need(claim["bound"] == BOUNDS[link], f"The bound must be {BOUNDS[link]}; the card has {claim['bound']!r}.")
    need(exact(claim["used"], "used") <= 1, f"used must be at most 1; it is {claim['used']!r}.")
    numbers = functions(card, card["intercept"], "intercept")
    if card["scale"] is not None:
        double, base, odds = (exact(card["scale"][k], k) for k in ("points_to_double", "base_score", "base_odds"))
        need(link == "logistic" and double > 0 and odds > 0, "Points need the link 'logistic' and a positive scale.")
        unit = 4 * double / LN2
        for column in card["columns"]:
            levels = [level["points"] for level in column.get("categories", [])]
            numbers += [*column.get("points", []), *levels, column.get("missing"), column.get("unseen")]
        need(all(n is None or n == int(n) for n in [*numbers, base]), "Points must be whole numbers.")
    for number in numbers:
        need(number is None or exact(float(number), "A number of the card") == number, "A number is not finite.")
    return unit, Fraction(claim["used"])


def check_numbers(card: Any, entry: Any, weights: Any, limit: Fraction) -> list[Fraction]:
    """Largest slope of each function; what is between a number and a missing one is within its limit."""
    name = entry["column"]
    knots = [exact(knot, f"A knot of {name!r}") for knot in entry["knots"]]
    need(knots and all(a < b for a, b in pairwise(knots)), f"The knots of {name!r} must rise.")
    need((entry["missing"] is None) == (weights["missing"] is None), f"{name!r}: may it be missing, or not?")
    slopes = []
    for k, points in enumerate(functions(card, entry["points"], name)):
        values = [exact(value, f"Points of {name!r}") for value in points]
        need(len(values) == len(knots), f"{name!r} must have points for each knot.")
        rises = zip(knots, knots[1:], values, values[1:], strict=False)
        slopes.append(max((abs(d - c) / (b - a) for a, b, c, d in rises), default=Fraction(0)))
        if entry["missing"] is not None:
            other = exact(functions(card, entry["missing"], name)[k], f"Points of a missing {name!r}")
            most = limit * exact(weights["missing"], f"The missing weight of {name!r}")
            far = max(abs(value - other) for value in values)
            need(far <= most, f"{name!r}: {float(far):g} from a missing number; the metric allows {float(most):g}.")
    return slopes


def check_categories(card: Any, entry: Any, weights: Any, limit: Fraction) -> list[Fraction]:
    """Slopes of 0; what is between two categories, unseen ones included, is within its limit."""
    name, levels = entry["column"], entry["categories"]
    texts = [(type(level["value"]).__name__, str(level["value"])) for level in levels]
    need(len({*texts}) == len(texts), f"{name!r} has a category twice.")
    n = len(functions(card, entry["unseen"], name))
    for k in range(n):
        listed = [functions(card, level["points"], name)[k] for level in [*levels, {"points": entry["unseen"]}]]
        values = [exact(value, f"Points of {name!r}") for value in listed]
        far, most = max(values) - min(values), limit * Fraction(weights["weight"])
        need(far <= most, f"{name!r}: {float(far):g} between two categories; the metric allows {float(most):g}.")
        for i, j, share in shares_between(weights.get("distances"), len(values), name):
            far = abs(values[i] - values[j])
            need(
                far <= most * share,
                f"{name!r}: {float(far):g} between two categories; the metric allows {float(most * share):g}.",
            )
    return [Fraction(0)] * n


def shares_between(table: Any, n: int, name: str) -> list[tuple[int, int, Fraction]]:
    """Shares of the weight between any two categories, unseen ones last; none if all are at the weight."""
    if table is None:
        return []
    need(len(table) == n and all(len(row) == n for row in table), f"{name!r} must have distances between all.")
    return [(i, j, exact(table[i][j], f"A distance of {name!r}")) for i in range(n) for j in range(n) if i != j]


def norm_at_most(limit: Fraction, slopes: list[tuple[Fraction, Fraction]], p: Any) -> bool:
    """Whether ``||slope / weight^(1/p)||_q <= limit``, 1/p + 1/q = 1, over pairs (slope, weight)."""
    slopes = [(slope, weight) for slope, weight in slopes if slope > 0]
    if p == 1 or not slopes or limit <= 0:
        return all(slope <= limit * weight for slope, weight in slopes)
    if p == "inf":
        return sum(slope / weight for slope, weight in slopes) <= limit
    if p == 2:
        return sum(slope**2 / weight for slope, weight in slopes) <= limit**2
    total, power = Decimal(0), Fraction(p)
    for slope, weight in slopes:  # ((slope / limit)^p / weight)^(1 / (p - 1)) add up to at most 1
        rise, own = DIGITS.ln(decimal(slope / limit)), DIGITS.ln(decimal(weight))
        log = DIGITS.subtract(DIGITS.multiply(decimal(power), rise), own)
        total += DIGITS.exp(DIGITS.multiply(log, decimal(1 / (power - 1))))
    return total <= 1 - Decimal("1e-40")  # more than all roundings


def decimal(value: Fraction) -> Decimal:
    """A fraction with 100 digits."""
    return DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))


def scores(card: Any, person: Any) -> list[Fraction]:
    """Exact sums of points of one person, a mapping from column to text; one per function."""
    total = [Fraction(value) for value in functions(card, card["intercept"], "intercept")]
    for entry in card["columns"]:
        need(entry["column"] in person, f"The table has no column {entry['column']!r}.")
        cell = person[entry["column"]]
        for k in range(len(total)):
            total[k] += points_of(card, entry, cell, k)
    return total


def points_of(card: Any, entry: Any, cell: str, k: int) -> Fraction:
    """Points of a cell, of one function."""
    if "categories" in entry:
        level = find(cell, entry["categories"])
        return Fraction(
            functions(card, entry["unseen"] if level is None else entry["categories"][level]["points"], "")[k]
        )
    if cell in MISSING.split("|"):
        need(entry["missing"] is not None, f"{entry['column']!r} is missing, which the card refuses.")
        return Fraction(functions(card, entry["missing"], "")[k])
    place = find(cell, entry["order"]) if "order" in entry else float(cell)
    need(place is not None, f"{entry['column']!r} has the value {cell!r}, which is not among its ordered categories.")
    x, knots = Fraction(place or 0), [Fraction(knot) for knot in entry["knots"]]
    values = [Fraction(value) for value in functions(card, entry["points"], "")[k]]
    for a, b, c, d in zip(knots, knots[1:], values, values[1:], strict=False):
        if a <= x <= b:
            return c + (d - c) * (x - a) / (b - a)
    return values[0] if x < knots[0] else values[-1]


def find(cell: str, levels: Any) -> int | None:
    """Position of a category: by its text, or by the number or truth value that the text stands for."""
    known = [None if level["value"] is None else text_of(level["value"]) for level in levels]
    if cell in MISSING.split("|"):
        return known.index(None) if None in known else None
    word = cell.strip().casefold()
    truths = [i for i, text in enumerate(known) if text is not None and text.casefold() == word in ("true", "false")]
    if text_of(cell) in known:
        return known.index(text_of(cell))
    if word in ("true", "false"):
        word, truths = str(int(word == "true")), truths if len(truths) == 1 else []
        return truths[0] if truths else known.index(word) if word in known and not truths else None
    try:
        number = Fraction(word)
    except (ValueError, ZeroDivisionError):
        return None
    alike = [
        i for i, level in enumerate(levels) if type(level["value"]) in (int, float, bool) and level["value"] == number
    ]
    return alike[0] if alike else None


def text_of(value: Any) -> str:
    """Text by which categories are compared: whole numbers without a decimal point."""
    if isinstance(value, str):
        written = (value.endswith(".0") or "e+" in value) and value.strip("0123456789.e+-") == ""
        return str(int(float(value))) if written and repr(float(value)) == value else value
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def outputs(card: Any, sums: list[Fraction]) -> dict[str, float]:
    """Outputs by the names that `likewise score` gives them."""
    if card["classes"] is None:
        return {"prediction": min(max(float(sums[0]), card["output_range"][0]), card["output_range"][1])}
    if card["link"] == "softmax":
        parts = [math.exp(float(value - max(sums))) for value in sums]
        return {f"p_{label}": part / sum(parts) for label, part in zip(card["classes"], parts, strict=True)}
    score, named = float(sums[0]), {}
    if card["scale"] is not None:
        double, base, odds = (card["scale"][k] for k in ("points_to_double", "base_score", "base_odds"))
        named, score = {"points": score}, math.log(odds) + float(sums[0] - Fraction(base)) * math.log(2) / double
    other = next(label for label in card["classes"] if label != card["outcome"])
    own, rest = (_linked(card["link"], z) for z in (score, -score))
    return named | {f"p_{card['outcome']}": own, f"p_{other}": rest}


def _linked(link: str, score: float) -> float:
    if link == "logistic":
        return math.exp(min(score, 0.0)) / (1 + math.exp(-abs(score)))
    return math.erfc(-score * math.sqrt(0.5)) / 2 if link == "probit" else min(1.0, max(0.0, 0.5 + score))


def check_scores(card: Any, path: str | Path) -> tuple[int, int]:
    """Compare the scores in a table with the card's, where it has them; the number of people and scores."""
    people = compared = 0
    with open(path, encoding="utf-8-sig", newline="") as file:
        for people, row in enumerate(csv.DictReader(file), 1):
            for name, value in outputs(card, scores(card, row)).items():
                if name in row:
                    width = 1.0 if card["output_range"] is None else card["output_range"][1] - card["output_range"][0]
                    far = abs(float(row[name]) - value) / max(width, abs(value) if name == "points" else 0.0)
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
    except NotProvenError as problem:
        print(f"Not proven: {problem}")
        return 1
    except DAMAGE as error:
        print(f"Not proven: {damaged(error)}")
        return 1
    except (IndexError, OSError) as error:
        print(f"Cannot read the file ({error}). Usage: python verify_card.py card.json [people.csv]")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
