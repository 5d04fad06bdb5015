"""Weights in round numbers."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise import FunctionMetric, TableMetric, WeightedLp
from likewise.metrics.rounding import MOST_STRICTER, round_amount, round_points
from likewise.metrics.table import BLANKS_ONLY
from likewise.metrics.units import Unit

ROUNDING = 1e-12
SCALES = st.floats(1e-9, 1e3)
SHARES = st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-6, 1))


def digits(text):
    """Significant digits of a number in a text."""
    bare = "".join(c for c in text if c in "0123456789.e-").split("e")[0].replace(".", "").replace("-", "")
    return len(bare.strip("0"))


@settings(max_examples=200, deadline=None)
@given(
    scales=st.lists(st.one_of(st.just(0.0), SCALES), min_size=4, max_size=4),
    shares=st.lists(SHARES, min_size=3, max_size=3),
)
def test_rounded_metrics_are_never_looser_and_at_most_ten_percent_stricter(scales, shares):
    units = {"income": "$1000", "cards": "1 card", "grade": "step"}
    names = ["income", "cards", "grade", "x"]
    given_metric = TableMetric(
        dict(zip(names, scales, strict=True)), {"c": shares[0]}, missing={"x": shares[1]}, units=units
    )
    rounded = given_metric.rounded()
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(8, 4)), columns=names).assign(c=list("aabbccdd"))
    people.loc[::3, "x"] = np.nan
    before, after = given_metric.pairwise(people), rounded.pairwise(people)
    assert (after <= before * (1 + ROUNDING)).all()
    assert (after >= (1 - MOST_STRICTER) * before * (1 - ROUNDING)).all()
    for part in ("numeric", "categorical", "missing"):
        for name, weight in getattr(given_metric, part).items():
            assert getattr(rounded, part)[name] <= weight
            assert (getattr(rounded, part)[name] == 0) == (weight == 0)
    assert rounded.rounded() == rounded
    assert all(digits(worth) <= 2 for worth in rounded.describe()["one point"] if worth != "must not matter")


@given(st.floats(1e-300, 1e300))
def test_control_numbers_rounded_the_other_way_would_be_looser(x):
    assert round_amount(x) >= x * (1 - 1e-8)
    assert round_points(x) <= x * (1 + 1e-8)


def test_round_numbers_are_those_that_people_say():
    assert [round_amount(x) for x in (4612, 4873, 1.93, 9.21, 23.1, 0.0481)] == [5000, 5000, 2, 10, 25, 0.05]
    assert [round_points(x) for x in (8.37, 10.9, 5.21, 31.4, 0.0213)] == [8, 10, 5, 30, 0.02]


def test_numbers_that_somebody_has_chosen_are_kept():
    metric = TableMetric({"a": 0.01 / 5200, "b": 0.01 / 3}, {"c": 0.17}, units={"a": "$"})
    assert metric.rounded() == metric


def test_counted_columns_speak_in_steps():
    metric = TableMetric(
        {"cards": 0.03, "grade": 0.0796, "years": 0.0796, "inquiries": 0.01},
        units={"cards": "1 card", "grade": "steps", "years": "years", "inquiries": "one inquiry"},
    )
    assert metric.describe()["one point"].tolist() == [
        "one more card = 3 points",
        "one step = 7.96 points",
        "0.126 years",
        "one more inquiry = 1 point",
    ]
    assert metric.rounded().describe()["one point"].tolist()[1] == "one step = 7.5 points"
    assert [Unit.of("1 card").written(x) for x in (0, 1, 3)] == ["0 cards", "1 card", "3 cards"]
    assert Unit.of("1 inquiry").difference("2") == "2 inquiries"
    assert Unit.of("step").written(3) == "3"


def test_arrays_and_functions_are_rounded_too():
    assert WeightedLp([0.00973, 0], 1).rounded() == WeightedLp([0.01 / 1.1, 0], 1)
    assert FunctionMetric(lambda a, b: np.zeros(len(a)), scale=0.0211).rounded().scale == 0.02


@pytest.mark.parametrize("weight", [1e-15, 1e-14])
def test_the_smallest_weights_are_kept(weight):
    assert WeightedLp([weight]).rounded().weights[0] == pytest.approx(weight, rel=0.1)


def test_weights_that_hardly_separate_people_are_0_and_blanks_weigh_nothing_alone():
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "income": rng.normal(50, 10, 400),  # 33 from the 5th to the 95th percentile
            "fees": np.where(np.arange(400) < 10, 1000.0, 0.0),  # the same in the middle; only the ends differ
            "tenure": np.where(rng.random(400) < 0.3, np.nan, rng.normal(5, 1, 400)),
            "only": np.where(rng.random(400) < 0.3, np.nan, 1.0),
            "region": rng.choice(["n", "s"], 400),
            "grade": rng.choice(["low", "high"], 400),
            "sex": "f",
        }
    )
    numeric = {"income": 0.0001, "fees": 1e-5, "tenure": 1e-4, "only": BLANKS_ONLY}
    metric = TableMetric(
        numeric,
        {"region": 0.004, "grade": 0.006, "sex": 0},
        missing={"tenure": 0.2, "only": 0.3},
        zero_reasons={"sex": "protected"},
    )
    kept = metric.without_negligible(people)
    assert kept.by_column == dict.fromkeys(metric.columns, 0) | {"fees": 1e-5, "grade": 0.006}
    assert dict(kept.missing) == {"tenure": 0, "only": 0}
    left = [name for name in metric.columns if name not in ("fees", "grade", "sex")]
    assert dict(kept.zero_reasons) == {"sex": "protected"} | dict.fromkeys(left, "not_used")
    assert kept.without_negligible(people) == kept
    assert (kept.pairwise(people[:50]) <= metric.pairwise(people[:50])).all()  # never looser
    larger = metric.scaled(2)  # control: 0.66 and 0.8 points
    assert {"income", "region"} <= set(larger.without_negligible(people).by_column) - set(
        larger.without_negligible(people).hidden
    )
