"""Why a weight is 0: each reason is kept by files, models and reports, and said as it is."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from likewise import (
    AdditiveClassifier,
    MetricDisplay,
    TableMetric,
    estimate_minimal_metric,
    load_model,
    minimal_metric,
    read_metric,
    save_model,
    write_metric,
)
from likewise.exceptions import InvalidInputError
from likewise.metric_file import MetricFile, format_metric, read_metric_file
from likewise.report.data import ReportData
from likewise.report.render import render
from shell import run

REASONS = {"race": "protected", "zip": "not_used", "age": "not_forced", "job": "not_judged"}
METRIC = TableMetric(
    {"income": 1e-3, "zip": 0, "age": 0}, {"region": 0.1, "race": 0, "job": 0, "sex": 0}, zero_reasons=REASONS
)
MEANINGS = {
    "race": "protected: must not matter",
    "zip": "not used by this model",
    "age": "not forced by these people",
    "job": "no answer says that a difference is fine",
    "sex": "must not matter",
}


def people(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"income": rng.normal(50, 10, n), "zip": rng.integers(0, 9, n), "age": rng.integers(20, 70, n)})
    for name in ("region", "race", "job", "sex"):
        X[name] = rng.choice(["a", "b"], n)
    return X, (X["income"] > 50).astype(int)


def test_each_reason_is_described_as_it_is():
    shown = METRIC.describe().set_index("column")["one point"]
    assert {name: shown[name] for name in MEANINGS} == MEANINGS


def test_reasons_are_no_part_of_the_distance():
    plain = METRIC.with_params(zero_reasons={})
    X, _ = people(20)
    assert plain == METRIC
    assert hash(plain) == hash(METRIC)
    assert (plain.pairwise(X) == METRIC.pairwise(X)).all()
    assert METRIC.scaled(2).zero_reasons == METRIC.rounded().zero_reasons == REASONS


def test_a_column_that_got_a_weight_needs_no_reason():
    raised = METRIC.with_params(numeric={**METRIC.numeric, "zip": 0.1})
    assert raised.zero_reasons == {name: reason for name, reason in REASONS.items() if name != "zip"}


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        ({"income": "protected"}, "'income' has 0.001. Set the weight to 0"),
        ({"nobody": "protected"}, "zero_reasons must name columns of the metric; it has no 'nobody'"),
        ({"race": "because"}, "zero_reasons must be one of protected, not_used, not_forced, not_judged; got 'because'"),
        ({"race": None}, "got None for 'race'"),
        ("race", "zero_reasons must be a mapping from column to value; got str"),
    ],
)
def test_wrong_reasons_are_refused_in_one_line(reasons, words):
    with pytest.raises((InvalidInputError, TypeError), match=re.escape(words)) as caught:
        METRIC.with_params(zero_reasons=reasons)
    assert "\n" not in str(caught.value)


def test_a_metric_file_gives_the_metric_its_reasons_and_gets_them_back(tmp_path):
    write_metric(METRIC, tmp_path / "m.toml")
    file, metric = read_metric_file(tmp_path / "m.toml"), read_metric(tmp_path / "m.toml")
    assert metric.zero_reasons == {**REASONS, "sex": "protected"}  # a 0 without a reason in a file is people's
    assert (file.protected, file.not_used, file.not_forced, file.not_judged) == (
        ("race", "sex"),
        ("zip",),
        ("age",),
        ("job",),
    )
    write_metric(metric, tmp_path / "again.toml")
    written = [(tmp_path / name).read_bytes() for name in ("m.toml", "again.toml")]
    assert written[0].replace(b'["race"]', b'["race", "sex"]') == written[1]
    write_metric(read_metric_file(tmp_path / "again.toml"), tmp_path / "twice.toml")
    assert (tmp_path / "twice.toml").read_bytes() == written[1]


def test_lists_of_a_file_decide_where_the_metric_says_otherwise():
    file = MetricFile(METRIC, protected=("race", "zip"), not_used=())
    assert file.metric.zero_reasons["zip"] == "protected"
    assert (file.protected, file.not_used, file.not_forced) == (("race", "zip"), (), ("age",))
    assert "zip" in MetricFile(METRIC).not_used  # control


def test_a_model_file_keeps_the_reasons_and_the_report_says_them(tmp_path):
    X, y = people()
    model = AdditiveClassifier(METRIC, penalty=0.1).fit(X, y)
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops")
    assert again.guarantee_.metric.zero_reasons == REASONS
    assert "protected: must not matter" in again.guarantee_.describe()
    save_model(again, tmp_path / "again.skops")
    assert load_model(tmp_path / "again.skops").guarantee_.metric.zero_reasons == REASONS


def test_a_model_file_from_before_has_no_reasons():
    state = METRIC.__getstate__()
    del state["zero_reasons"]
    old = TableMetric.__new__(TableMetric)
    old.__setstate__(state)
    assert old == METRIC
    assert old.zero_reasons == {}


def test_the_report_lists_columns_by_reason():
    X, _ = people(12)
    scores = np.linspace(0.1, 0.9, len(X))
    data = ReportData("Some", "yes", METRIC, METRIC.encode_rows(X), after=scores)
    page = render(data)
    (said,) = re.findall(r'<p class="hidden-columns">(.*?)</p>', page)
    assert " ".join(re.sub(r"<[^>]*>", "", said).split()) == (
        "Protected, set to 0 by people: race. Not used by the model: zip. Not forced by the people it was revealed "
        "from, so not known: age. Not judged: no answer says that a difference is fine: job. Weight 0: sex. Two people "
        "who differ only there are at distance 0."
    )
    pills = set(re.findall(r'<span class="pill">(.*?)</span>', page))
    assert pills <= {"protected", "not used", "not forced by these people", "not judged", "weight 0"}
    assert {"protected", "weight 0"} <= pills
    bare = ReportData("Some", "yes", METRIC.with_params(zero_reasons={}), METRIC.encode_rows(X), after=scores)
    assert "Protected" not in render(bare)  # control


def test_enforce_says_them_and_the_model_file_has_them(tmp_path):
    X, y = people()
    X.assign(approved=y).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "m.toml").write_text(format_metric(METRIC))
    done = run(tmp_path, "enforce people.csv --target approved --metric m.toml --method additive --out model.skops")
    assert done.exit_code == 0, done.output
    for line in ("Protected, set to 0 by people: race, sex.", "Not used by the model: zip."):
        assert line in done.stdout
    assert load_model(tmp_path / "model.skops").metric.zero_reasons == {**REASONS, "sex": "protected"}
    again = "enforce people.csv --target approved --metric m.toml --method additive --out model.skops --force --json"
    facts = json.loads(run(tmp_path, again).stdout)
    assert facts["zero_reasons"] == {**REASONS, "sex": "protected"}


def test_what_reveals_a_metric_says_why_a_weight_is_0():
    X, y = people(200)
    encode = make_column_transformer((OneHotEncoder(), ["region"]), ("passthrough", ["income"]))
    exact = minimal_metric(make_pipeline(encode, LogisticRegression()).fit(X, y), X)
    assert exact.zero_reasons == {}  # columns that the model does not read are no part of the metric
    model = make_pipeline(encode, LogisticRegression()).fit(X, y)
    model[-1].coef_[:] = [[0.0, 0.0, 1.0]]
    assert minimal_metric(model, X).zero_reasons == {"region": "not_used"}
    scores = X["income"].rank() / len(X)
    found = estimate_minimal_metric(None, X[["income", "region"]], predictions=scores)
    assert found.metric.zero_reasons == dict.fromkeys(found.not_forced, "not_forced") == {"region": "not_forced"}


def test_a_plot_says_them():
    display = MetricDisplay.from_metric(METRIC)
    labels = {text.get_text() for text in display.ax_.texts}
    assert {f"0: {meaning}" for meaning in MEANINGS.values()} <= {label.strip() for label in labels}
