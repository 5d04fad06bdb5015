"""Questions about pairs."""

import numpy as np
import pandas as pd
import pytest

from committee import applicants, problem_of, session_of
from likewise import learn_metric
from likewise.workbench.engine import Engine
from likewise.workbench.judging import Judging, shown
from likewise.workbench.starts import from_answers


def test_two_pairs_to_compare_differ_in_other_columns_and_are_not_asked_again(tmp_path):
    engine = Engine(problem_of(*applicants(200)))
    session = session_of(engine, tmp_path / "people.likewise.json", locked=["race"])
    judging, seen = Judging(engine, session), set()
    for _ in range(3):
        question = judging.question("Ann", compare=True)
        one, other = ({line["column"] for line in question[side]} for side in ("differences", "others"))
        assert one != other
        assert "race" not in one | other
        pairs = {(question["a"], question["b"]), (question["c"], question["d"])}
        assert not pairs & seen
        seen |= pairs
        row = {"kind": "closer", **{side: question[side] for side in "abcd"}}
        session.act("answer", "Ann", rows=[row])
    # Somebody else is asked the same from the beginning.
    assert judging.question("Bob", compare=True)["a"] in {a for a, _ in seen}


def judging_of(tmp_path, X, y):
    engine = Engine(problem_of(X, y))
    return Judging(engine, session_of(engine, tmp_path / "judged.likewise.json"))


def points(kind, a, b, n):
    return {"kind": kind, "a": a, "b": b, "points": n}


@pytest.mark.parametrize(
    ("ann", "bob"),
    [
        (points("at_most", 1, 2, 20), points("at_most", "2", "1", 60)),
        (points("at_least", 1, 2, 5), points("at_least", 1, 2, 10)),
        (
            {"kind": "closer", **dict(zip("abcd", (1, 2, 3, 4), strict=True))},
            {"kind": "closer", **dict(zip("abcd", (4, 3, 1, 2), strict=True))},
        ),
    ],
)
def test_different_answers_to_one_question_are_to_be_discussed_though_both_can_hold(tmp_path, ann, bob):
    judging = judging_of(tmp_path, *applicants(60))
    scale = points("at_most", 7, 8, 50)
    for name, row in (("Ann", scale), ("Bob", scale), ("Ann", ann), ("Cy", ann)):
        judging.session.act("answer", name, rows=[row])
    assert judging.summary()["disagreements"] == []  # they say the same
    judging.session.act("answer", "Bob", rows=[bob])
    found = judging.summary()
    assert found["conflicts"] == []
    assert [[said["name"] for said in group] for group in found["disagreements"]] == [["Ann", "Cy", "Bob"]]
    judging.session.act("withdraw", "Bob", of=5)
    assert judging.summary()["disagreements"] == []


def test_one_person_who_differs_from_one_other_is_a_disagreement_and_three_who_agree_are_none(tmp_path):
    judging = judging_of(tmp_path, *applicants(60))
    for name in ("Ann", "Bob", "Cy"):
        judging.session.act("answer", name, rows=[points("at_most", 1, 2, 20)])
    assert judging.summary()["disagreements"] == []
    for name, most in (("Ann", 30), ("Bob", 60)):
        judging.session.act("answer", name, rows=[points("at_most", 3, 4, most)])
    assert [[said["name"] for said in group] for group in judging.summary()["disagreements"]] == [["Ann", "Bob"]]


def test_a_conflict_is_not_shown_as_a_disagreement_too(tmp_path):
    judging = judging_of(tmp_path, *applicants(60))
    judging.session.act("answer", "Ann", rows=[points("at_most", 1, 2, 3)])
    judging.session.act("answer", "Bob", rows=[points("at_least", 1, 2, 20), points("at_most", 1, 2, 100)])
    found = judging.summary()
    assert [[said["name"] for said in group] for group in found["conflicts"]] == [["Ann", "Bob"]]
    assert found["disagreements"] == []


def test_judged_weights_are_of_what_was_asked_and_answers_are_counted_once(tmp_path):
    X, y = applicants(60)
    X.loc[2] = X.loc[1] = {"income": 50.0, "debt": 4.0, "region": "north", "race": "x"}
    X.loc[2, ["income", "debt"]] = 60.0, 14.0
    judging = judging_of(tmp_path, X, y)
    judging.session.act("answer", "Ann", rows=[points("at_least", 1, 2, 4), points("at_most", 1, 2, 6)])
    judging.session.act("answer", "Bob", rows=[points("at_least", 2, 1, 4), points("at_most", 2, 1, 6)])
    judging.session.act("answer", "Bob", rows=[{"kind": "skip", "a": 1, "b": 3}])
    assert [(range_["column"], range_["n_answers"]) for range_ in judging.summary()["ranges"]] == [
        ("income", 2),
        ("debt", 2),
    ]
    found = from_answers(judging.engine, judging, "judged")
    # Nobody was asked about region and race, which were worth half of everything.
    assert found["set"]["categorical"] == {"region": 0.0, "race": 0.0}
    assert found["how"].startswith("Learned from 2 answers: ")
    assert "No answer is about region, race: at 0." in found["how"]
    # Nor about blanks; a blank at 0 would not let debt matter at all.
    debt = found["set"]["numeric"]["debt"]
    assert debt > 0
    assert found["set"]["missing"]["debt"] == pytest.approx(debt * np.ptp(X["debt"].dropna()) / 2)
    assert "No answer is about blanks of debt" in found["how"]
    # What the answers are about is as it was learned.
    learned = judging.learn()
    assert found["set"]["numeric"] == pytest.approx(dict(learned.metric.numeric))


def test_a_conflict_names_those_who_are_in_it_whatever_was_skipped(tmp_path):
    engine = Engine(problem_of(*applicants(60)))
    session = session_of(engine, tmp_path / "people.likewise.json", locked=["race"])
    judging = Judging(engine, session)
    session.act("answer", "Ann", rows=[{"kind": "skip", "a": 5, "b": 6}])
    session.act("answer", "Ann", rows=[{"kind": "at_most", "a": 7, "b": 8, "points": 60}])
    session.act("answer", "Ann", rows=[{"kind": "at_most", "a": 1, "b": 2, "points": 3}])
    session.act("answer", "Bob", rows=[{"kind": "at_least", "a": 2, "b": 1, "points": 20}])
    found = judging.summary()
    assert found["conflicts"] == [
        [
            {"n": 3, "name": "Ann", "text": "1 and 2 are at most 3 points apart"},
            {"n": 4, "name": "Bob", "text": "2 and 1 are at least 20 points apart"},
        ]
    ]
    skipped = [answer["texts"][0].startswith("no answer about") for answer in judging.answers()]
    assert skipped == [True, False, False, False]
    learned = learn_metric(pd.DataFrame(session.judgements()), engine.X.drop(columns="race"), categorical=["region"])
    limited = learned.ranges[learned.ranges["n_answers"] > 0]
    expected = limited.assign(high=limited["high"].astype(object).where(np.isfinite(limited["high"]), None))
    assert found["ranges"] == [{name: row[name] for name in found["ranges"][0]} for row in expected.to_dict("records")]
    session.act("withdraw", "Bob", of=4)
    assert judging.summary()["conflicts"] == []


def test_everybody_is_asked_about_what_they_have_not_answered(tmp_path):
    engine = Engine(problem_of(*applicants(60)))
    session = session_of(engine, tmp_path / "people.likewise.json", locked=["race"])
    judging = Judging(engine, session)
    first = judging.question("Ann")
    session.act("answer", "Ann", rows=[{"kind": "at_most", "a": first["a"], "b": first["b"], "points": 5}])
    assert {judging.question("Ann")[side] for side in "ab"} != {first["a"], first["b"]}
    assert judging.question("Bob") == first
    lines = {line["column"]: (line["a"], line["b"]) for line in first["differences"]}
    a, b = (engine.X.loc[int(first[side])] for side in "ab")
    assert lines == {name: (shown(a[name]), shown(b[name])) for name in lines}
    assert first["n_same"] == 3 - len(lines)
