"""A committee at work, without a page: from a table to a model that the command line makes with the same bits."""

import json
import os
import shlex
import signal

import numpy as np
import pandas as pd
import pytest

from committee import Client, command
from likewise import learn_metric
from likewise.io import load_model
from likewise.metric_file import read_metric_file
from shell import LOANS, run

WORDS = ("loans.csv", "--target", "approved", "--protected", "race", "--id", "id", "--drop", "constant")


@pytest.fixture
def place(tmp_path):
    LOANS.to_csv(tmp_path / "loans.csv", index=False)
    return tmp_path


def answer(client, name, points):
    client.name = name
    question = client.post("question")["question"]
    client.act("answer", rows=[{"kind": "at_most", "a": question["a"], "b": question["b"], "points": points}])
    return question


def test_a_committee_leaves_with_what_the_command_line_makes_too(place):
    with command(place, *WORDS) as (address, process), Client(address) as ann:
        work(ann, place)
        before = ann.state()
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    document = json.loads((place / "loans.likewise.json").read_text(encoding="utf-8"))  # the state is one readable file
    assert document["format"] == "likewise workbench 1"
    assert "Bob will look at the pair again" in [event.get("text") for event in document["events"]]
    with command(place, *WORDS) as (address, _), Client(address) as ann:
        at_once = ann.state()["answers"]
        after = ann.settled()
    assert at_once == before["answers"]
    assert len(at_once) == 4
    for name in ("columns", "record", "versions", "how", "last", "exports"):
        assert after[name] == before[name]
    compare_with_command_line(place, before)


def work(ann, place):
    """Reveal, round, move, lock, answer as two people who disagree once, save versions, and export."""
    ann.post("start", **{"from": "revealed"})
    state = ann.wait(lambda state: state["how"])
    weights = {column["name"]: column for column in state["columns"]}
    assert weights["race"]["weight"] == 0
    assert weights["race"]["locked"]
    assert weights["income"]["weight"] > 0
    ann.act("version", title="revealed")
    ann.post("round", reason="numbers that people say")
    ann.post("scale", by=0.5)
    ann.act("lock", column="region", reason="not agreed")
    ann.act("undo", seen=ann.state()["last"])
    first = answer(ann, "Ann", 3)
    ann.name = "Bob"  # he disagrees on Ann's pair
    ann.act("answer", rows=[{"kind": "at_least", "a": first["a"], "b": first["b"], "points": 20}])
    for points in (8, 12):
        assert answer(ann, "Bob", points)["a"] != first["a"] or points == 12
    judged = ann.wait(lambda state: state["judged"])["judged"]  # None until it is of all four
    assert {said["name"] for said in judged["conflicts"][0]} == {"Ann", "Bob"}
    ann.name = "Ann"
    ann.act("note", text="Bob will look at the pair again")
    ann.act("version", title="agreed")
    two = ann.post("versions", one="revealed", other="agreed")["versions"]
    assert two[0]["mean_distance"] > two[1]["mean_distance"]
    ann.post("export", report=False)
    state = ann.wait(lambda state: state["record"][0]["kind"] == "exported" or state["trouble"])
    assert state["trouble"] == {}
    ann.settled()


def compare_with_command_line(place, state):
    out = place / "loans.likewise"
    assert set(state["exports"]) == {path.name for path in out.iterdir()}
    file = read_metric_file(out / "metric.toml")
    assert file.protected == ("race",)
    assert file.as_written
    text = (out / "metric.toml").read_text(encoding="utf-8")
    assert "# 3. " in text
    assert "numbers that people say" in text
    minutes = (out / "minutes.md").read_text(encoding="utf-8")
    assert "Bob will look at the pair again" in minutes
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    for line in state["commands"]:  # as printed; the last one proves the card
        done = run(place, shlex.split(line)[1:])
        assert done.exit_code == 0, done.output
    assert {name: (out / name).read_bytes() for name in before} == before
    people = LOANS.drop(columns=["approved", "id", "constant"])
    page, prompt = (load_model(out / name).predict_proba(people) for name in ("model.skops", "model-2.skops"))
    assert page.tobytes() == prompt.tobytes()
    # Control: another metric is another model.
    done = run(place, f"metric scale {out / 'metric.toml'} --by 0.9 --out other.toml")
    assert done.exit_code == 0, done.output
    run(place, "enforce loans.csv --target approved --metric other.toml --method additive --id id --out other.skops")
    assert load_model(place / "other.skops").predict_proba(people).tobytes() != page.tobytes()
    answers = pd.read_csv(out / "answers.csv")
    assert learn_metric(answers, people.set_axis(LOANS["id"])).n_answers == 4
    assert np.isfinite(page).all()


def test_the_command_names_what_is_missing(place):
    for words, said in (
        ("workbench", "Give a TABLE and its --target, or --demo."),
        ("workbench loans.csv --target approved --demo", "--demo brings its own table"),
        ("workbench loans.csv --target approved --outcome maybe", "--outcome must be one of no, yes; got 'maybe'."),
        ("workbench loans.csv --target approved --protected height", "there is no 'height'"),
        ("workbench loans.csv --target approved --scores income --model m.skops", "either --model or --scores"),
        ("workbench loans.csv --target approved --scores income", "scores must be numbers from 0 to 1; row 1"),
        ("workbench loans.csv --target approved --id region", "The id column must name each person once"),
    ):
        done = run(place, f"{words} --no-browser")
        assert (done.exit_code, said in done.output) == (2, True), done.output
    assert list(place.glob("*.json")) == []


def test_the_report_is_written_while_work_goes_on(place):
    with command(place, *WORDS) as (address, _), Client(address) as ann:
        assert "Give at least one column a weight" in ann.post("export", 400)["error"]
        ann.act("weights", set={"numeric": {"income": 0.01}, "categorical": {"region": 0.1}})
        ann.post("export", reason="agreed")
        assert "Still busy: Writing" in ann.post("export", 400)["error"]
        state = ann.wait(lambda state: state["job"] is None or state["job"]["writes"] == ["report.html"])
        assert {"metric.toml", "model.skops", "card.json"} <= set(state["exports"])
        answer(ann, "Bob", 5)  # a question, an answer and its ranges do not wait for the report
        assert ann.wait(lambda state: state["judged"] and state["judged"]["ranges"])["answers"][0]["name"] == "Bob"
        state = ann.wait(lambda state: state["job"] is None)
        assert state["trouble"] == {}
        page = ann.http.get("/files/report.html").text
        assert "model.skops" in page
        assert "</html>" in page
        written = [line for line in state["record"][::-1] if line["kind"] == "exported"]
        assert [line["reasons"] for line in written] == [["agreed"], []]
        assert "report.html" not in written[0]["text"]
        # A later export leaves no report of the model before.
        ann.act("withdraw", of=next(line["n"] for line in state["record"] if line["kind"] == "answer"))
        ann.act("weights", set={"numeric": {"income": 0.005}})
        ann.post("export", report=False)
        state = ann.wait(lambda state: state["job"] is None and state["record"][0]["kind"] == "exported")
        assert set(state["exports"]) == {"metric.toml", "model.skops", "card.csv", "card.json", "minutes.md"}
