"""The page as text: the same bytes for the same input, everything escaped, sections that may be absent."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from test_report_data import METRIC, PANELS, costs, mortgage, promise, rows_of

from likewise import TableMetric, review_files
from likewise.decisions.costs import DecisionCosts
from likewise.report import GroupFigures, GroupScores, ReportData, ReviewedFiles, render
from likewise.report.view import prepare

HOSTILE = "</script><script>alert(1)</script><!--\"'&\u2028{{ 7 * 7 }}"


def ids(page):
    return re.findall(r'\bid="([^"]*)"', page)


def test_the_same_input_gives_the_same_bytes():
    assert render(mortgage()) == render(mortgage())


def test_200_people_with_30_columns_stay_far_under_2_mb():
    metric = TableMetric({f"column {i}": 0.01 for i in range(30)})
    people = rows_of(metric, np.random.default_rng(0).normal(size=(200, 30)))
    page = render(ReportData("Many", "yes", metric, people, before=np.full(200, 0.4), after=np.full(200, 0.5)))
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


def words_of(page):
    return re.sub(r"<style.*?</style>|<script.*?</script>|<[^>]*>", " ", page, flags=re.DOTALL)


def hostile():
    """A report of which every text is an attack."""
    number = "n" + HOSTILE
    metric = TableMetric({number: 0.5}, {HOSTILE: 0.5}, missing={number: 0.1}, units={number: HOSTILE})
    people = rows_of(metric, [[1, HOSTILE], [None, "<b>"]], [HOSTILE, "second"])
    scores = np.array([0.1, 0.9])
    return ReportData(
        title=HOSTILE,
        outcome=HOSTILE,
        model_name=HOSTILE,
        source=HOSTILE,
        date=HOSTILE,
        metric=metric,
        people=people,
        guarantee=promise(metric, "sampled", HOSTILE, slack=0.01, delta=0.001, n_draws=1000),
        before=scores,
        after=scores,
        cost=costs(metric=metric, title=HOSTILE),
        groups=(GroupScores(HOSTILE, HOSTILE, 3, 0.5, None, GroupFigures(0.5, 0.5, 0.5)),),
        groups_of=HOSTILE,
        panels=tuple(replace(panel, column=HOSTILE, levels=(HOSTILE,) * len(panel.levels)) for panel in PANELS),
        reasons=((HOSTILE,), ()),
        review=ReviewedFiles(
            review_files(people.table, [HOSTILE, "<b>"], approved="<b>", metric=metric, threshold=2), people, scores
        ),
    )


def test_text_from_data_is_escaped_everywhere():
    page = render(hostile())
    assert page.count("<script") == 2  # the data and the page's own
    assert page.count("</script") == 2
    assert "<!--" not in page
    assert "<b>" not in page
    assert "{{ 7 * 7 }}" in page  # data are never a template
    embedded = page.split('id="data">')[1].split("</script>")[0]
    assert HOSTILE in json.loads(embedded)["columns"][0].values()
    assert not set("<>&\u2028") & set(embedded)


@pytest.mark.parametrize(
    ("change", "absent"),
    [
        ({"cost": None}, "cost"),
        ({"panels": ()}, "shapes"),
        ({"groups": ()}, "groups"),
        ({"before": None, "after": None}, "search"),
    ],
)
def test_a_section_without_data_is_absent_from_the_page_and_its_contents(change, absent):
    everything, without = ids(render(mortgage(3))), render(replace(mortgage(3), **change))
    assert absent in everything
    assert absent not in ids(without)
    assert f'href="#{absent}"' not in without


def test_without_a_guarantee_the_page_promises_nothing():
    page = render(replace(mortgage(3), guarantee=None))
    assert "Nothing is promised about this model" in page
    assert 'class="claim"' not in page


@pytest.mark.parametrize("n", [0, 1])
def test_without_pairs_the_page_says_so(n):
    page = render(mortgage(n))
    assert 'id="picture"' not in page
    assert "Type the values of two people" in page or "Compare any two people" in page


def test_only_one_of_the_models_may_have_scores():
    page = render(replace(mortgage(5), guarantee=None, after=None))
    assert "before-picture" in ids(page)
    assert "after-picture" not in ids(page)


def test_a_model_with_nothing_before_it_is_not_said_to_have_changed():
    data = mortgage(5)
    groups = tuple(replace(group, before=None) for group in data.groups)
    alone = {"before": None, "cost": None, "panels": ()}
    words = words_of(render(replace(data, groups=groups, **alone)))
    assert "This model: the pairs closest to their limit" in words
    assert not re.findall(r"\b(?:before|smooth\w*|without a promise)\b", words, flags=re.IGNORECASE)


def test_the_basis_and_the_statement_of_the_guarantee_are_on_the_page():
    page = render(mortgage(3))
    assert "By shifts of a grid." in page
    assert "Covered: predict_proba" in page


def test_the_worst_pair_is_shown_with_what_sets_it_apart():
    metric = TableMetric({"income": 1e-5, "age": 0.01}, {"race": 0}, units={"income": "$"}, missing="category")
    rows = [[4000, 30, "x"], [5000, 30, "y"], [4000, None, "x"]]
    people, scores = rows_of(metric, rows, ["Ann", "Bob", "Eve"]), np.array([0.2, 0.9, 0.3])
    page = render(ReportData("Three", "yes", metric, people, after=scores))
    (card,) = page.split('<article class="pair after">')[1:]
    words = " ".join(re.sub(r"<[^>]*>", " ", card).split())
    assert words.startswith(
        "Ann and Bob may differ by 1 point differ by 70 points Scores: 20.0% and 90.0%. What sets them apart Column "
        "First Second race weight 0 x y income $4,000 $5,000 The other column is equal."
    )


@pytest.mark.parametrize(("n", "words"), [(4, "The other column is equal."), (5, "1 more column, which counts less."),
                                          (7, "3 more columns, which count less.")])  # fmt: skip
def test_columns_that_must_not_matter_are_first_on_a_card_and_the_others_are_counted(n, words):
    names = [f"x{k}" for k in range(n)]
    metric = TableMetric(dict.fromkeys(names, 0.001), {"sex": 0, "race": 0})
    people = rows_of(metric, [[0] * n + ["f", "x"], [1] * n + ["m", "x"]])
    scores = np.array([0.2, 0.9])
    page = render(ReportData("Two", "yes", metric, people, before=scores))
    (card,) = page.split('<article class="pair before">')[1:]
    card = " ".join(re.sub(r"<[^>]*>", " ", card.split("</article>")[0]).split())
    assert "Second sex weight 0 f m x0 0 1 x1 0 1 x2 0 1 x3 0 1 " in card
    assert words in card
    assert "x4" not in card


def test_scores_of_a_pair_are_those_of_all_outcomes():
    metric = TableMetric({"age": 0.001})
    people = rows_of(metric, [[30], [31]])
    three = np.array([[0.5, 0.3, 0.2], [0.1, 0.35, 0.55]])
    page = render(ReportData("", "b", metric, people, after=three, shown=1, classes=("a", "b", "c")))
    words = " ".join(words_of(page).split())
    assert "Scores: a 50.0% and 10.0%; b 30.0% and 35.0%; c 20.0% and 55.0%" in words
    assert "Goes up by, and down by, in all 40 points" in words
    numbers = np.array([2000.0, 5000.0])
    ranged = ReportData("", "wage", metric, people, after=numbers, output_range=(0.0, 20000.0))
    assert "Predictions: 2,000 and 5,000" in render(ranged)


def test_the_page_tells_of_the_two_alike_whom_the_unconstrained_model_sets_furthest_apart():
    """Ann and Bob, 3 points apart, differ in race, in what counts, and in what the model does not use."""
    metric = TableMetric(
        {"age": 0.01, "debt": 0.0}, {"job": 0.02, "race": 0.0}, zero_reasons={"debt": "not_used", "race": "protected"}
    )
    rows = [[30, 1, "cook", "x"], [31, 2, "nurse", "y"], [31, 2, "nurse", "x"], [90, 2, "cook", "x"]]
    people = rows_of(metric, rows, ["Ann", "Bob", "Cat", "Dan"])
    before, after = np.array([0.9, 0.4, 0.5, 0.1]), np.array([0.61, 0.6, 0.6, 0.4])
    data = ReportData("", "yes", metric, people, before=before, after=after, guarantee=promise(metric))
    page = " ".join(words_of(render(data)).replace("\n", " ").split())
    assert "Ann and Bob are 3 points apart. What counts between them: job (cook, nurse) , age (30, 31) ." in page
    assert "What must not count: race (x, y) ." in page
    assert "Without the guarantee, the score of the first is 90.0% and of the second 40.0% : 50 points apart" in page
    assert "where 3 points would be allowed" in page
    assert "With it, the score of the first is 61.0% and of the second 60.0% : 1 point apart, within the 3" in page
    assert "They differ in 1 column of weight 0 that is not used, too: debt ." in page
    assert "Of all pairs at most 5 points apart, these are the two whose scores the unconstrained model sets" in page
    assert (
        "Without the guarantee, 4 of 6 pairs of people are treated more differently than they differ. With it, none"
        in page
    )
    assert '"first":[0,1]' in render(data)
    alone = " ".join(words_of(render(replace(data, before=None, guarantee=None))).split())
    assert "these are the two whose scores this model sets furthest apart" in alone
    assert "None of 6 pairs of people is treated more differently than they differ." in alone


def test_a_page_without_pairs_above_the_line_says_what_the_guarantee_adds():
    data = mortgage(30)
    page = words_of(render(replace(data, before=data.after)))
    none = "None of 435 pairs of people is treated more differently than they differ, with the guarantee or without it."
    assert f"{none} Only with it is that promised for everybody else." in " ".join(page.split())
    assert "Without the guarantee, 0" not in page
    assert none not in " ".join(words_of(render(data)).split())  # control


def test_a_page_about_several_outcomes_tells_of_the_one_in_its_headline():
    metric = TableMetric({"age": 0.01})
    people, scores = rows_of(metric, [[30], [80]]), np.array([[0.5, 0.3, 0.2], [0.1, 0.5, 0.4]])
    data = ReportData(
        "", "yes", metric, people, after=scores, classes=("no", "later", "yes"), guarantee=promise(metric)
    )
    for shown, name, said in (
        (2, "yes", "20.0% and of the second 40.0%"),
        (1, "later", "30.0% and of the second 50.0%"),
    ):
        page = " ".join(words_of(render(replace(data, shown=shown, outcome=name))).split())
        assert f"{said} for “{name}” : 40 points over all outcomes" in page
        assert f"the scores for “{name}”" in page
    # Of another outcome, where the two hardly differ in that one.
    hardly = replace(data, after=np.array([[0.5, 0.3, 0.2], [0.1, 0.69, 0.21]]), shown=2)
    page = " ".join(words_of(render(hardly)).split())
    assert "50.0% and of the second 10.0% for “no” : 40 points over all outcomes" in page


def test_few_near_pairs_have_no_rates_in_large_type():
    data = mortgage(60)
    table = pd.DataFrame(
        {"in_band": [0, 0.7], "against_threshold": [0, 0.2], "near_different": [0.1, 0.03]}
        | {"near_different_independent": [0.1, 0.42], "guarantee": [1, 0.2]},
        index=[0.0, 0.1],
    )

    def said(n):
        page = render(replace(data, decisions=DecisionCosts(table, 0.5, 0.02, n, 1040)))
        return " ".join(words_of(page).split("From scores to decisions")[1].split("What is not")[0].split())

    few, many = said(10), said(100)
    assert "42.0%" not in few
    assert "700 of 1,000 people are in the band" in few
    assert "only 10 pairs are at most 2 points apart: too few to say how often" in few
    assert "42.0% if everybody had a draw of their own" in many
    assert "Near pairs are the 100 pairs" in many


def test_sentences_are_apart_and_a_date_is_shown_only_if_given():
    data = mortgage(5)
    three = np.tile([0.2, 0.3, 0.5], (5, 1))
    page = words_of(render(replace(data, before=None, after=three)))
    assert "no more. The model knows 3 outcomes" in " ".join(page.split())
    assert "Data of 1990" in " ".join(page.split())
    assert "Data of" not in words_of(render(replace(data, date="")))


def test_a_search_that_contradicts_the_promise_comes_first():
    data = mortgage(20)
    assert "The search contradicts the promise" not in render(data)
    assert "The search contradicts the promise" in render(replace(data, after=data.before))


def test_a_sampled_promise_in_words():
    sampled = promise(level="sampled", slack=0.01, delta=0.001, n_draws=152_018)
    page = " ".join(render(replace(mortgage(3), guarantee=sampled)).split())
    assert "plus <strong>1 point</strong>, except with a chance of at most 1 in 1,000 for each pair." in page
    assert "152,018 evaluations" in page


def test_a_model_is_never_called_fair():
    words = re.sub(r"<[^>]*>", " ", render(mortgage(3)))
    assert set(re.findall(r"\w*[Ff]air\w*", words)) == {"fairness", "Fairness"}


def test_odd_tables_render():
    one = TableMetric({"x" * 3000: 0.0})
    many = TableMetric({f"Größe {i} 身高": 10.0**-i for i in range(60)}, missing="category")
    mixed = TableMetric(METRIC.numeric, METRIC.categorical, missing="category")
    for metric in (one, many, mixed):
        rows = [[1.0 if name in metric.numeric else None for name in metric.columns], [None] * len(metric.columns)]
        people, scores = rows_of(metric, rows), np.array([0.3, 0.2])
        page = render(ReportData("Odd", "yes", metric, people, before=scores, after=scores))
        assert all(name in page for name in metric.columns)


def test_columns_named_by_numbers_render():
    metric = TableMetric({0: 0.01}, {7: 0.2})
    assert 'for="w1">7</label>' in render(ReportData("Plain", "yes", metric, rows_of(metric, [[1, "a"], [2, "b"]])))


def test_no_metric_is_printed_as_code_and_the_page_says_what_it_is_about():
    page = render(mortgage(5))
    assert "TableMetric(" not in page
    words = " ".join(words_of(page).split())
    assert "Model model.skops, scorecard" in words
    assert "People 597, applications in Boston" in words
    assert "Data of 1990" in words


def test_units_read_naturally():
    metric = TableMetric(
        {"loan_to_price": 0.0438, "income": 0.01 / 42.5, "debt": 0.01, "since": 0.0},
        units={"loan_to_price": "ratio", "income": "$1000 per year", "debt": "% of income"},
    )
    people = rows_of(metric, [[0.8, 50, 30, 2004], [0.9, 60, 31, 2005]])
    scores = np.array([0.2, 0.9])
    words = " ".join(words_of(render(ReportData("", "yes", metric, people, after=scores))).split())
    assert "22.8 percentage points of loan_ to_ price" in words
    assert "$42,500 per year of income" in words
    assert "1 point = 1 percentage point of income" in words
    assert "80% 90%" in words
    assert "2004 2005" in words
    assert "ratio" not in words.replace("Ratio", "").replace("in ratio", "")


def test_what_was_lost_is_said_in_people():
    data = mortgage(5)

    def said(**changes):
        cost = replace(data.cost, people=replace(data.cost.people, **changes), metric_saw=False)
        return " ".join(words_of(render(replace(data, cost=cost))).split())

    words = said()
    assert "Of 1,000 people, 34 get another decision than by the unconstrained model, and 120" in words
    wrong = "and 120 get one that is not their outcome: "
    more = "20 more than by the unconstrained model (± 6); with the same score for everybody, 223."
    assert words.count(wrong + more) == 2  # there and on the page for a board
    assert "each model says “loan approved” to as many people as had that outcome, 870 of 1,000" in words
    against = "by the unconstrained model 100, too close to tell from chance"
    assert wrong + against in said(error=0.011)
    assert "pairs misranked" not in words.lower()
    fewer = said(wrong=data.cost.people.wrong | {"unconstrained": 0.15})
    assert "30 fewer than by the unconstrained model" in fewer
    assert "cost nothing" not in fewer


@pytest.mark.parametrize(
    ("own", "words"),
    [(0.088, ""), (0.108, "This model is not measurably better than giving everybody the same score.")],
)
def test_a_model_that_is_no_better_than_a_constant_is_said_to_be(own, words):
    page = render(replace(mortgage(5), cost=costs(own)))
    assert words in page
    assert ("not measurably better" in page) == bool(words)


@pytest.mark.parametrize(
    ("saw", "words"),
    [
        (True, "The metric was made from these people, so the price is understated; likewise design --holdout 0.25"),
        (None, "If the metric was made from these people, the price is understated; likewise design --holdout 0.25"),
        (False, ""),
    ],
)
def test_the_price_is_said_to_be_understated_where_the_metric_has_seen_these_people(saw, words):
    page = render(replace(mortgage(5), cost=replace(costs(0.088), metric_saw=saw)))
    assert words in page
    assert page.count("the price is understated") == (2 if words else 0)  # there and on the page for a board


def test_the_unconstrained_model_and_a_constant_stand_beside_the_model():
    words = " ".join(words_of(render(mortgage(5))).split())
    assert "The unconstrained model is the better of logistic regression and boosting" in words
    assert "A constant 0.1070 ± 0.0010 0.500 223" in words
    assert "This model 0.0880 ± 0.0010 0.800 120" in words


def test_groups_show_rates_and_their_ratios():
    words = " ".join(words_of(render(mortgage(5))).split())
    # 0.81 / 0.9 with the promise, 0.75 / 0.96 without.
    assert "black 61 67.0% 76.8% 70.2% 81.0% 75.0% 0.90 0.78 18.0% 19.7%" in words
    assert "nothing is promised about it" in words


def test_protected_groups_are_never_folded_and_the_others_are():
    data = mortgage(5)
    reasons = {"race": "protected", "sex": "not_used"}
    metric = TableMetric(METRIC.numeric, METRIC.categorical, missing={"income": 0.05}, zero_reasons=reasons)
    view = prepare(replace(data, metric=metric, guarantee=None))
    assert [[column for column, _ in view[key]] for key in ("groups", "other_groups")] == [["race"], ["sex"]]
    view = prepare(data)  # which does not say who set the weights to 0
    assert [[column for column, _ in view[key]] for key in ("groups", "other_groups")] == [["race", "sex"], []]


def test_little_reach_is_a_warning():
    from likewise.auditing.coverage import Coverage

    for share, warned in ((0.05, True), (0.5, False)):
        page = render(replace(mortgage(5), reach=Coverage(share, 0.3, 2.0)))
        assert ("This distance says little" in page) == warned
        assert "30 points away" in page


def test_the_pairs_closest_to_their_limit_are_shown_when_nothing_is_above_it():
    data = mortgage(5)
    first = data.scan.closest.iloc[0]
    words = " ".join(words_of(render(data)).split())
    share = first["difference"] / min(1, first["distance"] + data.epsilon)
    assert f"The first uses {100 * share:.1f}% of what it may." in words


def test_a_board_reads_one_page():
    words = " ".join(words_of(render(mortgage(20)).split('<section id="board"')[1]).split())
    for row in (
        "What is promised For any two people",
        "Whom it binds",
        "What it costs people Of 1,000",
        "Groups",
        "What is not promised",
    ):
        assert row in words
    assert f"{mortgage(20).scan.n_above['before']} of 190 pairs above the line" in words
    assert "Ratio" not in words
