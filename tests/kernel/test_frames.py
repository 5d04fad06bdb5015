"""Certificates and promises as tables and words, column by column."""

import re
import warnings

import numpy as np
import pytest

from likewise import WeightedLp
from likewise._guarantee_warnings import VacuousGuaranteeWarning, warn_if_vacuous
from likewise.kernel.bounds import Bound, LoosenedBound
from likewise.kernel.certificate import Estimate, certify
from promised import promise

METRIC = WeightedLp({"age": 0.1})
MEAN = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
FOUND = Estimate(MEAN, MEAN - 0.05, MEAN + 0.07, np.array([9, 9]))
SAMPLED = promise(METRIC, Bound(), "sampled", "By draws.", slack=0.02, delta=0.01, n_draws=50)


def test_a_table_of_certificates_has_each_number_in_its_column():
    certificate = certify(FOUND, SAMPLED, np.array(["a", "b", "c"]))
    frame = certificate.to_frame()
    assert list(frame.columns) == [
        *("a", "a lower", "a upper", "b", "b lower", "b upper", "c", "c lower", "c upper"),
        *("outcome", "distance"),
    ]
    for j, name in enumerate("abc"):
        np.testing.assert_array_equal(frame[name], MEAN[:, j])
        np.testing.assert_array_equal(frame[f"{name} lower"], MEAN[:, j] - 0.05)
        np.testing.assert_array_equal(frame[f"{name} upper"], MEAN[:, j] + 0.07)
    assert frame["outcome"].tolist() == ["a", "c"]
    # Half the lead that the intervals leave: 0.45 against 0.37, and 0.65 against 0.27.
    np.testing.assert_allclose(frame["distance"], [0.04, 0.19], rtol=1e-9)
    assert (certificate.delta, certificate.curve) == (0.01, SAMPLED.curve)


def test_ranges_of_every_class_at_a_distance_start_from_the_ends_of_the_intervals():
    low, high = certify(FOUND, SAMPLED, np.array(["a", "b", "c"])).range_at(0.1)
    np.testing.assert_allclose(low, np.maximum(MEAN - 0.05 - 0.1, 0), atol=1e-12)
    np.testing.assert_allclose(high, np.minimum(MEAN + 0.07 + 0.1, 1), atol=1e-12)


def test_certificates_of_numbers_are_in_their_unit():
    guarantee = promise(METRIC, Bound(), "sampled", "By draws.", slack=0.02, delta=0.01, output_range=(100.0, 300.0))
    mean = np.array([[110.0], [200.0], [295.0]])
    certificate = certify(Estimate(mean, mean - 2, mean + 3, np.array([9, 9, 9])), guarantee)
    frame = certificate.to_frame()
    assert list(frame.columns) == ["prediction", "prediction lower", "prediction upper"]
    assert frame.to_numpy().tolist() == [[110, 108, 113], [200, 198, 203], [295, 293, 298]]
    low, high = certificate.range_at(0.1)  # 20 to either side, within the range
    np.testing.assert_allclose(low[:, 0], [100, 178, 273])
    np.testing.assert_allclose(high[:, 0], [133, 223, 300])
    assert certificate.distance is None


def numbers(html):
    return re.findall(r">([\d.]+)</td>", html)


def test_a_promise_shows_its_bound_at_some_distances():
    cells = numbers(promise(METRIC, LoosenedBound(0.01), "deterministic", "A grid.", slack=0.02)._repr_html_())
    assert cells[:4] == ["0.01", "0.04", "0.05", "0.08"]
    assert cells[10:12] == ["1", "1"]
    scaled = promise(METRIC, Bound(), "exact", "By construction.", output_range=(100.0, 300.0))
    assert numbers(scaled._repr_html_())[:4] == ["0.01", "2", "0.05", "10"]


def test_a_promise_says_its_epsilon_and_the_width_of_the_outputs():
    words = promise(
        METRIC, LoosenedBound(0.01), "sampled", "A basis.", slack=0.02, output_range=(100.0, 300.0)
    ).statement
    assert "D(x, x') + 0.03 times 200, the width of the output range" in words
    assert "A basis." in words
    assert "in total variation" in promise(METRIC, Bound(), "exact", "A basis.").statement
    assert repr(SAMPLED) == "<Guarantee: sampled, at most D(x, x') + 0.02 under WeightedLp(age=0.1, p=1)>"


@pytest.mark.parametrize(("distance", "expected"), [(0.0, 0.02), (0.1, 0.13), (0.96, 0.99), (5.0, 1.0)])
def test_bounds_add_what_a_grid_and_what_sampling_adds(distance, expected):
    """At distance 0 a grid adds nothing: equal people are in the same cell."""
    guarantee = promise(METRIC, LoosenedBound(0.01), "sampled", "A basis.", slack=0.02)
    assert guarantee.bound(distance) == pytest.approx(expected)
    assert guarantee.epsilon == pytest.approx(0.03)


@pytest.mark.parametrize(("together", "warns"), [(2, True), (5, False)])
def test_a_promise_warns_where_99_of_100_pairs_are_at_a_distance_of_1_or_more(together, warns):
    """Of 21 people, who make 210 pairs, 2 or 5 are together and everybody else is far away: 1 or 10 pairs are close."""
    rows = np.maximum(0.0, 100.0 * np.arange(21.0) - 100.0 * (together - 1))[:, None]
    assert ((METRIC.pairwise(rows) < 1).sum() - 21) // 2 == together * (together - 1) // 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_vacuous(promise(METRIC, Bound(), "exact", "By hand."), METRIC.encode_rows(rows))
    assert [one.category for one in caught] == [VacuousGuaranteeWarning] * warns
