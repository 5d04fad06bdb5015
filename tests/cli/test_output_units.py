"""What effect, attack and audit print about numbers that are no probabilities, against brute force in their unit."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import skops.io
from click.testing import CliRunner
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.pipeline import make_pipeline

from likewise import TableMetric, write_metric
from likewise.cli.main import main
from likewise.metric_file import MetricFile
from small_domain import EVERYBODY, brute_force, one_hot, people

METRIC = TableMetric({"age": 0.01, "income": 0.02}, {"sex": 0, "region": 0.01})
RANGE = (300.0, 850.0)


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.stdout


def number(text):
    return float(text.replace(",", ""))


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    """People with a credit score between 300 and 850, and a model of it."""
    place = tmp_path_factory.mktemp("scores")
    X, y = people(0, kind="number")
    score = np.clip(550 + 60 * y, *RANGE).to_numpy()
    model = make_pipeline(one_hot(), GradientBoostingRegressor(n_estimators=15, random_state=0)).fit(X, score)
    X.assign(score=model.predict(X)).to_csv(place / "people.csv", index=False)
    skops.io.dump(model, place / "model.skops")
    write_metric(MetricFile(METRIC, output_range=RANGE), place / "metric.toml")
    write_metric(MetricFile(METRIC), place / "bare.toml")
    return place, X, model


@pytest.fixture
def there(scores, monkeypatch):
    monkeypatch.chdir(scores[0])
    return scores[1:]


def excesses(scores, people, width):
    """Differences of scores and distances of all pairs, in the unit of the scores."""
    weights = {"age": 0.01, "income": 0.02}
    away = sum(w * np.abs(people[n].to_numpy()[:, None] - people[n].to_numpy()) for n, w in weights.items())
    away = away + 0.01 * (people["region"].to_numpy()[:, None] != people["region"].to_numpy())
    return np.abs(scores[:, None] - scores), width * away


@pytest.mark.parametrize(
    "options", [[], ["--range", *RANGE], ["--metric", "metric.toml"]], ids=["bare", "range", "file"]
)
def test_an_effect_is_in_the_unit_of_the_scores(there, options):
    X, model = there
    truth = brute_force(model, ["sex"])
    assert truth > 5
    words = ["effect", "people.csv", "--model", "model.skops", "--column", "sex", *options]
    text = run(*words, "--out", "effect.csv", "--force", "--max-effect", 1.01 * truth)
    assert "points" not in text
    assert number(re.search(r"worst pair found in the domain differs by ([\d.,]+):", text)[1]) == pytest.approx(
        truth, 1e-3
    )
    (limit,) = re.findall(r"Proven: no two people .* differ by more(?: than ([\d.,]*\d))?\. ", text)
    assert not limit or truth <= number(limit) <= 1.01 * truth
    assert f"The gate, at most {1.01 * truth:.4g} for anybody in the domain, passed." in text
    on_people = [model.predict(X.assign(sex=each)) for each in ("f", "m")]
    gaps = np.abs(on_people[0] - on_people[1])
    assert number(re.search(r"changes the output by ([\d.,]+) on average", text)[1]) == pytest.approx(gaps.mean(), 1e-3)
    assert number(re.search(r"by up to ([\d.,]+)\.", text)[1]) == pytest.approx(gaps.max(), 1e-3)
    np.testing.assert_allclose(pd.read_csv("effect.csv")["effect"], gaps, atol=1e-9)
    assert "from 300 to 850" in text if options else "have no range" in text
    if "--metric" in options:
        differences, away = excesses(model.predict(EVERYBODY), EVERYBODY, 550)
        found, proven = re.search(
            r"by ([\d.,]+) in the worst pair found; proven: by at most ([\d.,]+)\.", text
        ).groups()
        assert number(found) == pytest.approx((differences - away).max(), 1e-3)
        assert (differences - away).max() <= number(proven) + 1e-9
    # The control: a gate just below the truth fails.
    run(*words, "--max-effect", 0.99 * truth, code=1)


@pytest.mark.parametrize(("file", "width"), [("metric.toml", 550.0), ("bare.toml", 1.0)])
def test_an_attack_is_in_the_unit_of_the_scores(there, file, width):
    _, model = there
    words = ["attack", "people.csv", "--model", "model.skops", "--metric", file, "--pairs", 20000, "--drop", "score"]
    text = run(*words, "--out", "pair.csv", "--force")
    assert "points" not in text
    pair = pd.read_csv("pair.csv")
    differences, away = excesses(model.predict(pair), pair, width)
    told = re.search(r"scores differ by ([\d.,]+) at a distance D of ([\d.,]+); ([\d.,]+) more than D", text).groups()
    truth = differences[0, 1], away[0, 1], differences[0, 1] - away[0, 1]
    assert list(map(number, told)) == pytest.approx(truth, rel=1e-3, abs=1e-3)
    assert truth[2] > 5


def test_an_audit_and_its_gate_are_in_the_unit_of_the_scores(there):
    X, model = there
    differences, away = excesses(model.predict(X), X, 550)
    over = (differences - away)[np.triu_indices(len(X), 1)]
    truth = over.max()
    assert truth > 5
    words = ["audit", "people.csv", "--metric", "metric.toml", "--scores", "score"]
    text = run(*words, "--max-excess", 5, code=1)
    assert "points" not in text
    assert f"the worst by {truth:.3g}" in text
    count = int((over > 5).sum())
    assert f"Above D + 5, the gate: {count:,} pair{'' if count == 1 else 's'}. The gate failed." in text
    assert "The gate passed" in run(*words, "--max-excess", np.ceil(truth))
    told = json.loads(run(*words, "--json"))
    assert told["output_range"] == [300, 850]
    assert told["worst"][0]["excess"] == pytest.approx(truth)


def test_the_control_probabilities_are_in_points(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = people(0)
    X.to_csv("people.csv", index=False)
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=15, random_state=0)).fit(X, y)
    skops.io.dump(model, "model.skops")
    truth = 100 * brute_force(model, ["sex"])
    text = run("effect", "people.csv", "--model", "model.skops", "--column", "sex")
    assert f"differs by {truth:.4g} points:" in text
    assert "unit of the scores" not in text
