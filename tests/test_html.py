"""What a notebook shows: escaped, the same each time, and readable on every page."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, TableMetric, WeightedLp, audit, compare, tradeoff

RNG = np.random.default_rng(0)
NASTY = "<b onmouseover=x>&amp;"
PEOPLE = pd.DataFrame({NASTY: RNG.normal(size=90), "job": RNG.choice(["a", NASTY], 90)})
OUTCOMES = (PEOPLE[NASTY] + RNG.normal(size=90) > 0).astype(int)
METRIC = TableMetric({NASTY: 0.2}, {"job": 0.1}, units={NASTY: NASTY})


@pytest.fixture(scope="module")
def model():
    return AdditiveClassifier(METRIC, penalty=0.01).fit(PEOPLE, OUTCOMES)


@pytest.fixture(scope="module")
def everything(model):
    return {
        "metric": METRIC,
        "array metric": WeightedLp([0.1, 0]),
        "guarantee": model.guarantee_,
        "audit": audit(None, PEOPLE, METRIC, predictions=OUTCOMES.astype(float)),
        "quiet audit": audit(model, PEOPLE, METRIC),
        "scorecard": model.scorecard(),
        "compare": compare(PEOPLE, OUTCOMES, METRIC, methods=["additive"], cv=2),
        "tradeoff": tradeoff(PEOPLE, OUTCOMES, METRIC, [0.5, 1.0], cv=2),
    }


class Checked(HTMLParser):
    """Collects tags and text, and knows whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


KINDS = ["metric", "array metric", "guarantee", "audit", "quiet audit", "scorecard", "compare", "tradeoff"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_well_formed_escaped_and_the_same_each_time(kind, everything):
    html = everything[kind]._repr_html_()
    page = Checked(html)
    assert page.open == []
    assert page.tags <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}
    assert html == everything[kind]._repr_html_()
    assert " id=" not in html
    assert "0x" not in html
    if kind in ("metric", "guarantee", "scorecard", "audit"):
        assert NASTY in page.text


@pytest.mark.parametrize("kind", KINDS)
def test_text_has_the_colour_of_the_page(kind, everything):
    """A fixed colour of text or ground is unreadable on a page of the other kind."""
    html = everything[kind]._repr_html_()
    assert set(re.findall(r"(?<![-\w])(?:color|background):([^;\"]+)", html)) <= {"inherit", "none"}


def test_what_matters_is_said(everything):
    text = {kind: Checked(one._repr_html_()).text for kind, one in everything.items()}
    assert "must not matter" in text["array metric"]
    assert "Level: exact" in text["guarantee"]
    assert "pairs exceed the metric" in text["audit"]
    assert "None of 4,005 pairs was found to exceed the metric" in text["quiet audit"]
    assert "constant" in text["compare"].lower()
    assert "stricter and looser" in text["tradeoff"]


def test_a_part_of_a_scorecard_is_a_plain_table(everything):
    assert type(everything["scorecard"].head(2)) is pd.DataFrame
    assert everything["scorecard"]["points"].sum() == pytest.approx(everything["scorecard"].to_numpy()[:, 2].sum())
