"""Where an attack looks: what each column can hold, and how far a number moves, by hand."""

import numpy as np
import pandas as pd

from likewise import TableMetric, WeightedLp
from likewise.auditing.search_space import build_search_space
from likewise.kernel.columns import UNSEEN

METRIC = TableMetric(
    {"age": 0.01, "debt": 0.02, "school": 0.1, "height": 0.0}, {"job": 0.1, "land": 0.2}, missing={"debt": 0.3}
)
PEOPLE = pd.DataFrame(
    {
        "age": [20.0, 60.0, 40.0],
        "debt": [1.0, np.nan, 5.0],
        "school": pd.Categorical(["low", "high", "low"], ["low", "mid", "high"], ordered=True),
        "height": [150.0, 190.0, 170.0],
        "job": ["cook", None, "nurse"],
        "land": ["x", "y", "x"],
    }
)


def space():
    bound, people = METRIC.read(PEOPLE)
    return build_search_space(bound, people.rows, [np.empty(0)] * 6)


def test_every_category_a_missing_one_that_occurred_and_one_that_did_not_occur_are_tried():
    age, debt, school, height, job, land = space().choices
    assert (len(age), len(debt), len(height)) == (0, 0, 0)
    assert school.tolist() == [0.0, 1.0, 2.0]
    assert sorted(job) == [UNSEEN, 0.0, 1.0, 2.0]  # cook, nurse and missing
    assert sorted(land) == [UNSEEN, 0.0, 1.0]


def test_ranges_are_those_of_the_people_and_a_distance_of_1_is_a_weight_away():
    found = space()
    assert (found.low[:2].tolist(), found.high[:2].tolist()) == ([20.0, 1.0], [60.0, 5.0])
    assert found.nullable.tolist() == [False, True, False, True, False, False]  # what must not matter may be missing
    assert found.hidden.tolist() == [False, False, False, True, False, False]
    assert found.swappable.tolist() == [False, True, True, True, True, True]
    np.testing.assert_allclose(found.unit[[0, 1, 3]], [100.0, 50.0, 40.0])  # 1 / weight; of what is hidden, its range
    assert found.starts.shape == (3, 6)


def test_numbers_are_tried_at_those_of_the_people_and_halfway_between():
    metric = WeightedLp([0.1])
    bound, people = metric.read([[0.0], [4.0], [1.0]])
    (places,) = build_search_space(bound, people.rows, [np.array([9.0])]).breakpoints
    assert {0.0, 0.5, 1.0, 2.5, 4.0, 9.0} <= set(places.tolist())


def test_what_a_model_refuses_is_not_tried_and_named():
    def model(people):
        if (people.rows[:, 4] == UNSEEN).any() or np.isnan(people.rows[:, 1]).any():
            raise ValueError

    found = space().accepted_by(model)
    assert sorted(found.choices[4]) == [0.0, 1.0, 2.0]
    assert sorted(found.choices[5]) == [UNSEEN, 0.0, 1.0]
    assert found.nullable.tolist() == [False, False, False, True, False, False]
    assert found.refused == ("missing values of debt", "unseen values of job")
