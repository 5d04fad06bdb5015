"""How figures are written in tables, worked out by hand."""

import numpy as np
import pytest

from likewise.selection.compare import _amount, _score_cell, as_html, as_table, as_text
from likewise.selection.cross_validation import SCORES

BRIER, AUC, ACCURACY, LOG_LOSS, _ = SCORES["classification"]
SQUARED_ERROR, R2, _ = SCORES["regression"]
ROW = {"brier": 0.08764, "brier_se": 0.00123, "auc": 0.8126, "auc_se": 0.01, "accuracy": 0.8864, "accuracy_se": 0.0125}
ROW |= {"log_loss": 0.3, "log_loss_se": 0.1, "confidence": 0.75, "confidence_se": 0.0, "people": 1234, "violations": 5}
ROW |= {"pairs": 1_000_000, "guarantee": True, "level": "sampled", "epsilon": 0.0123, "evaluations": 200}
ROW |= {"microseconds": 123.4, "fit_seconds": 0.123, "note": ""}
ROWS = {
    "ours": {"title": "our method", **ROW},
    "other": {"title": "another", **ROW, "guarantee": False, "level": "none", "epsilon": np.nan},
    "left out": {"title": "not gone", "guarantee": False, "note": "skipped: it cannot"},
}


@pytest.mark.parametrize(
    ("measure", "value", "error", "text"),
    [
        (BRIER, 0.08764, 0.00123, "0.0876 ± 0.0012"),
        (AUC, 0.8126, 0.0004, "0.813 ± 0.000"),
        (ACCURACY, 0.8864, 0.0125, "88.6% ± 1.2"),
        (SQUARED_ERROR, 1234.56, 12.3, "1,235 ± 12"),
        (SQUARED_ERROR, 1.23456, 0.0123, "1.235 ± 0.012"),
        (SQUARED_ERROR, 5.0, 0.0, "5.0 ± 0.0"),
        (R2, np.nan, np.nan, ""),
    ],
)
def test_a_figure_and_its_error_have_the_same_digits(measure, value, error, text):
    assert _score_cell(measure, value, error) == text


def test_figures_of_a_sentence_have_four_digits_or_none():
    assert [BRIER.format(x) for x in (0.087654, 999.96, 1000.4, 123456.0)] == ["0.08765", "1000", "1,000", "123,456"]


def test_times_have_two_digits_below_a_hundred():
    assert [_amount(x) for x in (0.0123, 99.4, 100.0, 12345.6)] == ["0.012", "99", "100", "12,346"]


def test_a_terminal_shows_figures_promises_and_costs_of_the_methods_that_were_gone():
    text = as_text(as_table(ROWS, "classification"), "classification", "On whom.", "What follows.")
    figures, costs, notes, whom, what = text.split("\n\n")
    for words in ("our method", "0.0876 ± 0.0012", "0.813 ± 0.010", "88.6% ± 1.2", "0.300 ± 0.100", "75.0% ± 0.0"):
        assert words in figures.splitlines()[2]
    assert costs.splitlines()[2].split() == [
        "our",
        "method",
        "sampled",
        "0.012",
        "5",
        "1,000,000",
        "200",
        "123",
        "0.12",
    ]
    assert costs.splitlines()[3].split() == ["another", "none", "5", "1,000,000", "200", "123", "0.12"]
    assert "not gone" not in figures + costs
    assert (notes, whom, what) == ("not gone: skipped: it cannot.", "On whom.", "What follows.")


def test_a_notebook_shows_all_of_them_in_one_table():
    html = as_html(
        as_table(ROWS, "classification"), "classification", "A title", "On whom.", "What follows.", "our method"
    )
    for words in ("A title", "0.0876 ± 0.0012", "88.6% ± 1.2", "1,000,000", "skipped: it cannot", "What follows."):
        assert words in html


def test_counts_are_whole_and_missing_ones_stay_missing():
    table = as_table(ROWS, "classification")
    assert table["violations"].tolist()[:2] == [5, 5]
    assert table.loc["left out", ["violations", "people"]].isna().all()
    assert table["level"].tolist() == ["sampled", "none", ""]
    assert table.index.name == "method"
    assert list(table.columns[:3]) == ["title", "brier", "brier_se"]
