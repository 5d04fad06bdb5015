"""Bad input: every case ends in a result that keeps the promise, or in one clear error.

Here in a few hundred cases, and in ten thousand with the slow tests, the same in every run; `make fuzz` runs a million
others.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings

from fuzz import __main__ as main
from fuzz import cases, targets


@pytest.mark.parametrize("n_cases", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", targets.ALL, ids=lambda target: target.name)
def test_every_case_ends_well(target, n_cases):
    counts = Counter()
    n_cases = max(3, round(n_cases * target.share))

    @settings(max_examples=n_cases, database=None, suppress_health_check=targets.UNHURRIED)
    @given(target.strategy)
    def run(drawn):
        counts[target.case(drawn)] += 1

    run()
    # Not all were refused: otherwise nothing would have been tried.
    assert counts["result"] >= target.least * counts.total()


def test_the_page_is_filled_from_the_counts():
    page = (main.DOCS / "trust.md").read_text(encoding="utf-8")
    assert main.fill(page, main.read_counts()) == page


def test_counts_of_rounds_add_up_per_version_of_the_code():
    added = {"audit": [3, 1, 0, 0.5], "distances": [2, 2, 1, 0.25]}
    table = {}
    for code in ("a", "b", "a"):
        table = main.with_round(table, code, added)
    assert list(table) == ["b", "a"]  # the last one is what the page shows
    assert table["a"]["distances"] == (2, [4, 4, 2, 0.5])
    page = main.fill("<!-- begin: fuzz -->\n<!-- end: fuzz -->", table)
    assert "| audit | 8 | 6 | 2 | 0 | 125.0 |" in page
    assert "| **all** | **18** | 10 | 6 | **2** | |" in page
    assert "9 cases were run on earlier ones." in page


def test_control_a_built_in_error_is_a_finding():
    @cases.refusable
    def careless(drawn):
        return 1 / drawn

    with pytest.raises(ZeroDivisionError):
        careless(0)


def test_control_an_error_in_a_command_is_a_finding(monkeypatch):
    def careless(*given, **options):
        raise ZeroDivisionError

    words = ["audit", "loans.csv", "--metric", "metric.toml", "--scores", "score"]
    assert cases.command_line(words) == "result"
    monkeypatch.setattr("likewise.cli.main.main.invoke", careless)
    with pytest.raises(cases.FindingError, match="ZeroDivisionError"):
        cases.command_line(words)


@pytest.mark.parametrize("words", ["--out out.csv", "--out empty.csv --force"])
def test_control_a_command_that_changes_what_it_reads_is_a_finding(words, monkeypatch):
    line = ["score", "model.skops", "loans.csv", *words.split()]
    assert cases.command_line(line) == "result"

    def careless(*given, **options):
        (cases._folder() / "loans.csv").write_bytes(b"")

    monkeypatch.setattr("likewise.cli.main.main.invoke", careless)
    before = (cases._folder() / "loans.csv").read_bytes()
    with pytest.raises(cases.FindingError, match=r"changed loans\.csv"):
        cases.command_line(line)
    (cases._folder() / "loans.csv").write_bytes(before)


def test_control_a_broken_promise_is_a_finding():
    _, _, X, metric = cases._saved()
    model = cases.AdditiveClassifier(metric.scaled(2), penalty=1e-6, max_knots=4)
    model.fit(X, (X["age"] > 45).astype(int))
    with pytest.raises(cases.FindingError, match="promise is broken"):
        cases._keeps_promise(_Claiming(model, metric), metric, X)


class _Claiming:
    """A model with another's promise."""

    def __init__(self, model, metric):
        self.guarantee_ = cases.AdditiveClassifier(metric, penalty=1).fit(*_few()).guarantee_
        self.predict_proba = model.predict_proba


def _few():
    _, _, X, _ = cases._saved()
    return X, np.arange(len(X)) % 2
