"""Boosters in their own files at the command line: categories that a file lacks, and scores that it must reproduce."""

import json

import numpy as np
import pandas as pd
import pytest

import committee
from likewise import TableMetric, write_metric
from likewise.exceptions import InvalidInputError
from likewise.inspection.external_models import load_booster
from likewise.metric_file import MetricFile
from shell import run

METRIC = TableMetric({"age": 0.01}, {"job": 0.1, "sex": 0})
CATEGORIES = {"job": ["zoo", "clerk", "artist"], "grade": [20, 1, 3]}


def people(n=300):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(18, 80, n), "sex": rng.choice([0, 1], n)})
    return X.assign(**{name: rng.choice(listed, n) for name, listed in CATEGORIES.items()})


def outcome(X):
    chance = 0.2 + 0.4 * (X["job"] == "clerk") + 0.2 * (X["grade"] == 3) + 0.1 * X["sex"]
    return (np.random.default_rng(1).random(len(X)) < chance).astype(int)


@pytest.fixture
def old(tmp_path):
    """A model of XGBoost, and its file as versions before 3.1 write it."""
    xgboost = pytest.importorskip("xgboost", "3.1")
    X = people()
    coded = X.assign(**{name: pd.Categorical(X[name], listed) for name, listed in CATEGORIES.items()})
    model = xgboost.XGBClassifier(n_estimators=20, max_depth=3, enable_categorical=True, n_jobs=1).fit(
        coded, outcome(X)
    )
    model.save_model(tmp_path / "new.json")
    content = json.loads((tmp_path / "new.json").read_bytes())
    content["version"] = [2, 1, 4]
    content["learner"]["gradient_booster"]["model"].pop("cats")
    (tmp_path / "old.json").write_text(json.dumps(content))
    X.assign(score=model.predict_proba(coded)[:, 1].round(4)).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "categories.json").write_text(json.dumps(CATEGORIES))
    write_metric(MetricFile(TableMetric({"age": 0.01, "sex": 0}, {"job": 0.1, "grade": 0.1})), tmp_path / "metric.toml")
    return tmp_path, model, coded


def test_a_file_without_categories_is_refused_or_given_them(old):
    folder, model, coded = old
    shuffled = coded.astype({"job": str}).assign(grade=coded["grade"].astype(int)).astype({"job": "category"})
    shuffled["grade"] = shuffled["grade"].astype("category")
    with pytest.raises(InvalidInputError, match=r"saved without its categories.* must list those of 'job'"):
        load_booster(folder / "old.json")
    read = load_booster(folder / "old.json", CATEGORIES)
    np.testing.assert_array_equal(read.predict_proba(shuffled), model.predict_proba(coded))
    # Control: in another order the codes are others.
    wrong = load_booster(folder / "old.json", CATEGORIES | {"job": CATEGORIES["job"][::-1]})
    assert np.abs(wrong.predict_proba(shuffled) - model.predict_proba(coded)).max() > 0.1
    np.testing.assert_array_equal(load_booster(folder / "new.json").predict_proba(shuffled), model.predict_proba(coded))


@pytest.mark.parametrize(
    ("categories", "words"),
    [
        ({"job": ["zoo", "clerk", "artist"]}, "must list those of 'grade'"),
        (CATEGORIES | {"age": [1]}, "must name columns whose categories .* lacks, job, grade; got 'age'"),
        (CATEGORIES | {"job": ["zoo"]}, "at least [23] of them; got \\['zoo'\\]"),
        (CATEGORIES | {"job": ["zoo", "zoo", "clerk"]}, "must list those of 'job'"),
    ],
)
def test_categories_that_do_not_fit_are_refused(old, categories, words):
    with pytest.raises(InvalidInputError, match=words):
        load_booster(old[0] / "old.json", categories)


def test_scores_beside_a_model_are_compared_before_anything_else_is_said(old):
    folder, _, _ = old
    for command in (
        "effect people.csv --column sex --seconds 1",
        "attack people.csv --metric metric.toml --pairs 1000",
    ):
        refused = run(folder, f"{command} --model old.json")
        assert refused.exit_code == 2
        assert "--categories FILE.json must list those of 'job'" in refused.stderr
        done = run(folder, f"{command} --model old.json --categories categories.json --scores score")
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith("The model reproduces the scores of all 300 people, up to 5.1e-05.")
    audited = run(folder, "audit people.csv --metric metric.toml --model new.json --scores score")
    assert audited.exit_code == 0, audited.output
    assert audited.stdout.startswith("The model reproduces the scores of all 300 people, up to 5.1e-05.")
    # One score is another: the person and the difference are named, and nothing else is said.
    table = pd.read_csv(folder / "people.csv")
    table.loc[41, "score"] = (table["score"][41] + 0.3) % 1
    table.loc[7, "score"] += 0.001
    table.assign(id=[f"p{i}" for i in range(300)]).to_csv(folder / "off.csv", index=False)
    for command in ("effect off.csv --column sex", "audit off.csv --metric metric.toml", "attack off.csv"):
        done = run(folder, f"{command} --model new.json --scores score --id id")
        if "attack" in command:
            done = run(folder, f"{command} --metric metric.toml --model new.json --scores score --id id")
        assert (done.exit_code, done.stdout) == (2, "")
        assert "for 2 of 300 people its answer is off by more than 5.1e-05" in done.stderr
        assert "most for id p41, by 0." in done.stderr


def test_categories_are_for_files_of_xgboost(tmp_path):
    (tmp_path / "categories.json").write_text("[1]")
    people().to_csv(tmp_path / "people.csv", index=False)
    done = run(tmp_path, "effect people.csv --model rules:score --column sex --categories categories.json")
    assert "--categories is for files of XGBoost (.json, .ubj); got --model rules:score" in done.stderr
    (tmp_path / "model.txt").write_text("")
    done = run(tmp_path, "effect people.csv --model model.txt --column sex --categories categories.json")
    assert "categories.json must hold lists of categories by column" in done.stderr


@pytest.mark.parametrize("named", [True, False])
def test_a_model_of_catboost_is_asked_from_its_own_file(tmp_path, named):
    catboost = pytest.importorskip("catboost")
    X = people()[["age", "sex"] if not named else ["age", "sex", "job"]]
    text = ["job"] if named else None
    model = catboost.CatBoostClassifier(
        iterations=20, depth=3, cat_features=text, verbose=0, thread_count=1, allow_writing_files=False
    )
    model.fit(X if named else X.to_numpy(), outcome(people())).save_model(str(tmp_path / "model.cbm"))
    scores = model.predict_proba(X if named else X.to_numpy())[:, 1]
    X.assign(score=scores.round(6)).to_csv(tmp_path / "people.csv", index=False)
    write_metric(MetricFile(METRIC if named else TableMetric({"age": 0.01, "sex": 0})), tmp_path / "metric.toml")
    done = run(tmp_path, "effect people.csv --model model.cbm --column sex --scores score --seconds 5 --json")
    assert done.exit_code == 0, done.output
    other = X.assign(sex=1 - X["sex"])
    moved = np.abs(model.predict_proba(other if named else other.to_numpy())[:, 1] - scores)
    found = json.loads(done.stdout)
    assert found["largest_on_people"] == pytest.approx(moved.max(), abs=1e-9)
    assert found["found"] >= moved.max() - 1e-9
    done = run(tmp_path, "audit people.csv --model model.cbm --metric metric.toml --scores score")
    assert done.exit_code == 0, done.output
    assert "The model reproduces the scores of all 300 people" in done.stdout


def test_a_report_takes_the_categories_too(old):
    folder, command = old[0], "report old.json people.csv --metric metric.toml --out page.html"
    assert "--categories FILE.json must list those of 'job'" in run(folder, command).stderr
    done = run(folder, f"{command} --categories categories.json")
    assert done.exit_code == 0, done.output
    assert (folder / "page.html").exists()
    alone = run(folder, "report people.csv --scores score --metric metric.toml --categories categories.json")
    assert "--categories is for a model" in alone.stderr


def test_the_workbench_takes_the_categories_too(old):
    folder, words = old[0], ["people.csv", "--target", "bought", "--drop", "score", "--model", "old.json"]
    table = pd.read_csv(folder / "people.csv")
    table.assign(bought=outcome(table)).to_csv(folder / "people.csv", index=False)
    refused = run(folder, f"workbench {' '.join(words)} --no-browser")
    assert "--categories FILE.json must list those of 'job'" in refused.stderr
    with (
        committee.command(folder, *words, "--categories", "categories.json") as (address, _),
        committee.Client(address) as ann,
    ):
        assert ann.settled()["result"]["today"]["title"] == "old.json"
