"""Orders, groups and distances of categories at the prompt: from a table to an enforced and audited model."""

import numpy as np
import pandas as pd
import pytest

from likewise import load_model, read_metric
from shell import run


@pytest.fixture
def place(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 60, 150),
            "grade": rng.choice(["low", "middle", "high"], 150),
            "job": rng.choice(["clerk", "teacher", "farmer"], 150),
            "kind": rng.choice([1, 2, 3], 150),
        }
    )
    score = table["grade"].map({"low": -1, "middle": 0, "high": 1}) + table["job"].map(
        {"clerk": -1, "teacher": 1, "farmer": 0}
    )
    table["good"] = np.where(rng.random(150) < 1 / (1 + np.exp(-score)), "yes", "no")
    table.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


SHAPES = """
[groups]
job = {within = 0.3, groups = [["clerk", "teacher"], ["farmer"]]}

[distances]
kind = {1 = {2 = 1, 3 = 2}, 2 = {3 = 1}}
"""


def test_from_a_table_to_an_audited_model(place):
    made = run(place, "metric people.csv --target good --order grade=low,middle,high --categorical kind")
    assert made.exit_code == 0, made.output
    assert read_metric(place / "metric.toml").order == {"grade": ("low", "middle", "high")}
    path = place / "metric.toml"
    path.write_text(path.read_text() + SHAPES)
    shown = run(place, "metric show metric.toml")
    assert "one step =" in shown.output
    assert " to " in shown.output
    for command in (
        "enforce people.csv --target good --metric metric.toml --method additive --out model.skops",
        "score model.skops people.csv --out scores.csv",
        "audit people.csv --model model.skops",
    ):
        done = run(place, command)
        assert done.exit_code == 0, done.output
    assert "no pair was found" in done.output
    metric = load_model(place / "model.skops").guarantee_.metric
    assert metric.groups["job"]["within"] == 0.3
    assert set(metric.distances["kind"]) == {"1", "2"}


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("grade", "must be like grade=low,middle,high"),
        ("grade=low,middle", "'high', which is not among its ordered categories"),
        ("grade=low,low", "listed twice"),
        ("rank=low,high", "has no column 'rank'"),
    ],
)
def test_a_bad_order_is_refused_in_a_line(place, order, words):
    done = run(place, f"metric people.csv --target good --order {order}")
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())
