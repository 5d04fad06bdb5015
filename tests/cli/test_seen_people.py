"""What a guarantee costs is measured on people whom the metric has not seen, or said to be understated."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from likewise.cli.seen_people import digest_of, kept_apart
from likewise.metric_file import read_metric_file
from shell import run

PROMISES = re.compile(r"costs? nothing|\bgains\b|for free|the strictest of these metrics", re.IGNORECASE)
CURE = "likewise design noise.csv --target approved --holdout 0.25"
DESIGN = "design noise.csv --target approved --protected race --points 3 --folds 2 --force"
ON_TABLE = "noise.csv --target approved --metric metric.toml"
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
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


@pytest.fixture(scope="module")
def without(place):
    """What each command says after a design on everybody."""
    found = {"design": said(place, f"{DESIGN} --report")}
    found["design --report"] = (place / "metric.html").read_text(encoding="utf-8")
    found |= {name: said(place, command) for name, command in COMMANDS.items()}
    said(place, REPORT)
    return found | {"report": (place / "report.html").read_text(encoding="utf-8")}


def test_on_pure_noise_nothing_says_that_a_guarantee_costs_nothing(without):
    for name, words in without.items():
        assert not PROMISES.search(words), name
        assert "understated" in words, name
    for name in COMMANDS:
        assert "metric.toml was designed on these people, so what it costs is understated here." in without[name]
        assert CURE in without[name]


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
    old = re.sub(r"(?m)^(people|rows|kept_apart) = .*\n", "", text)
    (place / "old.toml").write_text(old, encoding="utf-8")
    file, new = read_metric_file(place / "old.toml"), read_metric_file(place / "metric.toml")
    assert (file.rows, file.metric, file.as_written) == ("", new.metric, True)
    words = said(place, COMMANDS["compare"].replace("metric.toml", "old.toml"))
    assert "old.toml was designed and does not say from whom" in words
    by_hand = re.sub(r"(?s)\[origin\].*", "", old)
    (place / "hand.toml").write_text(by_hand, encoding="utf-8")
    assert "understated" not in said(place, COMMANDS["compare"].replace("metric.toml", "hand.toml"))  # control


def test_a_revealed_metric_says_from_whom(place):
    said(place, "metric noise.csv --target approved --zero race --out revealed.toml --force")
    assert read_metric_file(place / "revealed.toml").people == 300
    words = said(place, COMMANDS["compare"].replace("metric.toml", "revealed.toml"))
    assert "revealed.toml was revealed on these people, so what it costs is understated here." in words


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
    ],
)
def test_a_bad_entry_is_refused_with_its_line(tmp_path, line, words):
    (tmp_path / "m.toml").write_text(f"[numeric]\nx = 1\n[origin]\n{line}\n")
    with pytest.raises(ValueError, match=re.escape(words)):
        read_metric_file(tmp_path / "m.toml")
