import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest

from likewise import (
    AuditDisplay,
    MetricDisplay,
    TableMetric,
    WeightedLp,
    audit,
    estimate_minimal_metric,
)

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def bars(display):
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    return dict(zip(labels, [bar.get_width() for bar in display.ax_.patches], strict=True))


def test_metric_has_one_bar_per_feature_the_largest_on_top():
    display = MetricDisplay.from_metric(WeightedLp({"age": 0.1, "race": 0.0, "hours": 0.3}))
    assert bars(display) == {"race": 0.0, "age": 0.1, "hours": 0.3}
    assert list(bars(display)) == ["race", "age", "hours"]  # from the bottom
    assert "must not matter" in display.ax_.texts[0].get_text()
    assert display.ax_.get_xlabel() == "Weight per unit of the feature"


def test_weights_can_be_shown_per_standard_deviation():
    X = pd.DataFrame({"age": [0.0, 20.0], "hours": [0.0, 2.0]})
    display = MetricDisplay.from_metric(WeightedLp({"age": 0.1, "hours": 0.3}, p=2), X)
    assert bars(display) == pytest.approx({"age": 0.1 * 10**2, "hours": 0.3 * 1**2})
    assert "standard deviation" in display.ax_.get_xlabel()


def test_mismatch_weights_are_told_apart():
    display = MetricDisplay.from_metric(TableMetric({"age": 0.1}, {"job": 0.2}))
    assert bars(display) == {"age": 0.1, "job": 0.2}
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "per unit of the feature",
        "for a different category",
    ]


def test_numbers_of_a_table_can_be_shown_per_standard_deviation():
    X = pd.DataFrame({"job": ["a", "b", "a"], "age": [0.0, 20.0, np.nan], "race": ["x", "y", "x"]})
    metric = TableMetric({"age": 0.02}, {"job": 0.3, "race": 0}, missing="category")
    for table in (X, pl.from_pandas(X)):
        display = MetricDisplay.from_metric(metric, table)
        assert bars(display) == pytest.approx({"age": 0.2, "job": 0.3, "race": 0.0})
        assert "per standard deviation" in display.ax_.get_legend().get_texts()[0].get_text()
    assert bars(MetricDisplay.from_metric(TableMetric(categorical={"job": 0.3}), X)) == {"job": 0.3}
    with pytest.raises(ValueError, match="X must have the column 'age', which the metric names"):
        MetricDisplay.from_metric(metric, X[["job"]])


def test_audits_of_tables_are_shown_like_others():
    X = pd.DataFrame({"age": [30, 30], "race": ["x", "y"]})
    result = audit(None, X, TableMetric({"age": 0.1}, {"race": 0}), predictions=[0.1, 0.6])
    assert "1 of 1 pairs exceed the metric" in AuditDisplay.from_audit(result).ax_.get_title(loc="left")


def test_long_metrics_are_cut_and_say_so():
    display = MetricDisplay.from_metric(WeightedLp(np.arange(1.0, 51.0)), max_features=5)
    assert list(bars(display).values()) == [46, 47, 48, 49, 50]
    assert "45 more not shown" in display.ax_.get_title(loc="left")


def test_estimates_and_given_axes_are_accepted():
    import matplotlib.pyplot as plt

    ax = plt.figure().add_subplot()
    idle = estimate_minimal_metric(None, [[0.0, 2.0], [1.0, 2.0]], predictions=[0.1, 0.4])
    shown = [text.get_text() for text in MetricDisplay.from_metric(idle).ax_.texts]
    assert shown == ["0: not forced by these people", "0.3"]
    result = estimate_minimal_metric(None, [[0.0], [1.0]], predictions=[0.1, 0.4])
    assert MetricDisplay.from_metric(result, ax=ax).ax_ is ax


@pytest.mark.parametrize("scores", [[0.1, 0.9, 0.5], [0.1, 0.1, 0.1]], ids=["violations", "none"])
def test_audit_shows_difference_against_distance_and_shades_what_is_allowed(scores):
    result = audit(None, [[0.0], [0.5], [3.0]], WeightedLp([0.2]), predictions=scores)
    display = AuditDisplay.from_audit(result)
    (line,) = display.ax_.lines
    np.testing.assert_allclose(line.get_ydata(), line.get_xdata() + result.tolerance)
    worst = [points for points in display.ax_.collections if "violations" in str(points.get_label())]
    assert len(worst) == (1 if result.n_violations else 0)
    if worst:
        np.testing.assert_allclose(worst[0].get_offsets(), result.violations[["distance", "difference"]])
    assert f"{result.n_violations} of 3 pairs exceed the metric" in display.ax_.get_title(loc="left")
    display.figure_.canvas.draw()


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="metric must be a Metric, such as WeightedLp or TableMetric; got"):
        MetricDisplay.from_metric([1, 2])
    with pytest.raises(TypeError, match="result must be what audit returned; got float"):
        AuditDisplay.from_audit(1.0)
    with pytest.raises(ValueError, match="X must have 1 columns, one per weight"):
        MetricDisplay.from_metric(WeightedLp([1.0]), np.zeros((3, 2)))
