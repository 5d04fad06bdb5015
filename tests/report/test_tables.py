"""Figures of groups, and pairs close to their limit, worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric
from likewise.report import GroupFigures, GroupScores
from likewise.report.build import _n_measured
from likewise.report.pairs import closest_pairs
from likewise.report.tables import groups, groups_of

METRIC = TableMetric({"income": 0.01}, {"sex": 0.0, "job": 0.1})
TABLE = pd.DataFrame({"income": range(6), "sex": ["f", "m", "f", "m", "f", None], "job": "x"})
Y = np.array(["no", "no", "yes", "yes", "yes", "no"])
CLASSES = np.array(["no", "yes"])
AFTER = np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5], [0.0, 1.0], [np.nan, np.nan], [0.875, 0.125]])


def test_groups_of_classes_by_hand():
    """The fifth person was not measured; of equal probabilities the first class is the likely one."""
    before = np.where(np.isnan(AFTER), 0.5, AFTER)[:, ::-1]
    women, men, unknown = groups_of(TABLE, METRIC, Y, {"before": before, "after": AFTER}, CLASSES, 1)
    assert (women.column, women.group, women.n, women.actual) == ("sex", "f", 2, 0.5)
    assert women.after == GroupFigures(0.375, 0.0, 0.5)
    assert (men.n, men.actual, men.after) == (2, 0.5, GroupFigures(0.875, 1.0, 0.5))
    assert men.before == GroupFigures(0.125, 0.0, 0.5)
    assert (unknown.group, unknown.n, unknown.actual, unknown.after) == (
        "missing",
        1,
        0.0,
        GroupFigures(0.125, 0.0, 1.0),
    )
    about_no = groups_of(TABLE, METRIC, Y, {"before": None, "after": AFTER}, CLASSES, 0)
    assert (about_no[0].actual, about_no[0].after, about_no[0].before) == (0.5, GroupFigures(0.625, 1.0, 0.5), None)


def test_groups_of_numbers_by_hand():
    answers = np.array([1.0, 2.0, 3.0, 8.0, 5.0, 6.0])
    women, men, _ = groups_of(TABLE, METRIC, np.arange(6.0), {"before": None, "after": answers}, None, -1)
    assert (women.n, women.actual, women.after.mean, women.after.rate) == (3, 2.0, 3.0, None)
    assert women.after.score == pytest.approx(1.0)
    assert men.after.score == pytest.approx(np.sqrt((1 + 25) / 2))


def test_without_a_column_that_must_not_matter_all_categories_are_groups():
    metric = TableMetric({"income": 0.01}, {"sex": 0.2, "job": 0.1})
    found = groups_of(TABLE, metric, Y, {"before": None, "after": AFTER}, CLASSES, 1)
    assert [(row.column, row.group) for row in found] == [("sex", "f"), ("sex", "m"), ("sex", "missing"), ("job", "x")]


def test_many_numbers_are_cut_into_four_bands_of_which_each_holds_its_upper_end():
    table = pd.DataFrame({"age": np.arange(1, 13.0)})
    metric = TableMetric({"age": 0.0}, units={"age": "years"})
    found = groups_of(table, metric, np.arange(12.0), {"before": None, "after": np.zeros(12)}, None, -1)
    assert [(row.group, row.n) for row in found] == [
        ("up to 3 years", 3),
        ("3 years to 6 years", 3),
        ("6 years to 9 years", 3),
        ("above 9 years", 3),
    ]
    assert [row.actual for row in found] == [1.0, 4.0, 7.0, 10.0]


def test_eight_values_are_groups_and_nine_are_bands():
    for n, expected in ((8, 8), (9, 4)):
        table = pd.DataFrame({"age": np.arange(float(n))})
        answers = {"before": None, "after": np.zeros(n)}
        assert len(groups_of(table, TableMetric({"age": 0.0}), np.zeros(n), answers, None, -1)) == expected


def test_ratios_are_to_the_highest_rate_of_the_column_on_each_side():
    rows = [
        GroupScores("sex", "f", 9, 0.5, GroupFigures(0.1, 0.2, 0.3), GroupFigures(0.1, 0.6, 0.3)),
        GroupScores("sex", "m", 9, 0.5, GroupFigures(0.1, 0.8, 0.3), GroupFigures(0.1, 0.3, 0.3)),
        GroupScores("sex", "x", 9, 0.5, None, GroupFigures(0.1, 0.0, 0.3)),
    ]
    found = groups(rows)
    assert [row["before_ratio"] for row in found] == [pytest.approx(0.25), 1.0, None]
    assert [row["after_ratio"] for row in found] == [1.0, 0.5, 0.0]


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
    found = closest_pairs(people, answers, metric.bind(people.encoder), epsilon, 5)
    assert list(zip(found["row_a"], found["row_b"], strict=True)) == expected
    a, b = found["row_a"], found["row_b"]
    np.testing.assert_allclose(found["difference"], gap[a, b])
    np.testing.assert_allclose(found["distance"], D[a, b])


def test_people_are_measured_who_have_a_loss():
    """Slow models are measured on a sample of those held out."""
    losses = np.array([0.1, np.nan, 0.0, np.nan, 0.3])
    cost = SimpleNamespace(method="ours", comparison=SimpleNamespace(results={"ours": SimpleNamespace(losses=losses)}))
    assert _n_measured(cost) == 3


def test_a_group_of_whom_not_all_were_measured_by_a_model_has_no_figures_of_it():
    """Before, the first woman was not measured; the others were."""
    before = np.where(np.isnan(AFTER), 0.5, AFTER)
    before[0] = np.nan
    women, men, _ = groups_of(TABLE, METRIC, Y, {"before": before, "after": AFTER}, CLASSES, 1)
    assert women.before is None
    assert women.after == GroupFigures(0.375, 0.0, 0.5)
    assert men.before == GroupFigures(0.875, 1.0, 0.5)
