"""Figures of groups, and all pairs of people, worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric
from likewise.report import GroupFigures, GroupScores
from likewise.report.build import _n_measured
from likewise.report.pairs import BINS, axis_limit, scan_pairs
from likewise.report.tables import groups, groups_of, protected_first

METRIC = TableMetric({"income": 0.01}, {"sex": 0.0, "job": 0.1})
TABLE = pd.DataFrame({"income": range(6), "sex": ["f", "m", "f", "m", "f", None], "job": "x"})
Y = np.array(["no", "no", "yes", "yes", "yes", "no"])
CLASSES = np.array(["no", "yes"])
DECIDED = np.eye(2)[[0, 1, 0, 1, 0, 0]]
AFTER = np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5], [0.0, 1.0], [np.nan, np.nan], [0.875, 0.125]])


def test_groups_of_classes_by_hand():
    """The fifth person was not measured."""
    answers = {"before": np.where(np.isnan(AFTER), 0.5, AFTER)[:, ::-1], "after": AFTER}
    decided = {"before": DECIDED[:, ::-1], "after": DECIDED}
    women, men, unknown = groups_of(TABLE, METRIC, Y, answers, decided, CLASSES, 1)
    assert (women.column, women.group, women.n, women.actual) == ("sex", "f", 2, 0.5)
    assert women.after == GroupFigures(0.375, 0.0, 0.5)
    assert (men.n, men.actual, men.after) == (2, 0.5, GroupFigures(0.875, 1.0, 0.5))
    assert men.before == GroupFigures(0.125, 0.0, 0.5)
    assert (unknown.group, unknown.n, unknown.actual, unknown.after) == (
        "missing",
        1,
        0.0,
        GroupFigures(0.125, 0.0, 0.0),
    )
    about_no = groups_of(TABLE, METRIC, Y, answers | {"before": None}, decided, CLASSES, 0)
    assert (about_no[0].actual, about_no[0].after, about_no[0].before) == (0.5, GroupFigures(0.625, 1.0, 0.5), None)


def test_groups_of_numbers_by_hand():
    answers = np.array([1.0, 2.0, 3.0, 8.0, 5.0, 6.0])
    women, men, _ = groups_of(TABLE, METRIC, np.arange(6.0), *2 * [{"before": None, "after": answers}], None, -1)
    assert (women.n, women.actual, women.after.mean, women.after.rate) == (3, 2.0, 3.0, None)
    assert women.after.error == pytest.approx(1.0)
    assert men.after.error == pytest.approx(np.sqrt((1 + 25) / 2))


def test_without_a_column_that_must_not_matter_all_categories_are_groups():
    metric = TableMetric({"income": 0.01}, {"sex": 0.2, "job": 0.1})
    found = groups_of(TABLE, metric, Y, *2 * [{"before": None, "after": AFTER}], CLASSES, 1)
    assert [(row.column, row.group) for row in found] == [("sex", "f"), ("sex", "m"), ("sex", "missing"), ("job", "x")]


def test_race_and_sex_come_first_then_what_else_is_protected_as_the_metric_lists_it():
    table = pd.DataFrame({"age": range(6), "job": "x", "sex": TABLE["sex"], "race": "y"})
    reasons = {"job": "not_used", "age": "protected", "sex": "protected"}  # of race nobody knows
    metric = TableMetric({"age": 0.0}, {"job": 0.0, "sex": 0.0, "race": 0.0}, zero_reasons=reasons)
    found = groups_of(table, metric, np.arange(6.0), *2 * [{"before": None, "after": np.zeros(6)}], None, -1)
    assert list(dict.fromkeys(row.column for row in found)) == ["race", "sex", "age", "job"]
    names = ["older", "married", "Gender", "applicant_race", "racer"]
    listed = TableMetric(dict.fromkeys(names, 0.0), zero_reasons=dict.fromkeys(["married", "older"], "protected"))
    assert sorted(names, key=protected_first(listed)) == ["applicant_race", "Gender", "married", "older", "racer"]


def test_many_numbers_are_cut_into_four_bands_of_which_each_holds_its_upper_end():
    table = pd.DataFrame({"age": np.arange(1, 13.0)})
    metric = TableMetric({"age": 0.0}, units={"age": "years"})
    found = groups_of(table, metric, np.arange(12.0), *2 * [{"before": None, "after": np.zeros(12)}], None, -1)
    assert [(row.group, row.n) for row in found] == [
        ("up to 3 years", 3),
        ("3 years to 6 years", 3),
        ("6 years to 9 years", 3),
        ("above 9 years", 3),
    ]
    assert [row.actual for row in found] == [1.0, 4.0, 7.0, 10.0]


def test_most_people_at_the_highest_number_are_one_band():
    table = pd.DataFrame({"age": [*range(9), *[9] * 91]})
    found = groups_of(
        table, TableMetric({"age": 0.0}), np.zeros(100), *2 * [{"before": None, "after": np.zeros(100)}], None, -1
    )
    assert [(row.group, row.n) for row in found] == [("all", 100)]


def test_eight_values_are_groups_and_nine_are_bands():
    for n, expected in ((8, 8), (9, 4)):
        table = pd.DataFrame({"age": np.arange(float(n))})
        answers = {"before": None, "after": np.zeros(n)}
        assert len(groups_of(table, TableMetric({"age": 0.0}), np.zeros(n), answers, answers, None, -1)) == expected


def test_ratios_are_to_the_highest_rate_of_the_column_on_each_side():
    rows = [
        GroupScores("sex", "f", 20, 0.5, GroupFigures(0.1, 0.2, 0.3), GroupFigures(0.1, 0.6, 0.3)),
        GroupScores("sex", "m", 20, 0.5, GroupFigures(0.1, 0.8, 0.3), GroupFigures(0.1, 0.3, 0.3)),
        GroupScores("sex", "x", 20, 0.5, None, GroupFigures(0.1, 0.0, 0.3)),
    ]
    found = groups(rows)
    assert [row["before_ratio"] for row in found] == [pytest.approx(0.25), 1.0, None]
    assert [row["after_ratio"] for row in found] == [1.0, 0.5, 0.0]


def test_a_decision_that_hardly_anybody_gets_has_no_ratios():
    for rate, known in ((0.02, False), (0.1, True)):  # 3 of 150 people get it, and 15
        rows = [
            GroupScores("race", r, n, 0.5, None, GroupFigures(0.1, share, 0.3))
            for r, n, share in (("a", 50, 0.0), ("b", 100, 1.5 * rate))
        ]
        assert [row["after_ratio"] is not None for row in groups(rows)] == [known, known]


def test_three_people_are_nobody_to_compare_others_with():
    rows = [
        GroupScores("sex", s, n, 0.5, None, GroupFigures(0.1, r, 0.3))
        for s, n, r in zip("fm?", (30, 40, 3), (0.4, 0.8, 1), strict=True)
    ]
    assert [row["after_ratio"] for row in groups(rows)] == [0.5, 1.0, None]


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_the_closest_pairs_are_those_that_use_most_of_what_they_may(n_outputs, epsilon):
    rng = np.random.default_rng(n_outputs)
    metric = TableMetric({"age": 0.02})
    people = metric.encode_rows(pd.DataFrame({"age": rng.uniform(0, 80, 450)}))  # more than two blocks
    answers = rng.random((450, n_outputs)) if n_outputs == 1 else rng.dirichlet(np.ones(3), 450)
    D = np.abs(people.rows - people.rows.T) * 0.02
    gap = np.abs(answers[:, None] - answers).sum(axis=2) / (1 if n_outputs == 1 else 2)
    used = np.where((D < 1) & (D >= 0.002) & (gap >= 0.002), gap / np.minimum(1, D + epsilon + 1e-300), -1)
    expected, free = [], np.triu(used, 1)
    for _ in range(5):
        a, b = np.unravel_index(free.argmax(), free.shape)
        expected.append((a, b))
        free[[a, b]] = free[:, [a, b]] = -1
    found = scan_pairs(people.rows, metric.bind(people.encoder), {"after": answers}, epsilon)
    assert list(zip(found.closest["row_a"], found.closest["row_b"], strict=True)) == expected
    a, b = found.closest["row_a"], found.closest["row_b"]
    np.testing.assert_allclose(found.closest["difference"], gap[a, b])
    np.testing.assert_allclose(found.closest["distance"], D[a, b])
    # And what else is said of all pairs.
    i, j = np.triu_indices(450, 1)
    above = gap[i, j] > D[i, j] + epsilon
    assert (found.n_pairs, found.n_above) == (len(i), {"after": above.sum()})
    assert above.any()
    near = (D[i, j] <= 0.05) & above
    story = np.flatnonzero(near)[gap[i, j][near].argmax()]
    assert (found.story.pair, found.story.within) == ((i[story], j[story]), 0.05)
    assert found.limit >= gap.max()
    drawn = D[i, j] <= found.limit
    assert found.cells["after"].sum(axis=(1, 2)).tolist() == [(drawn & ~above).sum(), (drawn & above).sum()]


def test_the_picture_counts_pairs_where_they_are_and_the_story_is_of_the_worst_that_are_alike():
    """Distances 0.11 and 0.31 from the first, 0.2 between the others; differences 0.15, 0.05 and 0.2."""
    metric = TableMetric({"age": 0.01})
    people = metric.encode_rows(pd.DataFrame({"age": [30, 41, 61]}))
    shares = {"before": np.array([[0.5], [0.65], [0.45]]), "after": np.array([[0.5], [0.5], [0.46]])}
    found = scan_pairs(people.rows, metric.bind(people.encoder), shares, 0.0)
    assert (found.n_above, found.limit) == ({"before": 1, "after": 0}, 0.2)
    within, above = np.argwhere(found.cells["before"][0]), np.argwhere(found.cells["before"][1])
    assert above.tolist() == [[int(0.11 / 0.2 * BINS), int(0.15 / 0.2 * BINS)]]
    assert within.tolist() == [[BINS - 1, BINS - 1]]  # the third pair is outside of the picture
    assert (found.story.pair, found.story.within) == ((0, 1), 0.2)
    nobody = scan_pairs(people.rows, metric.bind(people.encoder), {"after": shares["after"]}, 0.0)
    assert (nobody.story.pair, nobody.story.within) == ((1, 2), 0.2)  # of those who are alike, within their distance
    far = scan_pairs(people.rows, metric.scaled(20).bind(people.encoder), {"after": shares["after"]}, 0.0)
    assert (far.story.pair, far.story.within) == ((0, 2), np.inf)
    assert [axis_limit(x) for x in (0.0, 0.02, 0.021, 0.75, 0.76, 1.0)] == [0.02, 0.02, 0.05, 0.75, 1.0, 1.0]


def test_people_are_measured_who_have_a_loss():
    """Slow models are measured on a sample of those held out."""
    losses = np.array([0.1, np.nan, 0.0, np.nan, 0.3])
    cost = SimpleNamespace(method="ours", comparison=SimpleNamespace(results={"ours": SimpleNamespace(losses=losses)}))
    assert _n_measured(cost) == 3


def test_a_group_of_whom_not_all_were_measured_by_a_model_has_no_figures_of_it():
    """Before, the first woman was not measured; the others were."""
    before = np.where(np.isnan(AFTER), 0.5, AFTER)
    before[0] = np.nan
    women, men, _ = groups_of(
        TABLE, METRIC, Y, {"before": before, "after": AFTER}, dict.fromkeys(["before", "after"], DECIDED), CLASSES, 1
    )
    assert women.before is None
    assert women.after == GroupFigures(0.375, 0.0, 0.5)
    assert men.before == GroupFigures(0.875, 1.0, 0.5)
