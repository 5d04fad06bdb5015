"""What a page says and draws of a few people, worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, TableMetric, WeightedLp, audit, review_files
from likewise.auditing.coverage import Coverage, measure_coverage
from likewise.exceptions import InvalidInputError
from likewise.kernel.bounds import Bound, LoosenedBound
from likewise.report import ReportData, charts, render
from likewise.report import text as words
from likewise.report.build import build_scores_report
from likewise.report.cards import pair_cards, scores_of
from likewise.report.pairs import BINS, PairScan, Story, differences
from likewise.report.view import for_browser, prepare
from likewise.scorecard.display import Panel, panels_of
from likewise.selection.cross_validation import SCORES
from promised import promise

METRIC = TableMetric(
    {"age": 0.01, "debt": 0.02, "height": 0.0}, {"job": 0.1, "race": 0.0}, missing={"debt": 0.3}, units={"age": "years"}
)
TABLE = pd.DataFrame(
    {
        "age": [20.0, 30.0, 50.0, 20.0],
        "debt": [1.0, 3.0, np.nan, 1.0],
        "height": [150.0, 160.0, 170.0, 180.0],
        "job": ["cook", "nurse", "cook", "cook"],
        "race": ["x", "x", None, "y"],
    },
    index=["Ann", "Bob", "Cat", "Dan"],
)
AFTER = np.array([0.125, 0.5, 0.25, 0.75])
PAIR = {"row_a": 0, "row_b": 1, "difference": 0.375, "distance": 0.24}


def report(**changes):
    people = METRIC.encode_rows(TABLE)
    guarantee = promise(METRIC, LoosenedBound(0.01), "deterministic", "By hand.")
    options = {"guarantee": guarantee, "before": AFTER[::-1], "after": AFTER} | changes
    return ReportData("A title", "approved", METRIC, people, **options)


def test_a_pair_is_allowed_its_distance_and_epsilon_and_what_counts_most_comes_first():
    """Ann and Bob: 0.1 of age, 0.04 of debt and 0.1 of job; Ann and Dan differ where nothing counts."""
    data = report()
    view = prepare(data)
    # Of the others, each pair has one of the two furthest above their distance: nobody is shown twice.
    assert [card["names"] for card in view["over"]] == [["Ann", "Dan"]]
    (card,) = pair_cards(data, view["columns"], pd.DataFrame([PAIR]), "after")
    assert (card["allowed"], card["difference"]) == pytest.approx((0.25, 0.375))
    assert [(column.name, a, b) for column, a, b in card["protected"]] == [("height", "150", "160")]
    assert [(column.name, a, b) for column, a, b in card["apart"]] == [
        ("age", "20 years", "30 years"),
        ("job", "cook", "nurse"),
        ("debt", "1", "3"),
    ]
    assert card["n_equal"] == 1
    (card,) = view["over"]
    assert (card["allowed"], card["difference"], card["n_equal"]) == pytest.approx((0.01, 0.625, 3))
    assert view["broken"]
    assert not prepare(report(after=np.full(4, 0.5)))["broken"]
    assert not prepare(report(after=np.array([0.5, 0.5, 0.5, 0.505])))["broken"]  # equal people, by half of epsilon


def test_a_category_counts_its_weight_once_and_a_missing_number_its_own():
    """Far apart as codes, two jobs count 0.1 and no more; a missing debt counts 0.05, less than both."""
    metric = TableMetric({"age": 0.01, "debt": 0.02}, {"job": 0.1}, missing={"debt": 0.05})
    jobs = [*"abcdefgh"]
    people = pd.DataFrame({"age": [20.0] * 7 + [40.0], "debt": [1.0] * 7 + [np.nan], "job": jobs})
    scores = np.array([0.0] * 7 + [0.9])
    data = ReportData("A title", "approved", metric, metric.encode_rows(people), after=scores)
    apart = [[column.name for column, _, _ in card["apart"]] for card in prepare(data)["over"]]
    assert apart == [["age", "job", "debt"]] * len(apart)
    assert apart


def test_columns_count_what_a_usual_difference_is_worth():
    age, debt, height, job, race = prepare(report())["columns"]
    spread = np.std([20, 30, 50, 20])
    assert age.counts == pytest.approx(0.01 * spread)
    assert debt.typical == pytest.approx(np.std([1, 3, 1]))  # among those of whom it is known
    assert (job.typical, job.counts, job.options) == (1.0, 0.1, ("cook", "nurse"))
    assert (height.counts, height.bar, height.position, race.counts) == (0.0, 0.0, 0, 0.0)
    longest = 1.25 * 0.01 * spread  # that of age, and room to grow
    assert age.longest == pytest.approx(longest)
    assert age.bar == pytest.approx(100 * 0.01 * spread / longest, abs=0.01)
    assert job.worth == "any difference = 10 points"
    assert age.top == 1.0
    assert age.position == round(200 * np.cbrt(0.01 * spread))
    assert [column.missing for column in (age, debt)] == [None, 0.3]


def test_the_script_is_given_the_people_as_they_are():
    data = report(shown=1, before=None, after=np.column_stack([1 - AFTER, AFTER]))
    told = for_browser(data, prepare(data))
    assert (told["epsilon"], told["promised"], told["shown"]) == (0.01, True, 0)
    assert told["people"][2]["values"] == [50.0, None, 170.0, 0.0, None]
    assert [person["after"] for person in told["people"]] == [[x] for x in AFTER.tolist()]
    assert told["people"][0]["before"] is None
    several = report(before=np.full((4, 3), 1 / 3), after=np.tile([0.5, 0.25, 0.25], (4, 1)), shown=-1)
    told = for_browser(several, prepare(several))
    assert told["shown"] == 2
    assert told["people"][0]["before"] == pytest.approx([1 / 3] * 3, abs=1e-9)


def test_a_picture_has_a_path_for_each_shade_and_neighbours_are_one_rectangle():
    """Counts 1, 1, 2 and 8 in the bottom row, and 1 above the first: five shades from 1 to 8."""
    cells = np.zeros((2, BINS, BINS), dtype=int)
    cells[0, :4, 0] = [1, 1, 2, 8]
    cells[1, 0, 1] = 1
    scan = PairScan(13, 13, {"after": 1}, 1.0, {"after": cells}, Story((0, 1), 0.1, 0.1), {}, pd.DataFrame())
    within, above = charts.pictures(scan)["after"]
    bottom = BINS - 1
    assert within == [f"M0 {bottom}h2v1h-2z", f"M2 {bottom}h1v1h-1z", "", "", f"M3 {bottom}h1v1h-1z"]
    assert above == [f"M0 {bottom - 1}h1v1h-1z", "", "", "", ""]


def test_the_page_counts_pairs_once_and_as_the_audit_does():
    """Above the distance by more than the promise allows: the picture, the board and the audit agree."""
    data, found = report(), audit(None, TABLE, METRIC, predictions=AFTER, tolerance=0.01)
    D, (a, b) = METRIC.pairwise(TABLE), np.triu_indices(4, 1)
    above = int((np.abs(AFTER[a] - AFTER[b]) > D[a, b] + 0.01).sum())
    assert data.scan.n_above["after"] == found.n_violations == above
    first = data.scan.worst["after"].iloc[0]
    assert first["difference"] - first["distance"] == pytest.approx(found.max_excess, rel=1e-12)
    assert 0 < above < (np.abs(AFTER[a] - AFTER[b]) > D[a, b] - 0.3).sum()  # control
    assert prepare(data)["slack"] == pytest.approx(0.01 / data.scan.limit * BINS, abs=0.01)


def test_axes_are_round():
    for values, expected in (
        ([0.12, 0.31], [0.1, 0.15, 0.2, 0.25, 0.3, 0.35]),
        ([0.0, 10.0], [0.0, 5.0, 10.0]),
        ([-3.0, 8.0], [-5.0, 0.0, 5.0, 10.0]),
        ([7.0, 7.0], [6.0, 8.0]),
    ):
        low, high, ticks = charts.round_ticks(values)
        assert ticks == pytest.approx(expected)
        assert (low, high) == pytest.approx((expected[0], expected[-1]))


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0"),
        (0.00004, "under 0.01"),
        (-0.00004, "0"),
        (0.00005, "0.01"),
        (0.0099, "0.99"),
        (0.25, "25"),
        (-0.1234, "-12.3"),
    ],
)
def test_points_are_hundredths(x, text):
    assert words.point_figure(x) == text


def test_odds_never_sound_smaller_than_they_are():
    assert [words.odds(x) for x in (0.5, 0.0015, 1 / 3, 1e-6)] == ["1 in 2", "1 in 666", "1 in 3", "1 in 1,000,000"]
    assert words.odds(1 / 5559) == "1 in 5,550"


def test_reach_is_said_with_one_digit_where_it_is_little():
    assert words.reach(Coverage(0.1, 0.25, 1.0)).startswith(
        "The distance binds 10% of all pairs; the others are 100 points"
    )
    assert words.reach(Coverage(0.0123, 0.25, 1.0)).startswith("The distance binds 1.2% of all pairs; ")
    assert "25 points away" in words.reach(Coverage(0.5, 0.25, 1.0))


def test_reach_by_hand():
    """Distances 0.2, 0.5, 2.0, 0.3, 1.8 and 1.5; the nearest others are at 0.2, 0.2, 0.3 and 1.5."""
    found = measure_coverage(TableMetric({"x": 0.1}), pd.DataFrame({"x": [0.0, 2.0, 5.0, 20.0]}))
    assert (found.bound_share, found.nearest, found.median) == pytest.approx((0.5, 0.25, 1.0))
    at_one = measure_coverage(TableMetric({"x": 0.5}), pd.DataFrame({"x": [0.0, 2.0]}))
    assert at_one.bound_share == 0.0  # at a distance of 1 every difference is allowed
    assert "binds 50% of the pairs" in found.statement
    assert "nearest neighbour is at D = 0.25" in found.statement


def test_a_promise_without_a_grid_allows_the_distance_alone():
    (card, *_) = prepare(report(guarantee=promise(METRIC, Bound(), "exact", "By hand.")))["closest"]
    assert card["names"] == ["Ann", "Bob"]  # 0.1 of age, 0.04 of debt and 0.1 of job
    assert (card["allowed"], card["difference"]) == pytest.approx((0.24, 0.375))


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_scores_on_a_page_add_up(n_classes):
    """To 100%, and their differences to the one that is printed; each is within two tenths of a point of the truth."""
    rng = np.random.default_rng(n_classes)
    metric = TableMetric({"age": 0.01})
    people = metric.encode_rows(pd.DataFrame({"age": [30, 40]}))
    for power in (0.3, 1, 3) * 60:
        shares = rng.dirichlet(np.full(n_classes, power), 2)
        data = ReportData("", "yes", metric, people, after=shares, classes=tuple(map(str, range(n_classes))))
        difference = differences(data.shares["after"], np.array([0]), np.array([1]))[0]
        lines = scores_of(data, data.shares["after"])
        found = np.array([[float(text.rstrip("%")) for text in line[1:]] for line in lines])
        assert np.abs(found - 100 * data.shares["after"].T).max() < 0.2
        moved = found[:, 1] - found[:, 0]
        if n_classes > 2:
            assert found.sum(axis=0) == pytest.approx([100, 100])
        if difference >= 0.01:
            total = np.abs(moved).sum() / (1 if n_classes == 2 else 2)
            assert words.points(difference).split()[0] == words.point_figure(total / 100)


def test_shapes_of_categories_have_their_labels_and_all_axes_their_signs():
    points = np.array([-40_000.0, 15_000.0])
    panel = Panel("job", None, points, points - 1, points + 1, np.array([True, False]), ("cook", "nurse"), [])
    found = charts.shapes([panel], {}, 1)
    assert found["first"][0]["levels"] == ("cook", "nurse")
    assert [text for _, text in found["ticks"]] == ["\N{MINUS SIGN}40,000", "\N{MINUS SIGN}20,000", "0"]


def test_fans_start_where_the_middle_of_the_people_is():
    """From the middle knot, by 4 times the weight and the gap, to both sides."""
    X = pd.DataFrame({"x": [0.0, 1.0, 3.0, 4.0, 8.0]})
    model = AdditiveClassifier(WeightedLp({"x": 0.1}), penalty=1e-3).fit(X, [0, 0, 1, 1, 1])
    (panel,) = panels_of(model, 1)
    assert panel.knots.tolist() == [0.0, 1.0, 3.0, 4.0, 8.0]
    np.testing.assert_allclose(panel.high - panel.points[2], 4 * 0.1 * np.array([3.0, 2.0, 0.0, 1.0, 5.0]))
    np.testing.assert_allclose(panel.points[2] - panel.low, 4 * 0.1 * np.array([3.0, 2.0, 0.0, 1.0, 5.0]))
    (other,) = panels_of(model, 0)
    np.testing.assert_allclose(other.points, -panel.points)
    assert ((panel.points <= panel.high + 1e-9) & (panel.points >= panel.low - 1e-9)).all()


def test_shapes_are_drawn_in_proportion_from_end_to_end():
    """Knots 10, 20 and 40 on 240 units from left to right."""
    knots, points = np.array([10.0, 20.0, 40.0]), np.array([-1.0, 0.0, 1.0])
    panel = Panel("x", knots, points, points - 0.5, points + 0.5, np.array([True, False]), (), [])
    drawn = charts.shapes([panel], {}, 1)["first"][0]
    line = [tuple(map(float, at.split())) for at in drawn["line"][1:].split("L")]
    assert [x for x, _ in line] == [0.0, 80.0, 240.0]
    heights = [y for _, y in line]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2])
    assert heights[0] > heights[2]
    assert drawn["held"] == drawn["line"].rsplit("L", 1)[0]


def test_ticks_have_the_digits_of_their_step():
    brier, _, accuracy, *_ = SCORES["classification"]
    assert [words.measured(accuracy, 0.8, step) for step in (0.1, 0.05, 0.005, 0.0002)] == [
        "80%",
        "80%",
        "80.0%",
        "80.00%",
    ]
    assert [words.measured(brier, 0.8, step) for step in (1.0, 0.1, 0.05, 0.002)] == ["1", "0.8", "0.80", "0.800"]
    assert (words.measured(accuracy, 0.81234), words.measured(brier, np.nan)) == ("81.2%", "\N{EN DASH}")


def test_denied_people_are_shown_beside_their_closest_comparators():
    """Bob and Dan are denied; Ann, granted, is no older than both and owes no less than Dan."""
    decided = ["granted", "denied", "granted", "denied"]
    better = {"age": "higher", "debt": "lower"}
    review = review_files(TABLE, decided, approved="granted", better={"age": "higher"}, metric=METRIC)
    data = build_scores_report(TABLE, AFTER, METRIC, review=review)
    bob, dan = sorted(prepare(data)["review"], key=lambda card: card["names"])
    assert (bob["names"], dan["names"]) == (["Bob", "Ann"], ["Dan", "Ann"])
    assert (bob["distance"], dan["distance"]) == pytest.approx((0.24, 0.0))
    assert (bob["scores"], dan["scores"]) == ([("", "50.0%", "12.5%")], [("", "75.0%", "12.5%")])
    assert [column.name for column, _, _ in bob["protected"]] == ["height"]
    assert [(column.name, a, b) for column, a, b in bob["apart"]] == [
        ("age", "30 years", "20 years"),  # what qualifies, then what counts most
        ("job", "nurse", "cook"),
        ("debt", "3", "1"),
    ]
    assert bob["n_comparators"] == 1
    page = render(data)
    assert '<section id="review"' in page
    assert '<th scope="col" class="data">denied</th><th scope="col" class="data">granted</th>' in page
    assert "more is better" in page
    assert "<strong>2</strong> of 2 people with the decision" in page
    # Bob owes more than Ann and is older: no comparator, if less debt is better.
    review = review_files(TABLE, decided, approved="granted", better=better, metric=METRIC)
    assert [card["names"] for card in prepare(build_scores_report(TABLE, AFTER, METRIC, review=review))["review"]] == [
        ["Dan", "Ann"]
    ]


def test_a_review_without_comparators_is_said_to_have_none():
    review = review_files(TABLE, [0, 1, 1, 1], better={"age": "higher", "height": "higher"}, metric=METRIC)
    page = render(build_scores_report(TABLE, AFTER, METRIC, review=review))
    assert "<strong>0</strong> of 1 people" in page
    for other in (review, "review.csv"):
        with pytest.raises(InvalidInputError, match="review must be what review_files returned for these 3 people"):
            build_scores_report(TABLE[:3], AFTER[:3], METRIC, review=other)


def test_special_codes_are_no_numbers_on_the_page():
    metric = TableMetric({"score": 0.001}, missing={"score": 0.2}, special={"score": {-99: 0.3}}, units={"score": "$"})
    people = metric.encode_rows(pd.DataFrame({"score": [500.0, -99, 700, np.nan, 600]}))
    after = np.array([0.5, 0.1, 0.6, 0.5, 0.55])
    data = ReportData("Loans", "yes", metric, people, after=after)
    (column,) = prepare(data)["columns"]
    assert [column.written(x) for x in people.rows[:, 0]] == ["$500", "-99", "$700", "missing", "$600"]
    assert column.typical == np.std([500, 600, 700])
    # The code is 0.3 away from every number and from a blank, so 0.4 and more are above their distance.
    assert data.scan.n_above == {"after": 4}
    assert "[special]" in render(data)
