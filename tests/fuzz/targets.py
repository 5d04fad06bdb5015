"""What is fuzzed, and how large a share of the cases each part gets: the slow parts get fewer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck
from hypothesis import strategies as st

from fuzz import cases
from fuzz.parameters import chosen
from fuzz.strategies import PLAIN, csv_files, rarely, tables, texts

UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@dataclass(frozen=True)
class Target:
    """A part of the library, the cases for it, its share of all cases, and how many must not be refused, at least."""

    name: str
    case: Callable[[Any], str]
    strategy: Any
    share: float
    least: float = 0.25


_WORDS = [
    "loans.csv",
    "metric.toml",
    "model.skops",
    "broken.csv",
    "empty.csv",
    "absent.csv",
    "key",
    ".",
    "-h",
    "--json",
    "--target",
    "approved",
    "age",
    "score",
    "--metric",
    "--out",
    "out.csv",
    "out.toml",
    "out.skops",
    "--force",
    "--zero",
    "job",
    "--scale",
    "0",
    "nan",
    "1e999",
    "-1",
    "--by",
    "--method",
    "additive",
    "--id",
    "id",
    "--scores",
    "--model",
    "--max-excess",
    "--worst",
    "3",
    "--range",
    "--drop",
    "--task",
    "regression",
    "--delimiter",
    ";",
    "--encoding",
    "utf-99",
    "--decimal",
    ",",
    "--holdout",
    "2",
    "--keep",
    "--intervals",
    "--decide",
    "--key-file",
    "é",
]
_COMMANDS = (  # those that take long, seldom
    *["metric loans.csv --target approved --out out.toml"] * 3,
    "enforce loans.csv --target approved --metric metric.toml --method additive --out out.skops",
    *["score model.skops loans.csv --out out.csv"] * 3,
    *["decide model.skops loans.csv --round r --key-file key --out out.csv"] * 3,
    *["audit loans.csv --metric metric.toml --scores score"] * 3,
    *["audit loans.csv --model model.skops"] * 3,
    *["effect loans.csv --model model.skops --column job --boxes 5"] * 2,
    "attack loans.csv --model model.skops --pairs 1000",
    *["review loans.csv --decisions approved --approved yes --higher age"] * 2,
)
_OPTIONS = {
    "metric": ["--zero job", "--drop id", "--seed {}", "--json", "--normalize", "--model logistic"],
    "enforce": ["--holdout 0.{}", "--json", "--force", "--seed {}", "--task classification"],
    "score": ["--id id", "--intervals", "--keep age", "--force", "--batch {}"],
    "decide": [
        "--id id",
        "--threshold 0.5 --width 0.{}",
        "--favourable yes",
        "--commit",
        "--verify out.csv",
        "--force",
    ],
    "audit": ["--worst {}", "--id id", "--json", "--max-excess 0.{}", "--out out.csv", "--force"],
    "effect": ["--metric metric.toml", "--id id", "--max-effect {}", "--json", "--out out.csv", "--force"],
    "attack": ["--metric metric.toml", "--only job", "--seed {}", "--json", "--out out.csv", "--force"],
    "review": ["--lower score", "--same job", "--metric metric.toml --within {}", "--id id", "--json", "--out out.csv"],
}
_words = st.lists(st.sampled_from(["", *_WORDS]), max_size=8)
_names = st.sampled_from(["metric", "enforce", "score", "decide", "audit", "compare", "tradeoff", "report", "no"])


def _sentence(parts):
    """A usual command with some options; one word of it is another, if there is one."""
    line, options, number, place, word = parts
    own = _OPTIONS[line.split()[0]]
    chosen = dict.fromkeys(own[i % len(own)] for i in options)
    words = " ".join([line, *chosen]).replace("{}", str(number)).split()
    return words if word is None else [*words[:place], word, *words[place + 1 :]]


_commands = st.tuples(
    st.sampled_from(_COMMANDS),
    st.lists(st.integers(0, 29), max_size=3),
    st.integers(1, 50),
    st.integers(1, 12),
    st.sampled_from([*[None] * len(_WORDS), "", *_WORDS]),
).map(_sentence)
_sentences = rarely(_commands, st.tuples(_names, _words).map(lambda pair: [pair[0], *pair[1]]), 5)

_byte_changes = st.tuples(st.sampled_from(["packed", "part", "archive"]), st.integers(0, 10**6), st.integers(0, 255))

_NUMBERS = ["numbers", "normal", "counts", "constant"]
_FOR_MODELS = [kind for kind in PLAIN if kind != "ordered"]  # a model of numbers takes no words for them

_CLASSES = ("two", "words", "three")

ALL = [
    Target("distances", cases.distances, tables(), 0.3),
    Target("arrays", cases.array, tables(kinds=_NUMBERS), 0.02),
    Target("audit", cases.audited, tables(), 0.08),
    Target("Parquet files", cases.parquet, tables(), 0.002),
    Target("attack", cases.attacked, tables(_CLASSES), 0.004),
    Target("additive models", cases.additive, tables(), 0.015),
    Target("scorecards", cases.scorecard, tables(_CLASSES), 0.0075),
    Target("strangers", cases.strangers, st.tuples(tables(_CLASSES), tables()), 0.015),
    Target("projection", cases.projected, tables(("two", "words")), 0.03),
    Target("smoothing", cases.smoothed, tables(_CLASSES, kinds=_FOR_MODELS), 0.01),
    Target("minimal metrics", cases.revealed, tables(exponents=(1, 1, 1, 1, 1, 1, 2, 1.5)), 0.04),
    Target("ceilings", cases.ceilings, tables(_CLASSES), 0.01),
    Target("reports", cases.reported, tables(), 0.0005),
    Target("parameters", cases.parameter, chosen, 0.15, least=0.05),
    Target("metric files", cases.metric_file, texts, 0.2),
    Target("CSV files", cases.csv_file, csv_files, 0.086),
    Target("model files", cases.model_file, _byte_changes, 0.02),
    Target("command lines", cases.command_line, _sentences, 0.01),
]
