"""Whether columns of weight 0 matter to another system: the section's figures are those of the library."""

import html
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from likewise import TableMetric, audit, audit_groups, effect, group_gaps, review_files
from likewise.pairs.model_outputs import OutputLabels
from likewise.report import render
from likewise.report import text as words
from likewise.report.build import build_scores_report
from likewise.report.view import prepare

METRIC = TableMetric({"income": 0.004, "sex": 0}, zero_reasons={"sex": "protected"})
RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame({"income": RNG.integers(10, 90, 120).astype(float), "sex": RNG.integers(0, 2, 120)})


def vendor(gain):
    """A logistic regression whose coefficient of sex is `gain`."""
    model = LogisticRegression().fit(PEOPLE, PEOPLE["income"] > 50)
    model.coef_, model.intercept_ = np.array([[0.01, gain]]), np.array([-0.5])
    return model


def scores_of(model):
    return model.predict_proba(PEOPLE)[:, 1]


def section(data, name="hidden"):
    """The text of a section."""
    found = re.search(rf'<section id="{name}".*?</section>', render(data), re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", found[0])))


def test_the_figures_of_a_vendor_who_uses_sex_are_those_of_the_library():
    model = vendor(1.0)
    scores = scores_of(model)
    data = build_scores_report(PEOPLE, scores, METRIC, model=model)
    known, text = effect(model, PEOPLE, "sex"), section(data)
    assert known.found > 0.1
    assert known.headline[1:] in text
    assert known.standing in text
    assert f"1 0 {known.labels.written(known.directions['mean'][0])}" in text
    assert "Only asked, not read" not in text
    gaps = group_gaps(None, PEOPLE, METRIC, "sex", predictions=scores)
    assert gaps.headline[1:] in text
    table = prepare(data)["hidden_columns"][0]
    for row, shown in zip(gaps.gaps.to_dict("records"), table["gaps"]["table"]["rows"], strict=True):
        assert shown[0] == row["value"]
        assert [float(cell.split()[0]) for cell in shown[2:]] == pytest.approx(
            [100 * row[key] for key in ("gap", "allowed", "shuffled")], rel=1e-3
        )
    assert table["gaps"]["proxies"]["rows"][0] == ["income", f"{gaps.proxies['auc'][0]:.3f}"]
    groups = audit_groups(None, PEOPLE, METRIC, ["sex"], predictions=scores).groups
    assert [row[6] for row in table["groups"]["rows"]] == [f"{p:.4f}" for p in groups["p_value"]]
    assert [row[2] for row in table["groups"]["rows"]] == [f"{n:,}" for n in groups["n_higher"]]


def test_of_a_risk_those_with_the_lower_score_gain():
    model = vendor(1.0)
    given = {"model": model, "asked": PEOPLE}
    text = section(build_scores_report(PEOPLE, scores_of(model), METRIC, favourable="low", **given))
    (row,) = effect(model, PEOPLE, "sex", favourable="low").directions.to_dict("records")
    assert (str(row["favoured"]), str(row["over"])) == ("0", "1")
    assert "Who gains (favourable: a lower score)" in text
    assert "Who is favoured (a lower score)" in text
    assert f" 0 1 {OutputLabels().written(row['mean'])} " in text
    control = section(build_scores_report(PEOPLE, scores_of(model), METRIC, favourable="high", **given))
    assert f" 1 0 {OutputLabels().written(row['mean'])} " in control


def test_no_sentence_accuses_a_vendor_who_does_not_use_sex():
    model = vendor(0.0)
    text = section(build_scores_report(PEOPLE, scores_of(model), METRIC, model=model))
    assert "no two people of the domain who differ in sex alone get different outputs (proven)" in text
    assert "Who gets the higher score" not in text
    assert "The worst pair found" not in text
    assert "this gap alone shows neither" in text


def test_a_vendor_who_does_not_take_sex_is_said_not_to_take_it():
    model = LogisticRegression().fit(PEOPLE[["income"]], PEOPLE["income"] > 50)
    model.coef_, model.intercept_ = np.array([[0.01]]), np.array([-0.5])
    scores = model.predict_proba(PEOPLE[["income"]])[:, 1]
    text = section(build_scores_report(PEOPLE, scores, METRIC, model=model, asked=PEOPLE[["income"]]))
    assert "The model does not take sex: exchanging sex alone changes none of its scores." in text


def test_scores_alone_cannot_tell_what_exchanging_sex_does():
    data = build_scores_report(PEOPLE, scores_of(vendor(1.0)), METRIC)
    text = section(data)
    assert "What exchanging sex alone would change cannot be measured from scores alone." in text
    assert "proven" not in text
    assert "Gaps of mean scores" in text
    assert "Gaps between groups are measured" in section(data, "limits")


def test_a_function_is_only_asked():
    model = vendor(1.0)
    text = section(
        build_scores_report(
            PEOPLE, scores_of(model), METRIC, model=lambda X: model.predict_proba(X)[:, 1], asked=PEOPLE
        )
    )
    assert "Only asked, not read" in text
    assert "no upper bound is proven" in text
    assert "No proof: this model cannot be bounded" in text


def test_scores_with_a_range_are_in_their_unit():
    model = vendor(1.0)
    scores = 300 + 550 * scores_of(model)
    data = build_scores_report(
        PEOPLE,
        scores,
        METRIC,
        output_range=(300, 850),
        model=lambda X: 300 + 550 * model.predict_proba(X)[:, 1],
        asked=PEOPLE,
    )
    text, known = section(data), effect(model, PEOPLE, "sex")
    assert "points for the worst" not in text
    found = float(re.search(r"by ([\d.]+) for the worst pair found", text)[1])
    assert found == pytest.approx(550 * known.found, rel=1e-3)


def test_a_page_about_numbers_speaks_of_no_points():
    """Differences and distances are in the unit of the scores, from 300 to 850: a distance of 0.1 is 55."""
    scores, limits = 300 + 550 * scores_of(vendor(1.0)), (300, 850)
    decided = np.where(scores > np.median(scores), "approved", "denied")
    review = review_files(PEOPLE, decided, metric=METRIC, threshold=0.1, output_range=limits)
    page = render(build_scores_report(PEOPLE, scores, METRIC, output_range=limits, review=review))
    written = re.sub(r"(?s)<(script|style).*?</\1>", " ", page)
    body = re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]+>", " ", written)))
    assert not re.search(r"\bpoints?\b", body)
    assert "who is within a distance of 55" in body
    assert "A difference of 5.5 in the prediction is worth 2.5 of income" in body
    assert "2.5 = 5.5" in body
    found = audit(None, PEOPLE, METRIC, predictions=scores, output_range=limits, n_worst=5).violations
    worst = found.iloc[0]
    allowed, differ = (words.points(worst[key], limits) for key in ("distance", "difference"))
    assert f"may differ by {allowed} differ by {differ} " in body
    control = render(build_scores_report(PEOPLE, scores_of(vendor(1.0)), METRIC))
    assert "One point is worth" in control


def test_three_columns_are_measured_and_the_protected_ones_come_first():
    names = ["a", "b", "c", "d"]
    table = PEOPLE.assign(**dict.fromkeys(names, 1)).drop(columns="sex")
    metric = TableMetric({"income": 0.004, **dict.fromkeys(names, 0)}, zero_reasons={"d": "protected"})
    data = build_scores_report(table, scores_of(vendor(0.0)), metric)
    assert [each.name for each in data.hidden] == ["d", "a", "b"]
    assert "Groups by a are not compared: it must hold 2 to 20 different values." in section(data)
    assert "Not measured here: c." in section(data)


def test_outcomes_of_three_classes_are_not_compared_by_group():
    scores = np.full((len(PEOPLE), 3), 1 / 3)
    assert "Of several outcomes, the scores of groups are not compared." in section(
        build_scores_report(PEOPLE, scores, METRIC)
    )
