"""What a workbench starts from: a metric file and a model in use at the prompt, and a file given to the page."""

import numpy as np
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from committee import Client, command
from likewise.io import load_model
from shell import LOANS, run

WORDS = ("loans.csv", "--target", "approved", "--id", "id", "--drop", "constant")
METRIC = """\
[numeric]
income = 0.00002
years = 0.02
constant = 0
[categorical]
region = 0.1
race = 0
[origin]
how = "Agreed in March."
protected = ["race"]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("starting")
    LOANS.to_csv(place / "loans.csv", index=False)
    (place / "agreed.toml").write_text(METRIC, encoding="utf-8")
    done = run(
        place,
        "enforce loans.csv --target approved --metric agreed.toml --method additive --id id --out card.skops",
    )
    assert done.exit_code == 0, done.output
    return place


def weights(state):
    return {column["name"]: column["weight"] for column in state["columns"]}


def test_a_metric_file_and_a_model_of_likewise(place):
    words = (*WORDS, "--metric", "agreed.toml", "--model", "card.skops", "--state", "a.json", "--out", "a")
    with command(place, *words) as (address, _), Client(address) as ann:
        state = ann.settled()
        assert weights(state) == pytest.approx({"income": 0.01 / 500, "years": 0.02, "region": 0.1, "race": 0})
        assert [column["name"] for column in state["columns"] if column["locked"]] == ["race"]
        assert state["how"] == "From agreed.toml. Agreed in March. Left out: constant."
        today = state["result"]["today"]
        # The model was made within these weights: no pair is beyond them.
        assert (today["title"], today["violations"]) == ("card.skops", 0)
        assert "card.skops" in [row["title"] for row in state["result"]["figures"]["rows"]]
        # Control: within a hundredth of the weights there are such pairs.
        ann.post("scale", by=0.01)
        assert ann.settled()["result"]["today"]["violations"] > 0
        ann.post("scale", by=100)
        ann.post("export", report=False)
        ann.wait(lambda state: state["record"][0]["kind"] == "exported")
    people = LOANS.drop(columns=["approved", "id", "constant"])
    made, given = (load_model(place / name).predict_proba(people) for name in ("a/model.skops", "card.skops"))
    assert made.tobytes() == given.tobytes()


def test_a_model_of_scikit_learn_and_a_file_given_to_the_page(place):
    X = LOANS[["income", "years", "race"]]
    encode = make_column_transformer((StandardScaler(), ["income", "years"]), (OneHotEncoder(), ["race"]))
    model = make_pipeline(encode, LogisticRegression()).fit(X, LOANS["approved"])
    skops.io.dump(model, place / "vendor.skops")
    words = (*WORDS, "--model", "vendor.skops", "--protected", "race", "--state", "b.json")
    with command(place, *words) as (address, _), Client(address) as ann:
        text = METRIC.replace('protected = ["race"]\n', "").replace("race = 0", "race = 0.05\nheight = 0.1")
        ann.post("start", **{"from": "file", "text": text, "title": "march.toml"})
        state = ann.settled()
        assert weights(state)["income"] == pytest.approx(0.01 / 500)
        assert weights(state)["race"] == 0  # locked columns stay at 0 whatever the weights start from
        assert state["how"] == "From march.toml. Agreed in March. Left out: constant, height."
        today = state["result"]["today"]
        assert (today["title"], today["violations"] > 0) == ("vendor.skops", True)
        # The worst of the pairs has the scores that the model itself gives.
        worst = today["worst"][0]
        two = model.predict_proba(X[np.isin(LOANS["id"].astype(str), [worst["a"], worst["b"]])])[:, 1]
        assert worst["gap"] == pytest.approx(abs(two[0] - two[1]), abs=1e-9)
        assert worst["gap"] > worst["distance"]
        for wrong, said in (
            ("p = 2\n[numeric]\nincome = 0.001", "p must be 1"),
            ("[numeric]\nheight = 1", "march.toml names no column of this table"),
            ("[numeric]\nregion = 0.1", "march.toml has 'region' as numeric"),
            (METRIC + '[groups]\nregion = {within = 0.5, groups = [["north", "süd"], ["<b>"]]}', "[groups]"),
            (
                METRIC.replace("region = 0.1\n", "").replace("years", "region = 0.1\nyears")
                + '[order]\nregion = ["north", "süd", "<b>"]',
                "[order]",
            ),
            ("[numeric", "march.toml"),
        ):
            error = ann.post("start", 400, **{"from": "file", "text": wrong, "title": "march.toml"})["error"]
            assert said in error
            assert "/tmp" not in error


def test_files_that_do_not_fit_are_refused_in_a_line(place):
    other = LogisticRegression().fit(LOANS[["income"]], LOANS["region"])
    skops.io.dump(other, place / "other.skops")
    skops.io.dump(
        LogisticRegression().fit(LOANS[["id"]].set_axis(["height"], axis=1), LOANS["approved"]), place / "absent.skops"
    )
    (place / "broken.skops").write_text("no model")
    (place / "tall.toml").write_text("[numeric]\nheight = 1")
    for words, said in (
        ("--model other.skops", "--model must have the classes of the table"),
        ("--model absent.skops", "has no column 'height', which the model takes"),
        ("--model broken.skops", "broken.skops"),
        ("--metric tall.toml", "tall.toml names no column of this table"),
    ):
        done = run(place, f"workbench {' '.join(WORDS)} {words} --state c.json --no-browser")
        assert (done.exit_code, said in done.output) == (2, True), done.output
        assert "Traceback" not in done.output
    assert not (place / "c.json").exists()
