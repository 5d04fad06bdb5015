"""The envelopes and the distance they use, against looking at everybody."""

import itertools

import numpy as np
import pandas as pd
import pytest

from engines import plain, with_both
from likewise import FunctionMetric, TableMetric, WeightedLp
from likewise._engine import always_compiled
from likewise.kernel.distance import CODE, column_distances
from likewise.projection.mcshane_whitney import BoxEnvelope, box_ranges, caps, make_envelope


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": rng.normal(50, 20, n),
            "dependents": rng.integers(0, 5, n).astype(float),
            "region": rng.choice(list("xyz"), n),
            "job": rng.choice(list("uvwxyz"), n),
            "age": rng.normal(40, 10, n),
        }
    )
    X.loc[rng.random(n) < 0.2, "income"] = np.nan
    X.loc[rng.random(n) < 0.05, "dependents"] = np.nan
    return X


def table_metric():
    return TableMetric(
        {"income": 0.01, "dependents": 0.05, "age": 0.0},
        {"region": 0.2, "job": 0.1},
        missing={"income": 0.2, "dependents": 0.04},
    )


def capped(metric, people, others):
    """The distance of the envelopes, written out, between all of two sets of people."""
    weights = metric.bind(people.encoder)
    number, x, z = weights.is_number, people.rows[:, None], others.rows[None]
    gaps = np.nan_to_num(np.minimum(weights.scales * np.abs(x - z), caps(weights)))[..., number]
    apart = (np.isnan(x) != np.isnan(z))[..., number] * np.nan_to_num(weights.missing[number])
    different = (x != z)[..., ~number] * weights.scales[~number]
    return np.linalg.norm(gaps, ord=metric.p, axis=-1) + apart.sum(axis=-1) + different.sum(axis=-1)


def test_envelopes_are_those_of_looking_at_every_anchor():
    metric = table_metric()
    everyone = metric.encode_rows(table(230))
    anchors, people = everyone.take(slice(0, 170)), everyone.take(slice(150, 230))
    values = np.random.default_rng(1).random(len(anchors))
    distances = capped(metric, people, anchors)
    envelope = BoxEnvelope.from_anchors(metric.bind(anchors.encoder), anchors)
    for found in with_both(lambda: envelope.bounds(people, values, np.zeros(80), np.ones(80))):
        np.testing.assert_allclose(found.upper, np.minimum(1, (values + distances).min(axis=1)), rtol=0, atol=1e-15)
        np.testing.assert_allclose(found.lower, np.maximum(0, (values - distances).max(axis=1)), rtol=0, atol=1e-15)
        decided = found.upper_anchor >= 0
        by = distances[decided, found.upper_anchor[decided]] + values[found.upper_anchor[decided]]
        np.testing.assert_allclose(found.upper[decided], by, rtol=0, atol=1e-15)


def test_the_capped_distance_obeys_the_triangle_inequality_and_is_never_larger():
    metric = table_metric()
    people = metric.encode_rows(table(60, seed=2))
    inner = capped(metric, people, people)
    given = metric.bind(people.encoder).pairwise(people.rows, people.rows)
    assert (inner <= given + 1e-15).all()
    assert all((inner <= inner[:, [j]] + inner[[j]] + 1e-15).all() for j in range(60))
    # Control: the metric itself does not obey it, where numbers are missing.
    assert not metric.obeys_triangle
    assert any((given > given[:, [j]] + given[[j]] + 0.01).any() for j in range(60))


def test_under_l1_the_capped_distance_is_the_largest_that_obeys_the_triangle_inequality():
    """It is the length of the shortest way through other people, of whom there is every kind."""
    metric = TableMetric({"a": 0.3, "b": 0.1}, {"c": 0.2}, missing={"a": 0.25, "b": 0.6})
    grid = itertools.product([0.0, 1.0, 4.0, np.nan], [0.0, 5.0, 30.0, np.nan], ["x", "y"])
    people = metric.encode_rows(pd.DataFrame(grid, columns=["a", "b", "c"]))
    shortest = metric.bind(people.encoder).pairwise(people.rows, people.rows)
    for j in range(len(people)):  # Floyd and Warshall
        shortest = np.minimum(shortest, shortest[:, [j]] + shortest[[j]])
    np.testing.assert_allclose(capped(metric, people, people), shortest, rtol=0, atol=1e-12)


def test_most_anchors_are_not_looked_at():
    rng = np.random.default_rng(0)
    metric = WeightedLp([2, 2, 2])
    anchors, people = metric.encode_rows(rng.random((4000, 3))), metric.encode_rows(rng.random((500, 3)))
    values = anchors.rows @ [0.3, 0.3, 0.3]
    with always_compiled():
        found = make_envelope(metric, anchors).bounds(people, values, np.zeros(500), np.ones(500))
    assert found.n_distances < 0.2 * 500 * 4000


def test_distances_of_points_are_the_capped_ones():
    from likewise.pairs.kernels import fill_distances_from

    metric = table_metric()
    everyone = metric.encode_rows(table(64, seed=4))
    envelope = BoxEnvelope.from_anchors(metric.bind(everyone.encoder), everyone)
    columns, out, limits = np.ascontiguousarray(envelope.rows.T), np.empty(64), np.full(64, np.inf)
    expected = capped(metric, everyone, everyone)
    for i in range(64):
        fill_distances_from(envelope.rows[i], columns, *envelope.space, 0, 64, limits, out, envelope.caps)
        np.testing.assert_allclose(out, expected[i], rtol=0, atol=1e-14)
        plain_ones = column_distances(columns[:, [i]], columns, *envelope.space, limits, envelope.caps)
        assert plain_ones.tobytes() == out.tobytes()


def test_a_box_is_no_further_than_the_nearest_in_it():
    """Boxes of a few people, some of whom miss numbers; caps bind in half of the cases."""
    from likewise.projection.kernels import least_distance

    metric, rng = table_metric(), np.random.default_rng(0)
    everyone = metric.encode_rows(table(400, seed=5))
    weights = metric.bind(everyone.encoder)
    envelope = BoxEnvelope.from_anchors(weights, everyone)
    kinds, scales, power = envelope.space
    n_numbers, tree = int((kinds != CODE).sum()), (np.array([0]), np.array([3]), np.array([-1]))
    binding = 0
    for _ in range(150):
        few, person = everyone.take(rng.integers(400, size=3)), everyone.take(rng.integers(400, size=1))
        columns = np.ascontiguousarray(envelope.points(few).T)
        (low,), (high,), (reach,) = box_ranges(columns, envelope.caps, scales, *tree)
        bound = least_distance(envelope.points(person)[0], low, high, reach, n_numbers, scales, power)
        nearest = capped(metric, person, few).min()
        assert bound <= nearest + 1e-15
        binding += nearest < weights.distances(person.rows, few.rows).min() - 1e-12
    assert binding > 5


@pytest.mark.parametrize("engine", [always_compiled, plain])
def test_batches_and_order_do_not_change_a_bit(engine):
    metric = table_metric()
    everyone = metric.encode_rows(table(900, seed=3))
    anchors, people = everyone.take(slice(0, 300)), everyone.take(slice(300, 900))
    values = np.random.default_rng(1).random(300)
    envelope = BoxEnvelope.from_anchors(metric.bind(anchors.encoder), anchors)

    def upper(chosen):
        n = len(chosen)
        found = envelope.bounds(people.take(chosen), values, np.zeros(n), np.ones(n))
        return np.stack([found.lower, found.upper])

    with engine():
        whole = upper(np.arange(600))
        shuffled = np.random.default_rng(2).permutation(600)
        assert (upper(shuffled) == whole[:, shuffled]).all()
        assert all((upper(np.array([i])) == whole[:, [i]]).all() for i in range(0, 600, 37))
        # Nor does the order of the anchors.
        turned = np.random.default_rng(3).permutation(300)
        again = BoxEnvelope.from_anchors(metric.bind(anchors.encoder), anchors.take(turned)).bounds(
            people, values[turned], np.zeros(600), np.ones(600)
        )
    assert (np.stack([again.lower, again.upper]) == whole).all()


def test_a_metric_in_which_nothing_matters_makes_one_value_of_all():
    metric = WeightedLp([0.0, 0.0])
    people = metric.encode_rows([[0.0, 1.0], [5.0, 2.0]])
    found = make_envelope(metric, people).at_anchors(people)(np.array([0.3, 0.6]))
    assert found.upper.tolist() == [0.3, 0.3]
    assert found.lower.tolist() == [0.6, 0.6]


def test_a_function_has_the_envelopes_of_the_same_metric():
    metric = WeightedLp([0.2, 0.1])
    function = FunctionMetric(lambda A, B: np.abs(A - B) @ [0.2, 0.1])
    rng = np.random.default_rng(0)
    anchors, people = rng.random((40, 2)), rng.random((15, 2))
    values = rng.random(40)
    ours, theirs = (
        make_envelope(m, m.encode_rows(anchors)).bounds(m.encode_rows(people), values, np.zeros(15), np.ones(15))
        for m in (metric, function)
    )
    np.testing.assert_allclose(theirs.lower, ours.lower, rtol=0, atol=1e-15)
    np.testing.assert_allclose(theirs.upper, ours.upper, rtol=0, atol=1e-15)
    assert theirs.upper_anchor.tolist() == ours.upper_anchor.tolist()
