"""`likewise decide`: decisions of a round, the record that opens its draw, and what verification finds."""

import hashlib
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric, ThresholdDecision, load_model, save_model
from likewise._shared_draw import SharedDraw, key_commitment
from likewise.cli.batch_scoring import ScoringJob
from likewise.cli.score import _what_is_shown
from likewise.decisions.round_record import RoundRecord
from shell import LOANS, run

KEY = bytes(range(32))
FEATURES = ["income", "years", "region", "race"]
METRIC = TableMetric({"income": 0.0001, "years": 0.01}, {"region": 0.05, "race": 0})
BAND = "--threshold 0.5 --width 0.2"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Models of two and of three classes, of whole numbers, with a threshold of its own, and for regression."""
    place = tmp_path_factory.mktemp("work")
    LOANS.to_csv(place / "loans.csv", index=False)
    (place / "key").write_bytes(KEY)
    (place / "other key").write_bytes(KEY[::-1])
    (place / "short").write_bytes(b"abc")
    card, X = AdditiveClassifier(METRIC, penalty=0.01), LOANS[FEATURES]
    card.fit(X, LOANS.approved)
    card.favourable_ = "yes"
    save_model(card, place / "model.skops")
    grades = {"threshold": [0.4, 0.6], "width": 0.15, "grades": ["C", "B", "A"]}
    save_model(ThresholdDecision.from_model(card, **grades), place / "grades.skops")
    save_model(ThresholdDecision.from_model(card, threshold=0.5, width=0.2, favourable="no"), place / "band.skops")
    several = AdditiveClassifier(METRIC, penalty=0.01).fit(X, LOANS.years // 10)
    save_model(several, place / "several.skops")
    regression = AdditiveRegressor(METRIC, penalty=0.01, output_range=(0, 30)).fit(X, LOANS.years)
    save_model(regression, place / "regression.skops")
    return place


def decide(work, words, out, model="model.skops", round="2026-11-17"):
    return run(work, f"decide {model} loans.csv --round {round} --key-file key --id id --out {out} {words}".split())


CASES = {
    "probabilities": ("model.skops", "", "csv"),
    "band": ("model.skops", BAND, "csv"),
    "unfavourable": ("model.skops", f"{BAND} --favourable no", "csv"),
    "stored": ("band.skops", "", "parquet"),
    "grades": ("grades.skops", "", "csv"),
    "several": ("several.skops", "", "parquet"),
    "several as text": ("several.skops", "", "csv"),
}


@pytest.mark.parametrize("case", CASES)
def test_decisions_are_those_of_the_model_in_the_round_and_can_be_verified(work, case):
    model, words, kind = CASES[case]
    out = f"{case.replace(' ', '-')}.{kind}"
    done = decide(work, words, out, model)
    assert done.exit_code == 0, done.output
    fitted = load_model(work / model)
    if words:
        favourable = "no" if "favourable" in words else None
        fitted = ThresholdDecision.from_model(fitted, threshold=0.5, width=0.2, favourable=favourable)
    expected = fitted.decide(LOANS[FEATURES], round="2026-11-17", key=KEY)
    found = (pd.read_csv if kind == "csv" else pd.read_parquet)(work / out)
    assert found["decision"].tolist() == expected.tolist()
    assert len(set(expected)) > 1
    assert found["id"].tolist() == LOANS["id"].tolist()
    chances = fitted.predict_proba(LOANS[FEATURES])
    names = [f"p_{label}" for label in fitted.classes_]
    np.testing.assert_allclose(found[names], chances, rtol=0, atol=1e-15)
    record = json.loads((work / f"{out}.round.json").read_text())
    draw = SharedDraw.from_key(KEY, "2026-11-17")
    assert record["round"] == "2026-11-17"
    assert record["key_commitment"] == key_commitment(KEY)
    assert (record["draw_commitment"], record["opening"]) == (draw.commitment, draw.opening.hex())
    assert KEY.hex() not in (work / f"{out}.round.json").read_text()
    for more in ("", "--key-file key", f"{model} loans.csv", f"{model} loans.csv --id id"):
        done = run(work, f"decide {more} --verify {out}")
        assert done.exit_code == 0, done.output
        assert draw.commitment in done.output


def test_commitments_are_those_of_the_record_and_nothing_is_decided(work):
    done = run(work, "decide --commit --round r1 --key-file key --json")
    facts = json.loads(done.output)
    assert not (work / "decisions.csv").exists()
    decide(work, "", "committed.csv", round="r1")
    record = json.loads((work / "committed.csv.round.json").read_text())
    assert {name: record[name] for name in facts} == facts
    draw = SharedDraw.from_key(KEY, "r1")
    assert draw.opening.hex() not in done.output


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])  # processes take seconds to start
def test_batches_and_processes_give_the_same_bytes(work, jobs):
    contents = set()
    for i, words in enumerate(("", "--batch 7", f"--batch 40 --jobs {jobs}")):
        out = f"same-{jobs}-{i}.csv"
        assert decide(work, f"{BAND} {words}", out).exit_code == 0
        contents.add(((work / out).read_bytes(), (work / f"{out}.round.json").read_bytes()))
    assert len(contents) == 1
    assert decide(work, "--batch 7", f"small{jobs}.parquet").exit_code == 0
    assert run(work, f"decide model.skops loans.csv --verify small{jobs}.parquet").exit_code == 0


@pytest.fixture
def decided(work, tmp_path):
    """A fresh file of decisions by a band, with its record, model and table."""
    for name in ("loans.csv", "key", "other key", "model.skops", "several.skops"):
        (tmp_path / name).write_bytes((work / name).read_bytes())
    assert decide(tmp_path, BAND, "d.csv").exit_code == 0
    return tmp_path


def edit(place, change):
    table = pd.read_csv(place / "d.csv", dtype=str)
    change(table).to_csv(place / "d.csv", index=False)


def edit_record(place, **changes):
    path = place / "d.csv.round.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def other(label):
    return "no" if label == "yes" else "yes"


def flipped(table):
    table.loc[16, "decision"] = other(table.loc[16, "decision"])
    return table


def nudged(table):
    """A score outside the band stays outside, so no decision changes: only the model can tell."""
    at = table.index[table["p_yes"].isin(["0.0", "1.0"])][0]
    table.loc[at, "score"] = repr(float(table.loc[at, "score"]) + 0.01 * (1 if table.loc[at, "p_yes"] == "1.0" else -1))
    return table


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        (flipped, "--id id", "1 of 150 rows of d.csv are wrong. The first is row 17 (id 16): '"),
        (
            lambda table: table.assign(p_yes="0.5"),
            "",
            "150 of 150 rows of d.csv are wrong. The first is row 1: its",
        ),
        (lambda table: table.assign(score="nan"), "", "its probabilities are not those of a model"),
        (lambda table: table[:-1], "", "d.csv has 149 rows, and the record is about 150 people"),
        (lambda table: table.assign(id="9"), "", "d.csv was changed after the round"),
        (nudged, "", "d.csv was changed after the round"),
        (nudged, "model.skops loans.csv", "of d.csv has probabilities that the model does not give: score is"),
        (lambda table: table[::-1], "model.skops loans.csv", "has probabilities that the model does not give"),
        (lambda table: table[:-1], "model.skops loans.csv", "d.csv does not have one row for each of loans.csv"),
    ],
)
def test_a_changed_row_fails_and_is_named(decided, change, words, message):
    edit(decided, change)
    done = run(decided, f"decide {words} --verify d.csv")
    assert done.exit_code == 1
    assert message in done.output, done.output
    assert done.output.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        ({"round": "2026-11-18"}, "", "opening must be the one committed to"),
        ({"opening": "00" * 32}, "", "opening must be the one committed to"),
        ({"draw_commitment": "00" * 32}, "", "opening must be the one committed to"),
        ({"n_people": 3}, "", "the record is about 3 people"),
        ({"model": "00"}, "model.skops loans.csv", "model.skops is not the model of the round"),
        ({"table": "00"}, "model.skops loans.csv", "loans.csv is not the table of the round"),
        ({}, "several.skops loans.csv", "several.skops is not the model of the round"),
    ],
)
def test_a_changed_record_fails(decided, change, words, message):
    edit_record(decided, **change)
    done = run(decided, f"decide {words} --verify d.csv")
    assert done.exit_code == 1
    assert message in done.output, done.output


def swapped(table):
    """Two people with other decisions exchange their ids, so each gets the decision of the other."""
    i, j = table.index[table["decision"] == "yes"][0], table.index[table["decision"] == "no"][0]
    table.loc[[i, j], "id"] = table.loc[[j, i], "id"].to_numpy()
    return table


FORGERIES = {
    "ids": swapped,
    "rows": lambda table: table[::-1],
    "a score": nudged,
    "a row twice": lambda table: pd.concat([table[:-1], table[:1]]),
}


def rewrite(place, change, **fields):
    """Edit the decisions, and write their digest and these fields into the record."""
    edit(place, change)
    edit_record(place, decisions=hashlib.sha256((place / "d.csv").read_bytes()).hexdigest(), **fields)


@pytest.mark.parametrize("forgery", FORGERIES)
def test_files_that_are_changed_with_their_digest_fail(decided, forgery):
    rewrite(decided, FORGERIES[forgery])
    for words in ("", "model.skops loans.csv", "--key-file key"):
        done = run(decided, f"decide {words} --verify d.csv")
        assert (done.exit_code, done.output.count("\n")) == (1, 1), done.output
    assert "its seal is not that of the key" in done.output


@pytest.mark.parametrize("forgery", FORGERIES)
def test_whoever_rewrites_every_digest_is_found_by_table_seal_or_publication_and_that_is_said(decided, forgery):
    published = json.loads((decided / "d.csv.round.json").read_text())["digest"]
    rewrite(decided, FORGERIES[forgery])
    record = RoundRecord.from_json((decided / "d.csv.round.json").read_text(), "")
    (decided / "d.csv.round.json").write_text(replace(record, digest=record._digest).to_json())
    for words in ("model.skops loans.csv", "--key-file key"):
        assert run(decided, f"decide {words} --verify d.csv").exit_code == 1
    done = run(decided, "decide --verify d.csv")  # the control: nobody could tell by these two files
    assert done.exit_code == 0
    assert "Not shown: whose decisions these are" in done.output
    assert published not in done.output
    # Whoever holds the key can seal it again: the table still tells, and so does what was published.
    (decided / "d.csv.round.json").write_text(record.sealed(KEY).to_json())
    done = run(decided, "decide --key-file key --verify d.csv")
    assert done.exit_code == 0
    assert "Not shown: that a holder of the key wrote no second record" in done.output
    assert published not in done.output
    assert run(decided, "decide model.skops loans.csv --key-file key --verify d.csv").exit_code == 1


@pytest.mark.parametrize(
    "field",
    ["round", "key_commitment", "draw_commitment", "opening", "n_people", "kept", "model", "table", "decisions"],
)
def test_every_field_of_a_record_is_sealed(decided, field):
    record = RoundRecord.from_json((decided / "d.csv.round.json").read_text(), "")
    assert record.changes(KEY) is None
    for changed in (
        replace(record, **{field: 7 if field == "n_people" else ("other",) if field == "kept" else "other"}),
        replace(record, rule=replace(record.rule, width=0.3)),
    ):
        assert changed.changes() is not None
        assert replace(changed, digest=changed._digest).changes() is None
        assert replace(changed, digest=changed._digest).changes(KEY) is not None


def test_parts_of_another_round_are_no_part_of_this_one(decided, monkeypatch):
    """A run that was interrupted goes on with its own draw only; decisions of two draws get no record."""

    def stopped(job, batch):
        if len(list((decided / "two.csv.parts").glob("0*.parquet"))) >= 3:
            raise KeyboardInterrupt
        return scored(job, batch)

    scored = ScoringJob.__call__
    with monkeypatch.context() as patched:
        patched.setattr(ScoringJob, "__call__", stopped)
        assert decide(decided, f"{BAND} --batch 20", "two.csv", round="r0").exit_code == 130
    names = iter(f"r{i}" for i in range(1, 99))
    chosen = SharedDraw.from_key(KEY, "r0").uniform
    other = next(name for name in names if abs(SharedDraw.from_key(KEY, name).uniform - chosen) > 0.5)
    done = decide(decided, f"{BAND} --batch 20", "two.csv", round=other)
    assert done.exit_code == 2
    assert "holds an unfinished run with another model, table or options" in done.output
    plan = decided / "two.csv.parts" / "plan.json"
    forged = json.loads(plan.read_text()) | {"draw": SharedDraw.from_key(KEY, other).commitment}
    plan.write_text(json.dumps(forged))
    done = decide(decided, f"{BAND} --batch 20", "two.csv", round=other)
    assert done.exit_code == 2
    assert "No record was written: " in done.output
    assert "follows from the draw" in done.output
    assert not (decided / "two.csv.round.json").exists()


def test_another_draw_with_commitments_of_its_own_fails_at_the_rows_or_at_the_key(decided):
    """Whoever replaces the draw and its commitment changes outcomes, and cannot know a key with the same commitment."""
    for i in range(100):
        draw = SharedDraw.from_key(KEY[::-1], f"try {i}")
        edit_record(decided, round=draw.round, opening=draw.opening.hex(), draw_commitment=draw.commitment)
        done = run(decided, ["decide", "--verify", "d.csv", "--key-file", "key"])
        assert done.exit_code == 1
        assert "The draw does not follow from the key and the round" in done.output
        if run(decided, "decide --verify d.csv").exit_code == 1:
            break
    else:
        pytest.fail("no other draw changed a decision")
    done = run(decided, ["decide", "--verify", "d.csv", "--key-file", "other key", "--json"])
    assert done.exit_code == 1
    assert "is not the key of the record" in done.output


def test_it_shows_the_plain_threshold_beside_the_rule(work):
    facts = json.loads(decide(work, f"{BAND} --json", "beside.csv").output)
    card = load_model(work / "model.skops")
    h = card.predict_proba(LOANS[FEATURES])[:, 1]
    i, j = np.nonzero(np.triu(METRIC.pairwise(LOANS[FEATURES]) <= 0.05, 1))
    assert facts["near_pairs"] == len(i)
    assert facts["near_different_by_threshold"] == pytest.approx(((h[i] > 0.5) != (h[j] > 0.5)).mean())
    chance = np.clip((h - 0.4) / 0.2, 0, 1)
    assert facts["near_different"] == pytest.approx(np.abs(chance[i] - chance[j]).mean())
    assert facts["near_guarantee"] == pytest.approx(float(card.guarantee_.bound(0.05)) / 0.2)
    assert "by a plain threshold at 0.5" in decide(work, BAND, "beside2.csv").output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("decide model.skops loans.csv --key-file key", "--round and --key-file are needed"),
        ("decide model.skops loans.csv --round r", "--round and --key-file are needed"),
        ("decide --round r --key-file key", "MODEL and TABLE are needed"),
        (
            "decide model.skops loans.csv --round r --key-file short",
            "a secret of at least 16 bytes; it has 3",
        ),
        (
            "decide model.skops loans.csv --round r --key-file key --threshold 0.5",
            "--threshold and --width go together",
        ),
        ("decide model.skops loans.csv --round r --key-file key --width 0", "--threshold and --width go together"),
        (
            "decide model.skops loans.csv --round r --key-file key --threshold 0.5 --width 0",
            "width must be a positive number below 1 or 1; got 0",
        ),
        ("decide model.skops loans.csv --round r --key-file key --favourable yes", "--favourable goes with"),
        (f"decide model.skops loans.csv --round r --key-file key {BAND} --favourable oui", "must be one of no, yes"),
        (f"decide band.skops loans.csv --round r --key-file key {BAND}", "are in this model already"),
        (f"decide several.skops loans.csv --round r --key-file key {BAND}", "estimator must be for two classes; got 3"),
        ("decide regression.skops loans.csv --round r --key-file key", "Decisions are for classifiers"),
        ("decide --verify loans.csv", "Cannot read loans.csv.round.json, the record of the round"),
        ("decide model.skops --verify loans.csv", "MODEL and TABLE go together"),
    ],
)
def test_bad_input_is_one_line(work, words, message):
    done = run(work, words)
    assert done.exit_code == 2
    assert message in done.output, done.output
    assert done.output.count("\n") == 1
    assert not (work / "decisions.csv").exists()


def test_neither_decisions_nor_records_are_replaced_without_force(work):
    assert decide(work, "", "once.csv").exit_code == 0
    for gone in ("once.csv", "once.csv.round.json"):
        before = (work / gone).read_bytes()
        (work / gone).unlink()
        done = decide(work, "", "once.csv")
        assert done.exit_code == 2
        assert "exists already" in done.output
        (work / gone).write_bytes(before)
    assert decide(work, "--force", "once.csv").exit_code == 0


def test_records_that_are_none_are_refused(work):
    (work / "junk.csv").write_text("a\n1\n")
    for text in ("", "[]", "{}", '{"format": "likewise round 2", "rule": 3}', '{"format": "other"}'):
        (work / "junk.csv.round.json").write_text(text)
        done = run(work, "decide --verify junk.csv")
        assert done.exit_code == 2
        assert "must be a record of a round" in done.output
    (work / "junk.csv.round.json").write_text('{"format": "likewise round 1", "rule": {}}')
    assert "does not bind ids to decisions" in run(work, "decide --verify junk.csv").output


def test_enforcing_for_decisions_makes_them_within_the_metric(work):
    metric = "p = 1\n[numeric]\nincome = 0.0001\nyears = 0.01\n[categorical]\nregion = 0.05\nrace = 0\n"
    (work / "metric.toml").write_text(metric)
    words = "enforce loans.csv --target approved --metric metric.toml --method additive --seed 0 --out decision.skops"
    done = run(work, f"{words} --decide --threshold 0.6 --width 0.25 --favourable yes")
    assert done.exit_code == 0, done.output
    assert "Everybody in a round shares one cut-off" in done.output
    decision = load_model(work / "decision.skops")
    assert (decision.width, decision.threshold, decision.favourable) == (0.25, 0.6, "yes")
    assert decision.guarantee_.metric.numeric["years"] == pytest.approx(0.01, rel=1e-12)
    assert decision.estimator_.guarantee_.metric.numeric["years"] == pytest.approx(0.0025, rel=1e-12)
    rng = np.random.default_rng(0)
    a, b = (LOANS[FEATURES].iloc[rng.integers(len(LOANS), size=20_000)] for _ in range(2))
    gaps = np.abs(decision.predict_proba(a)[:, 1] - decision.predict_proba(b)[:, 1])
    D = decision.guarantee_.metric(a, b)
    assert (gaps <= D + 1e-12).all()
    assert (gaps > D / 4 + 0.01).any()  # the control: it uses more than the scores alone would be allowed
    assert decide(work, "", "enforced.csv", "decision.skops").exit_code == 0
    assert "go together" in run(work, f"{words} --force --decide").output
    assert "go together" in run(work, f"{words} --force --width 0.1").output
    assert "--width must be" in run(work, f"{words} --force --decide --threshold 0.5 --width 3").output


@pytest.mark.parametrize(("kept", "words"), [((), ""), (("id",), ", and id are those of the table, row by row")])
def test_what_was_kept_is_named_if_anything_was(kept, words):
    shown, _ = _what_is_shown(SimpleNamespace(kept=kept), with_table=True, with_key=False)
    assert shown == "; these are the model's for the people of the table" + words
