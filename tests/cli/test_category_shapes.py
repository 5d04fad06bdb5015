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


def scored(place):
    """The same people with scores in which the groups of jobs differ."""
    table = pd.read_csv(place / "people.csv")
    score = 0.2 + 0.002 * table["age"] + 0.03 * table["grade"].map({"low": 0, "middle": 1, "high": 2})
    score += table["job"].map({"clerk": 0, "teacher": 0.04, "farmer": 0.2}) + 0.05 * table["kind"]
    table.drop(columns="good").assign(score=score.round(6)).to_csv(place / "scored.csv", index=False)


def test_groups_and_distances_are_revealed_from_scores(place):
    scored(place)
    first = run(place, "metric scored.csv --scores score --group job=clerk,teacher --categorical kind --out m.toml")
    assert first.exit_code == 0, first.output
    metric = read_metric(place / "m.toml")
    assert metric.categorical["job"] == pytest.approx(0.2, abs=1e-6)
    assert metric.groups["job"]["within"] * metric.categorical["job"] == pytest.approx(0.04, abs=1e-6)
    assert any(line.split()[:2] == ["job", "within"] for line in first.output.splitlines())
    # A file that is replaced, and one given by --start, keep their shapes: of a matrix the scale is found.
    path = place / "m.toml"
    path.write_text(path.read_text() + "\n[distances]\nkind = {1 = {2 = 1, 3 = 2}, 2 = {3 = 1}}\n")
    for command in ("--out m.toml --force", "--start m.toml --out n.toml"):
        done = run(place, f"metric scored.csv --scores score --order grade=low,middle,high {command}")
        assert done.exit_code == 0, done.output
    for name in ("m.toml", "n.toml"):
        metric = read_metric(place / name)
        assert metric.categorical["kind"] == pytest.approx(0.1, abs=1e-6)
        assert set(metric.distances["kind"]) == {"1", "2"}
        assert metric.groups["job"]["groups"] == [["clerk", "teacher"]]
        assert metric.order == {"grade": ("low", "middle", "high")}
    audited = run(place, "audit scored.csv --scores score --metric n.toml")
    assert "no pair was found" in audited.output


@pytest.mark.parametrize("model", ["logistic", "boosting"])
def test_a_model_is_within_the_metric_revealed_from_it(place, model):
    made = run(place, f"metric people.csv --target good --model {model} --group job=clerk,teacher --out m.toml")
    assert made.exit_code == 0, made.output
    assert ("exactly" in made.output) == (model == "logistic")
    assert 0 < read_metric(place / "m.toml").groups["job"]["within"] <= 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--group job", "must be like job=clerk,teacher; got 'job'"),
        ("--group trade=clerk,teacher", "--group must name columns of the table; there is no 'trade'"),
        ("--group job=clerk,clerk", "'clerk' is listed twice for 'job'"),
        ("--start bad.toml", "must obey the triangle inequality; got 9 between '1' and '3'"),
        ("--start zero.toml", "'clerk' and 'teacher' of 'job' are at distance 0"),
        ("--start tiny.toml", "for 'job'. Declare its categories further apart"),
    ],
)
def test_a_bad_shape_is_refused_in_a_line(place, options, words):
    head = "p = 1\n[numeric]\nage = 0.01\n[categorical]\njob = 0.2\nkind = 0.2\n"
    group = 'job = {within = %s, groups = [["clerk", "teacher"]]}\n'
    (place / "bad.toml").write_text(head + "[distances]\nkind = {1 = {2 = 1, 3 = 9}, 2 = {3 = 1}}\n")
    (place / "zero.toml").write_text(head + "[groups]\n" + group % 0)
    (place / "tiny.toml").write_text(head + "[groups]\n" + group % 0.001)
    done = run(place, f"metric people.csv --target good {options} --out m.toml")
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())
    assert not (place / "m.toml").exists()


def test_a_category_that_nobody_has_is_noted(place):
    noted = run(place, "metric people.csv --target good --group job=clerk,techer --out m.toml")
    assert noted.exit_code == 0, noted.output
    assert "--group job: nobody in the table has techer. Check the spelling." in " ".join(noted.output.split())
    plain = run(place, "metric people.csv --target good --group job=clerk,teacher --out n.toml")
    assert "nobody in the table" not in plain.output
