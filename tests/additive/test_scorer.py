"""Finished shapes: on a grid, within limits, whatever came in."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.additive.kernels import points
from likewise.additive.shapes import _clipped, constrain, on_grid, within
from likewise.exceptions import UnsolvedError
from likewise.kernel.evidence import Shape, SumOfShapes
from parts import of_parts


def numbers(scale, missing=np.nan, p=1.0):
    return of_parts(np.array([scale]), np.array([True]), np.array([missing]), p)


NO_CODES = np.empty(0), np.zeros(2, int), np.empty((1, 0))


def evaluate(model, x):
    shape = model.shapes[0]
    out = np.empty((len(x), 1, 1))
    other = np.full((1, 1), np.nan) if shape.other is None else shape.other[None]
    starts = np.array([0, len(shape.knots)])
    rows, column, number = np.asarray(x, dtype=float)[:, None], np.zeros(1, int), np.ones(1, bool)
    points(rows, column, number, starts, shape.knots, shape.values, other, *NO_CODES, model.bits, out)
    return out[:, 0, 0]


def test_between_knots_a_line_and_outside_what_stands_at_the_ends():
    model = on_grid(numbers(1.0), np.zeros(1), [Shape(0, np.array([0.0, 2.0, 4.0]), np.array([[0.0, 1.0, 0.5]]), None)])
    assert evaluate(model, [-1e308, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1e308]).tolist() == [
        0,
        0,
        0.5,
        1,
        0.75,
        0.5,
        0.5,
        0.5,
    ]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    "knots",
    [
        [0.0, 5e-324, 1e-323],  # the smallest gaps there are
        [1.0, np.nextafter(1.0, 2), 1.5],
        [-1e300, 0.0, 1e300],
        [1e9, 1e9 + 1e-6, 1e9 + 1],
    ],
)
def test_slopes_are_within_the_limit_in_exact_arithmetic(knots, scale):
    values = np.array([[0.0, 3.0, -2.0]])
    model = constrain(np.zeros(1), [Shape(0, np.array(knots), values, None)], numbers(scale), 4.0)
    for k in range(2):
        rise = Fraction(model.shapes[0].values[0, k + 1]) - Fraction(model.shapes[0].values[0, k])
        gap = Fraction(knots[k + 1]) - Fraction(knots[k])
        assert abs(rise) <= 4 * Fraction(scale) * gap


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_neighbouring_floats_get_neighbouring_points(scale):
    rng = np.random.default_rng(0)
    knots = np.sort(rng.normal(size=20)) / scale
    values = np.cumsum(rng.normal(size=(1, 20)) * 10, axis=1)
    model = constrain(np.zeros(1), [Shape(0, knots, values, None)], numbers(scale), 4.0)
    x = np.concatenate([rng.normal(size=10_000) / scale, knots, np.nextafter(knots, -np.inf)])
    y = np.nextafter(x, np.inf)
    assert np.abs(evaluate(model, y) - evaluate(model, x)).max() <= 4 * scale * np.spacing(np.abs(x).max()) + 1e-13


def test_points_rise_wherever_the_shape_does():
    knots, values = np.array([0.0, 1.0, 3.0]), np.array([[0.0, 0.3, 0.30001]])
    model = constrain(np.zeros(1), [Shape(0, knots, values, None)], numbers(1.0), 4.0)
    x = np.sort(np.random.default_rng(0).uniform(-1, 4, 20_000))
    assert (np.diff(evaluate(model, x)) >= 0).all()


def test_a_missing_number_is_as_far_from_the_others_as_the_metric_allows():
    shape = Shape(0, np.array([0.0, 1.0]), np.array([[-2.0, 2.0]]), np.array([0.5]))
    model = constrain(np.zeros(1), [shape], numbers(1.0, missing=0.1), 4.0)
    low, high = model.shapes[0].values[0] - model.shapes[0].other[0]
    assert (low, high) == (pytest.approx(-0.4, abs=1e-9), pytest.approx(0.4, abs=1e-9))
    assert -0.4 <= low <= high <= 0.4


def test_a_missing_number_at_distance_0_leaves_nothing_to_tell():
    shape = Shape(0, np.array([0.0, 1.0]), np.array([[-2.0, 2.0]]), np.array([0.5]))
    model = constrain(np.zeros(1), [shape], numbers(1.0, missing=0.0), 4.0)
    assert np.ptp(model.shapes[0].all_values) == 0


def test_the_share_used_does_not_depend_on_who_made_the_shapes():
    """Half of the limit is half of it; the column that uses most of its own limit counts."""
    weights = of_parts(np.array([1.0, 0.5]), np.ones(2, bool), np.full(2, np.nan), 1.0)
    knots = np.array([0.0, 1.0])
    one = on_grid(weights, np.zeros(1), [Shape(0, knots, np.array([[0.0, 2.0]]), None)])
    assert one.used(4.0)[0] == pytest.approx(0.5, rel=1e-9)
    both = on_grid(
        weights,
        np.zeros(1),
        [Shape(0, knots, np.array([[0.0, 2.4]]), None), Shape(1, knots, np.array([[0.0, 2.0]]), None)],
    )
    assert both.used(4.0)[0] == pytest.approx(1, rel=1e-9)
    assert both.used(4.0)[0] >= 1  # rounded upwards


def test_sums_are_exact_in_any_order():
    rng = np.random.default_rng(0)
    shapes = [Shape(0, np.array([0.0, 1.0]), rng.normal(size=(1, 2)), None) for _ in range(30)]
    model = on_grid(numbers(1.0), rng.normal(size=1), shapes)
    terms = [evaluate(on_grid(numbers(1.0), np.zeros(1), [s]), rng.random(1))[0] for s in model.shapes]
    grid = 2.0**-model.bits
    terms = [float(np.rint(t / grid) * grid) for t in terms] + [float(model.intercepts[0])]
    assert sum(terms) == sum(reversed(terms)) == float(sum(map(Fraction, terms)))


def category(scale):
    return of_parts(np.array([scale, 1.0]), np.array([False, True]), np.full(2, np.nan), 1.0)


def test_a_category_that_was_not_seen_counts_in_the_range():
    levels = Shape(0, None, np.array([[0.0, 0.5]]), np.array([1.0]))
    assert on_grid(category(0.25), np.zeros(1), [levels]).used(4.0)[0] <= 1  # cut to what was seen
    beyond = [SumOfShapes(category(weight), np.zeros(1), (levels,), 40).used(4.0)[0] for weight in (0.25, 0.125)]
    assert beyond == pytest.approx([1, 2], rel=1e-9)


def test_levels_too_far_apart_cost_the_other_columns_nothing():
    """Each column is cut to what it may do alone; only what several do together is divided among them."""
    wide = Shape(0, None, np.array([[-3.0, 0.0, 9.0]]), np.zeros(1))
    line = Shape(1, np.array([0.0, 1.0]), np.array([[0.0, 3.9]]), None)
    model = constrain(np.zeros(1), [wide, line], category(0.25), 4.0)
    assert np.ptp(model.shapes[0].values) == pytest.approx(1, abs=1e-9)
    assert np.ptp(model.shapes[0].values) <= 1
    assert np.ptp(model.shapes[1].values) == pytest.approx(3.9, abs=1e-12)


def test_codes_that_are_not_levels_get_what_is_set_aside_for_them():
    out = np.empty((5, 1, 1))
    rows, starts, values = np.array([[0.0], [1.0], [2.0], [-1.0], [3.0]]), np.array([0, 3]), np.array([[0.1, 0.2, 0.3]])
    points(
        rows, np.zeros(1, int), np.zeros(1, bool), starts, np.zeros(3), values, np.array([[0.25]]), *NO_CODES, 40, out
    )
    np.testing.assert_allclose(out[:, 0, 0], [0.1, 0.2, 0.3, 0.25, 0.25])


def test_the_steepest_gap_counts():
    shape = Shape(0, np.array([0.0, 1.0, 2.0, 2.5]), np.array([[0.0, 0.1, 0.1, 2.1]]), None)
    assert on_grid(numbers(1.0), np.zeros(1), [shape]).used(4.0)[0] == pytest.approx(1, rel=1e-9)


def test_the_value_farthest_from_a_missing_number_counts():
    shape = Shape(0, np.array([0.0, 1.0]), np.array([[0.0, 0.4]]), np.array([0.0]))
    assert on_grid(numbers(1.0, missing=0.1), np.zeros(1), [shape]).used(4.0)[0] == pytest.approx(1, rel=1e-9)
    assert on_grid(numbers(1.0, missing=0.05), np.zeros(1), [shape]).used(4.0)[0] == pytest.approx(2, rel=1e-9)


# -- one pass, within the limits to the last bit -----------------------------------------------------------------------


def exactly_used(model, weights, unit):
    """The largest share of a limit that is used, in exact arithmetic."""
    most = Fraction(0)
    for f in range(len(model.intercepts)):
        for shape in model.shapes:
            values = [Fraction(v) for v in shape.values[f]]
            scale = Fraction(unit) * Fraction(weights.scales[shape.column])
            other = None if shape.other is None else Fraction(shape.other[f])
            if shape.knots is None:
                levels = [*values, other]
                most = max(most, share(max(levels) - min(levels), scale))
                continue
            knots = [Fraction(k) for k in shape.knots]
            rises = [abs(b - a) for a, b in pairwise(values)]
            gaps = [b - a for a, b in pairwise(knots)]
            most = max([most, *(share(r, scale * g) for r, g in zip(rises, gaps, strict=True))])
            if other is not None:
                limit = Fraction(unit) * Fraction(weights.missing[shape.column])
                most = max(most, *(share(abs(v - other), limit) for v in values))
    return most


def share(size, limit):
    return Fraction(0) if not size else size / limit if limit else Fraction(2)


@st.composite
def cards(draw):
    """Cards as no optimiser makes them: steep, far from missing numbers, on grids made coarse by a huge intercept."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_functions = draw(st.integers(1, 3))
    n, sizes = draw(st.integers(1, 5)), st.sampled_from([1e-12, 1e-6, 1e-3, 1.0, 1e3])
    unit = draw(st.sampled_from([1e-9, 1.0, 4.0, 30.0, 1e9]))
    offset = draw(st.sampled_from([0.0, 1.0, 2005.0, 1e9, -3e15])) * unit ** draw(st.sampled_from([0, 1]))
    numeric, scales, missing, shapes = rng.random(n) < 0.7, np.empty(n), np.full(n, np.nan), []
    for i in range(n):
        scales[i] = draw(sizes) * rng.random()
        size = unit * scales[i] * draw(st.sampled_from([0.01, 1.0, 1.0000001, 50.0]))
        if not numeric[i]:
            levels = size * rng.uniform(-1, 1, (n_functions, rng.integers(2, 6)))
            shapes.append(Shape(i, None, levels, levels.mean(axis=1)))
            continue
        knots = draw(st.sampled_from([0.0, 1990.0, 1e9])) + np.cumsum(0.001 + rng.random(rng.integers(1, 9)))
        values = np.cumsum(size * rng.uniform(-1, 1, (n_functions, len(knots))), axis=1)
        other = None
        if draw(st.booleans()):
            missing[i] = draw(st.sampled_from([0.0, 1e-13, 0.3, 0.5, 1.0, 100.0])) * scales[i]
            other = values.mean(axis=1) + unit * missing[i] * rng.uniform(-2, 2, n_functions)
        shapes.append(Shape(i, knots, values, other))
    weights = of_parts(scales, numeric, missing, 1.0)
    return offset + rng.normal(size=n_functions), shapes, weights, unit


@settings(max_examples=400, deadline=2000, derandomize=True)
@given(cards())
def test_a_finished_card_is_within_its_limits_in_exact_arithmetic(card):
    intercepts, shapes, weights, unit = card
    model = constrain(intercepts, shapes, weights, unit)
    assert exactly_used(model, weights, unit) <= 1
    assert (model.used(unit) <= 1).all()
    step = Fraction(2) ** -model.bits  # and on its grid, with sums that are exact
    numbers = [*model.intercepts, *(v for shape in model.shapes for v in shape.all_values.ravel())]
    assert all(Fraction(v) % step == 0 for v in numbers)
    largest = max(abs(Fraction(v)) for v in model.intercepts)
    largest += sum(max(abs(Fraction(v)) for v in shape.all_values.ravel()) for shape in model.shapes)
    assert largest / step <= 2**53


@settings(max_examples=100, deadline=2000, derandomize=True)
@given(cards())
def test_what_is_within_the_limits_stays_what_it_is(card):
    """A second pass changes nothing: nothing is scaled down again and again."""
    intercepts, shapes, weights, unit = card
    model = constrain(intercepts, shapes, weights, unit)
    again = within(model, unit)
    assert all((a.all_values == b.all_values).all() for a, b in zip(model.shapes, again.shapes, strict=True))


def test_control_the_nearest_step_is_beyond_the_limit():
    """A year's card: the grid is so coarse that a level rounded to the nearest step is too far from the others."""
    intercepts, weights = np.array([2005.0]), numbers(1e-9, missing=1e-12)
    shape = Shape(0, np.array([0.0, 1.0]), np.array([[-4e-11, 4e-11]]), np.array([0.6 * 2**-39]))
    nearest = on_grid(weights, intercepts, [_clipped(shape, weights, 30.0)])
    assert exactly_used(nearest, weights, 30.0) > 1
    assert nearest.used(30.0)[0] > 1
    finished = constrain(intercepts, [shape], weights, 30.0)
    assert exactly_used(finished, weights, 30.0) <= 1
    assert np.ptp(finished.shapes[0].values) > 0  # and not for want of points


def test_numbers_that_are_not_finite_end_in_an_error():
    with pytest.raises(UnsolvedError, match="did not end in finite numbers"):
        constrain(np.array([np.nan]), [], numbers(1.0), 4.0)
    shape = Shape(0, np.array([0.0, 1.0]), np.array([[0.0, np.inf]]), None)
    with pytest.raises(UnsolvedError, match="did not end in finite numbers"):
        constrain(np.zeros(1), [shape], numbers(1.0), 4.0)
