"""Models beside each other in a report: whose figures stand where, and what they cost in people."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from likewise import TableMetric
from likewise.report import Cost, PeopleCost
from likewise.report.people import decide, people_cost, share_misranked
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
    wrong = {name: 1 - figures[2] for name, figures in FIGURES.items()}
    return Cost(comparison, "ours", people=PeopleCost(0.03, wrong, 0.004, 0.6))


def test_each_row_has_its_own_figures_and_the_best_comes_first():
    found = costs(cost())
    _, own, free, constant = found["rows"]
    names = [row["name"] for row in found["rows"]]
    assert names == ["the other", "this model", "the unconstrained model", "a constant"]
    assert own["figures"] == ["0.1250", "0.750"]
    assert [row["wrong"] for row in found["rows"]] == ["170", "180", "160", "390"]
    assert [row["error"] for row in found["rows"]] == ["0.0300", "0.0200", "0.0400", "0.0100"]
    assert (own["is_own"], constant["is_own"], free["is_own"]) == (True, False, False)
    assert [row["guarantee"] for row in found["rows"]] == [False, True, False, True]
    assert found["people"] == {
        "rate": "600", "other": "30", "own": "180", "free": "160", "constant": "390",
        "more": "20", "is_more": True, "error": "4", "is_told": True,
    }  # fmt: skip


def shown(predictions, losses=None):
    return CVResult({}, np.zeros(len(predictions)) if losses is None else losses, np.asarray(predictions, float), True)


def test_decisions_go_to_as_many_people_of_a_fold_as_had_the_outcome():
    """Two of the first four had it, and one of the last two; the two at the cut of the first fold share one."""
    second = np.array([0.9, 0.5, 0.5, 0.1, 0.2, 0.3])
    y, folds = np.array([1, 1, 0, 0, 1, 0]), (Fold(None, np.arange(4), None), Fold(None, np.arange(4, 6), None))
    result = shown(np.stack([1 - second, second], axis=1))
    assert decide(result, y, np.array([0, 1]), folds)[:, 1].tolist() == [1, 0.5, 0.5, 0, 0, 1]
    unmeasured = shown(result.predictions, np.array([np.nan, 0, 0, 0, 0, 0]))  # one of the other three had it
    found = decide(unmeasured, y, np.array([0, 1]), folds)
    assert np.isnan(found[0]).all()
    assert found[1:, 1].tolist() == [0.5, 0.5, 0, 0, 1]
    several = shown([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
    assert decide(several, np.array([0, 0]), np.arange(3), (Fold(None, np.arange(2), None),)).argmax(
        axis=1
    ).tolist() == [1, 0]


def test_the_cost_in_people_by_hand():
    """Two of eight get another decision; four are wrong by ours, two by the unconstrained model."""
    y = np.array([1, 1, 1, 1, 0, 0, 0, 0])
    scores = {
        "ours": [0.9, 0.8, 0.4, 0.3, 0.7, 0.6, 0.2, 0.1],
        "unconstrained": [0.9, 0.8, 0.7, 0.3, 0.6, 0.2, 0.1, 0.0],
        "constant": [0.5] * 8,
    }
    results = {name: shown(np.stack([1 - np.array(x), x], axis=1)) for name, x in scores.items()}
    results["failed"] = shown(np.full((8, 2), np.nan), np.full(8, np.nan))
    folds = (Fold(None, np.arange(8), None),)
    comparison = Comparison(results, {}, folds, "classification", TableMetric({"x": 1.0}))
    found = people_cost(comparison, "ours", y, np.array([0, 1]), 1)
    assert found.wrong == {"ours": 0.5, "unconstrained": 0.25, "constant": 0.5}
    assert (found.other, found.rate) == (0.25, 0.5)
    gap = np.array([0, 0, 1, 0, 0, 1, 0, 0])  # the third and the sixth
    assert found.error == pytest.approx(gap.std(ddof=1) / np.sqrt(8))
    assert people_cost(comparison, "unconstrained", y, np.array([0, 1]), 1).other == 0.0  # control


def test_pairs_of_people_are_misranked_as_the_area_under_the_curve_says():
    rng = np.random.default_rng(0)
    y, guess = rng.integers(0, 2, 300), rng.integers(0, 10, 300).astype(float)
    assert share_misranked(guess, y) == pytest.approx(1 - roc_auc_score(y, guess))
    assert (share_misranked(y, y), share_misranked(-y, y), share_misranked(0 * y, y)) == (0, 1, 0.5)
    assert np.isnan(share_misranked(guess, 0 * y))
    numbers = {"ours": [1.0, 3, 2, 4], "unconstrained": [1.0, 2, 3, 4], "constant": [2.0] * 4}
    results = {name: shown(x) for name, x in numbers.items()}
    folds = (Fold(None, np.arange(2), None), Fold(None, np.arange(4), None))
    comparison = Comparison(results, {}, folds, "regression", TableMetric({"x": 1.0}))
    found = people_cost(comparison, "ours", np.array([10.0, 20, 30, 40]), None, -1)
    assert found.wrong == pytest.approx({"ours": 1 / 12, "unconstrained": 0, "constant": 0.5})
    assert (found.other, found.rate) == (None, None)
    assert found.error == pytest.approx(1 / 12)
