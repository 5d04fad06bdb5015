"""The commands effect, review and audit --groups, on models in files."""

import json

import pandas as pd
import pytest
import skops.io
from click.testing import CliRunner
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline

from likewise import AdditiveClassifier, Domain, TableMetric, save_model, write_metric
from likewise.cli.main import main
from likewise.metric_file import MetricFile
from small_domain import EVERYBODY, brute_force, one_hot, people

METRIC = TableMetric({"age": 0.05, "income": 0.2}, {"sex": 0, "region": 0.1})


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = people(0)
    X.assign(id=range(len(X)), approved=y).to_csv("loans.csv", index=False)
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=15, random_state=0)).fit(X, y)
    skops.io.dump(model, "model.skops")
    return X, y, model


def test_effect_of_a_scikit_learn_model(files):
    _, _, model = files
    told = json.loads(run("effect", "loans.csv", "--model", "model.skops", "--column", "sex", "--json").stdout)
    truth = brute_force(model, ["sex"])
    assert told["found"] == pytest.approx(truth, abs=1e-4)
    assert truth <= told["proven"] <= truth + 2e-4
    assert told["meets"]
    assert {row["column"] for row in told["pair"]} == {*EVERYBODY, "score"}
    assert {row["column"] for row in told["domain"]} == {*EVERYBODY}
    assert told["directions"][0]["higher"] == "m"


def test_effect_writes_people_and_has_a_gate(files):
    words = ["effect", "loans.csv", "--model", "model.skops", "--column", "sex"]
    result = run(*words, "--out", "people.csv", "--max-effect", "1", code=1)
    assert "Proven: no two people of the domain" in result.stdout
    assert "failed" in result.stdout
    assert len(pd.read_csv("people.csv")) == 254
    assert "exists already" in run(*words, "--out", "people.csv", code=2).stderr
    assert "passed" in run(*words, "--max-effect", "99").stdout


def test_effect_stays_in_the_domain_of_the_metric_file(files):
    X, _, model = files
    narrow = Domain.learn(X).with_column("region", values=["north", "south"])
    write_metric(MetricFile(METRIC, domain=narrow), "metric.toml")
    words = ["effect", "loans.csv", "--model", "model.skops", "--column", "sex", "--metric", "metric.toml", "--json"]
    told = json.loads(run(*words).stdout)
    assert told["proven"] < brute_force(model, ["sex"])
    assert told["excess_found"] >= told["found"] - 1e-4  # the weight of sex is 0
    assert told["excess_proven"] >= told["excess_found"]


def test_effect_of_a_model_of_our_own(files):
    X, y, _ = files
    save_model(AdditiveClassifier(METRIC).fit(X, y), "own.skops")
    told = json.loads(run("effect", "loans.csv", "--model", "own.skops", "--column", "sex", "--json").stdout)
    assert told["proven"] < 1e-9


def test_no_pair_is_shown_if_none_was_found(files):
    X, y, _ = files
    save_model(AdditiveClassifier(METRIC).fit(X, y), "own.skops")
    words = ["loans.csv", "--model", "own.skops"]
    told = run("effect", *words, "--column", "sex").stdout
    assert "No pair was found: no two people of the domain who differ in sex alone were found to get" in told
    assert "Proven: no two people of the domain who differ in sex alone get different outputs, but for rounding" in told
    assert "Who gains" not in told
    assert json.loads(run("effect", *words, "--column", "sex", "--json").stdout)["pair"] is None
    attacked = run("attack", *words, "--only", "sex", "--pairs", "1000", "--out", "pair.csv")
    assert "No pair was found: all " in attacked.stdout
    assert "does not prove there is none" in attacked.stdout
    assert "Next: likewise effect loans.csv --model own.skops --column sex" in attacked.stdout
    assert "pair.csv was not written" in attacked.stderr
    told = json.loads(run("attack", *words, "--only", "sex", "--pairs", "1000", "--json").stdout)
    assert told["pair"] is None


def test_effect_of_a_booster_in_its_own_file(files):
    lightgbm = pytest.importorskip("lightgbm")
    X, y, _ = files
    typed = X.astype({"sex": "category", "region": "category"})
    model = lightgbm.LGBMClassifier(n_estimators=8, n_jobs=1, verbose=-1, min_child_samples=3).fit(typed, y)
    model.booster_.save_model("model.txt")
    told = json.loads(run("effect", "loans.csv", "--model", "model.txt", "--column", "sex", "--json").stdout)
    everybody = EVERYBODY.astype({"sex": "category", "region": "category"})
    truth = brute_force(model, ["sex"], everybody)
    assert truth <= told["proven"] <= truth + 2e-4


@pytest.mark.parametrize("column", ["sex", "sex_m", "sex_f"])
def test_one_hot_columns_are_exchanged_together(files, column):
    X, y, _ = files
    coded = X.join(pd.get_dummies(X["sex"], prefix="sex", dtype=int)).drop(columns=["sex", "region"])
    coded.to_csv("coded.csv", index=False)
    reads = ["age", "income", "sex_f"]
    model = GradientBoostingClassifier(n_estimators=15, random_state=0).fit(
        coded[reads].assign(sex_m=0)[list(coded)], y
    )
    skops.io.dump(model, "coded.skops")
    everybody = EVERYBODY.assign(**{f"sex_{each}": (EVERYBODY["sex"] == each).astype(int) for each in "fm"})
    everybody = everybody[list(coded)].drop_duplicates(ignore_index=True)
    truth = brute_force(model, ["sex_f", "sex_m"], everybody)
    assert truth > 0.1
    words = ["effect", "coded.csv", "--model", "coded.skops", "--column", column]
    result = run(*words, "--max-effect", 99.9 * truth, code=1)
    assert "exactly one 1 in them: sex_f, sex_m" in result.stdout
    told = json.loads(run(*words, "--max-effect", 100.1 * truth, "--json").stdout)
    assert truth <= told["proven"] <= truth + 2e-4
    (shown,) = [row for row in told["domain"] if row["column"] == "rule"]
    assert shown["can hold"] == "sex_f + sex_m == 1"


def test_bad_input_is_one_line(files):
    words = ["effect", "loans.csv", "--model", "model.skops", "--column"]
    assert "--column must name columns that the model takes, " in run(*words, "gender", code=2).stderr
    assert "no model file" in run("effect", "loans.csv", "--model", "no.json", "--column", "sex", code=2).stderr
    pd.DataFrame({"age": [1]}).to_csv("short.csv", index=False)
    wrong = run("effect", "short.csv", "--model", "model.skops", "--column", "sex", code=2)
    assert "which the model takes" in wrong.stderr


def test_review_writes_files_with_their_comparators(files):
    words = ["review", "loans.csv", "--decisions", "approved", "--higher", "income", "--lower", "age", "--id", "id"]
    told = json.loads(run(*words, "--out", "review.csv", "--json").stdout)
    assert told["n_denied"] + told["n_approved"] == 254
    found = pd.read_csv("review.csv")
    loans = pd.read_csv("loans.csv").set_index("id")
    assert (loans.loc[found["id"], "approved"] == "no").all()
    assert (loans.loc[found["comparator"], "approved"] == "yes").all()
    assert (loans.loc[found["comparator"], "income"].to_numpy() <= loans.loc[found["id"], "income"].to_numpy()).all()
    assert "distance" not in found  # there is none without a metric
    assert "the first of the table" in run(*words).stdout
    assert "--within needs --metric" in run(*words, "--within", "5", code=2).stderr
    assert "Give --higher" in run("review", "loans.csv", "--decisions", "approved", code=2).stderr


def test_review_takes_known_words_and_asks_for_others(files):
    X, y, _ = files
    loans = X.assign(id=range(1, len(X) + 1), decision=["approved" if each == "yes" else "denied" for each in y])
    loans.to_csv("decided.csv", index=False)
    words = ["--decisions", "decision", "--higher", "income", "--lower", "age"]
    denied, approved = (X[loans["decision"] == word].to_numpy() for word in ("denied", "approved"))
    at = [list(X).index(name) for name in ("income", "age")]
    beaten = [[b[at[0]] <= a[at[0]] and b[at[1]] >= a[at[1]] for b in approved] for a in denied]
    told = json.loads(run("review", "decided.csv", *words, "--json").stdout)
    assert (told["favourable"], told["unfavourable"], told["recognised"]) == ("approved", "denied", True)
    assert (told["n_denied"], told["n_files"]) == (len(denied), sum(map(any, beaten)))
    said = run("review", "decided.csv", *words, "--out", "all.csv").stdout
    assert f"{sum(map(any, beaten))} of {len(denied)} people with the decision 'denied' have a comparator" in said
    assert "Favourable decision: 'approved' (recognised by the word)." in said
    written = pd.read_csv("all.csv")
    assert len(written) == told["n_pairs"] == sum(map(sum, beaten))  # all of them, though the screen has one of each
    assert f"It has {len(written):,} of {len(written):,} pairs." in said
    assert (written["decision"] == "denied").all()
    assert (written["comparator_decision"] == "approved").all()
    # Row 1 is the first person of the table.
    assert (loans.loc[written["row"] - 1, "decision"] == "denied").all()
    assert "It has" in run("review", "decided.csv", *words, "--out", "few.csv", "--comparators", "1").stdout
    assert len(pd.read_csv("few.csv")) == told["n_files"] < len(written)
    loans.assign(decision=loans["decision"].map({"approved": "A", "denied": "D"})).to_csv("coded.csv", index=False)
    refused = run("review", "coded.csv", *words, code=2).stderr
    assert "Give --approved, the favourable one of the decisions 'A' and 'D'" in refused
    coded = json.loads(run("review", "coded.csv", *words, "--approved", "A", "--json").stdout)
    assert coded["n_files"] == told["n_files"]


def test_review_counts_denied_women_beside_approved_men_and_names_blanks(files):
    X, y, _ = files
    loans = X.assign(id=[f"k{i}" for i in range(len(X))], approved=y)
    loans.loc[[3, 5, 8], "income"] = None
    loans.to_csv("decided.csv", index=False)
    words = ["decided.csv", "--decisions", "approved", "--higher", "income", "--groups", "sex", "--id", "id"]
    told = json.loads(run("review", *words, "--out", "all.csv", "--json").stdout)
    women = loans[(loans["sex"] == "f") & (loans["approved"] == "no") & loans["income"].notna()]
    men = loans[(loans["sex"] == "m") & (loans["approved"] == "yes")]
    (row,) = [row for row in told["groups"] if (row["denied"], row["approved"]) == ("f", "m")]
    counts = [(men["income"] <= income).sum() for income in women["income"]]
    blanks = loans.loc[[3, 5, 8]]
    both_blank = ((blanks["sex"] == "f") & (blanks["approved"] == "no")).sum()
    beside = ((blanks["sex"] == "m") & (blanks["approved"] == "yes")).sum()
    assert row["n_files"] == sum(map(bool, counts)) + both_blank * bool(beside)
    assert row["n_pairs"] == sum(counts) + both_blank * beside
    assert [each["row"] for each in told["blanks"]] == ["k3", "k5", "k8"]
    written = pd.read_csv("all.csv")
    chosen = (written["group"] == "f") & (written["comparator_group"] == "m")
    assert chosen.sum() == row["n_pairs"]
    said = run("review", *words).stdout
    assert "3 people have a blank in income. A blank is compared with a blank only" in said
    write_metric(METRIC, "metric.toml")
    near = run("review", *words[:-2], "--within", "20", "--metric", "metric.toml", "--json", code=2).stderr
    assert "missing numbers, which the metric refuses" in near


def test_audit_says_who_is_favoured(files):
    X, _, _ = files
    loans = pd.read_csv("loans.csv")
    loans["score"] = 0.2 + 0.3 * (X["sex"] == "m")
    loans.to_csv("scored.csv", index=False)
    write_metric(METRIC, "metric.toml")
    words = ["audit", "scored.csv", "--metric", "metric.toml", "--scores", "score", "--groups", "--json"]
    told = json.loads(run(*words).stdout)
    shares = {row["value"]: row["share"] for row in told["groups"]}
    assert shares == {"f": 0.0, "m": 1.0}
    assert told["rate_interval"][0] <= told["rate"] <= told["rate_interval"][1]
