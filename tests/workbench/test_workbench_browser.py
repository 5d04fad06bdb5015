"""The page in a real browser, as a committee uses it: mouse, keyboard, two browsers, strange names, both widths."""

import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from committee import TOKEN, applicants, command
from likewise.io import load_model
from likewise.metric_file import read_metric_file
from shell import run

pytestmark = pytest.mark.slow
PATIENCE = 180_000  # milliseconds, on a machine with other work
SCRIPT = "<script>alert(1)</script>"
PICTURES = os.environ.get("LIKEWISE_PICTURES")  # a directory, such as docs, in which the manual's pictures are renewed
FRAMES = []


@pytest.fixture
def visit(browser):
    """Open an address as somebody; at the end there must have been no errors and no requests to anybody else."""
    opened, troubles, strangers = [], [], []

    def open_page(address, name, width=1280, **options):
        base = address.partition("/?")[0]
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("dialog", lambda dialog: (troubles.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda r: strangers.append(r.url) if not r.url.startswith((base, "data:")) else None)
        page.goto(address)
        page.wait_for_selector("#w0")
        assert TOKEN not in page.url
        assert "token" not in page.url
        if page.is_visible("#tour-end"):
            page.click("#tour-end")
        page.fill("#name", name)
        opened.append(context)
        return page

    yield open_page
    for context in opened:
        context.close()
    # The server ends before its pages close, and a test may be about a request that is refused.
    left = [each for each in troubles if "net::ERR_" not in each and "status of 400" not in each]
    assert (left, strangers) == ([], [])


def up_to_date(page):
    page.wait_for_selector("#status:text-is('Up to date')")


def picture(page, name):
    if PICTURES:
        page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
        page.screenshot(path=str(Path(PICTURES) / name), clip={"x": 0, "y": 0, "width": 1280, "height": 900})


def frame(page, words):
    """Keep what is on the screen for the recording, with a line that says what happens."""
    if PICTURES:
        FRAMES.append((page.screenshot(), words))


def write_recording():
    """The frames as one small moving picture, five seconds each."""
    from PIL import Image, ImageDraw, ImageFont

    drawn, font = [], ImageFont.load_default(22)
    for shot, words in FRAMES:
        whole = Image.open(io.BytesIO(shot)).convert("RGB").resize((1120, 788))
        drawn.append(Image.new("RGB", (1120, 836), "#1d3b57"))
        drawn[-1].paste(whole, (0, 48))
        ImageDraw.Draw(drawn[-1]).text((20, 10), words, fill="white", font=font)
    first, *others = drawn
    place = Path(PICTURES) / "workbench.webp"
    first.save(place, save_all=True, append_images=others, duration=5000, loop=0, quality=55, method=6)


def row(page, column):
    return page.locator(f"li[data-column='{column}']")


def answer(page, name, most="", least=""):
    page.fill("#name", name)
    page.click("#ask")
    page.wait_for_selector("#answer-most")
    page.fill("#answer-most", most)
    page.fill("#answer-least", least)
    people = page.locator("#question thead th").all_inner_texts()[1:]
    before = page.locator("#answers li:not(.muted)").count()
    if most:
        page.click("#answer-save")
    else:  # "at least" alone: the form wants an upper end
        page.fill("#answer-most", "100")
        page.click("#answer-save")
    page.wait_for_selector(f"#answers li:not(.muted) >> nth={before}")
    return people


def test_a_committee_on_the_mortgages(visit, tmp_path):
    with command(tmp_path, "--demo") as (address, _):
        page = visit(address, "Ann")
        assert "every weight is 0" in page.inner_text("#how")
        frame(page, "1,989 mortgage applications. Nothing counts yet: every weight is 0.")
        for column in ("race", "sex"):
            row(page, column).locator(".lock").click()
            row(page, column).locator(".lock[aria-pressed=true]").wait_for()
        page.click("#start-designed")
        page.wait_for_selector("#frontier svg .here")
        up_to_date(page)
        assert row(page, "race").locator("input[type=range]").is_disabled()
        picture(page, "workbench.png")
        frame(page, "Race and sex are locked. A metric is designed; figures and shapes follow.")
        # Loosen what is dear.
        dear = page.locator("li.dear").first
        name, before = dear.get_attribute("data-column"), dear.locator(".amount input").input_value()
        page.fill("#reason", "it holds the model back most")
        dear.locator(".loosen").click()
        page.wait_for_selector("html[data-drawn='5']", state="attached")
        assert row(page, name).locator(".amount input").input_value() != before
        frame(page, "The weight with the highest price is made 10% looser, with a reason.")
        page.click("#round")
        page.wait_for_selector("html[data-done='6']", state="attached")
        frame(page, "All weights in round numbers.")
        # Ten answers of two people, who disagree once.
        page.click("#tab-pairs")
        first = answer(page, "Ann", most="4")
        assert answer(page, "Bob", least="10") == first
        page.wait_for_selector(".conflict")
        frame(page, "Two people judge the same pair of applicants, and disagree.")
        assert page.locator(".conflict strong").all_inner_texts() == ["Ann", "Bob"]
        for k in range(4):
            answer(page, "Ann", most=str(10 + k))
            answer(page, "Bob", most=str(20 + k))
        assert page.locator("#answers li:not(.muted)").count() == 10
        page.wait_for_selector("#ranges tbody tr")
        picture(page, "workbench-pairs.png")
        frame(page, "Ten answers: where the two disagree, and what is left to each weight.")
        page.click("#tab-versions")
        page.fill("#name", "Ann")
        for title in ("designed and rounded", "near the answers"):
            page.fill("#version-title", title)
            page.click("#version-save")
            page.wait_for_selector(f"#version-list >> text={title}")
            if title == "designed and rounded":
                page.click("#tab-weights")
                page.click("#start-near")
                page.wait_for_selector("#how >> text=Learned from")
                page.click("#tab-versions")
        page.select_option("#one", "designed and rounded")
        page.select_option("#other", "near the answers")
        page.click("#compare-versions")
        page.wait_for_selector(".versions tbody tr")
        assert page.locator(".versions thead th").all_inner_texts() == ["designed and rounded", "near the answers"]
        frame(page, "Two versions beside each other: the weights, and what the models become.")
        page.click("#tab-record")
        frame(page, "The record: who changed what, and why.")
        assert "it holds the model back most" in page.inner_text("#events")
        page.click("#tab-out")
        page.click("#export")
        page.wait_for_selector("#files .coming >> text=report.html")
        page.wait_for_selector("#files a >> text=model.skops")
        page.wait_for_selector("#files a >> text=report.html")
        assert page.locator("#files .coming").count() == 0
        frame(page, "At the end: metric, model, card, report and minutes, and the commands that repeat it.")
        assert "at most 32 knots" in page.inner_text("#panel-out .live-note")
        with page.expect_download() as download:
            page.click("#files a >> text=metric.toml")
        assert (
            Path(download.value.path()).read_bytes() == (tmp_path / "mortgages.likewise" / "metric.toml").read_bytes()
        )
        commands = page.inner_text("#commands").splitlines()
    if PICTURES:
        write_recording()
    metric = read_metric_file(tmp_path / "mortgages.likewise" / "metric.toml")
    assert set(metric.protected) == {"race", "sex"}
    done = run(tmp_path, commands[0].removeprefix("likewise "))  # as printed
    assert done.exit_code == 0, done.output
    people = pd.read_csv(tmp_path / "mortgages.csv").drop(columns="decision")
    page_model, prompt_model = (
        load_model(tmp_path / "mortgages.likewise" / name) for name in ("model.skops", "model-2.skops")
    )
    assert page_model.predict_proba(people).tobytes() == prompt_model.predict_proba(people).tobytes()


def test_which_of_two_pairs_is_more_alike(visit, tmp_path):
    X, y = applicants(200)
    X.assign(outcome=y).to_csv(tmp_path / "people.csv", index=False)
    with command(tmp_path, "people.csv", "--target", "outcome", "--protected", "race") as (address, _):
        page = visit(address, "Ann")
        up_to_date(page)
        page.click("#tab-pairs")
        said = []
        page.click("#ask-compare")
        for count, choice in enumerate(("first", "second", "skip")):  # the next one is asked after each answer
            page.wait_for_selector("#answer-first")
            assert "race" not in page.inner_text("#question")
            text = page.text_content("#question")
            heads = page.locator("#question thead th").all_inner_texts()
            one, other = (
                " and ".join(head.removeprefix("Person ") for head in part) for part in (heads[1:3], heads[4:6])
            )
            page.click(f"#answer-{choice}")
            page.wait_for_selector(f"#answers li:not(.muted) >> nth={count}")
            page.wait_for_function("(text) => document.querySelector('#question').textContent !== text", arg=text)
            closer, further = (one, other) if choice == "first" else (other, one)
            said.append(f"no answer about {one}" if choice == "skip" else f"{closer} are more alike than {further}")
        lines = page.locator("#answers li .data").all_inner_texts()
        assert lines[::-1] == [f"Ann: {each}" for each in said]
        assert "Comparisons alone fix ratios" in page.inner_text("#ranges")


def test_the_tour_points_at_what_it_is_about(visit, tmp_path):
    with command(tmp_path, "--demo") as (address, _):
        page = visit(address, "Ann")  # leaves the tour
        page.evaluate("sessionStorage.removeItem('tour')")
        page.reload()
        for step, tab, target in (
            (1, "weights", "weights-list"),
            (2, "weights", "figures"),
            (3, "pairs", "question"),
            (4, "out", "export"),
        ):
            page.wait_for_selector(f"#tour >> text={step} of 4")
            assert page.locator(".toured").get_attribute("id") == target
            assert page.locator(f"#{target}").is_visible()
            assert page.get_attribute(f"#tab-{tab}", "aria-selected") == "true"
            page.click("#tour-next")
        page.wait_for_selector("#tour", state="hidden")
        assert page.locator(".toured").count() == 0
        page.reload()
        page.wait_for_selector("#commands:has-text('likewise enforce')")
        assert page.is_hidden("#tour")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A table with scripts in names, values and the file's own name."""
    place = tmp_path_factory.mktemp("hostile")
    X, y = applicants(200)
    X = X.rename(columns={"income": f"income {SCRIPT}", "region": '"><img src=x onerror=alert(1)>'})
    X["text"] = np.where(X["race"] == "x", SCRIPT, "'; DROP TABLE")
    X.assign(outcome=y).to_csv(place / "<img src=x>.csv", index=False)
    return place


def test_scripts_in_names_values_and_file_names_are_text(visit, hostile):
    with command(hostile, "<img src=x>.csv", "--target", "outcome", "--protected", "race") as (address, _):
        page = visit(address, SCRIPT)
        up_to_date(page)
        assert page.inner_text("#table-name") == "<img src=x>.csv"
        page.fill("#reason", SCRIPT)
        page.locator("#weights-list .amount input").first.fill("3")
        page.locator("#weights-list .amount input").first.press("Enter")
        page.wait_for_selector("html[data-done='1']", state="attached")
        page.set_input_files("#start-file", {"name": f"{SCRIPT}.toml", "mimeType": "text/plain", "buffer": b"x ="})
        page.wait_for_selector(f"#error:has-text('{SCRIPT}.toml')")
        page.click("#tab-pairs")
        page.click("#ask")
        page.wait_for_selector("#answer-most")
        page.click("#tab-people")
        page.wait_for_selector("#people-verdict:has-text('apart by the weights')")
        page.click("#tab-record")
        assert SCRIPT in page.inner_text("#events")
        assert page.locator("main img, main script").count() == 0


def test_two_browsers_and_a_killed_process(visit, hostile, tmp_path):
    X, y = applicants(200)
    X.assign(outcome=y).to_csv(tmp_path / "people.csv", index=False)
    with command(tmp_path, "people.csv", "--target", "outcome") as (address, process):
        ann, bob = visit(address, "Ann"), visit(address, "Bob")
        up_to_date(ann)
        row(ann, "income").locator(".amount input").fill("2")
        row(ann, "income").locator(".amount input").press("Enter")
        bob.wait_for_selector("html[data-drawn='1']", state="attached")
        assert row(bob, "income").locator(".amount input").input_value() == "2"
        row(bob, "region").locator(".amount input").fill("10")
        row(bob, "region").locator(".amount input").press("Enter")
        ann.wait_for_selector("html[data-done='2']", state="attached")
        assert row(ann, "region").locator(".amount input").input_value() == "10"
        process.kill()
        process.wait(10)
        bob.wait_for_selector("body.offline", state="attached")
        assert bob.inner_text("#status") == "Not connected"
        for page in (ann, bob):
            page.context.close()
    with command(tmp_path, "people.csv", "--target", "outcome") as (address, _):
        page = visit(address, "Ann")
        up_to_date(page)
        assert row(page, "income").locator(".amount input").input_value() == "2"
        assert row(page, "region").locator(".amount input").input_value() == "10"
        page.click("#undo")
        page.wait_for_selector("html[data-done='3']", state="attached")
        assert row(page, "region").locator(".amount input").input_value() == ""


def test_what_the_page_says_is_so(visit, tmp_path):
    X, y = applicants(200)
    X.assign(outcome=y).to_csv(tmp_path / "people.csv", index=False)
    words = ("people.csv", "--target", "outcome", "--protected", "race")
    with command(tmp_path, *words) as (address, process):
        page = visit(address, "Ann")
        # A weight whose blank lets it do nothing.
        for field, value, event in ((".amount input", "2", 1), (".blank input", "0", 2)):
            row(page, "debt").locator(field).fill(value)
            row(page, "debt").locator(field).press("Enter")
            page.evaluate("document.activeElement.blur()")
            page.wait_for_selector(f"html[data-done='{event}']", state="attached")
        assert row(page, "debt").locator(".price").inner_text() == "held at 0 points by “not known”"
        # An error is in view wherever one is.
        page.set_input_files("#start-file", {"name": "x.toml", "mimeType": "text/plain", "buffer": b"x ="})
        page.wait_for_selector("#error:has-text('x.toml')")
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 500})
            page.evaluate("scrollTo({ top: document.body.scrollHeight, behavior: 'instant' })")
            assert page.evaluate("scrollY") > 200
            box = page.locator("#error").bounding_box()
            assert 0 <= box["y"] < box["y"] + box["height"] <= 500
        page.set_viewport_size({"width": 1280, "height": 900})
        # One pair has one figure, under one name.
        page.click("#tab-pairs")
        page.wait_for_selector("#cases li")
        assert "boosting fitted to these 200 people, no guarantee" in page.inner_text("#cases-title")
        case = page.locator("#cases li .data").first.inner_text()
        page.click("#tab-people")
        page.wait_for_selector("#people-detail:has-text('boosting fitted to these 200 people')")
        assert page.inner_text("#people-detail").rpartition("guarantee: ")[2].split(",")[0] in case
        assert page.evaluate("import('/static/dom.js').then((dom) => dom.whole(null))") != "0"
        # Two members disagree.
        page.click("#tab-pairs")
        assert answer(page, "Ann", most="20") == answer(page, "Bob", most="60")
        page.wait_for_selector(".conflict >> text=different answers to the same question")
        assert page.locator(".conflict strong").all_inner_texts() == ["Ann", "Bob"]
        said = page.locator("#answers li .data").all_text_contents()
        process.kill()
        process.wait(10)
        page.context.close()
    with command(tmp_path, *words) as (address, _):
        page = visit(address, "Ann")
        assert page.locator("#answers li .data").all_text_contents() == said  # at once
        page.wait_for_selector(".conflict strong >> nth=1", state="attached")


def test_by_keyboard_alone(visit, tmp_path):
    X, y = applicants(200)
    X.assign(outcome=y).to_csv(tmp_path / "people.csv", index=False)
    with command(tmp_path, "people.csv", "--target", "outcome") as (address, _):
        page = visit(address, "Ann")
        up_to_date(page)
        page.focus("#tab-weights")
        for key in ("ArrowRight", "ArrowRight", "Home"):
            page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == "tab-weights"
        page.focus("#w0")
        for _ in range(40):
            page.keyboard.press("ArrowRight")
        page.wait_for_selector("html[data-done='1']", state="attached")  # forty presses are one decision
        assert "1 point = " in page.get_attribute("#w0", "aria-valuetext")
        page.keyboard.press("Control+z")
        page.wait_for_selector("html[data-done='2']", state="attached")
        assert page.get_attribute("#w0", "aria-valuetext") == "not used"
        page.focus("#w0-lock")
        page.keyboard.press("Enter")
        page.wait_for_selector("#w0-lock[aria-pressed=true]")
        assert page.get_attribute("#w0", "aria-valuetext") == "must not matter"
        page.keyboard.press("Enter")  # unlocking wants a reason, and puts the cursor where it goes
        assert page.evaluate("document.activeElement.id") == "reason"
        page.keyboard.type("needed after all")
        page.focus("#w0-lock")
        page.keyboard.press("Enter")
        page.wait_for_selector("#w0-lock[aria-pressed=false]")
        unnamed = page.evaluate(
            "[...document.querySelectorAll('input, select, button, textarea')].filter((control) =>"
            " !control.labels?.length && !control.getAttribute('aria-label') && !control.textContent.trim())"
            ".map((control) => control.id)"
        )
        assert unnamed == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_nothing_scrolls_sideways(visit, hostile, width, scheme):
    with command(hostile, "<img src=x>.csv", "--target", "outcome", "--state", f"{width}.json") as (address, _):
        page = visit(address, "Ann", width, color_scheme=scheme)
        page.click("#start-revealed")
        page.wait_for_selector("#how >> text=Revealed")
        up_to_date(page)
        for tab in ("weights", "pairs", "people", "versions", "record", "out"):
            page.click(f"#tab-{tab}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
