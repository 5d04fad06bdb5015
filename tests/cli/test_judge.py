"""The command that asks, and metric files from its answers."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from likewise import TableMetric, read_metric, write_metric
from likewise.cli.judge import append_judgements, parse_answer, read_judgements
from likewise.cli.main import main
from likewise.metric_file import MetricFile, read_metric_file


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "id": [f"k{i}" for i in range(30)],
            "age": rng.integers(20, 26, 30),
            "job": rng.choice(["x", "y"], 30),
            "race": rng.choice(["u", "v"], 30),
            "paid": rng.choice(["yes", "no"], 30),
        }
    )
    people.loc[[1, 2], "age"] = [20, 25]
    people.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


def run(*words, given=None):
    return CliRunner().invoke(main, [str(word) for word in words], input=given)


def ask(table, given, *more, judge="Ann"):
    out = table.with_name("answers.csv")
    return out, run("judge", table, "--id", "id", "--drop", "paid", "--out", out, "--judge", judge, *more, given=given)


def test_answers_are_saved_one_by_one_and_the_next_run_goes_on(table):
    out, done = ask(table, "3-5\n\nq\n")
    assert done.exit_code == 0, done.output
    assert "2 new answers" not in done.output
    assert "1 new answers; " in done.output
    first = out.read_bytes()
    rows = read_judgements(out)
    assert rows["kind"].tolist() == ["at_least", "at_most", "skip"]
    assert rows["points"].tolist()[:2] == ["3.0", "5.0"]
    assert set(rows["a"]) | set(rows["b"]) <= {f"k{i}" for i in range(30)}
    out, done = ask(table, "4+\n")  # the input ends: as if somebody closed the terminal
    assert done.exit_code == 0
    assert out.read_bytes().startswith(first)
    pairs = [frozenset(pair) for pair in zip(read_judgements(out)["a"], read_judgements(out)["b"], strict=True)]
    assert len(set(pairs)) == 3


def test_what_people_wrote_into_the_file_stays(table):
    out, _ = ask(table, "3-5\nq\n")
    edited = (
        out.read_text(encoding="utf-8").replace("judge,", "judge,", 1).rstrip("\n").replace(",\n", ",a comment\n", 1)
    )
    out.write_text(edited, encoding="utf-8")
    out, done = ask(table, "7\nq\n", judge="Bob")
    assert done.exit_code == 0
    assert out.read_text(encoding="utf-8").startswith(edited + "\n")
    assert read_judgements(out)["judge"].tolist() == ["Ann", "Ann", "Bob"]


def test_only_what_differs_is_shown_and_help_is_given(table):
    _, done = ask(table, "what\n5-3\n200\nq\n")
    assert done.exit_code == 0
    assert done.output.count("3 points are fine, and at most 5") == 3
    assert "So far" not in done.output


def test_a_file_that_is_something_else_is_not_touched(table):
    out = table.with_name("answers.csv")
    out.write_text("x,y\n1,2\n", encoding="utf-8")
    _, done = ask(table, "5\nq\n")
    assert done.exit_code == 2
    assert "is not a file of judgements: it has no column 'judge'" in done.output
    assert out.read_text(encoding="utf-8") == "x,y\n1,2\n"
    done = run("judge", table, "--out", table, "--judge", "Ann", given="5\n")
    assert done.exit_code == 2
    assert "is an input of this command" in done.output


def test_columns_of_weight_0_are_not_asked_about(table):
    start = table.with_name("start.toml")
    write_metric(TableMetric({"age": 0.01}, {"job": 0, "race": 0}), start)
    _, done = ask(table, "3-4\n" * 20, "--metric", start)
    assert done.exit_code == 0, done.output
    assert "age" in done.output
    assert "job" not in done.output.split("Left out")[0].replace("--drop", "")
    assert "Every distance is known to a point" in done.output or "new answers" in done.output


def test_what_a_judge_was_not_shown_stays_as_it_was(table):
    start = table.with_name("start.toml")
    file = MetricFile(TableMetric({"age": 0.01}, {"job": 0.3, "race": 0}), protected=("race",))
    write_metric(file, start)
    out, done = ask(table, "3-4\n" * 6, "--metric", start)
    assert (read_judgements(out)["hidden"] == '["paid", "race"]').all()
    suggested = shlex.split(done.stdout.split("Next: ")[1])
    made = table.with_name("made.toml")
    assert suggested[-2:] == ["--id", "id"]
    told = run(*(made if word == "metric.toml" else word for word in suggested[1:]))  # as printed
    assert told.exit_code == 0, told.output
    assert read_metric_file(made).protected == ("race",)
    # Without the start: answers about two people of different race, which was not shown, say nothing of race.
    again = ["--id", "id", "--drop", "paid", "--out", made, "--force", "--json"]
    done = run("metric", table, "--judgements", out, *again)
    assert done.exit_code == 0, done.output
    ranges = {row["column"]: row for row in json.loads(done.stdout)["ranges"]}
    assert ranges["race"]["n_answers"] == 0
    assert ranges["age"]["n_answers"] > 0
    assert read_metric(made).categorical["race"] == 0
    shown = table.with_name("shown.csv")
    read_judgements(out).drop(columns="hidden").to_csv(shown, index=False)
    done = run("metric", table, "--judgements", shown, *again)
    assert {row["column"]: row for row in json.loads(done.stdout)["ranges"]}["race"]["n_answers"] > 0  # the control


def test_a_metric_is_made_from_the_answers(table):
    out, _ = ask(table, "3-5\n4-6\n2-3\n8-9\n3-4\nq\n")
    made = table.with_name("metric.toml")
    done = run(
        "metric", table, "--judgements", out, "--id", "id", "--drop", "paid", "--zero", "race", "--out", made, "--json"
    )
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["judges"] == ["Ann"]
    assert {row["column"] for row in facts["ranges"]} == {"age", "job"}
    metric = read_metric(made)
    assert metric.categorical["race"] == 0
    assert metric.numeric["age"] > 0
    assert "Learned from" in made.read_text(encoding="utf-8")
    strict = table.with_name("strict.toml")
    run(
        "metric",
        table,
        "--judgements",
        out,
        "--id",
        "id",
        "--target",
        "paid",
        "--zero",
        "race",
        "--strict",
        "--out",
        strict,
    )
    for name, weight in {**read_metric(strict).numeric, **read_metric(strict).categorical}.items():
        assert weight <= {**metric.numeric, **metric.categorical}[name] + 1e-9


START = """# For discussion.
p = 1

[numeric]
age = 0.5 # 1 point = 0.02 years; too much, says Bob

[categorical]
job = 0.25
race = 0 # by law

[missing]
age = 0.4

[units]
age = "years"

[output]
range = [0, 1000]

[origin]
protected = ["race"]
"""


def test_a_start_is_kept_where_answers_leave_a_choice(table):
    out, start, made = (table.with_name(name) for name in ("answers.csv", "start.toml", "m.toml"))
    start.write_text(START)
    append_judgements(out, [{"judge": "Ann", "kind": "at_most", "a": "k1", "b": "k2", "points": 10}])
    same = ("metric", table, "--id", "id", "--judgements", out, "--start", start, "--out", made)
    done = run(*same)
    assert done.exit_code == 0, done.output
    file, text = read_metric_file(made), made.read_text()
    assert file.metric.categorical == {"job": 0.25, "race": 0}  # no answer is about it
    assert file.metric.numeric["age"] == pytest.approx(0.02)  # the two are 5 years apart
    assert file.metric.missing == {"age": 0.4}
    assert (file.metric.units, file.output_range, file.protected) == ({"age": "years"}, (0, 1000), ("race",))
    assert (file.source, file.as_written) == ("judged", True)
    for comment in ("# For discussion.", "too much, says Bob", "by law"):
        assert comment in text
    assert "as close to" in file.how
    assert start.read_text() == START
    assert "is an input of this command" in run(*same[:-1], start, "--force").output
    (start, other) = (start.with_name("p2.toml"), same[:-3])
    start.write_text(START.replace("p = 1", "p = 2"))
    done = run(*other, start, "--out", made, "--force")
    assert "p must be 1" in done.output
    assert done.exit_code == 2


def test_a_start_may_be_told_that_another_column_must_not_matter(table):
    out, start, made = (table.with_name(name) for name in ("answers.csv", "start.toml", "m.toml"))
    start.write_text(START)
    append_judgements(out, [{"judge": "Ann", "kind": "at_most", "a": "k1", "b": "k2", "points": 10}])
    done = run("metric", table, "--id", "id", "--judgements", out, "--start", start, "--zero", "job", "--out", made)
    assert done.exit_code == 0, done.output
    assert read_metric_file(made).protected == ("job", "race")
    assert read_metric_file(made).metric.categorical == {"job": 0, "race": 0}


def test_a_weight_that_fell_to_0_is_not_said_to_be_protected(table):
    out, start, made = (table.with_name(name) for name in ("answers.csv", "start.toml", "m.toml"))
    start.write_text(START)
    append_judgements(out, [{"judge": "Ann", "kind": "at_most", "a": "k1", "b": "k2", "points": 0}])
    done = run("metric", table, "--id", "id", "--judgements", out, "--start", start, "--out", made)
    assert done.exit_code == 0, done.output
    file = read_metric_file(made)
    assert file.protected == ("race",)
    assert file.not_judged == tuple(name for name in file.metric.hidden if name != "race") != ()
    assert "ot judged" in run("metric", "show", made).output


def test_conflicts_are_printed_with_rows_and_judges(table):
    out = table.with_name("answers.csv")
    append_judgements(out, [{"judge": "Ann", "kind": "at_most", "a": "k1", "b": "k2", "points": 3}])
    append_judgements(out, [{"judge": "Bob", "kind": "at_least", "a": "k1", "b": "k2", "points": 9}])
    done = run("metric", table, "--judgements", out, "--id", "id", "--drop", "paid", "--out", table.with_name("m.toml"))
    assert done.exit_code == 0, done.output
    assert "row 2, judge 'Ann': k1 and k2 are at most 3 points apart" in done.output
    assert "row 3, judge 'Bob': k1 and k2 are at least 9 points apart" in done.output


def test_bad_files_and_options_end_in_one_line(table):
    out = table.with_name("answers.csv")
    same = ("metric", table, "--id", "id", "--drop", "paid", "--out", table.with_name("m.toml"))
    for row, message in (
        (
            {"kind": "at_most", "a": "k1", "b": "k99", "points": 3},
            "--judgements: b in line 2 is the person 'k99', who is not in the table. Its people are numbered from 1; "
            "give --id COLUMN",
        ),
        ({"kind": "near", "a": "k1", "b": "k2", "points": 3}, "kind of row 2 must be at_most"),
        ({"kind": "at_most", "a": "k1", "b": "k2", "points": -3}, "points of row 2 must be a number from 0 to 100"),
    ):
        out.unlink(missing_ok=True)
        append_judgements(out, [{"judge": "Ann", **row}])
        done = run(*same, "--judgements", out)
        assert done.exit_code == 2
        assert message in done.output
        assert done.output.count("\n") == 1
    out.unlink()
    append_judgements(out, [{"judge": "Ann", "kind": "at_most", "a": "k1", "b": "k2", "points": 3}])
    append_judgements(out, [{"judge": "Ann", "kind": "at_least", "a": "k2", "b": "k1", "points": 9}])
    done = run(*same, "--judgements", out)
    assert "judge 'Ann' contradicts themselves in rows 2 and 3" in done.output
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    done = run(*same, "--target", "age", "--strict")
    assert "--strict is for --judgements" in done.output
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert "There is no file" in run(*same, "--judgements", table.with_name("none.csv")).output
    assert "Give one of --target" in run(*same).output
    assert "--judge must be a name" in run("judge", table, "--out", out, "--judge", " ").output
    done = run(*same, "--judgements", out, "--zero", "height")
    assert "--zero names the column 'height'" in done.output


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", [("at_most", 5.0)]),
        (" 3 - 5.5 %", [("at_least", 3.0), ("at_most", 5.5)]),
        ("3+", [("at_least", 3.0)]),
        ("5-3", None),
        ("101", None),
        ("-3", None),
        ("nan", None),
        ("1e3", None),
    ],
)
def test_typed_answers(text, expected):
    found = parse_answer(text)
    assert (None if found is None else [(row["kind"], row["points"]) for row in found]) == expected
