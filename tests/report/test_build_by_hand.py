"""What a report is made of: whose probability, which people, and what is asked of whom."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, InvalidInputError, TableMetric
from likewise.kernel.bounds import Bound
from likewise.report import Cost, ReportData, charts
from likewise.report.build import _kind, _predict, _reasons, _searchable, shown_outcome
from likewise.scorecard.display import Panel
from likewise.selection.compare import Comparison
from likewise.selection.cross_validation import CVResult, Fold
from likewise.selection.tradeoff import Tradeoff
from promised import promise as promised_guarantee

METRIC = TableMetric({"age": 0.01})
PEOPLE = METRIC.encode_rows(pd.DataFrame({"age": [20.0, 30.0, 60.0]}))


def test_the_last_class_is_shown_unless_another_is_asked_for():
    classes = np.array(["no", "perhaps", "yes"])
    assert shown_outcome(None, classes, None) == (2, "yes")
    assert shown_outcome(None, classes, "no") == (0, "no")
    assert shown_outcome(None, np.array([0, 1]), "1") == (1, "1")
    with pytest.raises(InvalidInputError, match="outcome must be one of no, perhaps, yes; got 'never'"):
        shown_outcome(None, classes, "never")


def test_fewer_people_are_searched_the_more_a_score_costs():
    assert [_searchable(n) for n in (0, 1, 10_000, 20_000_000, 40_000_000)] == [3000, 3000, 2000, 100, 100]


def test_numbers_are_cut_to_the_range_of_the_promise_and_labels_are_certain():
    model = SimpleNamespace(predict=lambda table: 10 * table["age"].to_numpy())
    assert _predict(model, PEOPLE, None, (250.0, 400.0)).tolist() == [250.0, 300.0, 400.0]
    labels = SimpleNamespace(predict=lambda table: np.where(table["age"] > 25, "yes", "no"))
    assert _predict(labels, PEOPLE, np.array(["no", "yes"]), None).tolist() == [[1, 0], [0, 1], [0, 1]]


def test_a_search_leaves_room_for_epsilon_and_measures_in_the_range():
    promise = promised_guarantee(METRIC, Bound(), "sampled", "By hand.", slack=0.05, output_range=(100.0, 300.0))

    def scan(after, people=PEOPLE):
        data = ReportData(
            "A title", "wage", METRIC, people, promise, after=np.array(after), output_range=(100.0, 300.0)
        )
        return data.scan

    # 0.155 at a distance of 0.1, 0.445 at 0.3 and 0.6 at 0.4: by 0.055, 0.145 and 0.2.
    found = scan([100.0, 131.0, 220.0])
    worst = found.worst["after"].iloc[0]
    assert found.n_above == {"after": 3}
    assert worst["difference"] - worst["distance"] == pytest.approx(0.2)
    assert scan([100.0, 129.0, 100.0]).n_above == {"after": 0}
    assert scan([100.0], PEOPLE.take([0])) is None


def test_reasons_are_of_the_outcome_that_is_likelier_than_on_average_and_how_a_promise_is_kept_is_named():
    table = pd.DataFrame({"age": [20.0, 30.0, 40.0, 60.0]})
    model = AdditiveClassifier(METRIC, penalty=0.01).fit(table, [0, 0, 1, 1])
    people = METRIC.encode_rows(table)
    outcomes = [reasons[0].rsplit(" ", 1)[-1] for reasons in _reasons(model, people)]
    assert outcomes == ["0", "0", "1", "1"]
    assert (_kind(model), _kind(AdditiveRegressor()), _kind(SimpleNamespace())) == ("additive", "additive", "")


def test_the_ends_of_ordered_categories_are_those_that_are_drawn():
    """Eight knots and more: a far tail in which the points hardly move is cut, here the last category."""
    knots = np.array([0.0, 1, 2, 3, 4, 5, 6, 60])
    points = np.array([-1.0, -0.7, -0.4, -0.1, 0.2, 0.6, 0.99, 1.0])
    levels = tuple(f"step {k}" for k in range(61))
    panel = Panel("school", knots, points, points - 1, points + 1, np.zeros(7, bool), levels, [])
    first, last = panel.ends
    assert first == 0.0
    assert last < 60
    assert charts.shapes([panel], {}, 1)["first"][0]["ends"] == ["step 0", f"step {int(last)}"]


def test_categories_are_drawn_side_by_side_within_their_band():
    points = np.array([-1.0, 0.0, 1.0])
    panel = Panel(
        "job", None, points, np.full(3, -1.0), np.full(3, 1.0), np.array([True, False, True]), ("a", "b", "c"), []
    )
    found = charts.shapes([panel], {}, 1)
    drawn = found["first"][0]
    assert [x for x, _, _ in drawn["stems"]] == [40.0, 120.0, 200.0]
    assert [binds for _, _, binds in drawn["stems"]] == [True, False, True]
    top, bottom = drawn["band"]
    assert (drawn["stems"][2][1], drawn["stems"][0][1]) == (top, bottom)
    assert drawn["stems"][1][1] == found["zero"] == pytest.approx((top + bottom) / 2)


def test_a_chart_of_prices_stands_in_proportion():
    """Scales 1/2, 1 and 2 on a logarithmic axis; scores and their errors on a linear one."""
    folds = (Fold(np.arange(2), np.arange(2), np.arange(2)),)

    def showing(brier, error):
        row = {"title": "ours", "brier": brier, "brier_se": error, "level": ""}
        return CVResult(row | {"guarantee": True, "note": ""}, np.zeros(2), np.zeros((2, 2)), True)

    results = {0.5: showing(0.2, 0.05), 1.0: showing(0.15, 0.05), 2.0: showing(0.1, 0.0)}
    tradeoff = Tradeoff("ours", results, showing(0.25, 0.0), showing(0.12, 0.0), folds, "classification", METRIC)
    comparison = Comparison({"ours": showing(0.1, 0)}, {}, folds, "classification", METRIC)
    error = charts.tradeoff_chart(Cost(comparison, "ours", False, tradeoff))
    left, right = charts.LEFT, charts.WIDTH - charts.RIGHT
    assert [x for x, *_ in error["dots"]] == pytest.approx([left, (left + right) / 2, right])
    assert error["chosen"] == (left + right) / 2
    top, bottom = charts.TOP, charts.HEIGHT - charts.BOTTOM  # 0.25 and 0.1, the outermost ticks

    def at(value):
        return round(top + (0.25 - value) / 0.15 * (bottom - top), 1)

    assert error["dots"][0][1:] == (at(0.2), at(0.25), at(0.15))
    assert error["lines"] == [("the unconstrained model", at(0.12), "free"), ("a constant", at(0.25), "base")]
    assert [text for _, text in error["y_ticks"]] == ["0.10", "0.15", "0.20", "0.25"]
    assert error["rows"] == [("0.5", "0.2000", "0.0500"), ("1", "0.1500", "0.0500"), ("2", "0.1000", "0.0000")]
