"""Which decision, class or end of a score is favourable: known by a word, named, or not said."""

import json

import numpy as np
import pandas as pd
import pytest
import skops.io
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from likewise import (
    AdditiveClassifier,
    TableMetric,
    ThresholdDecision,
    attack,
    audit,
    audit_groups,
    effect,
    group_gaps,
    write_metric,
)
from likewise._favourable import Direction, column_of, known_favourable, label_of, the_favourable
from likewise.cli.main import main
from likewise.exceptions import InvalidInputError
from small_domain import one_hot

METRIC = TableMetric({"debt": 0.01}, {"sex": 0})
X = pd.DataFrame({"debt": [10.0, 20.0, 30.0, 40.0] * 5, "sex": ["f"] * 10 + ["m"] * 10})


def risk(people):
    """A chance of default: 30 points higher for men, so that women are favoured."""
    return 0.2 + 0.005 * people["debt"] + 0.3 * (people["sex"] == "m")


class DefaultRisk:
    """A model with classes, in the order of the alphabet; the last one is the bad one or the good one."""

    def __init__(self, classes):
        self.classes_ = np.array(classes)
        self.feature_names_in_ = np.array(["debt", "sex"], dtype=object)

    def predict_proba(self, people):
        bad = [str(label) in ("default", "1", "denied") for label in self.classes_]
        chance = np.asarray(risk(people))[:, None]
        return np.where(bad, chance / sum(bad), (1 - chance) / (len(bad) - sum(bad)))


# How the favourable one is named, and what it is.
KNOWN = {
    "a risk": (risk, "low"),
    "default and paid": (DefaultRisk(["default", "paid"]), None),
    "approved and denied": (DefaultRisk(["approved", "denied"]), None),
    "0 and 1, named": (DefaultRisk(["0", "1"]), "0"),
    "three classes": (DefaultRisk(["default", "late", "paid"]), "paid"),
}
UNKNOWN = {"a risk": (risk, None), "0 and 1": (DefaultRisk(["0", "1"]), None)}


@pytest.mark.parametrize("name", KNOWN)
def test_women_are_favoured_by_a_model_that_gives_men_a_higher_risk(name):
    model, favourable = KNOWN[name]
    (row,) = effect(model, X, "sex", favourable=favourable).directions.to_dict("records")
    share = 2 if name == "three classes" else 1  # of two good classes, each gets a half
    assert (row["favoured"], row["over"], row["mean"] * share, row["share"]) == ("f", "m", pytest.approx(0.3), 1.0)
    found = audit(model, X, METRIC, favourable=favourable)
    sex = {side: X["sex"].to_numpy()[found.violations[f"row_{side}"]] for side in "ab"}
    assert len(found.violations) > 0
    assert found.violations["favoured"].tolist() == np.where(sex["a"] == "f", "a", "b").tolist()
    assert "Favourable: " in found.coverage
    worst = attack(model, METRIC, X, only="sex", n_pairs=2000, favourable=favourable, random_state=0)
    assert worst.pair["sex"].iloc[worst.favoured] == "f"
    if name == "three classes":
        return  # groups are compared by one score
    groups = audit_groups(model, X, METRIC, n_permutations=9, favourable=favourable)
    exceeds = np.abs(np.subtract.outer(*[risk(X).to_numpy()] * 2)) - 0.01 * np.abs(
        np.subtract.outer(*[X["debt"].to_numpy()] * 2)
    )
    women, across = X["sex"].eq("f").to_numpy(), int((exceeds[:10, 10:] > 1e-9).sum())
    rows = groups.groups.set_index("value")
    assert (rows.loc["f", "n_favoured"], rows.loc["m", "n_favoured"]) == (across, 0)
    people = groups.people.set_index("row")
    assert people.loc[np.flatnonzero(women), "n_favoured"].sum() == 0  # nobody is better off than a woman
    assert people.loc[np.flatnonzero(~women), "n_favoured"].sum() == across
    given = {"predictions": risk(X)} if model is risk else {}
    gaps = group_gaps(model, X, METRIC, "sex", favourable=favourable, **given).gaps.set_index("value")
    assert gaps["favoured"].to_dict() == {"f": "f", "m": "others"}


def test_control_the_other_direction_turns_the_finding_round():
    (row,) = effect(risk, X, "sex", favourable="high").directions.to_dict("records")
    assert row["favoured"] == "m"
    assert audit_groups(risk, X, METRIC, n_permutations=9, favourable="high").groups["n_favoured"].tolist()[0] == 0


@pytest.mark.parametrize("name", UNKNOWN)
def test_nobody_is_called_favoured_if_the_direction_is_not_known(name):
    model, _ = UNKNOWN[name]
    found = effect(model, X, "sex")
    (row,) = found.directions.to_dict("records")
    assert (row["higher"], row["lower"], found.favourable) == ("m", "f", "")
    tables = [
        found.directions,
        audit(model, X, METRIC).violations,
        audit_groups(model, X, METRIC, n_permutations=9).groups,
        audit_groups(model, X, METRIC, n_permutations=9).people,
        group_gaps(model, X, METRIC, "sex", **({"predictions": risk(X)} if model is risk else {})).gaps,
    ]
    assert not any("favoured" in column for table in tables for column in table)
    assert all(any("higher" in column for column in table) for table in tables)
    assert attack(model, METRIC, X, only="sex", n_pairs=1000, random_state=0).favoured is None
    assert "avour" not in audit(model, X, METRIC).coverage


def test_what_is_no_class_and_no_end_is_refused():
    with pytest.raises(InvalidInputError, match="favourable must be 'high' or 'low', as these outputs name no classes"):
        effect(risk, X, "sex", favourable="paid")
    with pytest.raises(InvalidInputError, match="favourable must be one of"):
        audit(DefaultRisk(["default", "paid"]), X, METRIC, favourable="granted")
    with pytest.raises(InvalidInputError, match="favourable must be one of"):  # which of three is higher?
        audit(DefaultRisk(["default", "late", "paid"]), X, METRIC, favourable="low")


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("approved", "denied"),
        ("Accept", "REJECT"),
        ("granted", "denied"),
        ("approved", "not_approved"),
        ("no default", "default"),
        ("Fully Paid", "Charged Off"),
        ("Loan originated", "Application denied"),
        ("good", "bad"),
    ],
)
def test_known_words(good, bad):
    assert known_favourable([good, bad]) == known_favourable([bad, good]) == good
    assert column_of(None, np.array([bad, good])) == 1
    assert column_of(None, np.array([good, bad])) == 0


@pytest.mark.parametrize(
    "labels", [["high", "low"], ["a", "b"], [0, 1], ["yes", "no"], ["approved", "granted"], ["denied"], ["a", "denied"]]
)
def test_words_that_say_nothing(labels):
    assert known_favourable(labels) is None
    assert column_of(None, np.array(labels)) == len(labels) - 1  # nothing is said of what is better
    with pytest.raises(InvalidInputError, match="favourable must be one of the classes"):
        the_favourable(None, np.array(labels))


def test_what_is_stored_with_a_model_is_taken():
    y = np.where(X["debt"] > 20, "late", "on time")
    model = AdditiveClassifier(METRIC).fit(X, y)
    with pytest.raises(InvalidInputError, match="as no word says which one is better"):
        model.notice(X.tail(1), threshold=0.9)
    model.favourable_ = "on time"
    assert model.notice(X.tail(1), threshold=0.9) == model.notice(X.tail(1), threshold=0.9, favourable="on time")
    assert effect(model, X, "debt").favourable == "'on time'"
    decided = ThresholdDecision.from_model(model, threshold=0.5, width=0.2)
    assert decided.ranked_classes_.tolist() == ["late", "on time"]


def test_a_class_that_is_called_low_is_meant_before_the_low_end():
    assert Direction.of("low", ["high", "low"]).sign == 1  # a risk of "low": its probability is the score
    assert Direction.of("low", ["a", "b"]).sign == -1
    assert label_of("1", [0, 1]) == 1
    assert label_of(True, [0, True]) is True


def test_decisions_and_notices_take_the_known_word_for_the_favourable_one():
    y = np.where(X["debt"] > 20, "denied", "approved")
    model = AdditiveClassifier(METRIC).fit(X, y)
    decided = ThresholdDecision(model, threshold=0.5, width=0.2).fit(X, y)
    assert decided.ranked_classes_.tolist() == ["denied", "approved"]
    notice = model.notice(X.tail(1), threshold=0.9)[0]
    assert notice == model.notice(X.tail(1), threshold=0.9, favourable="approved")[0]


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A vendor's model of default, with the classes 0 and 1: men get the higher risk."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {"age": rng.integers(20, 60, 400), "income": rng.normal(0, 1, 400), "sex": rng.choice(["f", "m"], 400)}
    ).assign(region=rng.choice(["n", "s"], 400))
    y = (rng.normal(size=400) + 2 * (people["sex"] == "m") - people["income"] > 1).astype(int)
    model = make_pipeline(one_hot(), LogisticRegression()).fit(people, y)
    skops.io.dump(model, "vendor.skops")
    people.assign(risk=model.predict_proba(people)[:, 1]).to_csv("loans.csv", index=False)
    write_metric(TableMetric({"age": 0.002, "income": 0.05}, {"sex": 0, "region": 0.05}), "metric.toml")


@pytest.mark.parametrize("favourable", ["0", "low"])
def test_commands_say_that_women_gain_from_a_model_of_default_risk(files, favourable):
    words = ["loans.csv", "--model", "vendor.skops", "--favourable", favourable]
    shown = "'0'" if favourable == "0" else "a lower score"
    said = run("effect", *words, "--column", "sex").stdout
    _, _, rest = said.partition(f"Who gains (favourable: {shown}):\n")
    assert rest.split("\n")[0].split()[:2] == ["favoured", "over"]
    assert rest.split("\n")[1].split()[:2] == ["f", "m"]
    told = json.loads(
        run("attack", *words, "--metric", "metric.toml", "--only", "sex", "--pairs", 2000, "--json").stdout
    )
    (sex,) = [row for row in told["pair"] if row["column"] == "sex"]
    assert sex[told["favoured"]] == "f"
    scores = ["loans.csv", "--scores", "risk", "--metric", "metric.toml", "--favourable", "low", "--groups"]
    told = json.loads(run("audit", *scores, "--json").stdout)
    rows = {row["value"]: row for row in told["groups"]}
    loans, gap = pd.read_csv("loans.csv"), {}
    for name in ("risk", "age", "income"):
        gap[name] = np.subtract.outer(loans[name].to_numpy(), loans[name].to_numpy())
    apart = loans["region"].to_numpy()[:, None] != loans["region"].to_numpy()
    distance = 0.002 * np.abs(gap["age"]) + 0.05 * np.abs(gap["income"]) + 0.05 * apart
    women = loans["sex"].eq("f").to_numpy()
    better = ((np.abs(gap["risk"]) - distance > 1e-9) & (gap["risk"] < 0))[women][:, ~women].sum()
    worse = ((np.abs(gap["risk"]) - distance > 1e-9) & (gap["risk"] > 0))[women][:, ~women].sum()
    assert (rows["f"]["n_favoured"], rows["m"]["n_favoured"]) == (better, worse)
    assert better > worse > 0
    assert "Who is favoured (favourable: a lower score), in pairs" in run("audit", *scores).stdout


def test_commands_say_who_has_the_higher_score_where_no_more_is_known(files):
    said = run("effect", "loans.csv", "--model", "vendor.skops", "--column", "sex").stdout
    _, _, rest = said.partition("Who gets the higher score:\n")
    assert rest.split("\n")[1].split()[:2] == ["m", "f"]
    assert "gain" not in said
    words = ["loans.csv", "--scores", "risk", "--metric", "metric.toml"]
    said = run("audit", *words, "--groups").stdout
    assert "Who has the higher score, in pairs that exceed the distance" in said
    assert "favoured" not in said
    wrong = run("audit", *words, "--favourable", "paid", code=2).stderr
    assert "--favourable must be high or low, as the scores name no classes; got paid." in wrong
