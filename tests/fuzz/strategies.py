"""Tables, metrics, texts and command lines that nobody would write on purpose, and many that somebody would.

Hypothesis draws the structure, so that failures shrink; the values of a column come from a small pool by a drawn seed,
so that a case takes milliseconds.
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
from hypothesis import strategies as st

NUMBERS = [0.0, 1.0, 2.0, 3.5, -1.0, 0.1, -0.0, 1e-3, 40.0, 2004.0]
EXTREME = [*NUMBERS, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e16, 2.0**53, 2.0**53 + 2, 1e-200]
WORDS = [
    "a",
    "b",
    "A",
    "",
    " ",
    "nan",
    "None",
    "1",
    "1.0",
    "True",
    "é",
    "e\u0301",
    "<b>",
    "a,b",
    "\x00",
    "\u202e",
    "x" * 300,
]
MIXED = ["a", 1, 1.0, True, "1", None, np.nan, 0, False, "", (1, 2), Decimal(1), b"a", 1 + 2j, date(2004, 1, 1)]


def _pick(pool, n, rng):
    out = np.empty(n, dtype=object)
    out[:] = [pool[i] for i in rng.integers(len(pool), size=n)]
    return out


KINDS = {
    "numbers": lambda n, rng: pd.Series(_pick(NUMBERS, n, rng).astype(float)),
    "normal": lambda n, rng: pd.Series(rng.normal(size=n)),
    "counts": lambda n, rng: pd.Series(rng.integers(-3, 4, n)),
    "words": lambda n, rng: pd.Series(_pick(WORDS[:6], n, rng), dtype=object),
    "blanks": lambda n, rng: pd.Series(_pick([*NUMBERS[:4], np.nan], n, rng).astype(float)),
    "extreme": lambda n, rng: pd.Series(_pick(EXTREME, n, rng).astype(float)),
    "strange words": lambda n, rng: pd.Series(_pick([*WORDS, None], n, rng), dtype=object),
    "mixed": lambda n, rng: pd.Series(_pick(MIXED, n, rng), dtype=object),
    "lists": lambda n, rng: pd.Series(_pick([[1], {}, "a"], n, rng), dtype=object),
    "large": lambda n, rng: pd.Series(_pick([2**70, -(2**70), 2**63, 1], n, rng), dtype=object),
    "text numbers": lambda n, rng: pd.Series(_pick(["1", "2.5", "1e3", " 4 ", "0x1", "1,000"], n, rng), dtype=object),
    "booleans": lambda n, rng: pd.Series(rng.random(n) < 0.5),
    "ordered": lambda n, rng: pd.Series(
        pd.Categorical.from_codes(rng.integers(-1, 3, n), ["low", "mid", "high"], ordered=True)
    ),
    "unordered": lambda n, rng: pd.Series(pd.Categorical.from_codes(rng.integers(-1, 3, n), ["b", "a", "c"])),
    "nullable": lambda n, rng: pd.Series(_pick([1, 2, None], n, rng), dtype="Int64"),
    "nullable words": lambda n, rng: pd.Series(_pick(["a", "b", None], n, rng), dtype="string"),
    "nullable booleans": lambda n, rng: pd.Series(_pick([True, False, None], n, rng), dtype="boolean"),
    "moments": lambda n, rng: pd.Series(pd.to_datetime(rng.integers(0, 10**9, n), unit="s")),
    "spans": lambda n, rng: pd.Series(pd.to_timedelta(rng.integers(0, 10**9, n), unit="s")),
    "periods": lambda n, rng: pd.Series(pd.period_range("2004-01", periods=max(n, 1), freq="M"))[:n],
    "complex": lambda n, rng: pd.Series(rng.normal(size=n) + 1j),
    "halves": lambda n, rng: pd.Series(rng.normal(size=n).astype(np.float16)),
    "empty": lambda n, rng: pd.Series([None] * n, dtype=object),
    "constant": lambda n, rng: pd.Series([7] * n),
    "sparse": lambda n, rng: pd.Series(pd.arrays.SparseArray(rng.integers(0, 2, n).astype(float))),
    "intervals": lambda n, rng: pd.Series(pd.interval_range(0, max(n, 1)))[:n],
}
PLAIN = ["numbers", "normal", "counts", "words", "blanks", "booleans", "ordered", "unordered", "nullable"]
AS_NUMBER = {"numbers", "normal", "counts", "blanks", "ordered", "nullable", "extreme", "halves", "constant", "large"}
GAPPY = {"blanks", "ordered", "nullable"}

# What is wrong with a case, if anything is: names, kinds of columns, weights, and so on that are not usual.
ODD_NAMES = ["", " ", "x\ny", "=1", "nan", "numeric", 0, 1, (1, 2), None]
ODD_WEIGHTS = [-1.0, np.nan, np.inf, 1e308, 1e-308, 5e-324, "x", None, True, 2, 1e-12, [1], np.float32(0.1)]
ODD_EXPONENTS = [0.5, 0, np.nan, "2", 1e6, -np.inf, None, 30, 1 + 1e-9]
ODD_MISSING = ["x", None, {"age": 2}, {"no": 0.1}, 1, "refuse", {}]
ODD_OUTCOMES = ["odd", "numbers", "three", "one"]
FLAWS = ["name", "kind", "kind", "weight", "side", "p", "missing", "rows", "outcome"]

NAMES = ["age", "income", "job", "race", "p", "a.b", "ü"]
WEIGHTS = [0.1, 0.5, 0.0, 1.0, 0.01]
ROWS = [*range(4, 13), 30]
MISSING = ["category", "category", "shares", "refuse"]
_OTHERS = 6  # people of another table


class Dice:
    """Choices by bytes that Hypothesis draws all at once: one by one, choosing would take longer than the case."""

    def __init__(self, data):
        self.bytes = iter(data)

    def of(self, pool):
        """One of a pool; the first for a byte of 0, to which Hypothesis shrinks."""
        return pool[next(self.bytes) % len(pool)]

    def seed(self):
        """A number of four bytes."""
        return int.from_bytes([next(self.bytes) for _ in range(4)])


@dataclass
class Drawn:
    """A table to learn from, another one like it, outcomes, and how to make a metric of it."""

    X: pd.DataFrame
    others: pd.DataFrame
    y: np.ndarray
    metric: dict
    kinds: dict


def tables(outcomes=("two", "two", "three", "numbers", "words"), exponents=(1,), kinds=PLAIN):
    """Draw a table, one more of the same columns, outcomes, and a metric; half of them with one or two flaws."""
    return st.binary(min_size=30, max_size=30).map(lambda data: _drawn(Dice(data), outcomes, exponents, kinds))


def _drawn(dice, outcomes, exponents, kinds):
    drawn = {dice.of(NAMES): (dice.of(kinds), dice.of(WEIGHTS)) for _ in range(dice.of([1, 2, 3, 4]))}
    columns, wrong = [[name, *rest] for name, rest in drawn.items()], set()
    n, p, missing, outcome = dice.of(ROWS), dice.of(exponents), dice.of(MISSING), dice.of(outcomes)
    if not any(weight for _, _, weight in columns):
        columns[0][2] = 0.1
    numeric = [name for name, kind, _ in columns if kind in AS_NUMBER]
    if missing == "shares":
        missing = dict.fromkeys(numeric, 0.2)
    elif missing == "refuse" and GAPPY & {kind for _, kind, _ in columns}:
        missing = "category"
    flaws = [(dice.of(FLAWS), dice.of(range(4)), dice.of(range(256))) for _ in range(dice.of([0, 0, 1, 2]))]
    for what, where, which in flaws:
        column = columns[where % len(columns)]
        if what in ("name", "kind", "weight"):
            place, pool = {"name": (0, ODD_NAMES), "kind": (1, list(KINDS)), "weight": (2, ODD_WEIGHTS)}[what]
            column[place] = pool[which % len(pool)]
        elif what == "side":
            wrong.add(where % len(columns))
        elif what == "p":
            p = ODD_EXPONENTS[which % len(ODD_EXPONENTS)]
        elif what == "missing":
            missing = ODD_MISSING[which % len(ODD_MISSING)]
        elif what == "rows":
            n = which % 4
        else:
            outcome = ODD_OUTCOMES[which % len(ODD_OUTCOMES)]
    rng = np.random.default_rng(dice.seed())
    metric = {"numeric": {}, "categorical": {}, "p": p, "missing": missing}
    for i, (name, kind, weight) in enumerate(columns):
        metric["numeric" if (kind in AS_NUMBER) != (i in wrong) else "categorical"][name] = weight
    table = _table(columns, n + _OTHERS, rng)
    X, others = table[:n], table[n:].reset_index(drop=True)
    return Drawn(X, others, _outcomes(outcome, n, rng), metric, {name: kind for name, kind, _ in columns})


def _table(columns, n, rng):
    made = pd.DataFrame(dict(enumerate(KINDS[kind](n, rng) for _, kind, _ in columns)), index=pd.RangeIndex(n))
    made.columns = pd.Index([name for name, _, _ in columns], dtype=object, tupleize_cols=False)
    return made


def _outcomes(kind, n, rng):
    order = rng.permutation(n)
    return {
        "two": lambda: order % 2,
        "three": lambda: order % 3,
        "one": lambda: order % 1,
        "numbers": lambda: rng.normal(size=n),
        "words": lambda: np.array(["yes", "no"], dtype=object)[order % 2],
        "odd": lambda: _pick(MIXED, n, rng),
    }[kind]()


def rarely(usual, unusual, odds=12):
    """The usual strategy, and once in a while the other one."""
    return st.sampled_from([*[usual] * (odds - 1), unusual]).flatmap(lambda chosen: chosen)


_METRIC = [
    ["p = 1", "p = 2", "p = inf", "p = 1.5", "# p is 1", "p = 1 # 1 point = $3"],
    ["[numeric]"],
    ["age = 0.1", "age = 1e-3", "age = 1", "age = 0", "age = 0.1_0", "age = 0.1 # words", "'age' = 0.1"],
    ['"a b" = 0.2', "'ü' = 0.1", "'x.y' = 0.1", "", "'=1' = 0.3", "'[numeric]' = 1", "'#' = 2e-5"],
    ["[categorical]", "[categorical] # words", "\t[categorical]"],
    ["job = 0.5", "job = 1", "job = 0", "race = 0.25 # not more"],
    ["[missing]"],
    ["age = 0.3", "age = 1", "age = 0.25", "#"],
    ["[units]", "[ units ]"],
    ["age = 'years'", 'age = "years"', "# none", "age = ''"],
]
_LINES = [
    *(line for lines in _METRIC for line in lines),
    "p = 2",
    "p = inf",
    "p = nan",
    "p = -1",
    "p = '1'",
    "age = -1",
    "age = 1e400",
    "age = true",
    "age = 'x'",
    "age = [1]",
    "job = 2",
    "= 1",
    "[numeric",
    "age = 0.1 # words",
    "# words",
    "[[numeric]]",
    "[numeric.age]",
    "x.y = 0.1",
    "'' = 0.1",
    "age = 2004-01-01",
    "é = 0.1",
    "units = 3",
    "\x00",
    "age = 0.1_0",
    "[other]",
    "age = {a = 1}",
    '"""',
    "\t",
    "p = 1 # 1 point = $3",
]


def _metric_text(data):
    """Lines of a good file; in half of the files one or two are replaced, left out or put in."""
    dice = Dice(data)
    lines = [dice.of(choices) for choices in _METRIC]
    for _ in range(dice.of([0, 0, 1, 2])):
        place, line, how = dice.of(range(11)), dice.of(_LINES), dice.of(["instead", "more", "gone"])
        lines[place : place + (how != "more")] = [] if how == "gone" else [line]
    return "\n".join(lines)


_metric_texts = st.binary(min_size=17, max_size=17).map(_metric_text)
texts = rarely(_metric_texts, st.text(max_size=40))
"""Texts that may be metric files."""

csv_files = st.one_of(
    st.binary(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "a,b,y",
                "1,2,yes",
                "2,,no",
                '"1,000",x,yes',
                "a,a,y",
                ",,",
                '"',
                "2004-01-01,1,no",
                "1;2;3",
                "\ufeffa,b,y",
                "inf,nan,no",
                "x" * 200,
                "1,2",
                "1,2,3,4",
                "\x00,1,no",
                "é,ü,yes",
                "1e999,-0,no",
                "\r",
                "# c",
            ]
        ),
        max_size=8,
    ).map(lambda lines: "\n".join(lines).encode()),
)
"""Bytes that may be CSV."""
