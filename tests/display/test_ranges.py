import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from likewise import RangesDisplay, estimate_minimal_metric, learn_metric
from likewise.exceptions import InvalidInputError, InvalidTypeError

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def near_copies():
    rng = np.random.default_rng(0)
    debt = rng.normal(20, 5, 100)
    people = pd.DataFrame({"debt": debt, "loans": debt + rng.normal(0, 1e-3, 100), "age": rng.normal(40, 9, 100)})
    return people, 0.3 + 0.01 * debt + 0.002 * people["age"]


def said(display):
    ax = display.ax_
    texts = [*ax.get_yticklabels(), *ax.texts, *ax.get_legend().get_texts(), ax.title, ax.xaxis.label]
    return "\n".join(text.get_text() for text in texts)


def test_ranges_are_in_points_per_standard_deviation_and_open_where_a_weight_could_be_0():
    people, scores = near_copies()
    again = people.iloc[[0]].assign(age=people["age"] + 9)  # who differs from somebody in age alone
    people, scores = pd.concat([people, again], ignore_index=True), np.append(scores, scores[0] + 0.018)
    found = estimate_minimal_metric(None, people, predictions=scores)
    display = RangesDisplay.from_result(found, people)
    points = dict(zip(display.names, display.points.tolist(), strict=True))
    age = found.weights.set_index("column").loc["age"]
    assert points["age"] == pytest.approx(100 * people["age"].std(ddof=0) * age[["low", "estimate", "high"]].to_numpy())
    dots = {
        int(line.get_ydata()[0]): line.get_markerfacecolor() for line in display.ax_.lines if line.get_marker() == "o"
    }
    rows = [label.get_text().split("\n")[0] for label in display.ax_.get_yticklabels()]
    assert {rows[place] for place, face in dots.items() if face == "white"} == {"debt", "loans"}
    without = estimate_minimal_metric(None, people[:100], predictions=scores[:100])
    assert not RangesDisplay.from_result(without, people).known.any()  # control: others could stand in for age
    assert "matter" not in said(display)
    assert "could be 0: not known" in said(display)


def test_answers_have_ranges_too_and_some_no_limit():
    people = pd.DataFrame({"age": [30, 40, 30, 35], "job": ["x", "x", "y", "y"]})
    answers = pd.DataFrame({"kind": ["at_most"], "a": [0], "b": [2], "points": [8.0]})
    display = RangesDisplay.from_result(learn_metric(answers, people), people)
    assert "no limit" in said(display)
    assert display.points[1].tolist() == pytest.approx([0, 4, 8])


def test_other_results_are_refused():
    people, scores = near_copies()
    with pytest.raises(InvalidTypeError, match="estimate_minimal_metric or learn_metric"):
        RangesDisplay.from_result(people, people)
    squared = estimate_minimal_metric(None, people, 2, predictions=scores)
    with pytest.raises(InvalidInputError, match="p = 1"):
        RangesDisplay.from_result(squared, people)
