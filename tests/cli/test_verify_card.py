"""The command proves a card, says in a line what is wrong with another, and ends with a code for scripts."""

import json

import pandas as pd
import pytest
from click.testing import CliRunner

from likewise import AdditiveClassifier, TableMetric
from likewise.cli.main import main

PEOPLE = pd.DataFrame({"income": [20.0, 35, 50, 65, 80, 95], "region": list("nsnsns")})


@pytest.fixture
def files(tmp_path):
    model = AdditiveClassifier(TableMetric({"income": 0.01}, {"region": 0.1}), penalty=0.01).fit(
        PEOPLE, [0, 0, 1, 0, 1, 1]
    )
    model.to_json(tmp_path / "card.json")
    PEOPLE.assign(p_1=model.predict_proba(PEOPLE)[:, 1]).to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def run(*words):
    return CliRunner().invoke(main, ["verify-card", *map(str, words)])


def test_a_card_and_its_scores_are_proven(files):
    done = run(files / "card.json", files / "people.csv")
    assert done.exit_code == 0
    assert done.stdout.startswith("Proven: For any two people x and x'")
    assert "Scores of 6 people computed; 6 in " in done.stdout
    facts = json.loads(run(files / "card.json", files / "people.csv", "--json").stdout)
    assert facts["proven"] is True
    assert facts["n_compared"] == 6


def test_a_falsified_card_a_falsified_score_and_a_damaged_card_end_with_1(files):
    card = json.loads((files / "card.json").read_text())
    card["columns"][0]["points"][0] -= 5
    (files / "false.json").write_text(json.dumps(card))
    (files / "damaged.json").write_text((files / "card.json").read_text()[:-20])
    table = pd.read_csv(files / "people.csv")
    table.assign(p_1=table["p_1"] + 0.01).to_csv(files / "false.csv", index=False)
    for words in (["false.json"], ["card.json", "false.csv"], ["damaged.json"]):
        done = run(*(files / word for word in words))
        assert done.exit_code == 1
        assert "Not proven: " in done.stdout
    assert json.loads(run(files / "false.json", "--json").stdout)["proven"] is False


def test_a_file_that_is_not_there_is_bad_input(files):
    done = run(files / "none.json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: Cannot read ")
