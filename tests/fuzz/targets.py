"""What is fuzzed, and how large a share of the cases each part gets: the slow parts get fewer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck
from hypothesis import strategies as st

from fuzz import cases
from fuzz.strategies import csv_files, tables, texts

UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@dataclass(frozen=True)
class Target:
    """A part of the library, the cases for it, and its share of all cases."""

    name: str
    case: Callable[[Any], str]
    strategy: Any
    share: float


_byte_changes = st.tuples(st.booleans(), st.integers(0, 10**6), st.integers(0, 255))
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
_COMMANDS = (
    "metric loans.csv --target approved --out out.toml",
    "enforce loans.csv --target approved --metric metric.toml --by additive --out out.skops",
    "score model.skops loans.csv --out out.csv",
    "audit loans.csv --metric metric.toml --scores score",
    "audit loans.csv --model model.skops",
)
_words = st.lists(st.sampled_from(["", *_WORDS]), max_size=8)
_names = st.sampled_from(["metric", "enforce", "score", "audit", "compare", "price", "report", "no"])
_sentences = st.one_of(
    st.tuples(_names, _words).map(lambda pair: [pair[0], *pair[1]]),
    st.tuples(st.sampled_from(_COMMANDS), _words).map(lambda pair: [*pair[0].split(), *pair[1][:2]]),
)

ALL = [
    Target("distances", cases.distances, tables(), 0.3),
    Target("audit", cases.audited, tables(), 0.12),
    Target("additive models", cases.additive, tables(), 0.16),
    Target("projection", cases.projected, tables(), 0.03),
    Target("smoothing", cases.smoothed, tables(), 0.01),
    Target("minimal metrics", cases.revealed, tables(), 0.05),
    Target("ceilings", cases.ceilings, tables(), 0.05),
    Target("metric files", cases.metric_file, texts, 0.14),
    Target("CSV files", cases.csv_file, csv_files, 0.08),
    Target("model files", cases.model_file, _byte_changes, 0.04),
    Target("command lines", cases.command_line, _sentences, 0.02),
]
