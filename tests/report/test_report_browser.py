"""The page in a real browser: sliders, comparer, keyboard, no errors, no network, no sideways scrolling."""

import os
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from test_report import HOSTILE, hostile
from test_report_data import METRIC, mortgage, rows_of

from likewise import TableMetric
from likewise.cli.main import main
from likewise.metric_file import read_metric, read_metric_file
from likewise.report import ReportData, render
from likewise.report.text import figure, points
from likewise.report.view import prepare
from likewise.scorecard.display import Panel

pytestmark = pytest.mark.slow
PDF_PAGE = b"/Type /Page\n"
PICTURES = os.environ.get("LIKEWISE_PICTURES")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo's report."""
    out = tmp_path_factory.mktemp("demo")
    done = CliRunner().invoke(main, ["demo", "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out / "report.html"


@pytest.fixture
def show(browser, tmp_path):
    """Open a report; at the end there must have been no errors and no requests but the file itself."""
    opened, troubles, requests = [], [], []

    def open_page(data, width=1280, **options):
        file = tmp_path / f"report{len(opened)}.html"
        file.write_text(render(data), encoding="utf-8", newline="")
        page = browser.new_page(viewport={"width": width, "height": 800}, **options)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        opened.append((page, file.as_uri()))
        return page

    yield open_page
    for page, _ in opened:
        page.close()
    assert troubles == []
    assert [url for url in requests if not url.startswith("data:")] == [uri for _, uri in opened]


def opened(page):
    """Unfold everything that is folded."""
    page.evaluate("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
    return page


def choose(page, first, second):
    page.select_option("#a-person", str(first))
    page.select_option("#b-person", str(second))
    return float(page.get_attribute("#distance", "data-value"))


def move(page, column, position):
    page.locator(f"#w{column}").evaluate(
        "(slider, to) => { slider.value = to; slider.dispatchEvent(new Event('input', {bubbles: true})); }", position
    )
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


# Both sides round each product, power and sum by at most a few units in the last place (2.2e-16).
ROUNDING = 1e-14
PAIRS = "(weights) => report.people.map((a) => report.people.map((b) => compare(weights, a.values, b.values).distance))"


def every_kind(**weights):
    """People and a metric with every kind of column: numbers, steps, gaps, codes, categories, groups, some hidden."""
    rng = np.random.default_rng(1)
    steps = pd.Categorical.from_codes(rng.integers(0, 3, 30), ["low", "middle", "high"], ordered=True)
    table = pd.DataFrame(
        {
            "large": 1e6 * rng.normal(size=30),
            "small": 1e-3 * rng.normal(size=30),
            "steps": steps,
            "gaps": np.where(rng.random(30) < 0.3, np.nan, rng.normal(size=30)),
            "hidden": np.where(rng.random(30) < 0.3, np.nan, rng.normal(size=30)),
            "word": rng.choice(["a", "b", None], 30),
            "flag": rng.random(30) < 0.5,
            "secret": rng.choice(["x", "y"], 30),
            "bureau": rng.choice([-99.0, -98.0, 500.0, 620.0, 700.0, np.nan], 30),
            "town": rng.choice(["n1", "n2", "s1", None], 30),
        }
    )
    numeric = {"large": 3e-7, "small": 40.0, "steps": 0.07, "gaps": 0.11, "hidden": 0.0, "bureau": 0.001}
    categorical = {"word": 0.2, "flag": 0.03, "secret": 0.0, "town": 0.3}
    metric = TableMetric(
        {name: weights.get(name, weight) for name, weight in numeric.items()},
        {name: weights.get(name, weight) for name, weight in categorical.items()},
        missing={"gaps": 0.15, "bureau": 0.2},
        special={"bureau": {-99: 0.3, -98: 0.1}},
        groups={"town": {"groups": [["n1", "n2"]], "within": 0.25}},
    )
    return metric, metric.encode_rows(table)


def test_distances_in_javascript_are_those_in_numpy(show):
    metric, people = every_kind()
    page = show(ReportData("All kinds", "yes", metric, people))
    weights = page.evaluate("weights")
    expected = metric.bind(people.encoder).pairwise(people.rows, people.rows)
    np.testing.assert_allclose(page.evaluate(PAIRS, weights), expected, rtol=ROUNDING, atol=0)
    # A slider at 0: the column must not matter, and neither must that a number is missing there.
    weights[3] = 0
    without = every_kind(gaps=0.0)[0].bind(people.encoder).pairwise(people.rows, people.rows)
    np.testing.assert_allclose(page.evaluate(PAIRS, weights), without, rtol=ROUNDING, atol=0)
    # Control: the comparison sees a weight that is off by a millionth.
    weights = [1.000001 * weight for weight in page.evaluate("weights")]
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(page.evaluate(PAIRS, weights), expected, rtol=ROUNDING, atol=0)


def test_the_comparer_shows_the_distance_of_the_two_who_were_chosen(show):
    metric, people = every_kind()
    page = opened(show(ReportData("All kinds", "yes", metric, people)))
    expected = metric(people.table, people.table.iloc[[4]])
    for i in range(0, 30, 7):
        assert choose(page, i, 4) == pytest.approx(expected[i], rel=ROUNDING, abs=0)


def test_the_page_writes_numbers_as_python_does(show):
    page = show(mortgage(2))
    numbers = [0, 1, 0.01, 0.0123456, 2 / 3, 4321.7, 999.6, 1e6, 123456789, 2e-9, 3.1e14, 0.004, 0.00004, 2.5]
    assert page.evaluate("(xs) => xs.map(figure)", numbers) == [figure(x) for x in numbers]
    assert page.evaluate("(xs) => xs.map(points)", numbers) == [points(x) for x in numbers]
    said = page.evaluate("report.columns.map((column) => worth(column, column.weight))")
    assert said == [column.worth for column in prepare(mortgage(2))["columns"]]


def test_a_slider_changes_words_and_shares_and_reset_brings_them_back(show):
    data = mortgage(60)
    page = opened(show(data))
    texts = "#w0-text", "#w8-text", "#toml"
    start = [page.input_value(t) if t == "#toml" else page.inner_text(t) for t in texts]
    n_pairs = data.scan.n_pairs
    above = page.evaluate("tally()")
    assert above == data.scan.n_above
    assert page.is_hidden("#effect")  # the page counts once
    assert page.is_disabled("#reset")

    for column in range(8):
        move(page, column, 0)
    assert page.inner_text("#w0-text") == "weight 0"
    more = page.evaluate("tally()")
    assert more["after"] > above["after"]
    assert page.inner_text("#effect") == (
        "With your weights, and the scores as they are, these shares of the pairs of 60 sampled people would be above "
        f"the line: by the unconstrained model {100 * more['before'] / n_pairs:.1f}%, by this model "
        f"{100 * more['after'] / n_pairs:.1f}%."
    )
    assert page.is_visible("#edited-note")
    move(page, 8, 200)
    assert page.inner_text("#w8-text") == "any difference = 100 points"
    assert '"race" = 1  # any difference = 100 points' in page.input_value("#toml")

    page.click("#reset")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert [page.input_value(t) if t == "#toml" else page.inner_text(t) for t in texts] == start
    assert page.is_hidden("#effect")
    assert page.is_disabled("#reset")


def test_the_metric_file_is_one_that_the_library_reads_whatever_the_names(show, tmp_path):
    text = show(mortgage(2)).input_value("#toml")
    written = tomllib.loads(text)
    assert written["missing"] == {"income": 0.05}
    (tmp_path / "metric.toml").write_text(text, encoding="utf-8")
    assert read_metric(tmp_path / "metric.toml") == METRIC
    assert tomllib.loads(show(hostile()).input_value("#toml"))["categorical"] == {HOSTILE: 0.5}


def test_the_metric_file_has_shapes_and_reasons_too(show, tmp_path):
    shaped = TableMetric(
        {"steps": 0.07, "hidden": 0},
        {"word": 0.2, "place": 0.1, "secret": 0},
        order={"steps": ["low", "middle", "high"]},
        groups={"word": {"within": 0.5, "groups": [["a", "b"], ["c"]]}},
        distances={"place": {"n": {"e": 1, "s": 3}, "e": {"s": 2}}},
        zero_reasons={"secret": "protected", "hidden": "not_used"},
    )
    rows = pd.DataFrame({"steps": ["low", "high"], "hidden": [1, 2], "word": ["a", "b"], "place": ["n", "s"]})
    people = shaped.encode_rows(rows.assign(secret=["x", "y"]))
    page = show(ReportData("Two", "yes", shaped, people, after=np.array([0.2, 0.3]), output_range=(0.0, 1.0)))
    (tmp_path / "metric.toml").write_text(page.input_value("#toml"), encoding="utf-8")
    file = read_metric_file(tmp_path / "metric.toml")
    assert (file.metric, file.metric.zero_reasons, file.output_range) == (shaped, shaped.zero_reasons, (0.0, 1.0))
    assert page.text_content("#w1-text") == "not used"


def test_the_comparer_tells_sampled_people_from_typed_ones(show):
    page = opened(show(mortgage(10)))
    choose(page, 0, 1)  # they differ in race only, which must not matter
    assert page.inner_text("#verdict") == "These two count as the same person: their scores may not differ."
    assert "above their distance" in page.inner_text("#verdict-detail")
    assert page.is_hidden("#contributions")

    page.fill("#b4", str(int(page.input_value("#a4")) + 2))  # years in the job, at half a point each
    assert page.input_value("#b-person") == ""
    assert page.inner_text("#verdict") == "These two may differ by at most 1 point."
    assert page.inner_text("#c4") == "1 point"
    assert page.locator("#contributions > svg").count() == 1
    assert page.is_hidden("#gaps")

    page.fill("#b4", "")
    assert page.inner_text("#verdict") == "The distance is not defined."
    assert "years in current job is missing" in page.inner_text("#verdict-detail")


def test_everything_works_with_the_keyboard_alone(show):
    page = show(mortgage(10))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"

    reached = set()
    for box in ("weights", "compare"):
        page.evaluate(f"document.getElementById('{box}').querySelector('summary').focus()")
        page.keyboard.press("Enter")  # what is folded opens
    page.locator("#b-person").select_option("1")
    page.focus("#a-person")
    for _ in range(200):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
        if page.evaluate("document.activeElement.id") == "w0":
            before = page.inner_text("#w0-text")
            page.keyboard.press("ArrowRight")
            assert page.inner_text("#w0-text") != before
            assert page.get_attribute("#w0", "aria-valuetext") == page.inner_text("#w0-text")
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        if page.evaluate("document.activeElement.id") == "b-person":
            page.keyboard.press("ArrowDown")
            assert page.input_value("#b-person") == "2"
        if page.evaluate("document.activeElement.id") == "reset":
            break
    assert {"w0", "w9", "reset", "b-person"} <= reached


def test_the_comparer_starts_with_the_two_of_whom_the_page_tells(show):
    data = mortgage(30)
    page = opened(show(data))
    first, second = data.story.pair
    assert page.input_value("#a-person") == str(first)
    assert page.input_value("#b-person") == str(second)
    assert f"{data.name(first)} and {data.name(second)}" in page.inner_text("#story p >> nth=0")
    assert "above their distance" in page.inner_text("#verdict-detail").split("This model")[0]
    assert "within their distance" in page.inner_text("#verdict-detail").split("This model")[1]
    assert page.inner_text("#a-score") == f"Score {100 * data.after[first]:.1f}%"
    assert page.inner_text("#a-reasons") == data.reasons[first][0]
    page.select_option("#a-person", "")  # of typed values nobody computed a score
    assert page.inner_text("#a-score") == page.inner_text("#a-reasons") == ""


def test_several_outcomes_differ_in_total_variation_and_numbers_in_their_own_unit(show):
    metric = TableMetric({"age": 0.01})
    people = rows_of(metric, [[30], [80]])
    three = ReportData("", "c", metric, people, after=np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]), shown=2)
    page = opened(show(three))
    choose(page, 0, 1)
    assert page.inner_text("#gap-after .value") == "30 points"
    assert page.inner_text("#b-score") == "Score 50.0%"
    wages = ReportData("", "wage", metric, people, after=np.array([2000.0, 5000.0]), output_range=(0.0, 20000.0))
    page = opened(show(wages))
    choose(page, 0, 1)
    assert page.inner_text("#gap-after .value") == "3,000"
    assert page.inner_text("#b-score") == "Prediction 5,000"
    said = page.evaluate("report.columns.map((column) => worth(column, column.weight))")
    assert said == [column.worth for column in prepare(wages)["columns"]] == ["1 = 200"]


def test_on_paper_nothing_is_left_that_needs_a_hand(show):
    page = show(mortgage(30))
    page.emulate_media(media="print")
    for hidden in ("nav", "#w0", "#compare", "#reset", "#toml"):
        assert page.is_hidden(hidden)
    folded = ("#promise .statement", "#weights table", "#search details .pair", "#cost details table", "#board .claim")
    for shown in ("#picture", "#promise", "#point .rates", "#shapes", "#cost .chart", "#groups", "#limits", *folded):
        assert page.locator(shown).first.is_visible(), shown
    assert 2 <= page.pdf(format="A4").count(PDF_PAGE) <= 9


def test_a_board_gets_one_sheet_of_its_own(browser, demo, tmp_path):
    """What is folded on the screen comes first on paper: of the demo, and of as many groups as there is room for."""
    data, full = mortgage(60), tmp_path / "full.html"
    rows = [replace(data.groups[0], group=f"a group with a rather long name {k}", n=100) for k in range(13)]
    full.write_text(render(replace(data, groups=rows, title="A title of two lines, as reports of banks have " * 2)))
    for file in (demo, full):
        page = browser.new_page(viewport={"width": 800, "height": 800})
        page.goto(file.as_uri())
        assert page.is_hidden("#board .claim")
        page.emulate_media(media="print")
        top, board, rest = (page.locator(part).bounding_box()["y"] for part in ("h1", "#board", "#picture"))
        assert top < board < rest
        many = [page.pdf(format=sheet).count(PDF_PAGE) for sheet in ("A4", "Letter")]
        page.evaluate("document.querySelectorAll('main > :not(#board), footer').forEach((part) => part.remove())")
        assert page.locator("#board .groups tr").count() > 13
        assert [page.pdf(format=sheet).count(PDF_PAGE) for sheet in ("A4", "Letter")] == [1, 1]
        assert min(many) > 5  # control: pages are counted
        page.close()


@pytest.mark.parametrize("width", [500, 1280])
def test_each_category_is_named_under_its_stem(show, width):
    """From two levels to twelve: panels of one column of the grid, of two, and of all."""
    panels = tuple(
        Panel(
            f"of {n}", None, x := np.linspace(-1, 1, n), x - 1, x + 1, np.zeros(n, bool), tuple(f"{k}" for k in x), []
        )
        for n in (2, 5, 12)
    )
    page = opened(show(replace(mortgage(30), panels=panels), width))
    found = page.evaluate(
        "Array.from(document.querySelectorAll('.shape'), (shape) => ['circle', '.levels li'].map((what) => Array.from("
        "shape.querySelectorAll(what), (one) => one.getBoundingClientRect()).map((box) => box.x + box.width / 2)))"
    )
    assert sorted(len(stems) for stems, _ in found) == [2, 5, 12]
    for stems, labels in found:
        np.testing.assert_allclose(labels, stems, atol=1.5)
        assert min(np.diff(stems), default=99) > 15


def test_the_contents_stay_in_sight_and_say_where_the_reader_is(show):
    page = show(mortgage(30))
    for key in ("story", "cost", "groups"):
        page.click(f"nav a[href='#{key}']")
        page.locator(f"nav a[href='#{key}'][aria-current]").wait_for()
        page.wait_for_timeout(1000)  # it scrolls smoothly
        bar, title = page.locator("nav").bounding_box(), page.locator(f"#{key} h2").bounding_box()
        assert -1 <= bar["y"] < 400
        assert title["y"] >= bar["y"] + bar["height"] - 1  # not beneath it


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_the_page_never_scrolls_sideways(show, width):
    names = [f"{'x' * 300}{i}" for i in range(60)]
    wide = TableMetric(dict.fromkeys(names, 0.01), units=dict.fromkeys(names, "y" * 90))
    people = rows_of(wide, [[i] * 60 for i in range(3)])
    data = [
        mortgage(30),
        hostile(),
        mortgage(0),
        ReportData("Wide", "yes", wide, people, before=np.full(3, 0.5), after=np.full(3, 0.5)),
    ]
    for each in data:
        page = show(each, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert opened(page).evaluate("document.documentElement.scrollWidth") <= width


def test_hostile_names_show_as_text(show):
    page = opened(show(hostile()))
    assert HOSTILE.replace("\u2028", "") in page.text_content("label[for=w0]").replace("\u2028", "")
    assert page.evaluate("document.scripts.length") == 2
    assert choose(page, 0, 1) == pytest.approx(0.5 + 0.1)
    assert page.locator("#contributions title").first.text_content().startswith(HOSTILE)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_the_contrast_of_wcag_aa(show, scheme):
    page = show(mortgage(5), color_scheme=scheme)
    colours = page.evaluate(
        "['ink', 'muted', 'before', 'after', 'paper', 'card', 'soft', 'after-ink', 'part', 'part-ink', 'grey']"
        ".map((name) => [name, getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim()])"
    )
    colour = {name: _luminance(value) for name, value in colours}
    for paper in ("paper", "card", "soft"):
        for ink in ("ink", "muted", "after"):
            assert _contrast(colour[ink], colour[paper]) >= 4.5, (ink, paper)
        for mark in ("before", "grey"):
            assert _contrast(colour[mark], colour[paper]) >= 3, (mark, paper)
    assert _contrast(colour["after-ink"], colour["after"]) >= 4.5
    assert _contrast(colour["part-ink"], colour["part"]) >= 4.5


def _luminance(colour):
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def _contrast(a, b):
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


def test_odd_reports_raise_no_errors(show):
    show(mortgage(0))
    show(mortgage(1))
    only = TableMetric(categorical={"only": 0.0})
    show(ReportData("One column", "yes", only, rows_of(only, [["a"]]).take(slice(0))))
    show(replace(mortgage(3), guarantee=None, before=None, after=None, reasons=()))
    show(replace(mortgage(3), before=None))


def test_the_picture_of_the_readme_shows_what_its_caption_says(browser, demo):
    """With LIKEWISE_PICTURES naming a directory, such as docs, the picture is renewed there."""
    page = browser.new_page(viewport={"width": 1100, "height": 1080}, color_scheme="light")
    page.goto(demo.as_uri())
    parts = ["#picture h2", "#picture .panels", "#story .story"]  # what was found; without and with; two people
    boxes = [page.locator(part).bounding_box() for part in parts]
    bottom = boxes[-1]["y"] + boxes[-1]["height"] + 10
    assert [box["y"] for box in boxes] == sorted(box["y"] for box in boxes)
    assert bottom < 1800
    assert page.locator("#picture svg.density").count() == 2
    if PICTURES:
        clip = {"x": 0, "y": 0, "width": 1100, "height": bottom}
        page.screenshot(path=str(Path(PICTURES) / "report.png"), clip=clip, full_page=True)
    page.close()
