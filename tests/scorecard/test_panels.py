"""What is drawn of a scorecard: all of it."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, ScorecardDisplay, TableMetric
from likewise.report import charts as pictures
from likewise.scorecard.display import Panel, height, panels_of

mpl.use("Agg")


def numbers(points, knots=None, missing=None, column="x"):
    points = np.asarray(points, dtype=float)
    knots = np.arange(len(points), dtype=float) if knots is None else np.asarray(knots, dtype=float)
    none = np.zeros(len(points) - 1, dtype=bool)
    return Panel(
        column, knots, points, points - 1, points + 1, none, (), [] if missing is None else [("missing", missing)]
    )


def categories(points):
    points = np.asarray(points, dtype=float)
    levels = tuple(f"level {i}" for i in range(len(points)))
    return Panel("c", None, points, points - 1, points + 1, np.zeros(len(points), dtype=bool), levels, [])


def test_one_column_that_towers_above_the_others_is_in_the_picture():
    panels = [numbers([-0.3, 0.3]), numbers([-0.2, 0.2]), categories([-1.0, 0.0, 32.0])]
    low, high = height(panels)
    assert low < -1 < 32 < high
    drawn = pictures.shapes(panels, {}, 9)["first"]
    (stems,) = (shape["stems"] for shape in drawn if shape["levels"])
    assert all(0 < y < pictures.PANEL_HEIGHT for _, y, _ in stems)
    assert stems[2][1] < stems[1][1] < stems[0][1]


def test_the_level_of_a_missing_number_is_in_the_picture_wherever_it_is():
    for missing, written in ((-7.0, "\N{MINUS SIGN}7"), (0.0, "0"), (3.0, "+3")):
        low, high = height([numbers([-0.4, 0.4], missing=missing)])
        assert low < missing < high
        (shape,) = pictures.shapes([numbers([-0.4, 0.4], missing=missing)], {}, 9)["first"]
        ((name, y, points),) = shape["states"]  # also where it is exactly 0
        assert (name, points) == ("missing", written)
        assert 0 < y < pictures.PANEL_HEIGHT
    (shape,) = pictures.shapes([numbers([-0.4, 0.4])], {}, 9)["first"]
    assert shape["states"] == []


def test_a_tail_is_cut_only_where_points_hardly_move():
    knots = [0, 1, 2, 3, 4, 5, 6, 7, 8, 1000]
    flat, steep = [0, 1, 0, 1, 0, 1, 0, 1, 0, 0.0], [0, 1, 0, 1, 0, 1, 0, 1, 0, -7.0]
    assert numbers(flat, knots).ends == (0.0, 11.5)
    assert numbers(steep, knots).ends == (0.0, 1000.0)
    assert numbers(steep[::-1], -np.array(knots[::-1])).ends == (-1000.0, 0.0)


@pytest.mark.parametrize("panel", [numbers([-7.0, *np.linspace(-0.3, 0.3, 8), 3.0], [-900, *range(8), 900])])
def test_the_whole_line_is_within_the_picture(panel):
    """A column from -7 to +3 is shown from -7 to +3."""
    (shape,) = pictures.shapes([panel], {}, 9)["first"]
    places = [tuple(map(float, place.split())) for place in shape["line"].removeprefix("M").split("L")]
    assert all(0 <= x <= pictures.PANEL_WIDTH and 0 <= y <= pictures.PANEL_HEIGHT for x, y in places)
    assert shape["ends"] == ["-900", "900"]


@pytest.mark.parametrize(
    ("ends", "unit", "written"),
    [
        ((2003, 2009), "", ["2003", "2009"]),
        ((1990, 2020), "year", ["1990 year", "2020 year"]),
        ((0.001234, 0.0098761), "", ["0.00123", "0.00988"]),
        ((12345.6, 98765.4), "", ["12,300", "98,800"]),
        ((41.5, 43.25), "$1000", ["$41,500", "$43,250"]),
        ((5, 5), "", ["5", "5"]),
    ],
)
def test_ends_of_an_axis_are_rounded_by_its_width(ends, unit, written):
    (shape,) = pictures.shapes([numbers([0.0, 1.0], ends)], {"x": unit}, 9)["first"]
    assert shape["ends"] == written


def test_the_display_shows_every_point():
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300), "c": rng.choice(["u", "v"], 300)})
    X.loc[::40, "b"] = np.nan
    y = 20.0 * (X["c"] == "v") + 0.2 * X["a"] + 0.1 * X["b"].fillna(0)
    metric = TableMetric({"a": 0.1, "b": 0.1}, {"c": 1.0}, missing={"b": 0.5})
    model = AdditiveRegressor(metric, penalty=1e-4).fit(X, y)
    display = ScorecardDisplay.from_estimator(model)
    card = model.scorecard()
    for ax in display.axes_:
        low, high = ax.get_ylim()
        assert low < card["points"].min()
        assert card["points at end"].max() < high
    (towering,) = (ax for ax in display.axes_ if ax.get_title(loc="left") == "c")
    assert towering.get_ylim() == display.axes_[0].get_ylim()
    plt.close(display.figure_)


def test_what_a_missing_weight_allows_narrows_the_fan():
    X = pd.DataFrame({"x": np.linspace(0, 100, 200)})
    X.loc[::20, "x"] = np.nan
    y = (X["x"].fillna(50) > 50).astype(int)
    (panel,) = panels_of(AdditiveClassifier(TableMetric({"x": 0.05}, missing={"x": 0.1}), penalty=1e-4).fit(X, y))
    middle = panel.points[len(panel.points) // 2]
    assert panel.high.max() - middle == pytest.approx(2 * 4 * 0.1)
    assert (panel.low <= panel.points + 1e-12).all()
    assert (panel.points <= panel.high + 1e-12).all()
