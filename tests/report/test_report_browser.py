"""The page in a real browser: sliders, comparer, keyboard, no errors, no network, no sideways scrolling."""

import math
import shutil
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from test_report import HOSTILE, hostile
from test_report_data import METRIC, mortgage

from likewise import WeightedLp
from likewise.app.files import read_metric
from likewise.report import Column, Metric, Person, ReportData, render
from likewise.report.distance import distances
from likewise.report.words import figure, points, worth

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e .[dev]")
    if CHROMIUM is None:
        pytest.skip("no browser is installed: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


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


def choose(page, first, second):
    page.select_option("#a-person", str(first))
    page.select_option("#b-person", str(second))
    return float(page.get_attribute("#distance", "data-value"))


def move(page, column, position):
    page.locator(f"#w{column}").evaluate(
        "(slider, to) => { slider.value = to; slider.dispatchEvent(new Event('input', {bubbles: true})); }", position
    )
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def count(page, model):
    return int(page.inner_text(f"#{model}-count").replace(",", ""))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5, math.inf])
def test_distances_in_the_page_are_those_of_the_library(show, p):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6, 4)) * [1, 100, 1e5, 1e-3]
    w = np.array([0.1, 0.0, 1e-6, 40.0])
    columns = tuple(Column(f"x{i}", "numeric", float(weight)) for i, weight in enumerate(w))
    people = tuple(Person(tuple(row), 0.2, 0.3) for row in X.tolist())
    page = show(ReportData("Numbers", "yes", Metric(columns, p), people=people))
    for i, j in ((0, 1), (2, 5), (4, 3), (2, 2)):
        assert choose(page, i, j) == pytest.approx(float(WeightedLp(w, p)(X[i], X[j])), rel=1e-12, abs=0)


def test_distances_of_tables_with_categories_and_missing_values(show):
    data = mortgage(40)
    page = show(data)
    rows = [person.values for person in data.people]
    i = next(k for k, row in enumerate(mortgage().people) if row.values[0] is None)
    for a, b in ((0, 1), (3, 17), (39, 8)):
        assert choose(page, a, b) == pytest.approx(distances(METRIC, [rows[a]], [rows[b]])[0], rel=1e-12)
    whole = show(mortgage())
    other = mortgage().people
    assert choose(whole, i, 0) == pytest.approx(distances(METRIC, [other[i].values], [other[0].values])[0], rel=1e-12)


def test_the_page_writes_numbers_as_python_does(show):
    page = show(mortgage(2))
    numbers = [0, 1, 0.01, 0.0123456, 2 / 3, 4321.7, 999.6, 1e6, 123456789, 2e-9, 3.1e14, 0.004, 0.00004, 2.5]
    assert page.evaluate("(xs) => xs.map(figure)", numbers) == [figure(x) for x in numbers]
    assert page.evaluate("(xs) => xs.map(points)", numbers) == [points(x) for x in numbers]
    said = page.evaluate("report.columns.map((column) => worth(column, column.weight))")
    assert said == [worth(column, METRIC.p) for column in METRIC.columns]


def test_a_slider_changes_words_picture_and_counts_and_reset_brings_them_back(show):
    data = mortgage(60)
    page = show(data)
    texts = "#w0-text", "#w8-text", "#before-count", "#after-count", "#toml"
    start = [page.input_value(t) if t == "#toml" else page.inner_text(t) for t in texts]
    assert [count(page, "before"), count(page, "after")] == [
        data.audit_before.n_violations,
        data.audit_after.n_violations,
    ]
    picture = page.get_attribute("#after-within-1", "d")
    assert page.is_disabled("#reset")

    for column in range(8):
        move(page, column, 0)
    assert page.inner_text("#w0-text") == "must not matter"
    assert count(page, "after") > data.audit_after.n_violations
    assert page.get_attribute("#after-within-1", "d") != picture
    assert "With your weights" in page.inner_text("#effect")
    assert page.is_visible("#edited-note")
    move(page, 8, 200)
    assert page.inner_text("#w8-text") == "any difference = 100 points"
    assert '"race" = 1  # any difference = 100 points' in page.input_value("#toml")

    page.click("#reset")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert [page.input_value(t) if t == "#toml" else page.inner_text(t) for t in texts] == start
    assert page.get_attribute("#after-within-1", "d") == picture  # as drawn in Python
    assert page.is_disabled("#reset")


def test_the_metric_file_is_one_that_the_library_reads_whatever_the_names(show, tmp_path):
    text = show(mortgage(2)).input_value("#toml")
    written = tomllib.loads(text)
    expected = {c.name: c.weight for c in METRIC.columns if c.kind == "numeric"}
    assert (written["p"], written["numeric"]) == (1, expected)
    assert written["missing"] == {"income": 0.05}
    assert written["units"]["income"] == "$ a month"
    (tmp_path / "metric.toml").write_text(text, encoding="utf-8")
    assert dict(read_metric(tmp_path / "metric.toml").numeric) == expected
    assert tomllib.loads(show(hostile()).input_value("#toml"))["categorical"] == {HOSTILE: 0.5}


def test_the_comparer_tells_sampled_people_from_typed_ones(show):
    page = show(mortgage(10))
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
            break
    assert {"w0", "w9", "reset", "a-person", "b-person"} <= reached


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_never_scrolls_sideways(show, width):
    wide = Metric(tuple(Column(f"{'x' * 300}{i}", "numeric", 0.01, "y" * 90) for i in range(60)))
    data = [
        mortgage(30),
        hostile(),
        mortgage(0),
        replace(mortgage(0), metric=wide, people=tuple(Person((i,) * 60, 0.5, 0.5) for i in range(3))),
    ]
    for each in data:
        page = show(each, width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_hostile_names_show_as_text(show):
    page = show(hostile())
    assert HOSTILE.replace("\u2028", "") in page.inner_text("label[for=w0]").replace("\u2028", "")
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
    show(replace(mortgage(0), metric=Metric((Column("only", "categorical", 0.0),), p=math.inf), people=()))
    show(
        replace(mortgage(3), claim=None, people=tuple(replace(x, before=None, after=None) for x in mortgage(3).people))
    )
