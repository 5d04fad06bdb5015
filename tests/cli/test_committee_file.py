"""A committee's file with everything in it goes through every command, and comes back with the same bytes."""

import numpy as np
import pandas as pd
import pytest

from likewise.cli.main import main
from likewise.metric_file import CATEGORY_SECTIONS, read_metric_file
from shell import run

FILE = """# Agreed on 3 May, after  two  meetings.
p = 1

[numeric]
# Of the last tax return.
income = "20% of odds per $10,000"   # says the bank
grade = 0.04 # one step = 4 points
zip = 0 # not used by this model

[categorical]
'race' = 0 # must not matter; by law
job = "50% of odds"   # the union
region = 0.2
wing = 0

[missing]
income = 0.3 # a blank is no lie

[order]
grade = ["low", "middle", "high"] # as the school has it

[groups]
job = {within = 0.5, groups = [["clerk", "teacher"], ["farmer", "smith"]]} # white and blue

[distances]
region = {north = {south = 8, east = 4}, east = {south = 6}} # hours by train

[units]
income = "$"

[domain]
income = {low = 0, high = 200000, blank = true} # no more was ever seen

[rules]
# None was agreed.
linear = []

[origin]
source = "by hand" # all of us
date = 2026-05-03
protected = ["race"] # the law
not_used = ["zip"] # 0, since the model does not use them; the vendor said so
not_forced = ["wing"]

# Signed: the chair
"""
WORDS = (
    *("Agreed on 3 May", "Of the last tax return.", "says the bank", "by law", "the union", "a blank is no lie"),
    *("as the school has it", "white and blue", "hours by train", "all of us", "the law", "Signed: the chair"),
)
ANSWERS = "judge,kind,a,b,points\nAnn,at_least,1,2,3\nAnn,at_most,1,2,90\nBob,at_most,3,4,80\n"
USE = "people.csv --target approved --metric agreed.toml"
WRITING = {
    "scaled": "metric scale agreed.toml --by 0.5 --out scaled.toml",
    "round": "metric round agreed.toml --out round.toml",
    "judged": "metric people.csv --judgements answers.csv --start agreed.toml --drop id --out judged.toml",
}
FIRST = [
    f"enforce {USE} --method additive --out model.skops",
    f"enforce {USE} --method additive --decide --threshold 0.5 --width 0.2 --out decided.skops",
    "score model.skops people.csv --keep income --keep grade --keep job --keep region --out scores.csv",
    "card model.skops --out card.json",
    "card model.skops --in-points --out points.json",
]
READING = [
    *FIRST,
    *WRITING.values(),
    "metric show agreed.toml",
    "metric check agreed.toml people.csv",
    "metric diff agreed.toml draft.toml",
    "judge people.csv --metric agreed.toml --judge Ann --id id --out new.csv",
    f"compare {USE} --folds 2",
    f"tradeoff {USE} --folds 2 --scale 0.5 --scale 1",
    "audit people.csv --metric agreed.toml --model model.skops --groups",
    "audit people.csv --metric agreed.toml --scores score",
    "attack people.csv --metric agreed.toml --model model.skops --pairs 2000",
    "effect people.csv --metric agreed.toml --model model.skops --column race --seconds 2",
    "review people.csv --decisions approved --approved yes --metric agreed.toml --within 20 --out review.csv",
    "report people.csv --scores score --metric agreed.toml --out scores.html",
    "report model.skops people.csv --target approved --folds 2 --out report.html",
    "decide decided.skops people.csv --round one --key-file key --out decisions.csv",
    "notice model.skops people.csv --person 1 --threshold 0.99 --favourable yes",
    "verify-card card.json scores.csv",
    "verify-card points.json",
]
REFUSING = ["workbench people.csv --target approved --metric agreed.toml --no-browser"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place, rng, n = tmp_path_factory.mktemp("committee"), np.random.default_rng(0), 80
    X = pd.DataFrame({"id": np.arange(n), "income": rng.lognormal(10.5, 0.5, n).round(-2)})
    X.loc[::9, "income"] = np.nan
    X["grade"], X["zip"] = rng.choice(["low", "middle", "high"], n), rng.integers(1, 9, n)
    X["race"], X["job"] = rng.choice(["x", "y"], n), rng.choice(["clerk", "teacher", "farmer", "smith"], n)
    X["region"], X["wing"] = rng.choice(["north", "south", "east"], n), rng.choice(["a", "b"], n)
    X["score"] = rng.random(n).round(3)
    X["approved"] = np.where(
        X["income"].fillna(3e4) / 1e4 + (X["job"] == "clerk") + rng.normal(size=n) > 4, "yes", "no"
    )
    X.to_csv(place / "people.csv", index=False)
    (place / "answers.csv").write_text(ANSWERS)
    (place / "draft.toml").write_text("p = 1\n[numeric]\nincome = 1e-5\n")
    (place / "key").write_bytes(bytes(32))
    (place / "agreed.toml").write_bytes(FILE.encode())
    for command in FIRST:
        run(place, command)
    return place


@pytest.mark.parametrize("command", READING)
def test_reading_leaves_the_file_as_it_is(place, command):
    done = run(place, f"{command} --force" if "--out" in command and "judge " not in command else command, given="q\n")
    assert done.exit_code == 0, done.output
    assert (place / "agreed.toml").read_bytes() == FILE.encode()


@pytest.mark.parametrize("command", REFUSING)
def test_what_cannot_use_a_shape_says_so_and_leaves_the_file_as_it_is(place, command):
    done = run(place, command)
    assert done.exit_code == 2
    assert "agreed.toml has [order]" in done.stderr
    assert (place / "agreed.toml").read_bytes() == FILE.encode()


@pytest.mark.parametrize("method", ["network", "smoothing"])
def test_methods_with_one_weight_per_column_refuse_shapes_with_a_cure(place, method):
    pytest.importorskip("torch") if method == "network" else None
    done = run(place, f"enforce {USE} --method {method} --out other.skops")
    assert done.exit_code == 2, done.output
    assert "'job' has groups or distances. Use an additive or projected model, or give it the weight" in done.stderr


@pytest.mark.parametrize("written", WRITING)
def test_what_is_written_from_it_keeps_what_people_wrote(place, written):
    assert run(place, f"{WRITING[written]} --force").exit_code == 0
    text = (place / f"{written}.toml").read_text()
    assert [word for word in WORDS if word not in text] == []
    file, given = read_metric_file(place / f"{written}.toml"), read_metric_file(place / "agreed.toml")
    for section in (*CATEGORY_SECTIONS, "units"):
        assert getattr(file.metric, section) == getattr(given.metric, section), section
    assert file.metric.zero_reasons.items() >= given.metric.zero_reasons.items()
    assert file.domain.entries() == given.domain.entries()


@pytest.mark.parametrize(
    "command",
    [
        "metric people.csv --target approved --drop id --drop score --out mine.toml",
        "metric people.csv --judgements answers.csv --drop id --drop approved --drop score --out mine.toml",
        "design people.csv --target approved --drop id --drop score --points 2 --folds 2 --out mine.toml",
        "metric scale draft.toml --by 0.5 --out mine.toml",
        "metric round draft.toml --out mine.toml",
    ],
)
def test_replacing_it_keeps_a_copy_and_what_it_can_and_says_what_it_cannot(place, command):
    (place / "mine.toml").write_bytes(FILE.encode())
    assert run(place, command).exit_code == 2, command  # only with --force
    assert (place / "mine.toml").read_bytes() == FILE.encode()
    done = run(place, f"{command} --force")
    assert done.exit_code == 0, done.output
    (copy,) = place.glob("mine.toml*bak")
    assert copy.read_bytes() == FILE.encode()
    assert f"The old mine.toml is kept as {copy.name}. What changed:" in done.stdout
    assert '-income = "20% of odds per $10,000"   # says the bank' in done.stdout
    copy.unlink()
    if "draft.toml" in command:  # another file's words are its own
        return
    text = (place / "mine.toml").read_text()
    assert [word for word in WORDS if word not in text] == []
    new, old = (read_metric_file(place / name).metric for name in ("mine.toml", "agreed.toml"))
    said = " ".join((done.stdout + done.stderr).split())
    for section in (each for each in CATEGORY_SECTIONS if getattr(old, each)):
        kept, (name,) = getattr(new, section) == getattr(old, section), getattr(old, section)
        assert kept == ("--judgements" not in command)
        assert f"the {section} of {name}" in said
        assert (f"Not kept of the old mine.toml: the {section}" in said) != kept


def test_every_command_is_here():
    """A command that is added must be tried, too; others take no file."""
    tried = {command.split()[0] for command in (*READING, *REFUSING)}
    assert {*main.commands} - tried == {"demo", "design", "warm"}
    tried = {command.split()[1] for command in READING if command.startswith("metric")}
    assert {*main.commands["metric"].commands} - tried == {"reveal"}  # which replaces a file, as design does


def test_control_a_word_that_is_lost_is_found():
    assert [word for word in WORDS if word not in FILE.replace("hours by train", "")] == ["hours by train"]
