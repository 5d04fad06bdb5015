"""The log: all or nothing, on disk after each event, the same after a restart."""

import json
import random
from copy import deepcopy

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


def test_two_versions_have_two_names(tmp_path):
    log = session(tmp_path)
    log.act("version", "Ann", title="strict")
    with pytest.raises(InvalidInputError, match="There is a version 'strict' already"):
        log.act("version", "Bob", title="strict")
    log.act("version", "Bob", title="stricter")
    assert {*log.log.versions} == {"strict", "stricter"}


def test_the_last_change_is_the_last_event_that_changed_weights(tmp_path):
    log = session(tmp_path)
    assert log.last_change == 0
    for n, (kind, data) in enumerate(
        [("weights", {"set": {"numeric": {"income": 0.1}}}), ("note", {"text": "why"}), ("lock", {"column": "region"})],
        1,
    ):
        log.act(kind, "Ann", **data)
        assert log.last == n
    assert log.last_change == 3
    log.act("version", "Ann", title="strict")
    assert log.last_change == 3


class Committee:
    """What a log should say, in the plainest form: a list of sheets, and where one is in it."""

    def __init__(self):
        start = sheet(["race"])
        self.sheets, self.at = [(start.weights, start.units, start.locked, "")], 0
        self.made_by, self.versions, self.answers = [0], {}, {}

    def do(self, kind, data, n):
        """Whether it is allowed; if it is, it is done."""
        weights, units, locked, how = deepcopy(self.sheets[self.at])
        if kind in ("undo", "redo"):
            to = self.at + (1 if kind == "redo" else -1)
            if not 0 <= to < len(self.sheets):
                return False
            self.at = to
            return True
        if kind in ("weights", "start"):
            given = {(s, name): w for s, part in data["set"].items() for name, w in part.items()}
            if kind == "start":
                given = {(s, name): w for (s, name), w in given.items() if name not in locked or s == "missing"}
                how = data["how"]
            elif any(name in locked and w and s != "missing" for (s, name), w in given.items()):
                return False
            else:
                how = how and how.removesuffix(" Edited since.") + " Edited since."
            debt = given.get(("numeric", "debt"))
            if debt and not weights["missing"]["debt"] and ("missing", "debt") not in given:
                given["missing", "debt"] = min(1.0, debt * 40 / 2)
            for (s, name), w in given.items():
                weights[s][name] = w
        elif kind == "lock":
            if data["column"] in locked:
                return False
            locked = (*locked, data["column"])
            weights["numeric" if data["column"] in RANGES else "categorical"][data["column"]] = 0.0
        elif kind == "unlock":
            if data["column"] not in locked:
                return False
            locked = tuple(name for name in locked if name != data["column"])
        elif kind == "unit":
            units = {name: unit for name, unit in {**units, data["column"]: data["unit"]}.items() if unit}
        self.sheets, self.made_by = self.sheets[: self.at + 1], self.made_by[: self.at + 1]
        self.sheets.append((weights, units, locked, how))
        self.made_by.append(n)
        self.at += 1
        return True


def something(rng):
    """An event at random."""
    kind = rng.choice(["weights", "weights", "start", "lock", "unlock", "unit", "undo", "undo", "redo", "redo"])
    column, weight = rng.choice(["income", "debt", "region", "race"]), rng.choice([0.0, 0.01, 0.1])
    section = "numeric" if column in RANGES else "categorical"
    if kind == "start":
        return kind, {"set": {"numeric": {"debt": weight}, "categorical": {"race": weight}}, "how": "Revealed."}
    if kind == "weights":
        missing = {"missing": {"debt": rng.choice([0.0, 0.3])}} if rng.random() < 0.3 else {}
        return kind, {"set": {section: {column: weight}, **missing}}
    return kind, {"unit": {"column": column, "unit": rng.choice(["", "years"])}}.get(
        kind, {"column": column, "reason": "why"} if kind in ("lock", "unlock") else {}
    )


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_the_log_says_what_a_list_of_sheets_says(seed, tmp_path):
    rng, log, plain, refused = random.Random(seed), session(tmp_path), Committee(), 0
    for _ in range(120):
        kind, data = something(rng)
        undone = plain.made_by[plain.at] if kind == "undo" else None
        if plain.do(kind, data, log.last + 1):
            event = log.act(kind, "Ann", **data)
            assert event.get("of") == {"undo": undone, "redo": plain.made_by[plain.at]}.get(kind)
        else:
            refused += 1
            with pytest.raises(InvalidInputError):
                log.act(kind, "Ann", **data)
        assert (log.sheet.weights, log.sheet.units, log.sheet.locked, log.sheet.how) == plain.sheets[plain.at]
        if rng.random() < 0.1:
            log = session(tmp_path)  # the same after a restart
    assert 10 < refused < 90


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
        ("explain", {"of": 1, "text": "why"}, "an event in the record"),  # itself
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


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("weights", {"set": {"numeric": {"income": 0.2}}}),
        ("lock", {"column": "income"}),
        ("undo", {}),
        ("version", {"title": "second"}),
        ("answer", {"rows": [{"kind": "skip", "a": 1, "b": 3}]}),
        ("withdraw", {"of": 3}),
        ("explain", {"of": 1, "text": "and again"}),
        ("note", {"text": "later"}),
    ],
)
def test_a_failed_write_changes_nothing(tmp_path, monkeypatch, kind, data):
    log = session(tmp_path)
    set_income(log, 0.1)
    log.act("version", "Ann", title="first")
    log.act("answer", "Ann", rows=[{"kind": "skip", "a": 1, "b": 2}])
    log.act("explain", "Ann", of=1, text="agreed")
    before = deepcopy((log.events, log.log))

    def fail(*_args, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("likewise.workbench.state.json.dump", fail)
    with pytest.raises(FileError, match="No space left"):
        log.act(kind, "Ann", **data)
    assert (log.events, log.log) == before
    monkeypatch.undo()
    assert session(tmp_path).events == log.events
    log.act(kind, "Ann", **data)  # the control: it would have changed something
    assert (log.events, log.log) != before


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
    event = set_income(log, 0.3, browser="two", seen=0)  # Ann again, who has two browsers
    assert [each["n"] for each in log.overrode(event, 0)] == [1]
    assert log.overrode(event, 1) == []  # she had seen it
    # Nobody takes back what they have not seen.
    with pytest.raises(ConflictError, match="Ann has changed the weights since"):
        log.act("undo", "Ann", browser="one", seen=2)
    log.act("undo", "Ann", browser="one", seen=3)
    assert log.sheet.weights["numeric"]["income"] == 0.1
    event = set_income(log, 0.4, name="Bob", browser="one", seen=0)
    assert [each["n"] for each in log.overrode(event, 0)] == [3]  # what was done in this browser is known there


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
