"""What commands print, read as a stranger would: rows as in the file, plain numbers, plain words."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from likewise import AdditiveClassifier, TableMetric, attack, audit, effect, save_model, write_metric
from likewise.cli.console import _continued
from likewise.cli.main import main
from likewise.exceptions import InvalidInputError
from small_domain import one_hot, people

METRIC = TableMetric({"age": 0.05, "income": 0.2}, {"sex": 0, "region": 0.1})
CODE = re.compile(r"np\.|\bX\b|in X or not|from 0|\b1 pairs|\b1 people|\b\d\d+\.0\b")


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = people(0, n=60)
    X = X.assign(age=X["age"].astype(float), income=X["income"] * 10)
    model = make_pipeline(one_hot(), LogisticRegression()).fit(X, y)
    skops.io.dump(model, "vendor.skops")
    save_model(AdditiveClassifier(METRIC).fit(X, y), "card.skops")
    scores = model.predict_proba(X)[:, 1]
    X.assign(score=scores, decision=np.where(y == "yes", "approved", "denied")).to_csv("loans.csv", index=False)
    write_metric(METRIC, "metric.toml")
    return X, scores


def test_rows_are_those_of_the_file_the_first_person_being_row_1(files):
    X, scores = files
    words = ["loans.csv", "--scores", "score", "--metric", "metric.toml"]
    told = json.loads(run("audit", *words, "--out", "worst.csv", "--json").stdout)
    listed, written = told["worst"][0], pd.read_csv("worst.csv")
    for pair in (listed, written.iloc[0]):
        assert pair["score_a"] == pytest.approx(scores[pair["row_a"] - 1])
        assert pair["score_b"] == pytest.approx(scores[pair["row_b"] - 1])
    assert "row 1 is the first person of the table" in run("audit", *words).stdout
    run("effect", "loans.csv", "--model", "vendor.skops", "--column", "sex", "--out", "effect.csv")
    people = pd.read_csv("effect.csv")
    assert people["row"].tolist() == list(range(1, len(X) + 1))
    np.testing.assert_allclose(people["score"], scores)
    # Names take the place of rows, and nothing is said of rows.
    pd.read_csv("loans.csv").assign(id=[f"k{i}" for i in range(len(X))]).to_csv("named.csv", index=False)
    said = run("audit", "named.csv", *words[1:], "--id", "id").stdout
    assert "The worst pairs (by id):" in said
    assert "row" not in said
    assert run("notice", "card.skops", "loans.csv", "--person", len(X), "--favourable", "yes").stdout
    assert "the rows 1 to 64" in run("notice", "card.skops", "loans.csv", "--person", 0, code=2).stderr


def test_a_page_names_rows_as_the_commands_do(files):
    told = json.loads(run("audit", "loans.csv", "--scores", "score", "--metric", "metric.toml", "--json").stdout)
    run("report", "loans.csv", "--scores", "score", "--metric", "metric.toml", "--out", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Row 1 is the first person of the table." in page
    first = told["worst"][0]
    assert f'>row {first["row_a"]}</span> and <span class="data">row {first["row_b"]}</span>' in page


@pytest.mark.parametrize(
    "words",
    [
        "audit loans.csv --scores score --metric metric.toml --groups --worst 2",
        "audit loans.csv --model card.skops",
        "review loans.csv --decisions decision --higher income --same region --groups sex --worst 3",
        "attack loans.csv --model vendor.skops --metric metric.toml --only sex --pairs 2000",
        "attack loans.csv --model card.skops --pairs 2000",
        "effect loans.csv --model vendor.skops --column age",
    ],
)
def test_nothing_of_the_program_s_own_language_is_printed(files, words):
    said = run(*words.split()).stdout
    assert CODE.findall(said) == []


def test_one_of_a_thing_is_not_several():
    pair = pd.DataFrame({"age": [20.0, 20.0], "income": [0.0, 0.0], "sex": ["f", "m"], "region": ["n", "n"]})
    found = audit(None, pair, METRIC, predictions=[0.2, 0.7])
    assert "every pair of the 2 people of the table (2 of them different), 1 pair." in found.coverage
    assert "Found: 1 pair exceeds it" in found.coverage
    assert found.headline == "1 of 1 pair exceeds the metric, the worst by 50 points"
    tried = attack(lambda X: 0.2 + 0.0 * X["age"] + 0.5 * (X["sex"] == "m"), METRIC, pair, only="sex", n_pairs=1000)
    assert "of the table and made up" in tried.coverage


def test_the_distance_is_said_in_words(files):
    found = audit(None, files[0], METRIC, predictions=files[1])
    assert (
        "where D is the sum of 1 point per 0.2 of age and 1 point per 0.05 of income, plus 10 points" in found.coverage
    )
    said = run("audit", "loans.csv", "--scores", "score", "--metric", "metric.toml").stdout
    assert "between two values of region" in said
    assert "TableMetric" not in said
    tried = run("attack", "loans.csv", "--model", "vendor.skops", "--metric", "metric.toml", "--pairs", 2000).stdout
    assert "D is the sum of 1 point per" in tried
    assert "TableMetric" not in tried


def test_the_unit_stands_once_in_an_interval(files):
    said = run("effect", "loans.csv", "--model", "vendor.skops", "--column", "sex").stdout
    assert re.search(r"on average \([\d.]+ to [\d.]+ points in the population", said)


def test_what_is_favourable_is_asked_once_kept_and_said_by_every_command(files):
    """Of 0 and 1 nobody knows it: refused where decisions or advice need it, until it was said."""
    X = files[0]
    Path("key").write_bytes(bytes(32))
    y = np.where(files[1] > np.median(files[1]), *["late", "paid back"])
    X.assign(outcome=y).to_csv("risk.csv", index=False)
    run("metric", "risk.csv", "--target", "outcome", "--out", "unsaid.toml")
    run("metric", "risk.csv", "--target", "outcome", "--out", "said.toml", "--favourable", "late")
    assert 'favourable = "late"' in Path("said.toml").read_text(encoding="utf-8")
    assert "favourable =" not in Path("unsaid.toml").read_text(encoding="utf-8")
    learn = ["enforce", "risk.csv", "--target", "outcome", "--method", "additive", "--metric"]
    told = run(*learn, "unsaid.toml", "--out", "unsaid.skops").stderr
    assert "Nobody has said which outcome is favourable. --favourable late or paid back is kept in the file." in told
    refused = run("notice", "unsaid.skops", "risk.csv", "--person", 1, code=2).stderr
    assert "--favourable must be one of late, paid back, as no word says which one is better for a person" in refused
    assert "Favourable" not in run("effect", "risk.csv", "--model", "unsaid.skops", "--column", "income").stdout
    assert "Favourable: 'late', as named." in run(*learn, "said.toml", "--out", "said.skops").stdout
    assert "Favourable: 'late', as named." in run("notice", "said.skops", "risk.csv", "--person", 1).stderr
    assert "(favourable: 'late')" in run("effect", "risk.csv", "--model", "said.skops", "--column", "income").stdout
    assert "contradicts" in run(*learn, "said.toml", "--favourable", "paid back", "--out", "x.skops", code=2).stderr
    # A band that was made for the other class keeps it, and the words of the classes are known.
    band, card = ["--threshold", 0.5, "--width", 0.2], AdditiveClassifier(METRIC)
    for name, labels, text in (
        ("numbers", [0, 1], "Favourable: '1', as named."),
        ("words", ["approved", "denied"], "Favourable: 'approved', recognised by the word."),
    ):
        y = np.where(files[1] > np.median(files[1]), *labels)
        X.assign(outcome=y).to_csv(f"{name}.csv", index=False)
        save_model(card.fit(X, y), f"{name}.skops")
        said = ["--favourable", 1] if name == "numbers" else []
        learn = ["--target", "outcome", "--metric", "metric.toml", "--method", "additive", "--decide", *band]
        assert text in run("enforce", f"{name}.csv", *learn, "--out", f"{name}-band.skops", *said).stdout
        table = [f"{name}.skops", f"{name}.csv"]
        drawn = ["--round", "one", "--key-file", "key", "--out", f"{name}-decided.csv"]
        assert text in run("decide", *table, *drawn, *band, *said).stderr
        assert text in run("notice", *table, "--person", 1, *said).stderr
        if said:
            assert (
                "--favourable must be one of 0, 1"
                in run("enforce", f"{name}.csv", *learn, "--out", "x.skops", code=2).stderr
            )
        told = run("notice", *table, "--person", 1, "--favourable", labels[0]).stderr
        assert f"Favourable: '{labels[0]}', as named." in told


def test_help_begins_with_what_is_required_and_groups_the_commands():
    said = run("enforce", "--help").stdout
    required = ("Usage", "Train a model", "Required:", "--target TEXT", "--metric FILE")
    places = [said.index(each) for each in (*required, "held out", "Example:", "Options:", "--method [", "Output:")]
    assert places == sorted(places)
    said = run("--help").stdout
    titles = ["Start:", "demo", "Metric:", "design", "Model:", "enforce", "Check:", "audit", "Use:", "notice"]
    places = [re.search(rf"^ *{each}", said, re.MULTILINE).start() for each in titles]
    assert places == sorted(places)
    assert len(re.findall(r"^  [a-z][a-z-]+ {2,}\S", said, re.MULTILINE)) == len(main.commands)


def test_columns_are_named_as_text(files):
    class Named:
        feature_names_in_ = np.array(["age", "status"])  # of NumPy's own text type, as XGBoost has it

        def predict_proba(self, people):
            return np.full((len(people), 2), 0.5)

    with pytest.raises(InvalidInputError, match="the column 'status', which the model takes"):
        effect(Named(), files[0], "age")


WIDE = pd.DataFrame({"a rather long name of a column": range(80), "another name that is long, too": "x", "sex": "f"})


def test_everything_printed_fits_a_terminal_of_80_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jobs = [f"a job with a rather long title {k % 8}" for k in range(80)]
    X, y = WIDE.assign(job=jobs, sex=["f", "m"] * 40), np.tile(["denied", "approved", "approved", "denied"], 20)
    metric = TableMetric({X.columns[0]: 0.02}, {X.columns[1]: 0.1, "job": 0.3, "sex": 0.0})
    save_model(AdditiveClassifier(metric, penalty=0.001).fit(X, y), "card.skops")
    write_metric(metric, "metric.toml")
    X.to_csv("loans.csv", index=False)
    monkeypatch.setenv("COLUMNS", "80")
    effect_of = ["effect", "loans.csv", "--model", "card.skops", "--column"]
    shown = {column: run(*effect_of, column).stdout for column in ("job", "sex")}
    assert len(shown["job"].splitlines()) < 50
    assert "changes nothing" in shown["sex"]
    for said in (*shown.values(), run(*effect_of, "job", "-v").stdout, run("metric", "show", "metric.toml").stdout):
        assert max(map(len, said.splitlines())) <= 80
    assert "The domain, what each column" not in shown["job"]
    assert max(map(len, run(*effect_of, "job", "-v").stdout.splitlines())) <= 80
    monkeypatch.delenv("COLUMNS")
    assert max(map(len, run(*effect_of, "job", "-v").stdout.splitlines())) > 80  # control: into a file, as it is


def test_commands_to_copy_are_broken_where_a_shell_goes_on(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = ["likewise", "enforce", "a table.csv", *(f"--drop=column{k}" for k in range(12))]
    broken = _continued(shlex.join(words))
    assert max(map(len, broken.splitlines())) <= 80 - len("      ")
    assert len(broken.splitlines()) > 3
    assert shlex.split(broken.replace("\\\n", "")) == words
    assert _continued("likewise audit a.csv") == "likewise audit a.csv"
