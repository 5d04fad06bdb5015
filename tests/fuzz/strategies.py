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

_names = st.sampled_from(
    ["age", "income", "job", "race", "p", "", " ", "a.b", "x\ny", "ü", "=1", "nan", "numeric", 0, 1, (1, 2), None]
)
_rows = st.one_of(st.integers(4, 12), st.sampled_from([0, 1, 2, 3, 30]))
_good_weights = st.sampled_from([0.1, 0.5, 0.0, 1.0, 0.01])
_bad_weights = st.sampled_from(
    [-1.0, np.nan, np.inf, 1e308, 1e-308, 5e-324, "x", None, True, 2, 1e-12, [1], np.float32(0.1)]
)
_seeds = st.integers(0, 2**32 - 1)


def rarely(usual, unusual, odds=12):
    """The usual strategy, and once in a while the other one."""
    return st.sampled_from(range(odds)).flatmap(lambda i: usual if i else unusual)


_kinds = rarely(st.sampled_from(PLAIN), st.sampled_from(sorted(KINDS)), 8)


@dataclass
class Drawn:
    """A table to learn from, another one like it, outcomes, and how to make a metric of it."""

    X: pd.DataFrame
    others: pd.DataFrame
    y: np.ndarray
    metric: dict
    kinds: dict


@st.composite
def tables(draw, outcomes=("two", "two", "three", "numbers", "words", "odd")):
    """Draw a table, one more of the same columns, outcomes, and the parameters of a metric."""
    names = draw(st.lists(_names, min_size=1, max_size=4, unique_by=lambda name: (str(name), name)))
    kinds = {name: draw(_kinds) for name in names}
    n, seed = draw(_rows), draw(_seeds)
    rng = np.random.default_rng(seed)

    def table(rows):
        made = pd.concat([KINDS[kind](rows, rng).rename(None) for kind in kinds.values()], axis=1)
        made.columns = pd.Index(names, dtype=object)
        return made

    X, others = table(n), table(6)
    numeric, categorical = {}, {}
    for name, kind in kinds.items():
        weight = draw(rarely(_good_weights, _bad_weights, 20))
        wrong_side = draw(rarely(st.just(False), st.just(True), 20))
        (numeric if (kind in AS_NUMBER) != wrong_side else categorical)[name] = weight
    metric = {
        "numeric": numeric,
        "categorical": categorical,
        "p": draw(
            rarely(st.sampled_from([1, 1, 2, np.inf, 1.5]), st.sampled_from([0.5, 0, np.nan, "2", 1e6, -np.inf, None]))
        ),
    }
    metric["missing"] = draw(
        rarely(
            st.sampled_from(["category", "category", "refuse", {}]),
            st.sampled_from(["x", None, {"age": 2}, {"no": 0.1}, 1]),
        )
    )
    kind = draw(st.sampled_from(outcomes))
    y = {
        "two": lambda: rng.integers(0, 2, n),
        "three": lambda: rng.integers(0, 3, n),
        "numbers": lambda: rng.normal(size=n),
        "words": lambda: _pick(["yes", "no"], n, rng),
        "odd": lambda: _pick(MIXED, n, rng),
    }[kind]()
    return Drawn(X, others, y, metric, kinds)


_METRIC = [
    "p = 1",
    "[numeric]",
    "age = 0.1",
    '"a b" = 0.2',
    "[categorical]",
    "job = 0.5",
    "[missing]",
    "age = 0.3",
    "[units]",
    "age = 'years'",
]
_LINES = [
    *_METRIC,
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


@st.composite
def _metric_texts(draw):
    lines = list(_METRIC)
    for place, line, gone in draw(
        st.lists(st.tuples(st.integers(0, 10), st.sampled_from(_LINES), st.booleans()), max_size=4)
    ):
        lines[place : place + gone] = [] if gone and place % 2 else [line]
    return "\n".join(lines)


texts = rarely(_metric_texts(), st.text(max_size=40), 6)
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
