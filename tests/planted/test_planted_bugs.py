"""The list of planted bugs fits the source that is there, and what is said of them can be believed."""

import datetime
import re
import signal
import subprocess
import sys
import tomllib
from dataclasses import replace

import pytest
from pages import PAGE, fill, read_results
from planting import LIST, PER_DAY, ROOT, SOURCE, Bug, _compiled_from, changed, of_the_day, read_list, read_outcome

BUGS, CONTROLS, EQUIVALENT = (read_list(part) for part in ("bug", "control", "equivalent"))


@pytest.mark.parametrize("bug", [*BUGS, *CONTROLS, *EQUIVALENT], ids=lambda bug: bug.name)
def test_every_entry_applies_to_the_present_source(bug):
    text = (SOURCE / bug.file).read_text(encoding="utf-8")
    before, after = text.splitlines(), changed(text, bug).splitlines()
    assert len(before) == len(after)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    assert bug.breaks.endswith(".")


def test_the_tests_that_should_catch_are_there():
    for bug in (*BUGS, *CONTROLS):
        assert bug.tests, bug.name
        for test in bug.tests:
            file, _, name = test.partition("::")
            assert (ROOT / file).is_file(), test
            assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), test


def test_there_are_enough_and_each_has_a_name_of_its_own():
    names = [bug.name for bug in (*BUGS, *CONTROLS, *EQUIVALENT)]
    assert len(set(names)) == len(names)
    assert len(BUGS) >= 60
    assert len({bug.file for bug in BUGS}) >= 30


def test_a_change_that_fits_nowhere_or_twice_is_refused():
    bug = Bug("b", "f.py", "x = 1", "x = 2", (), "")
    assert changed("x = 1\ny = 1\n", bug) == "x = 2\ny = 1\n"
    for text, other in (("x = 3", bug), ("x = 1; x = 1", bug), ("x = 1", replace(bug, becomes="x = 1"))):
        with pytest.raises(ValueError, match=r"must occur once|a change of one line"):
            changed(text, other)
    with pytest.raises(SyntaxError):
        changed("x = 1", replace(bug, becomes="x = ("))
    assert changed("x = 1\nz = 0\nx = 1\nx = 1", replace(bug, after="z = 0")) == "x = 1\nz = 0\nx = 2\nx = 1"


def test_all_have_their_day():
    first = datetime.date(2026, 1, 1)
    days = [of_the_day(BUGS, first + datetime.timedelta(k)) for k in range(-(-len(BUGS) // PER_DAY))]
    assert {len(day) for day in days} == {PER_DAY}
    assert {bug.name for day in days for bug in day} == {bug.name for bug in BUGS}
    assert of_the_day(BUGS, first) == of_the_day(BUGS[::-1], first)


def test_only_a_test_that_fails_catches():
    assert read_outcome(0, "3 passed") == ("survived", "")
    failed = "FAILED tests/a/test_b.py::test_c[x - y] - assert 1 == 2\n1 failed"
    assert read_outcome(1, failed) == ("caught", "test_b.py::test_c")
    assert read_outcome(1, "ERROR tests/test_b.py::test_c - OSError\n1 error") == ("caught", "test_b.py::test_c")
    assert read_outcome(-signal.SIGXCPU, "") == ("caught", "the clock")
    for code, said in ((2, "ERROR tests/test_b.py - NameError\n1 error"), (5, "no tests ran"), (-11, ""), (4, "usage")):
        assert read_outcome(code, said)[0] == "broken"


def test_what_was_compiled_from_a_changed_file_is_compiled_anew():
    def stale(file):
        return {path.stem for path in _compiled_from(SOURCE.parent, file)}

    assert stale("kernel/bounds.py") == set()
    assert {"box_bounds", "box_tree", "box_search", "gather", "kernels"} <= stale("pairs/box_bounds.py")
    assert stale("pairs/box_search.py") == {"box_search", "gather", "comparators", "buckets"}
    assert {"kernels", "box_search", "transport"} <= stale("kernel/distance.py")  # kinds of columns are constants in it
    assert stale("kernel/evidence.py") == {"kernels"}


@pytest.mark.slow
def test_a_bug_is_caught_and_a_change_that_changes_nothing_survives():
    """From end to end; and the source itself is left as it was."""
    before = (SOURCE / "kernel" / "guarantee.py").read_bytes()
    done = subprocess.run(
        [sys.executable, "tests/planted", "in shares instead of units"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"survived .*control: changes nothing", done.stdout)
    assert re.search(r"caught .* promise of a regressor .* test_guarantee.py::test_for_regression", done.stdout)
    assert "1 of 1 planted bugs were caught" in done.stdout
    assert (SOURCE / "kernel" / "guarantee.py").read_bytes() == before


def test_the_page_says_what_was_found_and_nothing_survived():
    """A bug that is new on the list, or whose line has changed its name, is tried by ``make planted PLANTED=--new``."""
    results = read_results()
    assert set(tomllib.loads(LIST.read_text(encoding="utf-8"))) == {"bug", "control", "equivalent"}
    for bugs, expected in ((BUGS, "caught"), (CONTROLS, "survived")):
        outcomes = {bug.name: results.get(bug.name, {}).get("outcome", "not tried yet") for bug in bugs}
        assert {name: outcome for name, outcome in outcomes.items() if outcome != expected} == {}
    page = PAGE.read_text(encoding="utf-8")
    assert fill(page, results) == page
    assert f"**{len(BUGS)} of {len(BUGS)}** planted bugs were caught." in page


def test_control_a_bug_that_survived_stands_on_the_page():
    survived = {**read_results(), BUGS[0].name: {"outcome": "survived", "by": "", "seconds": 1.0}}
    page = fill(PAGE.read_text(encoding="utf-8"), survived)
    assert f"**{len(BUGS) - 1} of {len(BUGS)}** planted bugs were caught." in page
    assert f"| {BUGS[0].name} | **survived** |" in page
