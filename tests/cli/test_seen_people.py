"""What a guarantee costs is measured on people whom the metric has not seen, or said to be understated."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.ensemble import HistGradientBoostingClassifier

from likewise import compare, design_metric
from likewise.cli.seen_people import MadeAgain, Unseen, digest_of, kept_apart
from likewise.io import load_model
from likewise.metric_file import read_metric_file, write_metric
from likewise.workbench.engine import Engine, Problem
from likewise.workbench.exports import metric_file
from shell import run

PROMISES = re.compile(r"costs? nothing|\bgains\b|for free|the strictest of these metrics", re.IGNORECASE)
CURE = "likewise design noise.csv --target approved --holdout 0.25"
CHOICE = "--bind 0.9 --loose"
DESIGN = f"design noise.csv --target approved --protected race --points 3 --folds 2 --force {CHOICE}"
ON_TABLE = "noise.csv --target approved --metric metric.toml"
AGAIN = "In each fold the metric was made again, from the other people alone."
UNDERSTATED = "so what it costs is understated here"
COMMANDS = {
    "compare": f"compare {ON_TABLE} --method additive --folds 3",
    "tradeoff": f"tradeoff {ON_TABLE} --folds 3 --scale 0.5 --scale 1",
    "enforce": f"enforce {ON_TABLE} --method additive --out model.skops --force",
}
REPORT = "report model.skops noise.csv --target approved --out report.html --force"


def noise(n=300):
    """People whose outcomes have nothing to do with them."""
    rng = np.random.default_rng(5)
    columns = {f"x{i}": rng.normal(size=n).round(3) for i in range(5)}
    people = pd.DataFrame(
        columns | {"region": rng.choice(["north", "süd", None], n), "race": rng.choice(["a", "b"], n)}
    )
    return people.assign(approved=rng.choice(["yes", "no"], n))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("noise")
    noise().to_csv(place / "noise.csv", index=False)
    return place


def said(place, command):
    done = run(place, command)
    words = " ".join(done.output.split())
    assert done.exit_code == (2 if "is no better than a constant. Nothing was written." in words else 0), words
    return words


@pytest.fixture(scope="module")
def without(place):
    """What each command says after a design on everybody."""
    found = {"design": said(place, f"{DESIGN} --report")}
    found["design --report"] = (place / "metric.html").read_text(encoding="utf-8")
    found |= {name: said(place, command) for name, command in COMMANDS.items()}
    said(place, f"{COMMANDS['enforce']} --holdout 0")  # which is written, unmeasured
    said(place, REPORT)
    return found | {"report": (place / "report.html").read_text(encoding="utf-8")}


def test_on_pure_noise_the_metric_is_made_again_without_those_who_are_measured(without):
    for name, words in without.items():
        assert not PROMISES.search(words), name
        assert UNDERSTATED not in words, name
    for name in ("compare", "tradeoff", "report", "design --report"):
        assert AGAIN in without[name], name
    assert "on the other 240, within the metric made again from these 240." in without["enforce"]
    assert "so it does not matter whom this one has learned from" in without["report"]


def test_what_is_printed_is_what_designing_in_each_fold_by_hand_gives(place, without):
    facts = json.loads(run(place, f"{COMMANDS['compare']} --json").stdout)
    assert facts["metric_made_again"]
    table = pd.read_csv(place / "noise.csv")
    X, y = table.drop(columns="approved"), table["approved"].to_numpy()

    def designed(people, outcomes):
        found = design_metric(people, outcomes, protected=["race"], n_points=3, cv=2, references=False)
        return found.at(bind=0.9).metric.without_negligible(people).rounded()

    metric = read_metric_file(place / "metric.toml").metric
    by_hand = compare(X, y, metric, methods=["additive"], cv=3, made_by=designed)
    printed = {row["method"]: row["brier"] for row in facts["table"]}
    assert printed["additive"] == pytest.approx(by_hand.table.loc["additive", "brier"], abs=1e-9)
    seen = compare(X, y, metric, methods=["additive"], cv=3)
    assert seen.table.loc["additive", "brier"] != pytest.approx(printed["additive"], abs=1e-6)  # control
    assert "If the metric was made from these people" in " ".join(str(seen).split())
    assert "If the metric was made from these people" not in " ".join(str(by_hand).split())


def test_an_edited_metric_is_not_made_again_and_costs_are_said_to_be_understated(place, without):
    text = (place / "metric.toml").read_text(encoding="utf-8")
    changed = re.sub(r"(?m)^x4 = .*", "x4 = 0.01", text, count=1)
    assert changed != text
    (place / "edited.toml").write_text(changed, encoding="utf-8")
    for name, command in COMMANDS.items():
        words = said(place, command.replace("metric.toml", "edited.toml"))
        assert f"edited.toml was designed on these people, {UNDERSTATED}. It was edited since" in words, name
        assert CURE in words
        assert not PROMISES.search(words), name
    said(place, f"{COMMANDS['enforce'].replace('metric.toml', 'edited.toml')} --holdout 0")
    said(place, REPORT)
    page = (place / "report.html").read_text(encoding="utf-8")
    assert "The metric was made from these people, so the price is understated" in page
    assert "does not matter whom this one has learned from" not in page


def test_a_metric_made_again_from_everybody_is_the_one_of_the_file(place, without):
    """Scaled and rounded as it was, with orders and special codes."""
    n = 300
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "income": rng.normal(50, 10, n).round(1),
            "bureau": np.where(rng.random(n) < 0.2, -9, rng.integers(300, 800, n)),
            "grade": rng.choice(["low", "mid", "high"], n),
        }
    )
    chance = people["income"] / 10 - 5 + (people["bureau"] == -9) + (people["grade"] == "high")
    people.assign(paid=np.where(rng.random(n) < 1 / (1 + np.exp(-chance)), "yes", "no")).to_csv(
        place / "codes.csv", index=False
    )
    options = "--points 3 --folds 2 --special bureau=-9 --favourable yes"
    said(place, f"design codes.csv --target paid {options} --out codes.toml --force")
    said(place, "metric scale codes.toml --by 0.5 --out half.toml --force")
    file = read_metric_file(place / "half.toml")
    table = pd.read_csv(place / "codes.csv")
    again = MadeAgain(file)(table.drop(columns="paid"), table["paid"].to_numpy())
    assert again.special
    for part in ("numeric", "categorical", "missing"):
        assert getattr(again, part) == pytest.approx(dict(getattr(file.metric, part))), part
    some = MadeAgain(file)(table.drop(columns="paid")[:200], table["paid"].to_numpy()[:200])
    assert some.numeric != again.numeric  # control


def test_directions_are_kept_from_design_to_model_and_in_every_fold(place, without):
    """Of the favourable class, which is the first here."""
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"debt": rng.normal(size=400).round(2), "income": rng.normal(size=400).round(2)})
    good = rng.random(400) < 1 / (1 + np.exp(people["debt"] - 2 * people["income"]))
    people.assign(outcome=np.where(good, "approved", "denied")).to_csv(place / "ways.csv", index=False)
    ways = "--rises income --falls debt"
    said(place, f"design ways.csv --target outcome {ways} --points 3 --folds 2 --out ways.toml --force")
    file = read_metric_file(place / "ways.toml")
    assert (file.made_with["rises"], file.made_with["falls"]) == (["income"], ["debt"])
    on_table = "enforce ways.csv --target outcome --metric ways.toml --method additive --out ways.skops --force"
    said(place, on_table)
    assert load_model(place / "ways.skops").monotone == {"income": -1, "debt": 1}  # of denied, the last class
    again = MadeAgain(file)(people, np.where(good, "approved", "denied"))
    assert again.numeric == pytest.approx(dict(file.metric.numeric))
    said(place, f"{on_table} --falls income")
    assert load_model(place / "ways.skops").monotone == {"income": 1}
    done = run(place, on_table.replace("additive", "projection") + " --rises income")
    assert done.exit_code == 2
    assert "--rises and --falls are for additive models" in done.output
    done = run(place, "design ways.csv --target outcome --rises debt --falls debt --out other.toml")
    assert "--rises and --falls must name different columns; both name 'debt'" in done.output
    done = run(place, "design ways.csv --target outcome --falls dept --out other.toml")
    assert re.search(r"--rises and --falls must name columns of \[.*'debt'.*\]; there is no 'dept'", done.output)


def test_where_nothing_is_better_than_a_constant_in_a_fold_the_strictest_metric_stands_for_it(place, without):
    """Outcomes by chance, of which some designs are worse than a constant: no share of their skill can be kept."""
    file = read_metric_file(place / "metric.toml")
    made = {"n_points": 3, "cv": 2}
    file, people, tried = replace(file, made_with=made | {"keep": 0.95}), noise(200).drop(columns="approved"), []
    for seed in range(8):
        y = np.random.default_rng(seed).integers(0, 2, 200)
        frontier = design_metric(people, y, protected=["race"], references=False, **made)
        if frontier.gain[0] <= 0:
            strictest = frontier.points[0].metric
            assert MadeAgain(file)(people, y).numeric == pytest.approx(dict(strictest.numeric))
            tried.append(seed)
    assert tried


def test_a_method_is_chosen_by_those_who_are_trained_on_alone(place, without):
    words = said(place, f"enforce {ON_TABLE} --method auto --draws 5 --out model.skops --force")
    assert "on 80 held-out people per fold" in words  # of 240, not of 300
    assert "Measured on 60 held-out people" in words


def test_a_model_that_came_trained_is_said_to_have_seen_them_perhaps(place, without):
    table = pd.read_csv(place / "noise.csv")
    numbers = table[[f"x{i}" for i in range(5)]]
    skops.io.dump(HistGradientBoostingClassifier().fit(numbers, table["approved"]), place / "hgb.skops")
    (place / "numbers.toml").write_text("[numeric]\n" + "\n".join(f"x{i} = 0.1" for i in range(5)))
    words = said(
        place,
        "enforce noise.csv --target approved --metric numbers.toml --method projection --model hgb.skops --out p.skops "
        "--force",
    )
    assert "If it has learned from these people, all that is measured with it here looks better" in words
    assert "The model inside came trained, perhaps on them too." in words
    words = said(place, COMMANDS["enforce"])
    assert "held-out people" in words
    assert "came trained" not in words  # control


def test_a_judged_metric_has_seen_those_who_were_judged(place, without):
    said(place, f"{DESIGN} --holdout 0.25 --out begun.toml")
    (place / "answers.csv").write_text("judge,kind,a,b,points\nAnn,at_most,1,2,5\nAnn,at_least,1,2,1\n")
    said(
        place,
        "metric noise.csv --drop approved --judgements answers.csv --start begun.toml --out judged.toml --force",
    )
    file = read_metric_file(place / "judged.toml")
    assert (file.source, file.people, file.kept_apart) == ("judged", 300, 0)
    words = said(place, COMMANDS["compare"].replace("metric.toml", "judged.toml"))
    assert f"judged.toml was judged on these people, {UNDERSTATED}" in words
    assert "has not seen" not in words.replace("people whom the metric has not seen: likewise design", "")


def test_a_metric_of_the_workbench_says_whom_it_has_seen(place):
    table = pd.read_csv(place / "noise.csv")
    X = table.drop(columns="approved")
    engine = Engine(Problem(X, table["approved"].to_numpy(), "classification", "noise.csv", "approved"))
    sheet = engine.empty_sheet(("race",)).with_weights({"numeric": {"x0": 0.1}}, "Designed together with a scorecard.")
    origin = {"people": 300, "rows": digest_of(X), "kept_apart": 0.0}
    write_metric(metric_file(sheet, None, origin), place / "bench.toml")
    file = read_metric_file(place / "bench.toml")
    assert file.source == "designed"
    assert UNDERSTATED in Unseen.find(file, X, "bench.toml", "likewise design").caveat
    assert UNDERSTATED not in Unseen.find(file, X[1:], "bench.toml", "likewise design").caveat  # control
    by_hand = metric_file(engine.empty_sheet(("race",)), None, origin)
    assert "was set by hand on these people" in Unseen.find(by_hand, X, "bench.toml", "likewise design").caveat


def test_a_model_carries_the_file_of_its_metric(place, without):
    said(place, f"{COMMANDS['enforce']} --holdout 0")
    assert load_model(place / "model.skops").metric_file_ == (place / "metric.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "before",
    [
        "The promise cost nothing that could be measured: the Brier score is 0.2499",
        "The guarantee costs nothing: 0.0144 less Brier score than logistic without race",
        "Already under the strictest of these metrics, x 0.5, the Brier score is as good as that of the best model",
    ],
)
def test_what_was_said_before_would_be_found(before):
    assert PROMISES.search(before)  # control


def test_people_kept_apart_are_found_by_later_commands_and_measured_alone(place, without, tmp_path):
    noise().to_csv(tmp_path / "noise.csv", index=False)
    assert "people were kept apart" in said(tmp_path, f"{DESIGN} --holdout 0.25")
    file = read_metric_file(tmp_path / "metric.toml")
    n_apart = 300 - file.people
    assert 50 < n_apart < 100
    assert file.kept_apart == 0.25
    for name, command in COMMANDS.items():
        words = said(tmp_path, command)
        assert f"Measured on people whom the metric has not seen: {n_apart} kept apart by likewise design." in words
        assert "understated" not in words, name
        assert not PROMISES.search(words), name
    assert f"Measured on {n_apart} held-out people, by a model trained on the other {file.people}" in words  # enforce
    facts = json.loads(run(tmp_path, f"{COMMANDS['compare']} --json").stdout)
    assert facts["metric_has_not_seen"] == n_apart
    assert facts["table"][0]["people"] == n_apart

    # Other order, other columns beside, edited weights: the same people.
    table = noise().sample(frac=1, random_state=0).assign(note="new")
    table[[*table.columns[::-1]]].to_csv(tmp_path / "noise.csv", index=False)
    run(tmp_path, "metric scale metric.toml --by 0.5 --out metric.toml --force")
    assert read_metric_file(tmp_path / "metric.toml").rows == file.rows
    assert f"has not seen: {n_apart}" in said(tmp_path, COMMANDS["compare"])

    # Control: one value of one seen person changed, and the claim is not made.
    seen = np.flatnonzero(~kept_apart(noise().drop(columns="approved"), 0.25))[0]
    other = noise()
    other.loc[seen, "x0"] += 1
    other.to_csv(tmp_path / "noise.csv", index=False)
    words = said(tmp_path, COMMANDS["compare"])
    assert "Measured on people whom the metric has not seen" not in words
    assert f"metric.toml was designed on {file.people} people: if any of them are in this table" in words


def test_files_without_a_digest_are_read_as_before(place, without):
    text = (place / "metric.toml").read_text(encoding="utf-8")
    old = re.sub(r"(?m)^(people|rows|kept_apart|made_with) = .*\n", "", text)
    (place / "old.toml").write_text(old, encoding="utf-8")
    file, new = read_metric_file(place / "old.toml"), read_metric_file(place / "metric.toml")
    assert (file.rows, file.metric, file.as_written) == ("", new.metric, True)
    words = said(place, COMMANDS["compare"].replace("metric.toml", "old.toml"))
    assert "old.toml was designed and does not say from whom" in words
    by_hand = re.sub(r"(?s)\[origin\].*", "", old)
    (place / "hand.toml").write_text(by_hand, encoding="utf-8")
    assert "understated" not in said(place, COMMANDS["compare"].replace("metric.toml", "hand.toml"))  # control


def test_a_revealed_metric_is_made_again_where_it_is_read_exactly(place):
    said(place, "metric noise.csv --target approved --zero race --out revealed.toml --force")
    file = read_metric_file(place / "revealed.toml")
    assert file.people == 300
    table = pd.read_csv(place / "noise.csv")
    again = MadeAgain(file)(table.drop(columns="approved"), table["approved"].to_numpy())
    assert again.numeric == pytest.approx(dict(file.metric.numeric))
    assert AGAIN in said(place, COMMANDS["compare"].replace("metric.toml", "revealed.toml"))
    said(place, "metric noise.csv --target approved --model boosting --out estimated.toml --force")
    words = said(place, COMMANDS["compare"].replace("metric.toml", "estimated.toml"))
    assert f"estimated.toml was revealed on these people, {UNDERSTATED}." in words
    assert "The file does not say how to make it again" in words


def test_a_digest_is_of_the_rows_alone():
    people = noise().drop(columns="approved")
    assert digest_of(people) == digest_of(people.sample(frac=1, random_state=1)[people.columns[::-1]])
    assert digest_of(people) == digest_of(people.assign(region=people["region"].astype("category")))
    for other in (people[1:], pd.concat([people, people[:1]]), people.assign(x0=people["x0"] + 1e-9)):
        assert digest_of(other) != digest_of(people)  # control
    twice = pd.concat([people, people])
    assert kept_apart(twice, 0.5)[:300].tolist() == kept_apart(twice, 0.5)[300:].tolist()


@pytest.mark.parametrize("share", [0.001, 0.999])
def test_a_share_that_leaves_too_few_is_refused(place, share):
    done = run(place, f"{DESIGN} --holdout {share}")
    assert done.exit_code != 0
    assert "--holdout must leave at least 5 people of each class on both sides" in done.output


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("people = 0", "people must be a number of people, at least 1; got 0."),
        ("kept_apart = 1.5", "kept_apart must be a share between 0 and 1; got 1.5."),
        ("rows = 3", "rows must be text; got 3."),
        ("made_with = 3", "made_with must be a table, such as {n_points = 10}; got 3."),
    ],
)
def test_a_bad_entry_is_refused_with_its_line(tmp_path, line, words):
    (tmp_path / "m.toml").write_text(f"[numeric]\nx = 1\n[origin]\n{line}\n")
    with pytest.raises(ValueError, match=re.escape(words)):
        read_metric_file(tmp_path / "m.toml")


def test_nobody_is_trained_on_who_is_measured_or_kept_apart():
    train, measured = Unseen(np.array([1, 3, 5, 7])).parts(10, 2)
    assert train.tolist() == [0, 2, 4, 6, 8, 9]
    assert len(measured) == 2
    assert {*measured} <= {1, 3, 5, 7}
    assert Unseen().parts(10, 2) is None
