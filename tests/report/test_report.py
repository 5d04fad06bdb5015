"""The page as text: the same bytes for the same input, everything escaped, sections that may be absent."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from test_report_data import METRIC, mortgage

from likewise.report import Audit, Claim, Column, Group, Limit, Metric, Person, Utility, UtilityPoint, WorstPair, render
from likewise.report.render import embedded_json

HOSTILE = "</script><script>alert(1)</script><!--\"'&\u2028{{ 7 * 7 }}"


def ids(page):
    return re.findall(r'\bid="([^"]*)"', page)


def test_the_same_input_gives_the_same_bytes():
    assert render(mortgage()) == render(mortgage())


def test_200_people_with_30_columns_stay_far_under_2_mb():
    rng = np.random.default_rng(0)
    columns = tuple(Column(f"column {i}", "numeric", 0.01) for i in range(30))
    people = tuple(Person(tuple(rng.normal(size=30).tolist()), 0.4, 0.5) for _ in range(200))
    page = render(replace(mortgage(0), metric=Metric(columns), people=people))
    assert len(page.encode()) < 500_000


def test_the_page_asks_for_nothing_from_outside_and_forbids_it():
    page = render(mortgage(3))
    assert not re.findall(r"(?:src|href)=\"(?!#|data:,)", page)
    assert "url(http" not in page
    assert "default-src 'none'" in page


def test_no_random_ids_no_doubled_ids_and_every_label_has_its_input():
    page = render(mortgage(3))
    known = ids(page)
    assert len(known) == len(set(known))
    for target in re.findall(r'<(?:label|output)[^>]* for="([^"]*)"', page) + re.findall(r'href="#([^"]*)"', page):
        assert target in known
    for target in re.findall(r'aria-labelledby="([^"]*)"', page):
        assert target in known


def hostile():
    data = mortgage(0)
    column = Column(HOSTILE, "categorical", 0.5, HOSTILE, HOSTILE, 0.2, None, (HOSTILE, "b"))
    number = Column("n" + HOSTILE, "numeric", 0.5, HOSTILE, HOSTILE, 0.2, 0.1)
    audit = Audit(
        2, 1, 1, 0.1, math.inf, HOSTILE, (WorstPair((HOSTILE, 1), ("b", 2), 0.1, 0.1, 0.3, (HOSTILE, HOSTILE)),)
    )
    return replace(
        data,
        title=HOSTILE,
        subtitle=HOSTILE,
        outcome=HOSTILE,
        version=HOSTILE,
        date=HOSTILE,
        metric=Metric((column, number)),
        people=(Person((HOSTILE, 1), 0.1, 0.2, HOSTILE, HOSTILE), Person(("<b>", None), 0.2, 0.3)),
        claim=Claim("sampled", HOSTILE, HOSTILE, 0.01, 0.001, 1000),
        audit_before=audit,
        audit_after=audit,
        utility=Utility((UtilityPoint(1.0, 0.5, 0.5),), measured_on=HOSTILE),
        groups=(Group(HOSTILE, HOSTILE, 3),),
        not_promised=(Limit(HOSTILE, HOSTILE),),
    )


def test_text_from_data_is_escaped_everywhere():
    page = render(hostile())
    assert page.count("<script") == 2  # the data and the page's own
    assert page.count("</script") == 2
    assert "<!--" not in page
    assert "<b>" not in page
    assert "{{ 7 * 7 }}" in page  # data are never a template
    assert "\u2028" not in embedded_json(HOSTILE)


@pytest.mark.parametrize(
    ("change", "absent"),
    [
        ({"utility": None}, "utility"),
        ({"utility": Utility(())}, "utility"),
        ({"groups": ()}, "groups"),
        ({"audit_before": None, "audit_after": None}, "search"),
        ({"not_promised": ()}, "limits"),
    ],
)
def test_a_section_without_data_is_absent_from_the_page_and_its_contents(change, absent):
    everything, without = ids(render(mortgage(3))), render(replace(mortgage(3), **change))
    assert absent in everything
    assert absent not in ids(without)
    assert f'href="#{absent}"' not in without


def test_without_a_claim_the_page_promises_nothing():
    page = render(replace(mortgage(3), claim=None))
    assert "Nothing is promised about this model" in page
    assert 'class="claim"' not in page


@pytest.mark.parametrize("n", [0, 1])
def test_without_pairs_the_page_says_so(n):
    assert "no sampled people with scores" in render(mortgage(n))


def test_only_one_of_the_models_may_have_scores_and_an_audit():
    data = mortgage(5)
    people = tuple(replace(person, after=None) for person in data.people)
    page = render(replace(data, claim=None, people=people, audit_after=None))
    assert "before-count" in ids(page)
    assert "after-count" not in ids(page)


def test_a_search_that_contradicts_the_promise_comes_first():
    data = mortgage(20)
    assert "The search contradicts the promise" not in render(data)
    assert "The search contradicts the promise" in render(replace(data, audit_after=data.audit_before))


def test_claim_in_words():
    sampled = Claim("sampled", "Gaussian", "", 0.01, 0.001, 152_018)
    page = " ".join(render(replace(mortgage(3), claim=sampled)).split())
    assert "plus <strong>1 point</strong>, except with a chance of at most 1 in 1,000 for each pair." in page
    assert "152,018 evaluations" in page


def test_a_model_is_never_called_fair():
    words = re.sub(r"<[^>]*>", " ", render(mortgage(3)))
    assert set(re.findall(r"\w*[Ff]air\w*", words)) == {"fairness", "Fairness"}


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_odd_tables_render(p):
    one = Metric((Column("x" * 3000, "numeric", 0.0),), p)
    many = Metric(tuple(Column(f"Größe {i} 身高", "numeric", 10.0**-i) for i in range(60)), p)
    for metric in (one, many, replace(METRIC, p=p)):
        row = tuple(None if column.kind == "categorical" else 1 for column in metric.columns)
        data = replace(mortgage(0), metric=metric, people=(Person(row, 0.1, 0.1), Person((None,) * len(row), 0.3, 0.2)))
        assert all(column.name in render(data) for column in metric.columns)
