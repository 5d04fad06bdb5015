"""`likewise card` writes a scorecard in every form, and `likewise notice` writes to one person."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, TableMetric, ThresholdDecision, WeightedLp, load_model, save_model
from likewise.dummy import ConstantClassifier
from shell import run


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "income": rng.gamma(3, 15, n).round(1),
            "debt": np.where(rng.random(n) < 0.2, np.nan, rng.gamma(2, 10, n).round(1)),
            "region": rng.choice(["north", "south", "west"], n),
            "race": rng.choice(["x", "y"], n),
        }
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place, X = tmp_path_factory.mktemp("cards"), table()
    metric = TableMetric(
        {"income": 0.02, "debt": 0.01}, {"region": 0.2, "race": 0}, missing={"debt": 0.2}, units={"income": "$1000"}
    )
    rng = np.random.default_rng(1)
    score = 0.08 * (X["income"] - 45) - (X["region"] == "south") + rng.logistic(size=len(X))
    model = AdditiveClassifier(metric, penalty=1e-3, max_knots=8).fit(
        X.drop(columns="id"), np.where(score > 0, "yes", "no")
    )
    save_model(model, place / "unsaid.skops")
    model.favourable_ = "yes"
    save_model(model, place / "model.skops")
    save_model(ThresholdDecision.from_model(model, threshold=0.6, width=0.2), place / "decision.skops")
    X.to_csv(place / "new.csv", index=False)
    (place / "policy.toml").write_text(
        'outcome = "being approved"\nprotected = ["race"]\nimmutable = ["region"]\n[names]\nincome = "your income"\n'
        '[directions]\nincome = "increase"\n'
        '[reasons]\nregion = "Location of the property"\n'
    )
    return place


def test_a_card_in_whole_points_is_written_in_every_form(place):
    model = load_model(place / "model.skops")
    card = model.in_points(points_to_double=40, base_score=500, max_bins=3)
    for kind in ("csv", "json", "sql", "skops"):
        options = f"--in-points --points-to-double 40 --base-score 500 --max-bins 3 --out points.{kind} --force"
        done = run(place, ["card", "model.skops", *options.split()])
        assert done.exit_code == 0, done.output
        assert "base points" in done.output
    assert (place / "points.json").read_text() == card.to_json() + "\n"
    assert (place / "points.sql").read_text() == card.to_sql() + "\n"
    X = table(50, 3).drop(columns="id")
    assert (load_model(place / "points.skops").predict_proba(X) == card.predict_proba(X)).all()
    assert pd.read_csv(place / "points.csv")["points"].tolist() == card.scorecard()["points"].tolist()
    assert run(place, ["verify-card", "points.json"]).exit_code == 0


def test_a_card_in_its_own_units_and_of_the_other_class(place):
    model = load_model(place / "model.skops")
    assert run(place, ["card", "model.skops", "--out", "no.json", "--favourable", "no"]).exit_code == 0
    assert json.loads((place / "no.json").read_text()) == json.loads(model.to_json(outcome="no"))
    assert run(place, ["card", "decision.skops", "--out", "decision.json"]).exit_code == 0  # that of its scorecard
    assert (place / "decision.json").read_text() == model.to_json() + "\n"


def test_the_class_whose_points_are_shown_is_named(place):
    said = "Points count for 'yes'. Which class is favourable is not known: --favourable no or yes says it."
    assert said in run(place, "card unsaid.skops --out named.csv").stderr
    assert "Points count for" not in run(place, "card model.skops --out stored.csv").stderr
    assert "Points count for" not in run(place, "card model.skops --favourable no --out other.csv").stderr


def test_what_rounding_costs_is_said(place):
    model = load_model(place / "model.skops")
    X = table(80, 5)
    X["outcome"] = np.where(X["income"] > 40, "yes", "no")
    X.to_csv(place / "known.csv", index=False)
    words = [
        "card",
        "model.skops",
        "--in-points",
        "--table",
        "known.csv",
        "--target",
        "outcome",
        "--out",
        "cost.csv",
        "--force",
    ]
    facts = json.loads(run(place, [*words, "--json"]).output)
    costs = model.rounding_cost(model.in_points(), X[["income", "debt", "region", "race"]], X["outcome"])
    assert facts["brier_score_cost"] == costs.loc["cost", "Brier score"]
    assert facts["largest_change"] == costs.loc["cost", "largest change"]
    assert "of the Brier score on 80 people, from" in run(place, words).output


def test_a_notice_is_that_of_the_model(place):
    model = load_model(place / "model.skops")
    X = pd.read_csv(place / "new.csv").set_index("id", drop=True)
    for words, notice in (
        (
            ["model.skops", "new.csv", "--threshold", "0.9", "--favourable", "yes", "--policy", "policy.toml"],
            model.notice(X.loc[["p7"]], threshold=0.9, favourable="yes", policy=place / "policy.toml")[0],
        ),
        (["decision.skops", "new.csv"], load_model(place / "decision.skops").notice(X.loc[["p7"]])[0]),
        (["model.skops", "new.csv", "--favourable", "no"], model.notice(X.loc[["p7"]], favourable="no")[0]),
    ):
        done = run(place, ["notice", *words, "--id", "id", "--person", "p7"])
        assert (done.exit_code, done.stdout.strip()) == (0, notice.to_text())
        facts = json.loads(run(place, ["notice", *words, "--id", "id", "--person", "p7", "--json"]).output)
        assert facts.pop("notes", []) == re.findall(r"(?<=Note: ).+", done.stderr)
        assert facts == json.loads(notice.to_json())
        for ending, text in ((".html", notice.to_html()), (".txt", notice.to_text()), (".json", notice.to_json())):
            out = ["--out", f"notice{ending}", "--force"]
            assert run(place, ["notice", *words, "--id", "id", "--person", "p7", *out]).exit_code == 0
            assert (place / f"notice{ending}").read_text().strip() == text.strip()
    by_row = run(place, ["notice", "decision.skops", "new.csv", "--person", "8"])
    assert by_row.output == run(place, ["notice", "decision.skops", "new.csv", "--id", "id", "--person", "p7"]).output


def test_what_can_change_is_said_at_the_command_line(place):
    who = "notice model.skops new.csv --id id --person p7 --threshold 0.99 --favourable yes"
    said = "Note: No change is suggested, as nobody has said what people can change: --increase, --decrease, --allow."
    assert said in run(place, who).stderr
    protected = run(place, f"{who} --allow race --policy policy.toml")
    assert "policy directions must not name protected or immutable columns; got 'race'" in protected.stderr
    told = json.loads(run(place, f"{who} --increase income --allow region --json").output)
    assert told["considered"] == ["income", "region"]
    assert said not in told.get("notes", [])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("card model.skops --max-bins 3 --out x.csv", "--max-bins goes with --in-points"),
        ("card model.skops --table new.csv --target race --out x.csv", "--table and --target go together, with --in-"),
        ("card model.skops --in-points --table new.csv --target race --out x.csv", "'race' has "),
        ("card model.skops --out x.pdf", "--out must end in .csv, .xlsx, .json"),
        (
            "card model.skops --in-points --points-to-double 1e-4 --base-score 0 --out x.csv",
            "must be larger under this metric",
        ),
        ("card model.skops --out model.skops", "model.skops is an input of this command"),
        ("card constant.skops --out x.csv", "must hold a scorecard; it holds a ConstantClassifier"),
        ("notice model.skops new.csv --person 0", "the rows 1 to 200 of new.csv; '0' occurs 0 times"),
        ("notice model.skops new.csv --id region --person west", "--person must occur once in the column 'region'"),
        ("notice model.skops new.csv --id name --person x", "new.csv has no column 'name'"),
        ("notice model.skops short.csv --person 1", "short.csv has no column 'debt'"),
        ("notice model.skops new.csv --person 1 --width 0.1", "width must be 0 without a threshold"),
        ("notice decision.skops new.csv --person 1 --threshold 0.3", "are in this model already"),
        ("notice model.skops new.csv --person 1 --out notice.doc", "--out must end in .html, .txt or .json"),
        ("notice model.skops new.csv --person 1 --policy none.toml", "Cannot read none.toml"),
        ("notice unsaid.skops new.csv --person 1", "--favourable must be one of no, yes, as no word says which"),
        ("notice model.skops new.csv --person 1 --favourable yes --increase region", "its categories have no order"),
        ("notice model.skops new.csv --person 1 --favourable maybe", "--favourable must be one of no, yes"),
    ],
)
def test_bad_input_is_refused_in_a_line(place, words, message):
    table(5)[["id", "income"]].to_csv(place / "short.csv", index=False)
    if not (place / "constant.skops").exists():
        save_model(ConstantClassifier(WeightedLp([1.0])).fit(np.zeros((2, 1)), [0, 1]), place / "constant.skops")
    done = run(place, words.split())
    assert done.exit_code == 2
    assert message in done.output.strip().splitlines()[-1]
    assert sum("Error" in line for line in done.output.splitlines()) == 1
