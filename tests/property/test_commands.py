"""One property over files: what a command says of people does not depend on how these people are written down.

One set of people, whose truth is known by brute force through the models in memory (distances by `oracle`), is written
in every form that a file may have. Every command that reads people must say the same numbers about all of them, or
refuse in one line; it never says other numbers.
"""

import gzip
import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from likewise import AdditiveClassifier, TableMetric, save_model
from likewise.metric_file import read_metric_file
from oracle import Described
from shell import run

N = 60
RNG = np.random.default_rng(5)
PEOPLE = pd.DataFrame(
    {
        "code": RNG.integers(1, 4, N),
        "state": RNG.choice(["NA", "FR", "DE"], N),
        "member": RNG.random(N) < 0.5,
        "income": RNG.choice([900.0, 1234.5, 2500.0, np.nan], N, p=[0.3, 0.3, 0.3, 0.1]),
        "age": RNG.integers(20, 70, N),
    }
)
LIFT = 2.0 * (PEOPLE["code"] == 3) - 2.0 * (PEOPLE["code"] == 1) + PEOPLE["member"] + 1.5 * (PEOPLE["state"] == "NA")
Y = (RNG.random(N) < 1 / (1 + np.exp(-LIFT - 0.02 * (PEOPLE["age"] - 45)))).astype(int)
METRIC = TableMetric(
    {"income": 1e-4, "age": 0.004}, {"code": 0.0, "state": 0.05, "member": 0.02}, missing={"income": 0.1}
)
TOML = """
[numeric]
income = 0.0001
age = 0.004
[missing]
income = 0.1
[categorical]
code = 0.0
state = 0.05
member = 0.02
"""


def stranger():
    """A pipeline of scikit-learn, which takes every unknown category for the same."""
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["code", "state", "member"]),
        (SimpleImputer(), ["income"]),
        remainder="passthrough",
    )
    return make_pipeline(columns, LogisticRegression(max_iter=5000)).fit(PEOPLE, Y)


MODELS = {"theirs": stranger(), "ours": AdditiveClassifier(METRIC, penalty=0.01).fit(PEOPLE, Y)}

# -- the forms of a file ----------------------------------------------------------------------------------------------


def written(**changes):
    """People as text, under these changes to columns; blanks are empty."""
    texts = PEOPLE.assign(ref=[f"{i:04d}" for i in range(N)]).astype(object)
    texts["income"] = ["" if value != value else f"{value:.10g}" for value in PEOPLE["income"]]
    texts = texts.astype(str)
    return texts.assign(**{name: texts[name].map(change) for name, change in changes.items()})


def as_csv(table, **options):
    return table.to_csv(index=False, **options).encode()


def grouped(text):
    return text and f"{float(text):,.10g}"


def decimal_comma(text):
    return text.replace(".", ",")


COMMA = ["--decimal", ",", "--delimiter", ";"]
FORMS = {
    "plain": lambda: as_csv(written()),
    "padded codes": lambda: as_csv(written(code="{:0>2}".format)),
    "some padded, late": lambda: as_csv(
        written().assign(code=[*PEOPLE["code"].astype(str)[:-1], f"0{PEOPLE['code'].iloc[-1]}"])
    ),
    "codes as floats": lambda: as_csv(written(code="{}.0".format)),
    "codes as text": lambda: as_csv(written()),
    "TRUE": lambda: as_csv(written(member=str.upper)),
    "true": lambda: as_csv(written(member=str.lower)),
    "1 and 0": lambda: as_csv(written(member=lambda text: str(int(text == "True")))),
    "null": lambda: as_csv(written(income=lambda text: text or "null")),
    "NA for a number": lambda: as_csv(written(income=lambda text: text or "NA")),
    "thousands": lambda: as_csv(written(income=grouped)),
    "decimal comma": lambda: as_csv(written(income=decimal_comma), sep=";"),
    "quoted": lambda: as_csv(written(), quoting=1),
    "semicolons": lambda: as_csv(written(), sep=";"),
    "columns turned round": lambda: as_csv(written().iloc[:, ::-1]),
    "gz": lambda: gzip.compress(as_csv(written())),
    "stdin": lambda: as_csv(written()),
    "parquet": lambda: PEOPLE.assign(ref=written()["ref"]),
    "parquet of text": written,
    "parquet of categories": lambda: PEOPLE.assign(ref=written()["ref"]).astype(
        dict.fromkeys(["code", "state"], "category")
    ),
}
WORDS = {"decimal comma": COMMA, "semicolons": ["--delimiter", ";"], "codes as text": ["--categorical", "code"]}
NO_CATEGORICAL = ("score", "decide", "report")  # what a column is, the model says


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("forms")
    skops.io.dump(MODELS["theirs"], place / "theirs.skops")
    save_model(MODELS["ours"], place / "ours.skops")
    (place / "metric.toml").write_text(TOML)
    (place / "key").write_bytes(bytes(range(32)))
    for i, (form, make) in enumerate(FORMS.items()):
        made = make()
        if isinstance(made, bytes):
            (place / f"{i}.csv{'.gz' * (form == 'gz')}").write_bytes(made)
        else:
            made.to_parquet(place / f"{i}.parquet")
    return place


def said(place, form, command, model, *words):
    """The exit code and the facts that a command says of the people in a form, or its error."""
    i = [*FORMS].index(form)
    table = "-" if form == "stdin" else next(path.name for path in place.glob(f"{i}.*") if path.suffix != ".parts")
    more = [] if form == "codes as text" and command in NO_CATEGORICAL else WORDS.get(form, [])
    given = (place / f"{i}.csv").read_bytes() if form == "stdin" else None
    asked = [f"{model}.skops", table] if command in NO_CATEGORICAL else [table, "--model", f"{model}.skops"]
    done = run(place, [command, *asked, *more, *words, "--json"], given)
    if done.exit_code == 2:
        assert done.stderr.count("\n") == 1
        return 2, done.stderr
    assert done.exit_code in (0, 1), done.output
    return done.exit_code, json.loads(done.stdout)


# -- the truth --------------------------------------------------------------------------------------------------------


def outputs(model):
    return MODELS[model].predict_proba(PEOPLE)[:, 1]


def pairs_above(model):
    """Pairs of people whose outputs differ by more than the distance, and the largest excess."""
    people, h = PEOPLE.to_dict("records"), outputs(model)
    described = Described(METRIC, list(PEOPLE.columns))
    excess = [abs(h[i] - h[j]) - float(described.distance(people[i], people[j])) for i, j in combinations(range(N), 2)]
    return sum(value > 1e-9 for value in excess), max(excess)


def exchanged(model, column):
    """The largest change of the output of one of the people by another value of a column."""
    h = [MODELS[model].predict_proba(PEOPLE.assign(**{column: value}))[:, 1] for value in PEOPLE[column].unique()]
    return float(np.ptp(h, axis=0).max())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", MODELS)
def test_an_audit_says_what_brute_force_says(place, model, form):
    code, found = said(place, form, "audit", model, "--metric", "metric.toml", "--id", "ref", "--max-excess", "1")
    n, largest = pairs_above(model)
    assert code == int(largest > 0.01), found
    assert found["n_violations"] == n
    assert found["max_excess"] == pytest.approx(max(0.0, largest), abs=1e-9)


def test_control_without_the_spelling_of_the_model_the_audit_is_another(place, monkeypatch):
    monkeypatch.setattr("likewise.cli.model_spelling.known_values", lambda model, columns: {})
    monkeypatch.setattr("likewise.known_values.check_known", lambda model, people: None)
    monkeypatch.setattr("likewise.ask.check_known", lambda model, people: None)
    monkeypatch.setattr("likewise.cli.model_spelling.SpellingOfModel.refuse_unknown_text", lambda *given: None)
    _, found = said(place, "padded codes", "audit", "theirs", "--metric", "metric.toml", "--id", "ref")
    assert found["n_violations"] < 0.6 * pairs_above("theirs")[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", MODELS)
def test_an_effect_is_that_of_brute_force(place, model, form):
    for column in ("code", "member", "state"):
        _, found = said(place, form, "effect", model, "--column", column, "--id", "ref", "--boxes", "10")
        assert found["largest_on_people"] == pytest.approx(exchanged(model, column), abs=1e-9), found
        assert found["proven"] >= found["largest_on_people"] - 1e-9


@pytest.mark.parametrize("form", FORMS)
def test_scores_and_decisions_are_those_of_the_model_and_ids_are_those_of_the_file(place, form):
    scores, decisions = place / "scores.csv", place / "decisions.csv"
    words = ["--id", "ref", "--keep", "code", "--keep", "income", "--keep", "state", "--force", "--out"]
    assert said(place, form, "score", "ours", *words, scores.name)[0] == 0
    written_again = pd.read_csv(scores, dtype=str, keep_default_na=False)
    assert written_again["p_1"].astype(float).to_numpy() == pytest.approx(outputs("ours"), abs=1e-12)
    made = FORMS[form]()
    if isinstance(made, bytes):  # to the letter, as it is written in the file
        separator = ";" if form in ("decimal comma", "semicolons") else ","
        lines = gzip.decompress(made) if form == "gz" else made
        text = pd.read_csv(pd.io.common.BytesIO(lines), dtype=str, keep_default_na=False, sep=separator)
        kept = ["ref", "code", "income", "state"]
        pd.testing.assert_frame_equal(written_again[kept], text[kept])
    if form != "stdin":
        options = ["--round", "r", "--key-file", "key", "--id", "ref", "--force", "--out", decisions.name]
        code, facts = said(place, form, "decide", "ours", *options)
        assert (code, facts["n_people"]) == (0, N)
        expected = MODELS["ours"].decide(PEOPLE, round="r", key=bytes(range(32)))
        assert pd.read_csv(decisions)["decision"].tolist() == expected.tolist()


def test_the_order_of_rows_does_not_change_what_a_column_is(place):
    """With a control: by the first 1,000 rows alone, leading zeros that come later would not be seen."""
    n = 1500
    table = pd.DataFrame({"code": [str(i % 9 + 1) for i in range(n)], "age": np.arange(n) % 50, "y": np.arange(n) % 2})
    table.loc[n - 1, "code"] = "07"
    assert not pd.read_csv(pd.io.common.BytesIO(as_csv(table)), nrows=1000, dtype=str)["code"].str.startswith("0").any()
    kinds = []
    for rows in (table, table[::-1]):
        rows.to_csv(place / "order.csv", index=False)
        done = run(place, "metric order.csv --target y --out order.toml --force --json")
        assert done.exit_code == 0, done.output
        kinds.append(list(read_metric_file(place / "order.toml").metric.categorical))
    assert kinds == [["code"], ["code"]]


@pytest.mark.parametrize(("model", "column"), [("theirs", "code"), ("theirs", "state"), ("ours", "state")])
def test_values_of_which_a_model_knows_none_are_refused(place, model, column):
    """The control: asked about such people, each model would find that the column does not matter."""
    strange = written(**{column: "the {}".format})
    strange.drop(columns="ref").to_csv(place / "strange.csv", index=False)
    table = PEOPLE.assign(**{column: strange[column]})
    asked = MODELS[model].predict_proba(table.assign(**{column: strange[column].iloc[0]}))
    assert np.array_equal(MODELS[model].predict_proba(table), asked)
    for words in (
        ["effect", "--column", column],
        ["attack", "--metric", "metric.toml"],
        ["audit", "--metric", "metric.toml"],
    ):
        done = run(place, [words[0], "strange.csv", "--model", f"{model}.skops", *words[1:]])
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
        for part in (f"Column '{column}'", repr(strange[column].iloc[0]), "was fitted on", "Write them as"):
            assert part in done.stderr
