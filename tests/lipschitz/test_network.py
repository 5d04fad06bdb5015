"""The guarantee is read off weights: closed forms, a search for pairs that break it, and controls."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, WeightedLp, attack
from likewise.exceptions import UnsolvedError
from likewise.kernel.evidence import Layers
from likewise.kernel.schema import People
from likewise.lipschitz.estimators import LipschitzScorer
from likewise.lipschitz.network import WeightedSamples, enforce_slope, network_scores, read_columns

TABLE = TableMetric(
    {"income": 0.9, "age": 0.4, "zip": 0}, {"region": 0.3, "race": 0}, missing={"income": 0.25, "age": 1.0}
)


def people_of(metric, n=60, seed=0):
    rng = np.random.default_rng(seed)
    if isinstance(metric, WeightedLp):
        return metric.encode_rows(rng.normal(size=(n, len(metric.weights))))
    frame = pd.DataFrame(
        {
            "income": rng.normal(size=n),
            "age": rng.normal(size=n),
            "zip": rng.normal(size=n),
            "region": rng.choice(list("nesw"), n),
            "race": rng.choice(list("xy"), n),
        }
    )
    frame.loc[rng.random(n) < 0.2, "income"] = np.nan
    return metric.encode_rows(frame)


def network(metric, people, widths=(8, 7, 1), seed=0, size=1.0):
    """A finished network with random weights, as steep as allowed where `size` is large."""
    columns = metric.bind(people.encoder)
    used = np.flatnonzero(columns.matters)
    inputs = read_columns(WeightedSamples.from_data(people.rows[:, used], np.zeros(len(people)), None), used, columns)
    rng = np.random.default_rng(seed)
    shapes = pairwise(widths)
    first = size * rng.normal(size=(int(inputs.starts[-1]), widths[0]))
    weights = tuple(size * rng.normal(size=shape) for shape in shapes)
    return enforce_slope(Layers(inputs, first, weights, tuple(0.1 * rng.normal(size=width) for width in widths)))


def one_path(metric, people, tilt=1.0):
    """A network whose score is the first number in units of the metric, times `tilt`."""
    layers = network(metric, people, widths=(2, 2, 1))
    first = np.zeros_like(layers.first)
    first[0] = tilt
    weights = (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.5], [0.5]]))
    return replace(layers, first=first, weights=weights, biases=(np.zeros(2), np.zeros(2), np.zeros(1)))


METRICS = [
    WeightedLp([1.0, 0.3, 0.0, 2.0], p=1),
    WeightedLp([1.0, 0.3, 0.0, 2.0], p=1.01),
    WeightedLp([1.0, 0.3, 0.0, 2.0], p=2),
    WeightedLp([1.0, 0.3, 0.0, 2.0], p=5),
    WeightedLp([1.0, 0.3, 0.0, 2.0], p=np.inf),
    TABLE,
    TableMetric({"income": 0.9, "age": 0.4, "zip": 0}, {"region": 0.3, "race": 0}, missing="category"),
]


def excess(layers, metric, people, others):
    """Largest difference of scores minus distance, over pairs row by row."""
    distance = metric.bind(people.encoder).distances(people.rows, others.rows)
    gap = np.abs(network_scores(layers, people.rows) - network_scores(layers, others.rows)).max(axis=1)
    return float((gap - distance).max())


def searched(layers, metric, people):
    """Largest excess of a difference of scores over the distance that a search finds."""
    return attack(
        lambda table: network_scores(layers, people.encoder.encode(table))[:, 0],
        metric,
        people.table,
        n_pairs=30_000,
        random_state=0,
    ).excess


@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("size", [0.05, 1.0, 30.0])
def test_a_finished_network_has_a_slope_of_at_most_1(metric, size):
    assert network(metric, people_of(metric), size=size).slope() <= 1


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_no_pair_breaks_the_promise(metric):
    people = people_of(metric)
    assert searched(network(metric, people, size=30.0), metric, people) <= 1e-12


@pytest.mark.parametrize("metric", METRICS[:5], ids=repr)
def test_control_one_weight_of_1_percent_too_much_is_read_off_and_found(metric):
    people = people_of(metric)
    right, wrong = (one_path(metric, people, tilt=tilt) for tilt in (1.0, 1.01))
    assert right.slope() == pytest.approx(1, abs=1e-10)
    assert searched(right, metric, people) <= 1e-12
    assert wrong.slope() >= 1.01
    assert searched(wrong, metric, people) > 1e-3


def test_control_a_category_with_too_wide_a_range_is_read_off_and_found():
    metric = TableMetric({}, {"region": 0.3})
    people = metric.encode_rows(pd.DataFrame({"region": list("nesw")}))
    layers = one_path(metric, people, tilt=0.3)
    others = People(people.rows[::-1].copy(), people.encoder, None)
    assert layers.slope() == pytest.approx(1, abs=1e-10)
    assert excess(layers, metric, people, others) <= 1e-15
    wrong = replace(layers, first=layers.first * 1.01)
    assert wrong.slope() >= 1.01
    assert excess(wrong, metric, people, others) > 1e-3
    unseen = layers.first.copy()
    unseen[-1] = 10.0
    assert replace(layers, first=unseen).slope() > 30


def test_what_is_too_steep_is_divided_by_its_slope():
    metric = WeightedLp([1.0], p=1)
    people = metric.encode_rows(np.linspace(-1, 1, 9)[:, None])
    # The first layer's units are cut to 1 one by one; the last, of 3, is divided by 3.
    steep = one_path(metric, people, tilt=1.25)
    layers = enforce_slope(replace(steep, weights=(steep.weights[0], np.array([[1.5], [1.5]]))))
    assert layers.slope() <= 1
    assert np.ptp(network_scores(layers, people.rows)) == pytest.approx(2, abs=1e-9)


def test_the_slope_of_a_hand_made_network():
    # Two numbers under p = 2: rows (3/5, 4/5) and (0, 1/2); then weights 1/2 and 1/4 of the sorted pair.
    metric = WeightedLp([1.0, 1.0], p=2)
    people = metric.encode_rows(np.array([[-1.0, -1.0], [1.0, 1.0]]))
    layers = network(metric, people, widths=(2, 1))
    first, weights = np.array([[0.6, 0.0], [0.8, 0.5]]), (np.array([[0.5], [0.25]]),)
    layers = replace(layers, first=first, weights=weights, biases=(np.array([0.1, 0.0]), np.array([0.2])))
    assert layers.slope() == pytest.approx(0.75)  # the pair may be in either order, so both count as 1
    # At (-1, -1): units -1.3 and -0.5, sorted -0.5 and -1.3; at (1, 1): 1.5 and 0.5.
    assert network_scores(layers, people.rows)[:, 0] == pytest.approx([-0.375, 1.075])


def reference(layers, rows):
    """The same in plain NumPy, one person after the other."""
    inputs, out = layers.inputs, []
    for units in inputs.to_metric_units(rows[:, inputs.columns]):
        h = layers.biases[0].copy()
        for j, (x, kind) in enumerate(zip(units, inputs.kinds, strict=True)):
            block = layers.first[inputs.rows_of(j)]
            if kind == 2:
                h += block[int(x)]  # -1, the last row, for what was not seen
            elif kind == 1:
                low, high = block[1] - inputs.mismatch[j], block[1] + inputs.mismatch[j]
                h += block[1] if np.isnan(x) else np.clip(x * block[0], low, high)
            else:
                h += x * block[0]
        for W, bias in zip(layers.weights, layers.biases[1:], strict=True):
            half = len(h) // 2
            a, b = h[:half], h[half : 2 * half]
            h = np.concatenate([np.maximum(a, b), np.minimum(a, b), h[2 * half :]]) @ W + bias
        out.append(h)
    return np.array(out)


@pytest.mark.parametrize("widths", [(5, 1), (8, 7, 1), (6, 9, 4, 3)])
@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_compiled_scores_are_those_of_plain_numpy(metric, widths):
    people = people_of(metric)
    layers = network(metric, people, widths)
    np.testing.assert_allclose(network_scores(layers, people.rows), reference(layers, people.rows), rtol=0, atol=1e-13)


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_a_score_has_the_same_bits_in_any_batch(metric):
    people = people_of(metric, 3_000)
    layers = network(metric, people, (33, 17, 2))
    whole = network_scores(layers, people.rows)
    order = np.random.default_rng(0).permutation(len(whole))
    assert np.array_equal(network_scores(layers, people.rows[order]), whole[order])
    single = np.vstack([network_scores(layers, people.rows[i : i + 1]) for i in range(0, 3_000, 37)])
    assert np.array_equal(single, whole[::37])


def test_numbers_far_outside_cost_no_digits():
    # A third column decides by a millionth; a sum with 1e15 beside it would lose that.
    metric = WeightedLp([1.0, 1.0, 1.0], p=1)
    people = metric.encode_rows(np.array([[1e15, 1e15, 0.0], [-1e15, -1e15, 1.0], [0.0, 0.0, 0.5]]))
    layers = network(metric, people, size=30.0)
    near = people.rows + np.array([0.0, 0.0, 1e-6])
    gap = np.abs(network_scores(layers, near) - network_scores(layers, people.rows)).max()
    assert gap <= 1e-6 + 1e-9


@pytest.mark.parametrize("link", ["logistic", "probit", "clip", "softmax"])
def test_outputs_keep_the_curve_of_their_link(link):
    metric = WeightedLp([1.0, 0.5], p=2)
    people = people_of(metric, 2_000)
    layers = network(metric, people, (8, 8, 3 if link == "softmax" else 1), size=30.0)
    scorer = LipschitzScorer(layers, link)
    others = People(people.rows + 0.3 * np.random.default_rng(0).normal(size=people.rows.shape), people.encoder, None)
    h, g = scorer.estimate(people).mean, scorer.estimate(others).mean
    bound = scorer.guarantee.bound(metric(people.rows, others.rows))
    assert (np.abs(h - g).sum(axis=1) / 2 - bound).max() <= 1e-12
    assert h.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("link", ["logistic", "probit", "clip"])
def test_the_curve_is_reached_by_a_network_of_slope_1(link):
    metric = WeightedLp([1.0], p=1)
    people = metric.encode_rows(np.array([[-0.2], [0.2]]))
    layers = one_path(metric, people, 1 - 2.0**-38)  # slopes are rounded upwards
    scorer = LipschitzScorer(layers, link)
    h = scorer.estimate(people).mean[:, 1]
    assert h[1] - h[0] == pytest.approx(float(scorer.guarantee.bound(0.4)), rel=1e-11)


@pytest.mark.parametrize(("p", "slope"), [(1, 0.8), (1.5, (0.6**3 + 0.8**3) ** (1 / 3)), (2, 1.0), (np.inf, 1.4)])
def test_the_norm_of_the_first_layer_is_dual_to_the_metric(p, slope):
    metric = WeightedLp([1.0, 1.0], p=p)
    people = metric.encode_rows(np.array([[-1.0, -1.0], [1.0, 1.0]]))
    layers = network(metric, people, widths=(1, 1))
    layers = replace(layers, first=np.array([[0.6], [0.8]]), weights=(np.ones((1, 1)),))
    assert layers.slope() == pytest.approx(slope, rel=1e-9)


def test_every_way_through_a_network_counts():
    """Negative weights as much as positive ones, and the steepest of several outputs."""
    metric = WeightedLp([1.0])
    people = metric.encode_rows(np.array([[-1.0], [1.0]]))
    layers = replace(network(metric, people, widths=(2, 2)), first=np.ones((1, 2)))
    for W in ([[-0.5, 0.1], [-0.4, 0.1]], [[0.1, 0.5], [0.1, -0.4]]):
        assert replace(layers, weights=(np.array(W),)).slope() == pytest.approx(0.9, rel=1e-9)


def test_units_are_cut_one_by_one():
    """A category that is too wide in one unit costs the other nothing, and is cut to what it may be, no more."""
    metric = TableMetric({"n": 1.0}, {"region": 0.3})
    people = metric.encode_rows(pd.DataFrame({"n": [0.0, 1.0, 2.0], "region": list("nes")}))
    layers = network(metric, people, widths=(2, 2))
    first = np.zeros_like(layers.first)
    first[layers.inputs.rows_of(1)] = np.array([[0.0, 0.0], [0.6, 0.15], [0.0, 0.0], [0.0, 0.0]])
    done = enforce_slope(replace(layers, first=first, weights=(np.eye(2),)))
    assert np.ptp(done.first[layers.inputs.rows_of(1)], axis=0) == pytest.approx([0.3, 0.15], rel=1e-9)
    assert done.weights[0] == pytest.approx(np.eye(2), rel=1e-9)


def test_an_unseen_category_reads_its_own_row():
    metric = TableMetric({"n": 1.0}, {"region": 0.3, "job": 0.2})
    people = metric.encode_rows(pd.DataFrame({"n": [0.0, 1.0], "region": ["n", "s"], "job": ["a", "b"]}))
    layers = network(metric, people, widths=(2, 1))
    first = np.zeros_like(layers.first)
    first[layers.inputs.rows_of(1)] = [[0.1, 0.1], [0.2, 0.2], [0.15, 0.15]]
    layers = replace(layers, first=first, weights=(np.full((2, 1), 0.5),), biases=(np.zeros(2), np.zeros(1)))
    rows = np.array([[0.0, code, 0.0] for code in (0, 1, -1, 7)])
    assert network_scores(layers, rows)[:, 0] == pytest.approx([0.1, 0.2, 0.15, 0.15])


def test_outside_the_range_of_training_scores_are_constant():
    metric = WeightedLp([1.0])
    people = metric.encode_rows(np.array([[-1.0], [2.0]]))
    layers = one_path(metric, people)
    assert (
        network_scores(layers, np.array([[2.0], [2.5], [1e300]]))[:, 0].tolist()
        == network_scores(layers, np.full((3, 1), 2.0))[:, 0].tolist()
    )
    assert (
        network_scores(layers, np.array([[-1.0], [-7.0]]))[:, 0].tolist()
        == network_scores(layers, np.full((2, 1), -1.0))[:, 0].tolist()
    )


def test_what_is_steep_by_less_than_a_percent_is_divided_too():
    """A last layer whose weights add up to half a percent too much, and then to what rounding leaves above 1."""
    metric = TableMetric({"n": 1.0}, {}, missing={"n": 0.5})
    people = metric.encode_rows(pd.DataFrame({"n": [0.0, 1.0, np.nan]}))
    layers = network(metric, people, widths=(2, 1))
    first = np.zeros_like(layers.first)
    steep = replace(layers, first=first, weights=(np.array([[0.5], [0.505]]),), biases=(np.zeros(2), np.zeros(1)))
    assert steep.slope() == pytest.approx(1.005, rel=1e-6)
    assert enforce_slope(steep).slope() <= 1


def test_a_number_is_at_most_the_weight_of_absence_from_a_missing_one():
    metric = TableMetric({"n": 1.0}, {}, missing={"n": 0.25})
    people = metric.encode_rows(pd.DataFrame({"n": [-3.0, -0.1, 0.1, 3.0, np.nan]}))
    layers = network(metric, people, widths=(1, 1))
    first = np.array([[1.0], [0.05]])
    layers = replace(layers, first=first, weights=(np.ones((1, 1)),), biases=(np.zeros(1), np.zeros(1)))
    mean = np.mean([-3.0, -0.1, 0.1, 3.0])
    expected = np.clip(np.array([-3.0, -0.1, 0.1, 3.0]) - mean, 0.05 - 0.25, 0.05 + 0.25)
    assert network_scores(layers, people.rows)[:, 0] == pytest.approx([*expected, 0.05])


def test_weights_that_are_not_finite_end_in_an_error():
    metric = WeightedLp([1.0, 1.0])
    layers = network(metric, people_of(metric))
    with pytest.raises(UnsolvedError, match="did not end in finite weights"):
        enforce_slope(replace(layers, weights=(*layers.weights[:-1], np.full_like(layers.weights[-1], np.nan))))
