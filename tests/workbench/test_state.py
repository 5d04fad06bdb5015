"""The log: all or nothing, on disk after each event, the same after a restart."""

import json

import pytest

from likewise.exceptions import FileError, InvalidInputError
from likewise.workbench.state import ConflictError, Session, Sheet

RANGES = {"income": (0.0, 100.0), "debt": (0.0, 40.0)}


def sheet(locked=()):
    weights = {
        "numeric": {"income": 0.0, "debt": 0.0},
        "categorical": {"region": 0.0, "race": 0.0},
        "missing": {"debt": 0.0},
    }
    return Sheet(weights, {"income": "$1000"}, tuple(locked))


def session(tmp_path, locked=("race",), fingerprint="f"):
    table = {"name": "people.csv", "target": "y", "fingerprint": fingerprint}
    return Session(tmp_path / "s.likewise.json", table, sheet(locked), RANGES)


def set_income(log, weight, name="Ann", **more):
    return log.act("weights", name, set={"numeric": {"income": weight}}, **more)


def test_what_was_done_is_there_after_a_restart(tmp_path):
    first = session(tmp_path)
    set_income(first, 0.004, reason="one point per $2,500")
    first.act("version", "Ann", title="strict")
    set_income(first, 0.008, name="Bob")
    first.act("undo", "Ann")
    first.act("answer", "Bob", rows=[{"kind": "at_most", "a": "1", "b": "2", "points": 5}])
    again = session(tmp_path)
    assert again.reopened
    assert again.events == first.events
    assert again.log == first.log
    assert again.sheet.weights["numeric"]["income"] == 0.004
    assert again.log.versions["strict"] == again.sheet


def test_undo_and_redo_walk_through_the_sheets(tmp_path):
    log = session(tmp_path)
    for weight in (0.001, 0.002, 0.003):
        set_income(log, weight)
    log.act("undo", "Ann")
    log.act("undo", "Ann")
    assert log.sheet.weights["numeric"]["income"] == 0.001
    log.act("redo", "Ann")
    assert log.sheet.weights["numeric"]["income"] == 0.002
    set_income(log, 0.009)  # what was undone is gone
    with pytest.raises(InvalidInputError, match="nothing to redo"):
        log.act("redo", "Ann")
    assert [event["of"] for event in log.events if event["kind"] in ("undo", "redo")] == [3, 2, 2]


def test_a_locked_column_stays_at_0_until_it_is_unlocked_with_a_reason(tmp_path):
    log = session(tmp_path)
    with pytest.raises(InvalidInputError, match="race is locked at 0"):
        log.act("weights", "Ann", set={"categorical": {"race": 0.1}})
    with pytest.raises(InvalidInputError, match="needs a reason"):
        log.act("unlock", "Ann", column="race")
    # Weights that come from elsewhere are taken, except that of the locked column.
    log.act("start", "Ann", set={"categorical": {"race": 0.2, "region": 0.1}}, how="Revealed.")
    assert log.sheet.weights["categorical"] == {"region": 0.1, "race": 0.0}
    log.act("unlock", "Ann", column="race", reason="affirmative programme")
    log.act("weights", "Ann", set={"categorical": {"race": 0.1}})
    log.act("lock", "Ann", column="race")
    assert log.sheet.weights["categorical"]["race"] == 0.0


def test_a_sheet_keeps_its_locks():
    """As a metric file at the start gives weights, without a session."""
    given = {"categorical": {"race": 0.2, "region": 0.1}}
    assert sheet(["race"]).with_weights(given).weights["categorical"] == {"region": 0.1, "race": 0.0}
    assert sheet().with_weights(given).weights["categorical"] == {"region": 0.1, "race": 0.2}


def test_blanks_of_a_column_that_begins_to_matter_get_a_weight(tmp_path):
    log = session(tmp_path)
    log.act("weights", "Ann", set={"numeric": {"debt": 0.01}})
    # Half of the largest difference, 0.01 x 40: the column keeps its full effect.
    assert log.sheet.weights["missing"]["debt"] == 0.2
    log.act("weights", "Ann", set={"missing": {"debt": 0.05}})
    log.act("weights", "Ann", set={"numeric": {"debt": 0.02}})
    assert log.sheet.weights["missing"]["debt"] == 0.05  # somebody chose it


@pytest.mark.parametrize(
    ("kind", "data", "rule"),
    [
        ("weights", {"set": {"numeric": {"income": -1}}}, "non-negative"),
        ("weights", {"set": {"numeric": {"income": float("nan")}}}, "must be a number"),
        ("weights", {"set": {"numeric": {"income": True}}}, "must be a number"),
        ("weights", {"set": {"categorical": {"region": 2}}}, "between 0 and 1"),
        ("weights", {"set": {"numeric": {"nobody": 1}}}, "columns of the metric"),
        ("weights", {"set": {"other": {"income": 1}}}, "sections"),
        ("weights", {"set": None}, "got none"),
        ("lock", {"column": "race"}, "already locked"),
        ("lock", {"column": ["race"]}, "must be a column"),
        ("version", {"title": "  "}, "Give the version a name"),
        ("note", {"text": "x" * 3000}, "at most 2,000"),
        ("answer", {"rows": [{"kind": "at_most", "a": 1, "b": 2, "points": 101}]}, "from 0 to 100"),
        ("answer", {"rows": [{"kind": "closer", "a": 1, "b": 2}]}, "comparison four"),
        ("answer", {"rows": []}, "one or two answers"),
        ("withdraw", {"of": 7}, "answer that stands"),
        ("explain", {"of": 99, "text": "why"}, "an event in the record"),
        ("undo", {}, "nothing to undo"),
        ("drop table", {}, "kind must be one of"),
    ],
)
def test_what_is_refused_changes_nothing(tmp_path, kind, data, rule):
    log = session(tmp_path)
    before = log.path.read_bytes()
    with pytest.raises(InvalidInputError, match=rule):
        log.act(kind, "Ann", **data)
    assert (log.events, log.path.read_bytes()) == ([], before)


def test_nobody_decides_without_a_name(tmp_path):
    with pytest.raises(InvalidInputError, match="Enter your name"):
        set_income(session(tmp_path), 0.1, name="  ")


def test_a_failed_write_changes_nothing(tmp_path, monkeypatch):
    log = session(tmp_path)
    set_income(log, 0.1)

    def fail(*_args, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("likewise.workbench.state.json.dump", fail)
    with pytest.raises(FileError, match="No space left"):
        set_income(log, 0.2)
    assert log.sheet.weights["numeric"]["income"] == 0.1
    monkeypatch.undo()
    assert session(tmp_path).events == log.events


def test_two_processes_do_not_overwrite_each_other(tmp_path):
    first, second = session(tmp_path), session(tmp_path)
    set_income(first, 0.1)
    with pytest.raises(FileError, match="changed by another process"):
        set_income(second, 0.2)
    assert session(tmp_path).sheet.weights["numeric"]["income"] == 0.1


def test_two_browsers_lose_nothing_and_hear_of_each_other(tmp_path):
    log = session(tmp_path)
    set_income(log, 0.1, browser="one", seen=0)
    event = log.act("weights", "Bob", set={"categorical": {"region": 0.2}}, browser="two", seen=0)
    assert log.overrode(event, 0) == []  # another column
    assert (log.sheet.weights["numeric"]["income"], log.sheet.weights["categorical"]["region"]) == (0.1, 0.2)
    event = set_income(log, 0.3, name="Bob", browser="two", seen=0)
    assert [each["n"] for each in log.overrode(event, 0)] == [1]
    # Nobody takes back what they have not seen.
    with pytest.raises(ConflictError, match="Bob has changed the weights since"):
        log.act("undo", "Ann", browser="one", seen=1)
    log.act("undo", "Ann", browser="one", seen=3)
    assert log.sheet.weights["numeric"]["income"] == 0.1


def test_a_file_of_another_table_or_kind_is_refused(tmp_path):
    log = session(tmp_path)
    set_income(log, 0.1)
    with pytest.raises(FileError, match="another table or target"):
        session(tmp_path, fingerprint="g")
    for text in ("", "[]", json.dumps({"format": "likewise workbench 99"}), "[" * 100_000):
        log.path.write_text(text, encoding="utf-8")
        with pytest.raises(FileError, match="not a workbench file"):
            session(tmp_path)


def test_control_characters_do_not_reach_the_record(tmp_path):
    event = session(tmp_path).act("note", "A\x00nn\x1b", text="one\ntwo\x7f")
    assert (event["name"], event["text"]) == ("Ann", "one two")
