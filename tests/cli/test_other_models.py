"""Models of other systems at the command line: ONNX files, URLs and functions; attack, and reports on scores alone."""

import json
import platform
import re
import sys
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from click.testing import CliRunner
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline

import likewise
from likewise import AdditiveClassifier, Domain, TableMetric, save_model, write_metric
from likewise.cli.main import main
from likewise.metric_file import MetricFile
from small_domain import brute_force, one_hot, people

METRIC = TableMetric({"age": 0.05, "income": 0.2}, {"sex": 0, "region": 0.1})
FUNCTION = """
import numpy as np
def score(X):
    return np.clip(0.2 + 0.01 * X["age"] + 0.3 * (X["sex"] == "m"), 0, 1)
not_a_function = 3
"""


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def told(*words):
    return json.loads(run(*words, "--json").stdout)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "rules", raising=False)
    X, y = people(0)
    (tmp_path / "rules.py").write_text(FUNCTION)
    scores = 0.2 + 0.01 * X["age"] + 0.3 * (X["sex"] == "m")
    X.assign(id=[f"p{i}" for i in range(len(X))], score=scores, approved=y).to_csv("loans.csv", index=False)
    write_metric(MetricFile(METRIC, domain=Domain.learn(X)), "metric.toml")
    return X, y


DROP = ["--drop", "score", "--drop", "approved", "--id", "id"]


def test_a_python_function_is_asked_and_has_no_proof(files):
    found = told("effect", "loans.csv", "--model", "rules:score", "--column", "sex", *DROP)
    assert found["found"] == pytest.approx(0.3)
    assert found["proven"] is None
    assert "function" in found["how"]


def test_effect_names_people_by_their_id(files):
    run("effect", "loans.csv", "--model", "rules:score", "--column", "sex", *DROP, "--out", "effect.csv")
    written = pd.read_csv("effect.csv")
    assert written["id"].tolist()[:2] == ["p0", "p1"]
    assert "row" not in written


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("rules:nothing", "rules has no such 'nothing'"),
        ("rules:not_a_function", "must name a function or a model"),
        ("no_such_module:score", "cannot be imported"),
        ("nothing.onnx", "needs onnxruntime|no model file"),
        ("http://127.0.0.1:1/invocations", "must answer requests"),
    ],
)
def test_models_that_cannot_be_asked_end_in_one_line(files, model, message):
    result = run("effect", "loans.csv", "--model", model, "--column", "sex", *DROP, code=2)
    assert re.search(message, result.stderr)
    assert result.stderr.count("\n") == 1


@pytest.fixture
def server(files):
    """A scoring server in the protocol of MLflow, whose answers are those of the function; at "noisy" with noise."""
    rng = np.random.default_rng(0)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            split = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["dataframe_split"]
            rows = pd.DataFrame(split["data"], columns=split["columns"])
            answers = (0.2 + 0.01 * rows["age"] + 0.3 * (rows["sex"] == "m")).clip(0, 1)
            if self.path == "/noisy":
                answers += rng.normal(0, 0.01, len(answers))
            body = json.dumps({"predictions": answers.tolist()[: 1 if self.path == "/other" else None]}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    running = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}/invocations"
    running.shutdown()
    thread.join()
    running.server_close()


def test_a_url_gives_the_answers_of_the_function(server):
    words = ["loans.csv", "--metric", "metric.toml", *DROP]
    assert told("audit", *words, "--model", server)["worst"] == told("audit", *words, "--model", "rules:score")["worst"]
    short = server.replace("invocations", "other")
    assert "of as many entries" in run("audit", *words, "--model", short, code=2).stderr


@pytest.mark.parametrize(
    "command",
    [
        ["effect", "--column", "sex", "--seconds", "1"],
        ["attack", "--metric", "metric.toml", "--pairs", "1000"],
        ["audit", "--metric", "metric.toml"],
    ],
)
def test_a_url_whose_answers_are_random_is_refused_in_one_line(server, command):
    words = [command[0], "loans.csv", *command[1:], *DROP, "--model"]
    refused = run(*words, server.replace("invocations", "noisy"), code=2)
    assert refused.stdout == ""
    assert refused.stderr.count("\n") == 1
    spread = re.search(r"got other answers: noise of standard deviation (\S+), with changes of up to", refused.stderr)
    assert 0.008 < float(spread[1]) < 0.012  # of 0.01: n differences give it up to 1 / sqrt(2 n), here 4%
    assert "for --scores." in refused.stderr
    run(*words, server)  # control: the same without noise


def test_audit_of_a_scikit_learn_model_is_that_of_its_scores(files):
    X, y = files
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=15, random_state=0)).fit(X, y)
    skops.io.dump(model, "model.skops")
    pd.read_csv("loans.csv").assign(score=model.predict_proba(X)[:, 1]).to_csv("scored.csv", index=False)
    by_model = told("audit", "loans.csv", "--model", "model.skops", "--metric", "metric.toml", "--id", "id")
    by_scores = told("audit", "scored.csv", "--scores", "score", "--metric", "metric.toml", "--id", "id")
    assert by_model["n_violations"] == by_scores["n_violations"] > 0
    assert by_model["max_excess"] == pytest.approx(by_scores["max_excess"])
    assert "only models of likewise" in run("audit", "loans.csv", "--model", "model.skops", code=2).stderr


def test_groups_of_too_many_values_are_named_and_the_others_compared(files):
    table = pd.read_csv("loans.csv")
    rng = np.random.default_rng(0)
    for n, others in ((51, ["sex"]), (51, []), (50, ["code", "sex"])):
        table.assign(code=rng.permutation(np.resize(np.arange(n), len(table)))).to_csv("coded.csv", index=False)
        weights = {"region": 0.1, "sex": 0 if others else 0.1}
        write_metric(MetricFile(TableMetric({"age": 0.05, "income": 0.2, "code": 0}, weights)), "coded.toml")
        done = run("audit", "coded.csv", "--scores", "score", "--metric", "coded.toml", "--id", "id", "--groups")
        assert ("Groups by code are not compared: more than 50" in done.stderr) == (n > 50)
        assert ("No column of weight 0 has groups to compare" in done.stderr) == (not others)
        words = [*done.stdout.partition("differ in a column of weight 0:")[2].split()]
        assert {name for name in ("code", "sex") if name in words} == set(others)


def test_attack_finds_the_worst_pair_within_the_domain_of_the_file(files):
    X, y = files
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=15, random_state=0)).fit(X, y)
    skops.io.dump(model, "model.skops")
    words = ["attack", "loans.csv", "--model", "model.skops", "--metric", "metric.toml", "--pairs", "20000"]
    found = told(*words, "--only", "sex", "--out", "pair.csv")
    assert found["difference"] == pytest.approx(brute_force(model, ["sex"]), abs=1e-6)
    assert found["distance"] == 0
    pair = pd.read_csv("pair.csv")
    assert (pair.nunique().drop("sex") == 1).all()
    assert Domain.learn(X).holds(pair).all()
    result = run(*words)
    assert "The worst of" in result.stdout
    assert "does not prove" in result.stdout


def test_attack_on_a_model_of_our_own_takes_its_metric(files):
    X, y = files
    save_model(AdditiveClassifier(METRIC).fit(X, y), "own.skops")
    assert told("attack", "loans.csv", "--model", "own.skops", "--pairs", "5000")["n_violations"] == 0
    assert "Give --metric" in run("attack", "loans.csv", "--model", "rules:score", *DROP, code=2).stderr


def test_a_table_with_another_number_of_columns_is_refused_in_one_line(files):
    X, y = files
    numbers = [name for name in X if X[name].dtype.kind in "iuf"]
    model = GradientBoostingClassifier(n_estimators=3).fit(X[numbers].to_numpy(), y)  # no names
    skops.io.dump(model, "model.skops")
    words = ["effect", "loans.csv", "--model", "model.skops", "--column", numbers[0]]
    said = run(*words, code=2).stderr
    n_columns = len(pd.read_csv("loans.csv").columns)
    assert f"takes {len(numbers)} columns without names; loans.csv has {n_columns}: [" in said
    assert "with --drop" in said
    pd.read_csv("loans.csv")[numbers[:1]].to_csv("short.csv", index=False)
    said = run("effect", "short.csv", *words[2:], code=2).stderr
    assert f"short.csv has 1: ['{numbers[0]}']. Add the missing ones." in said


def test_a_report_on_scores_alone_leaves_out_what_cannot_be_said(files):
    run("report", "loans.csv", "--scores", "score", "--metric", "metric.toml", "--id", "id", "--out", "scores.html")
    page = Path("scores.html").read_text(encoding="utf-8")
    assert "Nothing is promised about this model" in page
    assert "The promise" not in page.partition("<script")[0]
    assert '<section id="search"' in page
    for absent in ("cost", "groups", "decisions", "shapes"):
        assert f'<section id="{absent}"' not in page
    found = told("audit", "loans.csv", "--scores", "score", "--metric", "metric.toml")
    assert f"<strong>{found['n_violations']:,}</strong>" in page


def test_a_report_shows_the_review_that_the_command_writes(files):
    X, y = files
    review = ["--decisions", "approved", "--higher", "income", "--lower", "age"]
    found = told("review", "loans.csv", *review, "--metric", "metric.toml", "--id", "id")
    first = found["files"][0]
    words = ["--scores", "score", "--metric", "metric.toml", "--id", "id", *review]
    run("report", "loans.csv", *words, "--out", "scores.html")
    page = Path("scores.html").read_text(encoding="utf-8")
    assert f"<strong>{found['n_files']}</strong> of {found['n_denied']} people" in page
    card = page.partition('id="review"')[2].partition("</article>")[0]
    assert re.findall(r">id (p\d+)</span>", card)[:2] == [first["id"], first["comparator"]]
    save_model(AdditiveClassifier(METRIC).fit(X, y), "own.skops")
    run("report", "own.skops", "loans.csv", "--target", "approved", "--id", "id", *review, "--out", "own.html")
    own = Path("own.html").read_text(encoding="utf-8").partition('id="review"')[2].partition("</article>")[0]
    assert f"id {first['id']}" in own
    assert "Give --decisions" in run("report", "loans.csv", *words[:6], "--higher", "income", code=2).stderr
    missing = run("report", "loans.csv", *words[:6], "--decisions", "approved", "--higher", "debt", code=2).stderr
    assert "has no column 'debt'" in missing
    unknown = run("report", "loans.csv", *words[:6], "--decisions", "approved", "--higher", "score", code=2).stderr
    assert "The metric must name the columns by which files are compared; it has no 'score'" in unknown


def test_a_report_on_another_model_and_its_errors(files):
    words = ["--metric", "metric.toml"]
    assert "a table alone with --scores" in run("report", "loans.csv", *words, code=2).stderr
    assert (
        "no --target" in run("report", "loans.csv", "--scores", "score", "--target", "approved", *words, code=2).stderr
    )
    X, y = files
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=5, random_state=0)).fit(X, y)
    skops.io.dump(model, "model.skops")
    run("report", "model.skops", "loans.csv", *words, "--out", "model.html")
    assert '<section id="search"' in Path("model.html").read_text(encoding="utf-8")


def test_a_report_says_whether_sex_matters_and_how_it_was_made(files):
    command = ["report", "rules:score", "loans.csv", "--metric", "metric.toml", "--id", "id", "--out"]
    pages = []
    for name in ("one.html", "two.html"):
        run(*command, name)
        pages.append(Path(name).read_bytes())
    assert pages[0] == pages[1]
    page = pages[0].decode("utf-8")
    hidden = page.partition('<section id="hidden"')[2].partition("</section>")[0]
    assert "by 30 points for the worst pair found, and no upper bound is proven" in hidden
    assert "Only asked, not read" in hidden
    made = page.partition('<section id="made"')[2].partition("</section>")[0]
    assert "likewise report rules:score loans.csv --metric metric.toml --id id</dd>" in made
    for name in ("loans.csv", "metric.toml"):
        assert f', {name}</dt><dd class="data">{sha256(Path(name).read_bytes()).hexdigest()}</dd>' in made
    assert 'The model rules:score</dt><dd class="data">not a file' in made
    for version in (likewise.__version__, np.__version__, sklearn.__version__, platform.python_version()):
        assert version in made
    assert str(Path.cwd()) not in page
    Path("loans.csv").write_text(Path("loans.csv").read_text() + "\n")
    run(*command, "three.html")
    assert sha256(Path("loans.csv").read_bytes()).hexdigest() in Path("three.html").read_text(encoding="utf-8")


def test_a_report_shows_the_favourable_class_of_a_model_whichever_comes_last(files):
    X, y = files
    labels = np.where(y == np.unique(y)[1], "approved", "denied")
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=5, random_state=0)).fit(X, labels)
    skops.io.dump(model, "model.skops")
    words = ["report", "model.skops", "loans.csv", "--metric", "metric.toml", "--id", "id", "--out"]
    ends = {"approved": ([], "a higher score"), "denied": (["--outcome", "denied"], "a lower score")}
    for k, (shown, (options, end)) in enumerate(ends.items()):
        run(*words, f"{shown}.html", *options)
        page = Path(f"{shown}.html").read_text(encoding="utf-8")
        assert f'<dt>Outcome</dt><dd class="data">{shown}</dd>' in page
        assert '<dt>Model</dt><dd class="data">model.skops</dd>' in page
        assert "Who gains (favourable: &#39;approved&#39;)" in page
        assert f"Who is favoured ({end})" in page
        (first,) = re.findall(r"the score of the first is\s*<strong[^>]*>([\d.]+)%", page)
        scores = 100 * model.predict_proba(X)[:, k]
        assert np.abs(scores - float(first)).min() <= 0.05
    assert "must be one of approved, denied" in run(*words, "other.html", "--outcome", "never", code=2).stderr


def test_a_report_on_a_model_in_a_file_has_its_digest_and_a_proof(files):
    X, y = files
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=5, random_state=0)).fit(X, y)
    skops.io.dump(model, "model.skops")
    run("report", "model.skops", "loans.csv", "--metric", "metric.toml", "--range", 0, 1, "--id", "id")
    page = Path("report.html").read_text(encoding="utf-8")
    assert sha256(Path("model.skops").read_bytes()).hexdigest() in page
    assert "--metric metric.toml --range 0 1 --id id</dd>" in page
    found = told("effect", "loans.csv", "--model", "model.skops", "--column", "sex", "--metric", "metric.toml")
    hidden = page.partition('<section id="hidden"')[2].partition("</section>")[0]
    assert found["how"] in hidden
    assert "Only asked" not in hidden


def test_a_report_of_our_own_model_says_how_it_was_made_and_checks_given_scores(files):
    X, y = files
    model = AdditiveClassifier(METRIC).fit(X, y)
    save_model(model, "own.skops")
    pd.read_csv("loans.csv").assign(score=model.predict_proba(X)[:, 1]).to_csv("scored.csv", index=False)
    words = ["report", "own.skops", "scored.csv", "--target", "approved", "--scores", "score"]
    assert "The model reproduces the scores of all" in run(*words).stdout
    page = Path("report.html").read_text(encoding="utf-8")
    made = page.partition('<section id="made"')[2].partition("</section>")[0]
    for name in ("own.skops", "scored.csv"):
        assert f', {name}</dt><dd class="data">{sha256(Path(name).read_bytes()).hexdigest()}</dd>' in made
    assert "likewise report own.skops scored.csv --target approved --scores score</dd>" in made
    assert "does not reproduce --scores age" in run(*words[:-1], "age", "--force", code=2).stderr


def test_an_onnx_model_answers_as_the_model_that_it_was_made_from(files):
    pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    from likewise.inspection.external_models import load_onnx

    X, y = files
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=15, random_state=0)).fit(X, y)
    texts = {name for name in X if X[name].dtype.kind not in "iuf"}
    inputs = [(name, StringTensorType([None, 1]) if name in texts else FloatTensorType([None, 1])) for name in X]
    for zipped in (True, False):
        made = skl2onnx.convert_sklearn(model, initial_types=inputs, options={"zipmap": zipped})
        Path("model.onnx").write_bytes(made.SerializeToString())
        assert np.allclose(load_onnx("model.onnx")(X), model.predict_proba(X), atol=1e-5)
    found = told("effect", "loans.csv", "--model", "model.onnx", "--column", "sex")
    assert found["found"] == pytest.approx(brute_force(model, ["sex"]), abs=1e-5)
    assert found["proven"] is None
    numbers = X[["age", "income"]]
    plain = GradientBoostingClassifier(n_estimators=5, random_state=0).fit(numbers.to_numpy(), y)
    made = skl2onnx.convert_sklearn(plain, initial_types=[("X", FloatTensorType([None, 2]))], options={"zipmap": False})
    Path("model.onnx").write_bytes(made.SerializeToString())
    assert np.allclose(load_onnx("model.onnx")(numbers), plain.predict_proba(numbers.to_numpy()), atol=1e-5)
    assert "takes 2 columns" in run("effect", "loans.csv", "--model", "model.onnx", "--column", "age", code=2).stderr
