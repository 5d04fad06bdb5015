import matplotlib as mpl
import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from likewise import ComparisonDisplay, SmoothedClassifier, TradeoffDisplay, WeightedLp, compare, tradeoff

mpl.use("Agg")

X = np.random.default_rng(0).normal(size=(90, 2))
Y = (X[:, 0] > 0).astype(int)
METRIC = WeightedLp([0.4, 0.0])
METHOD = ("stump", SmoothedClassifier(DecisionTreeClassifier(max_depth=1), random_state=0))


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_a_comparison_has_a_point_per_method_that_was_gone_and_marks_the_best():
    result = compare(X, Y, METRIC, ["projection", METHOD], cv=3)
    display = ComparisonDisplay.from_comparison(result)
    gone = result.table[result.table["evaluations"].notna()]
    labels = display.ax_.get_yticklabels()
    assert [label.get_text() for label in labels] == gone["title"].tolist()
    assert [label.get_text() for label in labels if label.get_fontweight() == "bold"] == [
        result.table.loc[result.best().name, "title"]
    ]
    points = [container.lines[0].get_xdata()[0] for container in display.ax_.containers]
    assert points == gone["brier"].tolist()
    assert any("violations" in text.get_text() for text in display.ax_.texts)
    display.figure_.canvas.draw()


def test_a_price_has_a_point_per_scale_and_rings_the_meeting_point():
    result = tradeoff(X, Y, METRIC, [0.5, 1, 64], method=METHOD, cv=3)
    assert result.matching_scale > 1
    display = TradeoffDisplay.from_tradeoff(result)
    (container,) = display.ax_.containers
    assert container.lines[0].get_ydata().tolist() == result.table["brier"].tolist()
    assert any(line.get_xdata()[0] == result.matching_scale for line in display.ax_.lines if len(line.get_xdata()) == 1)
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["x 0.5", "x 1", "x 64"]
    display.figure_.canvas.draw()


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="result must be what compare returned; got int"):
        ComparisonDisplay.from_comparison(1)
    with pytest.raises(TypeError, match="result must be what tradeoff returned; got int"):
        TradeoffDisplay.from_tradeoff(1)
