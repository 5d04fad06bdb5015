"""Models beside each other in a report: whose figures stand where."""

import numpy as np
import pytest

from likewise import TableMetric
from likewise.report import Cost
from likewise.report.tables import costs
from likewise.selection.compare import Comparison
from likewise.selection.cross_validation import CVResult, Fold

FOLDS = tuple(Fold(np.arange(4), np.arange(2 * k, 2 * k + 2), np.arange(2)) for k in range(2))
FIGURES = {
    "constant": (0.25, 0.5, 0.61, 0.01, 0, True),
    "ours": (0.125, 0.75, 0.82, 0.02, 0, True),
    "other": (0.1, 0.8, 0.83, 0.03, 7, False),
    "unconstrained": (0.2, 0.7, 0.84, 0.04, 1234, False),
}


def cost():
    results = {}
    for name, (brier, auc, accuracy, error, violations, promise) in FIGURES.items():
        row = {"title": f"the {name}", "brier": brier, "brier_se": error, "auc": auc, "accuracy": accuracy}
        row |= {
            "violations": violations,
            "pairs": 4567,
            "people": 89,
            "guarantee": promise,
            "evaluations": 1,
            "note": "",
        }
        row |= {"level": "exact" if promise else "none"}
        results[name] = CVResult(row, np.full(4, brier), np.zeros((4, 2)), promise)
    comparison = Comparison(results, dict.fromkeys(results), FOLDS, "classification", TableMetric({"x": 1.0}))
    return Cost(comparison, "ours")


def test_each_row_has_its_own_figures_and_the_best_comes_first():
    found = costs(cost())
    _, own, free, constant = found["rows"]
    names = [row["name"] for row in found["rows"]]
    assert names == ["the other", "this model", "the unconstrained model", "a constant"]
    assert own["figures"] == ["0.1250", "0.750", "82.0%"]
    assert [row["error"] for row in found["rows"]] == ["0.0300", "0.0200", "0.0400", "0.0100"]
    assert [row["violations"] for row in found["rows"]] == [7, 0, 1234, 0]
    assert {row["pairs"] for row in found["rows"]} == {4567}
    assert (own["is_own"], constant["is_constant"], free["is_own"]) == (True, True, False)
    assert [row["guarantee"] for row in found["rows"]] == [False, True, False, True]
    assert (found["own"], found["constant"], found["unconstrained"]) == (own, constant, free)


def test_places_are_in_proportion_to_the_scores():
    """From 0.07 to 0.26, the outermost ends of errors, on 92 percent from 4 on."""
    places = {row["name"]: row["place"] for row in costs(cost())["rows"]}
    assert places["the other"] == pytest.approx((4 + 92 * 0.03 / 0.19, 4.0, 4 + 92 * 0.06 / 0.19), abs=0.05)
    assert places["a constant"][2] == 96.0
