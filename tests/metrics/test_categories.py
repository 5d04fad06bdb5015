"""Ordered categories, groups of near categories, and matrices of distances: closed forms, and what is refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric
from likewise.exceptions import InvalidInputError
from likewise.kernel.schema import TableEncoder
from likewise.metrics.categories import CategoryDistances, closure, partitions
from oracle import Described

GROUPS = {"within": 0.3, "groups": [["clerk", "teacher"], ["farmer"]]}
HOURS = {"north": {"east": 4, "south": 8}, "east": {"south": 6}}


def people(**columns):
    return pd.DataFrame(columns)


def random_distances(rng, k):
    """A distance matrix that is no ultrametric: shortest paths of random lengths."""
    lengths = rng.uniform(0.1, 1, (k, k))
    lengths = (lengths + lengths.T) / 2
    np.fill_diagonal(lengths, 0.0)
    return closure(lengths)


def as_mapping(matrix):
    names = [f"c{i}" for i in range(len(matrix))]
    return {a: {b: float(matrix[i, j]) for j, b in enumerate(names)} for i, a in enumerate(names)}


# -- closed forms ------------------------------------------------------------------------------------------------------


def test_one_step_of_an_order_is_one_weight():
    metric = TableMetric({"grade": 0.02}, order={"grade": ["low", "middle", "high"]})
    D = metric.pairwise(people(grade=["low", "middle", "high"]))
    np.testing.assert_allclose(D, 0.02 * np.abs(np.subtract.outer(range(3), range(3))))


def test_an_order_replaces_that_of_the_dtype():
    given = pd.DataFrame({"grade": pd.Categorical(["a", "b", "c"], categories=["c", "b", "a"], ordered=True)})
    ours = TableMetric({"grade": 0.1}, order={"grade": ["b", "a", "c"]})
    np.testing.assert_allclose(ours.pairwise(given)[0], [0, 0.1, 0.1])
    np.testing.assert_allclose(TableMetric({"grade": 0.1}).pairwise(given)[0], [0, 0.1, 0.2])


def test_a_shuffled_order_is_another_metric():
    one, other = (TableMetric({"g": 0.1}, order={"g": order}) for order in (["a", "b", "c"], ["b", "a", "c"]))
    assert one != other
    table = people(g=["a", "c"])
    assert not np.allclose(one.pairwise(table), other.pairwise(table))


def test_groups_are_a_code_for_the_group_and_a_code_for_the_category():
    metric = TableMetric({}, {"job": 0.1}, groups={"job": GROUPS})
    jobs = ["clerk", "teacher", "farmer", "pilot", None]
    D = metric.pairwise(people(job=jobs))
    group = [0, 0, 1, 2, 3]
    expected = [
        [0.7 * 0.1 * (group[i] != group[j]) + 0.3 * 0.1 * (i != j) for j in range(len(jobs))] for i in range(len(jobs))
    ]
    np.testing.assert_allclose(D, expected)


def test_a_group_within_0_is_one_category():
    metric = TableMetric({}, {"job": 0.1}, groups={"job": {**GROUPS, "within": 0}})
    np.testing.assert_allclose(metric.pairwise(people(job=["clerk", "teacher", "farmer"]))[0], [0, 0, 0.1])


def test_one_group_within_0_is_told_from_others_only():
    metric = TableMetric({}, {"job": 0.1}, groups={"job": {"within": 0, "groups": [["clerk", "teacher"]]}})
    np.testing.assert_allclose(metric.pairwise(people(job=["clerk", "teacher", "farmer"]))[0], [0, 0, 0.1])
    assert metric.describe()["one point"].tolist() == ["mismatch = 10 points"]


def test_the_largest_distance_of_a_matrix_is_the_weight():
    metric = TableMetric({}, {"region": 0.2}, distances={"region": HOURS})
    D = metric.pairwise(people(region=["north", "east", "south", "west", None]))
    expected = np.array(
        [[0, 4, 8, 8, 8], [4, 0, 6, 8, 8], [8, 6, 0, 8, 8], [8, 8, 8, 0, 8], [8, 8, 8, 8, 0]], dtype=float
    )
    np.testing.assert_allclose(D, 0.2 * expected / 8)


@pytest.mark.parametrize("seed", range(5))
def test_terms_add_up_with_numbers_and_blanks(seed):
    rng = np.random.default_rng(seed)
    matrix = random_distances(rng, 5)
    metric = TableMetric({"age": 0.01}, {"c": 0.5, "d": 0.1}, missing="category", distances={"c": as_mapping(matrix)})
    codes = rng.integers(5, size=12)
    table = people(
        age=np.where(rng.random(12) < 0.2, np.nan, rng.uniform(20, 60, 12)),
        c=[f"c{i}" for i in codes],
        d=rng.choice(["x", "y"], 12),
    )
    D = metric.pairwise(table)
    for i, j in product(range(12), repeat=2):
        a, b = table["age"][i], table["age"][j]
        number = (1.0 if np.isnan(a) != np.isnan(b) else 0.0) if np.isnan(a) or np.isnan(b) else 0.01 * abs(a - b)
        expected = number + 0.5 * matrix[codes[i], codes[j]] / matrix.max() + 0.1 * (table["d"][i] != table["d"][j])
        assert D[i, j] == pytest.approx(expected)


def test_distances_do_not_depend_on_batch_or_order():
    metric = TableMetric({"age": 0.01}, {"region": 0.2}, distances={"region": HOURS})
    table = people(age=[20, 35, 50, 41], region=["north", "east", "south", None])
    whole = metric.pairwise(table)
    for i, j in product(range(4), repeat=2):
        assert metric(table.iloc[[i]], table.iloc[[j]])[0] == whole[i, j]


def test_codes_that_are_numbers_match_the_text_of_a_file():
    metric = TableMetric({}, {"kind": 0.2}, groups={"kind": {"within": 0.5, "groups": [["1", "2"], ["3"]]}})
    for kinds in ([1, 2, 3], [1.0, 2.0, 3.0], ["1", "2", "3"]):
        np.testing.assert_allclose(metric.pairwise(people(kind=kinds))[0], [0, 0.1, 0.2])


@pytest.mark.parametrize("table", [people(job=["farmer", "farmer"]), people(job=pd.Categorical(["farmer", None]))])
def test_a_listed_category_that_nobody_has_keeps_its_distances(table):
    metric = TableMetric({}, {"job": 0.1}, groups={"job": GROUPS})
    encoder = metric.encoder(table)
    others = metric.bind(encoder).read(people(job=["clerk", "teacher", "pilot"]))
    weights = metric.bind(encoder)
    np.testing.assert_allclose(weights.distances(others.rows[0], others.rows), [0, 0.03, 0.1])


@pytest.mark.parametrize("seed", range(6))
def test_a_code_is_as_near_as_the_nearest_category_that_it_may_stand_for(seed):
    """So no code makes a distance larger than it is, and none smaller than need be."""
    rng = np.random.default_rng(seed)
    names = list("abcdef")
    if seed % 2:
        places = rng.integers(0, 9, 6) + np.arange(6) / 10
        given = {a: {b: float(abs(places[i] - places[j])) for j, b in enumerate(names)} for i, a in enumerate(names)}
        shape = {"distances": {"job": given}}
    else:
        shape = {"groups": {"job": {"within": 0.3, "groups": [names[:2], names[2:5], names[5:]]}}}
    metric = TableMetric({}, {"job": 1.0}, **shape)
    known = [*rng.permutation(names)[: 1 + seed % 4].tolist(), "z"]  # z is not listed
    encoder = TableEncoder.learn(pd.DataFrame({"job": known}), [], ["job"])
    weights = metric.bind(encoder)
    codes = {name: encoder.encode(pd.DataFrame({"job": [name]}))[0, 0] for name in [*names, "z", "nobody"]}
    described = Described(metric, ["job"])
    for a, b in product(codes, repeat=2):
        found = weights.distances(np.array([[codes[a]]]), np.array([[codes[b]]]))[0]
        same = [
            float(described.distance({"job": x}, {"job": y}))
            for x, y in product(codes, repeat=2)
            if (codes[x], codes[y]) == (codes[a], codes[b])
        ]
        assert found == pytest.approx(min(same), abs=1e-15)


# -- sums of mismatches ------------------------------------------------------------------------------------------------


def test_nested_partitions_add_up_to_an_ultrametric():
    table = np.array([[0, 0.2, 0.5, 1], [0.2, 0, 0.5, 1], [0.5, 0.5, 0, 1], [1, 1, 1, 0.0]])
    found = partitions(table)
    assert found is not None
    total = sum(height * (codes[:, None] != codes) for codes, height in found)
    np.testing.assert_allclose(total, table)


@pytest.mark.parametrize("seed", range(20))
def test_partitions_exist_for_distances_in_l1_and_have_their_sum(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(9, 3)).round(1)
    for table in (
        random_distances(rng, 4),  # all distances of four points are those of points in L1
        np.abs(points[:, None] - points).sum(axis=2),
        np.sqrt(((points[:, None] - points) ** 2).sum(axis=2)),  # as are those of points in L2
    ):
        share = table / table.max()
        found = sum(weight * (codes[:, None] != codes) for codes, weight in partitions(share))
        np.testing.assert_allclose(found, share, atol=1e-13)


def test_distances_that_are_no_sum_of_mismatches_have_no_partitions():
    graph = np.array([[0, 2, 1, 1, 1], [2, 0, 1, 1, 1], [1, 1, 0, 2, 2], [1, 1, 2, 0, 2], [1, 1, 2, 2, 0]]) / 2
    assert partitions(graph) is None  # K(2, 3)
    line = np.abs(np.subtract.outer(np.arange(13), np.arange(13))) / 12
    assert partitions(line) is None  # too many to try
    assert partitions(line[:12, :12]) is not None


# -- bad input, in one line --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"a": {"b": 1, "c": 5}, "b": {"c": 2}},
            "triangle inequality; got 5 between 'a' and 'c', but 1 from 'a' to 'b'",
        ),
        ({"a": {"b": 1}, "b": {"a": 2}}, "same in both directions"),
        ({"a": {"a": 1, "b": 1}}, "0 between a category and itself"),
        ({"a": {"b": 1}, "c": {"b": 1}}, "have every pair"),
        ({"a": {"b": -1}}, "be 0 or more"),
        ({"a": {"b": np.nan}}, "be 0 or more"),
        ({"a": {"b": 0}}, "have one above 0"),
        ({"a": {"b": "far"}}, "be 0 or more"),
        ({1: {"1": 2}}, "distinct"),
        ([[0, 1], [1, 0]], "square DataFrame"),
    ],
)
def test_a_matrix_that_is_no_distance_is_refused(given, words):
    with pytest.raises(InvalidInputError, match=words) as error:
        TableMetric({}, {"x": 0.5}, distances={"x": given})
    assert "\n" not in str(error.value)
    assert "'x'" in str(error.value)


def test_the_triangle_inequality_has_room_for_decimals():
    # 0.1 + 0.7 is 0.7999999999999999 in floating point.
    TableMetric({}, {"x": 1}, distances={"x": {"a": {"b": 0.1, "c": 0.8}, "b": {"c": 0.7}}})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"groups": {"x": [["a"], ["b"]]}}, "groups must be like"),
        ({"groups": {"x": {"within": 2, "groups": [["a"], ["b"]]}}}, "within must be a share"),
        ({"groups": {"x": {"within": 0.5, "groups": ["ab"]}}}, "lists of categories"),
        ({"groups": {"x": {"within": 0.5, "groups": [["a", "b"], ["a"]]}}}, "listed twice"),
        ({"groups": {"x": {"within": 0.5, "groups": [[None, "b"]]}}}, "text or numbers"),
        ({"groups": {"n": GROUPS}}, "under categorical"),
        ({"distances": {"n": HOURS}}, "under categorical"),
        ({"order": {"x": ["a", "b"]}}, "under numeric"),
        ({"order": {"n": ["a"]}}, "at least two"),
        ({"order": {"n": "abc"}}, "at least two"),
        ({"order": {"n": ["a", "a"]}}, "listed twice"),
        ({"groups": {"x": GROUPS}, "distances": {"x": HOURS}}, "groups or distances"),
    ],
)
def test_bad_shapes_are_refused(wrong, words):
    with pytest.raises(InvalidInputError, match=words) as error:
        TableMetric({"n": 0.1}, {"x": 0.5}, **wrong)
    assert "\n" not in str(error.value)


def test_a_value_that_is_not_in_the_order_is_refused():
    metric = TableMetric({"g": 0.1}, order={"g": ["a", "b"]})
    with pytest.raises(InvalidInputError, match="'z', which is not among its ordered categories"):
        metric.pairwise(people(g=["a", "z"]))


# -- the metric as an object -------------------------------------------------------------------------------------------


def test_params_make_the_same_metric():
    metric = TableMetric(
        {"g": 0.1},
        {"job": 0.1, "region": 0.2},
        order={"g": ["a", "b"]},
        groups={"job": GROUPS},
        distances={"region": pd.DataFrame([[0, 2], [2, 0]], index=["x", "y"], columns=["x", "y"])},
    )
    again = TableMetric(**metric.get_params())
    assert again == metric
    assert hash(again) == hash(metric)
    assert again.get_params() == metric.get_params()
    assert "groups: job" in repr(metric)


@pytest.mark.parametrize("change", [{"groups": {}}, {"groups": {"job": {**GROUPS, "within": 0.4}}}])
def test_other_shapes_are_other_metrics(change):
    metric = TableMetric({}, {"job": 0.1}, groups={"job": GROUPS})
    assert metric.with_params(**change) != metric


def test_scaling_and_rounding_keep_the_shape():
    metric = TableMetric({"g": 0.0123}, {"job": 0.114}, order={"g": ["a", "b"]}, groups={"job": GROUPS})
    table = people(g=["a", "b", "a"], job=["clerk", "clerk", "teacher"])
    np.testing.assert_allclose(metric.scaled(2).pairwise(table), 2 * metric.pairwise(table))
    rounded = metric.rounded()
    assert (rounded.pairwise(table) <= metric.pairwise(table)).all()
    assert (rounded.pairwise(table) >= 0.9 * metric.pairwise(table)).all()
    assert rounded.groups == metric.groups
    assert rounded.describe()["one point"].tolist() == ["one step = 1.2 points", "mismatch = 3.3 to 11 points"]


def test_a_square_table_and_a_mapping_are_the_same():
    frame = pd.DataFrame([[0, 4, 8], [4, 0, 6], [8, 6, 0]], index=["north", "east", "south"])
    frame.columns = frame.index
    one, other = (CategoryDistances.from_matrix("region", given) for given in (frame, HOURS))
    assert one.categories == other.categories
    np.testing.assert_array_equal(one.matrix, other.matrix)
