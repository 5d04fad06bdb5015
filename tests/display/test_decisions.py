"""The plot of `decision_costs` shows its table."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from likewise import AdditiveClassifier, DecisionDisplay, WeightedLp, decision_costs

mpl.use("Agg")

METRIC = WeightedLp([0.4])
X = np.linspace(-1, 1, 100)[:, None]
Y = (X[:, 0] > 0).astype(int)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def lines(display):
    return {line.get_label(): line.get_ydata() for line in display.ax_.lines if not line.get_label().startswith("_")}


def test_every_curve_is_a_column_of_the_table():
    costs = decision_costs(AdditiveClassifier(METRIC, penalty=0.01).fit(X, Y), X, Y, widths=[0.5, 0, 0.1])
    display = DecisionDisplay.from_costs(costs)
    table, drawn = costs.table.sort_index(), lines(display)
    assert len(drawn) == 4
    found = [100 * table[name] for name in ("guarantee", "near_largest", "against_threshold")]
    found.append(100 * (table.loc[0, "accuracy"] - table["accuracy"]))
    for values, expected in zip(drawn.values(), found, strict=True):
        np.testing.assert_array_equal(values, expected)
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["0", "0.1", "0.5"]
    display.figure_.canvas.draw()


def test_a_model_without_a_guarantee_has_no_curve_of_one():
    costs = decision_costs(LogisticRegression().fit(X, Y), X, metric=METRIC)
    assert not any("guarantee" in label for label in lines(DecisionDisplay.from_costs(costs)))


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="result must be what decision_costs returned; got int"):
        DecisionDisplay.from_costs(1)
