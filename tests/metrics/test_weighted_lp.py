import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from likewise import InvalidInputError, WeightedLp
from likewise.kernel.schema import ArrayEncoder

EXPONENTS = [1, 1.5, 2, 3, np.inf]


def by_definition(weights, p, x, y):
    gaps = np.abs(np.asarray(x, float) - y)
    if p == np.inf:
        return max(weights * gaps)
    return sum(weights * gaps**p) ** (1 / p)


@pytest.mark.parametrize("p", EXPONENTS)
def test_distances_follow_the_definition_row_by_row_and_pairwise(p):
    rng = np.random.default_rng(0)
    weights = np.array([4.0, 0.0, 0.25, 1.0])
    metric = WeightedLp(weights, p)
    A, B = rng.normal(size=(5, 4)) * 10, rng.normal(size=(6, 4)) * 10
    expected = np.array([[by_definition(weights, p, a, b) for b in B] for a in A])
    np.testing.assert_allclose(metric.pairwise(A, B), expected, rtol=1e-12)
    np.testing.assert_allclose(metric(A, B[:5]), np.diag(expected), rtol=1e-12)
    np.testing.assert_allclose(metric(A[0], B), expected[0], rtol=1e-12)
    assert metric(A[0], B[0]).shape == ()


@pytest.mark.parametrize("p", EXPONENTS)
def test_the_scales_are_the_canonical_form(p):
    metric = WeightedLp([4.0, 0.25, 0.0], p)
    step = np.eye(3)
    np.testing.assert_allclose(metric(step, np.zeros(3)), metric.scales)


coordinates = arrays(np.float64, (3, 3), elements=st.floats(-1e6, 1e6))
exponents = st.one_of(st.floats(1, 50), st.just(np.inf))


@given(coordinates, exponents, arrays(np.float64, 3, elements=st.just(0.0) | st.floats(1e-100, 1e3)))
def test_it_is_a_pseudometric(points, p, weights):
    metric = WeightedLp(weights, p)
    x, y, z = points
    assert metric(x, x) == 0
    assert metric(x, y) == metric(y, x)
    assert metric(x, z) <= (metric(x, y) + metric(y, z)) * (1 + 1e-9) + 1e-300


@pytest.mark.parametrize("p", EXPONENTS)
def test_scaled_scales_distances(p):
    metric = WeightedLp([1.0, 0.0, 5.0], p)
    x, y = [1, 2, 3], [3, 1, -1]
    np.testing.assert_allclose(metric.scaled(3)(x, y), 3 * metric(x, y))


@pytest.mark.parametrize("factor", [2, 0.5])
def test_a_factor_whose_power_is_no_number_is_refused(factor):
    with pytest.raises(InvalidInputError, match=r"factor must be within 1e-100 to 1e.100 to the power p = 1e.06"):
        WeightedLp([1.0], 1e6).scaled(factor)
    assert WeightedLp([1.0], np.inf).scaled(factor).weights[0] == factor  # the control


@pytest.mark.parametrize("p", [1.5, 3, 40])
@pytest.mark.parametrize("size", [1e-90, 1e90])
def test_powers_neither_overflow_nor_underflow(p, size):
    assert WeightedLp([1.0, 1.0], p)([size, size], [0, 0]) == pytest.approx(size * 2 ** (1 / p))


def test_pairwise_keeps_the_digits_of_large_values():
    metric = WeightedLp([1.0], 1)
    assert metric.pairwise([[1e15], [1e15 + 1]])[0, 1] == 1


def test_a_feature_of_weight_zero_does_not_matter():
    metric = WeightedLp([0.0, 1.0], 2)
    assert metric([1e90, 1], [-1e90, 1]) == 0


def test_all_weights_may_be_zero():
    metric = WeightedLp([0.0, 0.0])
    assert metric.pairwise([[1, 2], [3, 4]]).tolist() == [[0, 0], [0, 0]]


def test_names_come_from_a_mapping_or_a_series_and_are_shown():
    for weights in ({"age": 0.1, "income": 2}, pd.Series({"age": 0.1, "income": 2})):
        metric = WeightedLp(weights, p=2)
        assert metric.feature_names == ("age", "income")
        assert repr(metric) == "WeightedLp(age=0.1, income=2, p=2)"


def test_repr_is_short_for_many_features():
    shown = repr(WeightedLp(np.ones(178), np.inf))
    assert shown == "WeightedLp([1, 1, 1, 1, 1, 1, 1, 1, ... 169 more ..., 1], p=inf)"


def test_columns_of_frames_are_matched_by_name_and_those_of_arrays_by_position():
    metric = WeightedLp({"age": 1, "income": 20})
    frame = pd.DataFrame({"income": [1.0], "age": [2.0]})
    for order in (["age", "income"], ["income", "age"]):
        assert metric(frame[order], [[0, 0]]).tolist() == [22]
        assert metric.bind(ArrayEncoder(2, tuple(order))).weights.tolist() == [
            metric.weights[metric.feature_names.index(name)] for name in order
        ]
    assert metric(frame.to_numpy(), [[0, 0]]).tolist() == [41]
    for other in (frame.rename(columns={"age": "years"}), frame[["age"]]):
        with pytest.raises(
            ValueError, match=r"X must have the columns of the metric, \['age', 'income'\]; got|A must have the col"
        ):
            metric(other, frame)


def test_equal_metrics_are_equal_and_nothing_can_be_changed():
    metric = WeightedLp([1, 2])
    assert metric == WeightedLp([1.0, 2.0])
    assert hash(metric) == hash(WeightedLp([1.0, 2.0]))
    assert metric != WeightedLp([1, 2], 2)
    assert metric != WeightedLp([1, 2], feature_names=["a", "b"])
    with pytest.raises(ValueError, match="read-only"):
        metric.weights[0] = 5


def test_the_callers_array_is_left_alone():
    weights = np.ones(2)
    WeightedLp(weights)
    weights[0] = 3


@pytest.mark.parametrize(
    ("weights", "p", "message"),
    [
        ({"age": -0.2}, 1, r"weights must be non-negative and finite; got -0.2 for 'age'. Use 0"),
        ([1, np.inf], 1, "got inf for feature 1"),
        ([1, np.nan], 1, "got nan for feature 1"),
        ([], 1, "one number per feature"),
        ([[1, 2]], 1, r"shape \(1, 2\)"),
        (["a"], 1, "weights must hold numbers only"),
        ([1], 0.5, r"p must be a number >= 1 or infinity; got 0.5"),
        ([1], np.nan, "p must be"),
        ([1], "2", "p must be"),
        ([1], True, "p must be"),
    ],
)
def test_bad_metrics_are_refused(weights, p, message):
    with pytest.raises(ValueError, match=message):
        WeightedLp(weights, p)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1, 2, 3]], "A must have 2 columns"),
        ([[1, np.nan]], "A must be finite"),
        ([["a", "b"]], "A must hold numbers only"),
    ],
)
def test_bad_people_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        WeightedLp([1, 2])(rows, [0, 0])


def test_bad_names_and_factors_are_refused():
    with pytest.raises(ValueError, match="one name per weight"):
        WeightedLp([1, 2], feature_names=["a"])
    with pytest.raises(ValueError, match="distinct"):
        WeightedLp([1, 2], feature_names=["a", "a"])
    with pytest.raises(ValueError, match="must not be given"):
        WeightedLp({"a": 1}, feature_names=["a"])
    for wrong in (0, -1, np.inf, np.nan):
        with pytest.raises(ValueError, match="factor must be a positive"):
            WeightedLp([1]).scaled(wrong)
