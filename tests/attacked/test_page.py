"""What `docs/trust.md` says of the search for violations is what was found, case by case."""

import pandas as pd
import pytest

from attacked.cases import cases
from attacked.page import PAGE, RESULTS, STRATEGIES, fill, section, summed


def found(case, seed, excess, **counts):
    return {
        "case": case, "seed": seed, **counts, "largest excess": excess, "share used": 0.9 + excess,
        "violations": int(excess > 0), "worst pair": f"pair {seed}",
    }  # fmt: skip


def test_the_page_holds_the_results():
    page = PAGE.read_text(encoding="utf-8")
    assert fill(page, pd.read_csv(RESULTS)) == page


def test_every_case_was_attacked_and_none_was_found_to_exceed_its_guarantee():
    table = pd.read_csv(RESULTS)
    assert table["case"].tolist() == [case.name for case in cases()]
    assert set(table["method"]) == {"additive", "network", "projection", "smoothing"}
    assert table["violations"].sum() == 0
    assert table["largest excess"].max() <= 1e-12
    assert (table["pairs"] == table[STRATEGIES].sum(axis=1)).all()


def test_rounds_are_added_up_and_the_worst_pair_is_that_of_the_worst_round():
    name = cases()[0].name
    table = summed([found(name, 0, -0.1, random=10, lines=5), found(name, 1, 0.02, random=10)])
    assert len(table) == 1
    row = table.iloc[0]
    assert (row["rounds"], row["pairs"], row["random"], row["climbing"]) == (2, 25, 20, 0)
    assert (row["largest excess"], row["worst pair"], row["violations"]) == (0.02, "pair 1", 1)
    assert row["share used"] == pytest.approx(0.92)


def test_control_a_violation_stands_on_the_page():
    name = cases()[0].name
    assert "by more than 1e-12: 0." in section(summed([found(name, 0, -0.1, random=10)]))
    assert "by more than 1e-12: 1." in section(summed([found(name, 0, 0.02, random=10)]))


def test_names_of_cases_are_distinct():
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)
