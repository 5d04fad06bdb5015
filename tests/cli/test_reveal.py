import re

import numpy as np
import pandas as pd
import pytest

from likewise.cli import training as commands
from likewise.exceptions import UnprovableError
from shell import run

RNG = np.random.default_rng(0)
X = pd.DataFrame({"age": RNG.normal(40, 10, 200), "job": RNG.choice(["a", "b"], 200)})
Y = np.where(X["age"] + RNG.normal(0, 5, 200) > 40, "yes", "no")


def test_a_logistic_model_is_read_exactly_and_a_forest_on_its_people():
    assert "exactly" in commands.reveal_model(X, Y, "logistic", 0).how
    found = commands.reveal_model(X, Y, "forest", 0)
    assert "200 distinct people" in found.how
    assert set(found.metric.columns) == {"age", "job"}


def test_only_what_cannot_be_proven_is_estimated(monkeypatch):
    def broken(model, X, **options):
        raise TypeError("unsupported operand")

    monkeypatch.setattr(commands, "minimal_metric", broken)
    with pytest.raises(TypeError, match="unsupported operand"):
        commands.reveal_model(X, Y, "logistic", 0)

    def unproven(model, X, **options):
        raise UnprovableError("no constant")

    monkeypatch.setattr(commands, "minimal_metric", unproven)
    assert "For other people it is an estimate" in commands.reveal_model(X, Y, "logistic", 0).how


def test_a_few_blanks_do_not_change_the_method_nor_the_weights():
    rng = np.random.default_rng(1)
    full = X.assign(income=rng.normal(30, 8, 200))
    holes = full.assign(income=full["income"].where(np.arange(200) % 100 > 0))
    one, other = (commands.reveal_model(table, Y, "logistic", 0) for table in (full, holes))
    assert one.exact
    assert other.exact
    for part in ("numeric", "categorical"):
        before, after = (dict(getattr(found.metric, part)) for found in (one, other))
        assert after == pytest.approx(before, rel=0.2, abs=0.002)
    assert other.metric.missing["income"] >= other.metric.numeric["income"] * np.ptp(holes["income"].dropna()) / 2
    assert not one.metric.missing


def scored(tmp_path, n=300):
    rng = np.random.default_rng(2)
    debt = rng.normal(20, 5, n)
    table = pd.DataFrame({"debt": debt, "loans": debt + rng.normal(0, 1e-3, n), "age": rng.normal(40, 9, n).round()})
    table.assign(score=0.3 + 0.01 * debt + 0.002 * table["age"]).to_csv(tmp_path / "scored.csv", index=False)


def test_a_metric_from_scores_says_what_is_not_known(tmp_path):
    scored(tmp_path)
    done = run(tmp_path, "metric scored.csv --scores score --out m.toml")
    assert done.exit_code == 0, done.output
    known = "".join(line for line in done.stdout.splitlines() if "so not known" in line)
    assert "debt" in known
    assert "loans" in known
    assert "Forced" not in done.stdout  # no two people differ in one column alone
    assert "Revealed from scores" in done.stdout
    text = (tmp_path / "m.toml").read_text()
    assert "must not matter" not in text.split("[origin]")[0].split("p = 1")[1]
    assert "not used" not in text
    assert "likewise audit scored.csv --scores score --metric m.toml" in done.stdout
    assert run(tmp_path, "audit scored.csv --scores score --metric m.toml").exit_code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--scores score --target age", "Give one of --target"),
        ("", "Give one of --target"),
        ("--scores debt", "--scores must be probabilities"),
        ("--scores nothing", "has no column 'nothing'"),
    ],
)
def test_wrong_scores_are_refused_in_a_line(tmp_path, options, words):
    scored(tmp_path)
    done = run(tmp_path, f"metric scored.csv {options} --out m.toml")
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("order", [1, -1])
def test_equal_people_with_different_scores_are_refused_in_a_line(tmp_path, order):
    people = X.round(0).drop_duplicates(ignore_index=True)
    table = people.assign(score=(people["age"] / 100).clip(0, 1).round(4))
    again = table.iloc[[3]].assign(score=table["score"].iloc[3] + 0.25)
    pd.concat([table, again])[::order].to_csv(tmp_path / "t.csv", index=False)
    done = run(tmp_path, "metric t.csv --scores score --out m.toml")
    one, other = (4, len(table) + 1) if order == 1 else (1, len(table) - 2)
    assert f"rows {one} and {other} of the table are equal, and their scores differ by 0.25" in done.output
    assert "Add the column that tells them apart, or clean the scores" in done.output
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert not (tmp_path / "m.toml").exists()
    # Control: equal people with equal scores are one person.
    pd.concat([table, table.iloc[[3]]]).to_csv(tmp_path / "t.csv", index=False)
    assert run(tmp_path, "metric t.csv --scores score --out m.toml").exit_code == 0


def test_of_how_many_people_columns_were_exchanged_is_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "MAX_EXCHANGED", 50)
    monkeypatch.setattr("likewise.reveal.exchange.MAX_EXCHANGED", 50)
    X.assign(paid=Y).to_csv(tmp_path / "t.csv", index=False)
    done = run(tmp_path, "metric t.csv --target paid --model boosting --out m.toml")
    assert "Columns were exchanged for 50 of 200 distinct people: effects on the others may" in done.output
    assert "and 50 of them with one column exchanged" in (tmp_path / "m.toml").read_text()


@pytest.mark.parametrize("seed", range(6))
def test_a_vendor_who_never_saw_sex_is_told_nothing_about_it(tmp_path, seed):
    rng = np.random.default_rng(seed)
    people = pd.DataFrame({"age": rng.integers(18, 80, 300), "income": rng.lognormal(3.5, 0.5, 300).round(1)})
    people["sex"], people["coin"] = rng.choice(["m", "f"], 300), rng.choice(["head", "tail"], 300)
    people = people.drop_duplicates(["age", "income"])
    z = 0.05 * (people["age"] - 45) + 1.5 * np.log(people["income"] / 33) + (people["income"] > 40) * 0.5
    people.assign(score=(1 / (1 + np.exp(-z))).round(6)).to_csv(tmp_path / "v.csv", index=False)
    done = run(tmp_path, "metric v.csv --scores score --zero sex --out m.toml")
    assert done.exit_code == 0, done.output
    forced = [line for line in done.stdout.splitlines() if "forced" in line.lower()]
    assert not any(name in line for line in forced for name in ("sex", "coin") if "not forced" not in line.lower())
    assert "In the model" not in done.stdout
    assert re.search("^sex: set to 0. In the smallest metric of the scores: ", done.stdout, re.MULTILINE)
    assert "The model may use them." in done.stdout
    # Control: a vendor who sees it, in two people who are equal otherwise.
    seen = pd.concat([people, people.assign(sex=people["sex"].map({"m": "f", "f": "m"}))])
    scores = (0.8 / (1 + np.exp(-pd.concat([z, z]))) + 0.1 * (seen["sex"] == "m")).round(6)
    seen.assign(score=scores).to_csv(tmp_path / "w.csv", index=False)
    done = run(tmp_path, "metric w.csv --scores score --out w.toml")
    assert re.search(
        "^Forced, since every metric that fits these people has it above 0: .*sex", done.stdout, re.MULTILINE
    )
    assert "coin" not in next(line for line in done.stdout.splitlines() if line.startswith("Forced"))


def test_of_a_model_that_can_be_asked_the_number_of_exchanges_is_said(tmp_path):
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.integers(20, 60, 200), "coin": rng.choice(["head", "tail"], 200)})
    people.assign(paid=np.where(people["age"] > 40, "yes", "no")).to_csv(tmp_path / "t.csv", index=False)
    done = run(tmp_path, "metric t.csv --target paid --model boosting --out m.toml")
    n = len(people.drop_duplicates())
    assert f"Exchanging a value between people changed no output: 'coin' ({n} exchanges)." in done.output
    assert "Not used, as far as asked, and left out: coin. Nothing is known of people who were not asked" in done.output
    assert "Forced, since every metric that fits these people has it above 0: age." in done.output
