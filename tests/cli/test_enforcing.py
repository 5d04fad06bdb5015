"""enforce: what is asked for reaches every candidate and the model that is saved, or is refused."""

import json

import pytest

import likewise
from likewise.io import load_model
from shell import LOANS, run


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    place = tmp_path_factory.mktemp("enforcing")
    LOANS[["income", "years", "approved"]].to_csv(place / "loans.csv", index=False)
    LOANS[["income", "race", "approved"]].to_csv(place / "mixed.csv", index=False)
    # So loose that smoothing beats a constant, which has no seed.
    (place / "metric.toml").write_text("p = 1\n[numeric]\nincome = 0.002\nyears = 0.2\n")
    (place / "mixed.toml").write_text("p = 1\n[numeric]\nincome = 0.002\n[categorical]\nrace = 0\n")
    return place


@pytest.fixture
def compared(monkeypatch):
    """Comparisons of some of the methods only, which take less time, as they were asked for."""
    real, asked = likewise.compare, []

    def some(*args, methods=("smoothing", "augmented"), **options):
        asked.append(real(*args, methods=list(methods), **options))
        return asked[-1]

    monkeypatch.setattr(likewise, "compare", some)
    monkeypatch.setattr("likewise.cli.enforce._FOLDS", 2)
    return asked


AUTO = "enforce loans.csv --target approved --metric metric.toml --method auto --holdout 0 --force --json"


def test_options_of_smoothing_reach_the_candidates_and_the_model_that_is_saved(work, compared):
    options = "--noise gaussian --vote hard --draws 40 --augment 2 --delta 0.01 --seed 7 --model logistic"
    done = run(work, f"{AUTO} {options} --out asked.skops")
    assert done.exit_code == 0, done.output
    for name, copies in (("smoothing", 0), ("augmented", 2)):
        found = compared[0].estimators[name].get_params(deep=False)
        assert (found["noise"], found["vote"], found["n_draws"], found["delta"]) == ("gaussian", "hard", 40, 0.01)
        assert found["augment"] == copies
        assert type(found["estimator"].steps[-1][1]).__name__ == "LogisticRegression"
    assert json.loads(done.stdout)["method"] in ("smoothing", "augmented")
    saved = load_model(work / "asked.skops").get_params(deep=False)
    assert (saved["random_state"], saved["vote"], saved["noise"], saved["delta"]) == (7, "hard", "gaussian", 0.01)


def test_an_epsilon_asks_for_as_many_draws_as_it_needs(work, compared):
    done = run(work, f"{AUTO} --noise gaussian --model forest --epsilon 0.2 --augment 0 --out epsilon.skops")
    assert done.exit_code == 0, done.output
    assert compared[0].estimators["smoothing"].n_draws == "auto"
    assert "augmented" not in compared[0].estimators
    assert load_model(work / "epsilon.skops").guarantee_.epsilon <= 0.2


def test_the_same_seed_gives_the_same_model_and_none_a_secret_one(work, compared):
    X = LOANS[["income", "years"]]
    options = "--noise gaussian --model forest --draws 30 --augment 0"
    for name, seed in (("a", "--seed 3"), ("b", "--seed 3"), ("c", ""), ("d", "")):
        done = run(work, f"{AUTO} {options} {seed} --out {name}.skops")
        assert done.exit_code == 0, done.output
    a, b, c, d = (load_model(work / f"{name}.skops") for name in "abcd")
    assert (a.predict_proba(X) == b.predict_proba(X)).all()
    assert c.random_state is None
    assert (c.predict_proba(X) != d.predict_proba(X)).any()


@pytest.mark.parametrize(
    "option", ["--noise gaussian", "--vote soft", "--epsilon 0.1", "--delta 0.1", "--draws 9", "--augment 1"]
)
@pytest.mark.parametrize("by", ["additive", "projection"])
def test_options_of_smoothing_are_refused_where_nothing_is_smoothed(work, by, option):
    done = run(
        work, f"enforce loans.csv --target approved --metric metric.toml --method {by} {option} --out none.skops"
    )
    assert done.exit_code == 2
    assert f"{option.split()[0]} is for --method smoothing or --method auto; got --method {by}" in done.stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{AUTO} --epsilon 0", "epsilon must be a positive"),
        (f"{AUTO} --draws 0", "n_draws must be"),
        (f"{AUTO} --augment -1", "augment must be"),
        (f"{AUTO} --seed -1", "random_state must be"),
    ],
)
def test_what_cannot_be_done_is_refused_and_not_left_out(work, compared, command, message):
    done = run(work, f"{command} --out none.skops")
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_vote_is_for_classes(work):
    (work / "race.toml").write_text("p = 1\n[categorical]\nrace = 0.5\n")
    done = run(
        work, "enforce mixed.csv --target income --task regression --metric race.toml --vote soft --method smoothing"
    )
    assert done.exit_code == 2
    assert "--vote is for a classification; 'income' is a regression" in done.stderr


def test_models_without_a_promise_are_named_and_the_unconstrained_one_is_among_them(work):
    by = "enforce mixed.csv --target approved --metric mixed.toml --method additive --force --json --out named.skops"
    scores = json.loads(run(work, by).stdout)["scores"]
    names = [
        "with the guarantee",
        "the unconstrained model",
        "a constant",
    ]
    assert [row["model"] for row in scores] == names
    projected = by.replace("additive", "projection --model forest")
    names.insert(2, "forest on all columns, no guarantee")
    assert [row["model"] for row in json.loads(run(work, projected).stdout)["scores"]] == names


def test_a_scorecard_says_which_weights_hold_it_back(tmp_path):
    LOANS.to_csv(tmp_path / "loans.csv", index=False)
    weights = "[numeric]\nincome = 1e-5\nyears = 0.5\n[categorical]\nrace = 0.1\n"
    (tmp_path / "m.toml").write_text(f"p = 1\n{weights}")
    words = "enforce loans.csv --target approved --metric m.toml --method additive --holdout 0"
    done = run(tmp_path, f"{words} --out a.skops")
    assert done.exit_code == 0, done.output
    assert "by the gain in training loss if 10% looser: income " in done.output
    prices = json.loads(run(tmp_path, f"{words} --out b.skops --json").stdout)["prices"]
    assert prices[0]["column"] == "income"
    assert {each["column"] for each in prices} == {"income", "years", "race"}
