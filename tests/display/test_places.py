"""Where lines, bands and points stand in pictures of results written down by hand."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from likewise import AuditDisplay, ComparisonDisplay, MetricDisplay, TradeoffDisplay, WeightedLp, audit
from likewise.selection.compare import Comparison
from likewise.selection.cross_validation import CVResult, Fold
from likewise.selection.tradeoff import Tradeoff

mpl.use("Agg")
METRIC = WeightedLp([1.0])
FOLDS = tuple(Fold(np.arange(4), np.arange(2 * k, 2 * k + 2), np.arange(2)) for k in range(2))


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def showing(title, brier, error, *, keeps=True, violations=0):
    row = {"title": title, "brier": brier, "brier_se": error, "guarantee": keeps, "violations": violations, "pairs": 9}
    losses = brier + 0.001 * np.array([1.0, 1.0, -1.0, -1.0])
    return CVResult(row | {"evaluations": 1, "note": "", "level": "exact"}, losses, np.zeros((4, 2)), keeps)


def spans(ax):
    """Ends of shaded bands: from and to, along x and along y."""
    return [tuple(patch.get_bbox().extents.round(9).tolist()) for patch in ax.patches]


@pytest.fixture
def priced():
    scales = {0.5: showing("ours", 0.25, 0.01), 1.0: showing("ours", 0.2, 0.02), 4.0: showing("ours", 0.1, 0.03)}
    constant, reference = showing("constant", 0.3, 0.04), showing("unconstrained model", 0.15, 0.005)
    return Tradeoff("ours", scales, constant, reference, FOLDS, "classification", METRIC)


def test_a_price_stands_between_the_bands_of_a_constant_and_of_the_unconstrained_model(priced):
    ax = TradeoffDisplay.from_tradeoff(priced).ax_
    assert [(low, high) for _, low, _, high in spans(ax)] == [(0.26, 0.34), (0.145, 0.155)]
    levels = [
        line.get_ydata()[0] for line in ax.lines if len(set(line.get_ydata())) == 1 and len(line.get_xdata()) == 2
    ]
    assert levels[:2] == [0.3, 0.15]
    (bars,) = ax.containers
    assert bars.lines[0].get_xdata().tolist() == [0.5, 1.0, 4.0]
    ends = [segment[:, 1].tolist() for segment in bars.lines[2][0].get_segments()]
    np.testing.assert_allclose(ends, [[0.24, 0.26], [0.18, 0.22], [0.07, 0.13]])


def test_the_ring_stands_where_the_price_meets_the_unconstrained_model(priced):
    """At the strictest scale that was measured and is as good."""
    assert priced.matching_scale == 4.0
    ax = TradeoffDisplay.from_tradeoff(priced).ax_
    (ring,) = [line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata()) == 1]
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == pytest.approx((4.0, 0.1))
    assert any("as good at x 4" in text.get_text() for text in ax.texts)


def test_a_comparison_shades_what_is_worse_than_the_constant_and_rings_the_best():
    results = {
        "constant": showing("constant (base rate)", 0.25, 0.01),
        "additive": showing("additive", 0.1, 0.02),
        "unconstrained": showing("unconstrained model", 0.05, 0.03, keeps=False, violations=1234),
    }
    ax = ComparisonDisplay.from_comparison(
        Comparison(results, dict.fromkeys(results), FOLDS, "classification", METRIC)
    ).ax_
    low, high = 0.02, 0.26
    margin = 0.06 * (high - low)
    assert ax.get_xlim() == pytest.approx((low - margin, high + margin))
    (worse,) = [span for span in spans(ax) if span[0] == 0.25]
    assert worse[2] == pytest.approx(high + margin)
    ring = [line for line in ax.lines if line.get_markersize() == 15]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in ring] == [(0.1, 1)]
    ends = [bars.lines[2][0].get_segments()[0][:, 0].tolist() for bars in ax.containers]
    np.testing.assert_allclose(ends, [[0.24, 0.26], [0.08, 0.12], [0.02, 0.08]])
    words = [text.get_text() for text in ax.texts]
    assert words[:3] == ["no violation", "no violation", "1,234 violations"]
    hollow = [bars.lines[0].get_markerfacecolor() == "white" for bars in ax.containers]
    assert hollow == [False, False, True]


def test_an_audit_shades_what_is_allowed_and_shows_the_worst_above_it():
    found = audit(None, [[0.0], [0.1], [3.0]], METRIC, predictions=[0.1, 0.9, 0.2], tolerance=0.05)
    ax = AuditDisplay.from_audit(found).ax_
    allowed, random, worst = ax.collections
    corners = allowed.get_paths()[0].vertices
    assert corners[corners[:, 0] > 0, 1].max() == pytest.approx(corners[:, 0].max() + 0.05)
    np.testing.assert_allclose(worst.get_offsets(), [[0.1, 0.8]])
    assert ax.get_title(loc="left") == "1 of 3 pairs exceed the metric"
    assert ax.get_xlim() == ax.get_ylim() == pytest.approx((0, 1.1 * 0.8))
    np.testing.assert_allclose(random.get_offsets(), found.sample[["distance", "difference"]])


@pytest.mark.parametrize("p", [1, 2, 3, np.inf])
def test_weights_per_standard_deviation_are_inside_the_power(p):
    """Standard deviations of 2 and 10: weights are 2^p and 10^p times as large, and for p = inf 2 and 10 times."""
    X = np.array([[0.0, 0.0], [4.0, 20.0]])
    power = 1 if np.isinf(p) else p
    display = MetricDisplay.from_metric(WeightedLp({"a": 0.5, "b": 0.125}, p), pd.DataFrame(X, columns=["a", "b"]))
    np.testing.assert_allclose(display.weights, [0.5 * 2**power, 0.125 * 10**power])
    bars = sorted(patch.get_width() for patch in display.ax_.patches)
    np.testing.assert_allclose(bars, sorted([0.5 * 2**power, 0.125 * 10**power]))
