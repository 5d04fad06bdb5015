"""CSV in, CSV out: files and standard streams."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from shell import LOANS, run

SCORED = LOANS.assign(score=(LOANS.approved == "yes") * 1.0, name=[f"person {i}" for i in range(len(LOANS))])


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    place = tmp_path_factory.mktemp("work")
    LOANS.to_csv(place / "loans.csv", index=False)
    for command in (
        "metric loans.csv --target approved --drop id --zero race --out metric.toml",
        "enforce loans.csv --method smoothing "
        "--target approved --metric metric.toml --draws 20 --holdout 0 --seed 0 --out model.skops",
        "score model.skops loans.csv --id id --out scores.parquet",
    ):
        assert run(place, command).exit_code == 0
    return place


def test_csv_holds_the_scores_of_parquet_to_the_last_digit(work):
    expected = pd.read_parquet(work / "scores.parquet")
    for name in ("scores.csv", "scores.csv.gz"):
        assert run(work, f"score model.skops loans.csv --id id --batch 40 --out {name}").exit_code == 0
        pd.testing.assert_frame_equal(pd.read_csv(work / name), expected)


def test_standard_input_and_output(work):
    done = run(work, "score model.skops - --id id --keep race --out -", LOANS.to_csv(index=False))
    assert done.exit_code == 0, done.stderr
    scores = pd.read_csv(io.StringIO(done.stdout))
    assert scores.columns.tolist() == ["id", "race", "p_no", "p_yes"]
    np.testing.assert_array_equal(scores["p_yes"], pd.read_parquet(work / "scores.parquet")["p_yes"])
    assert "Scored 150 people of standard input." in done.stderr


def test_standard_input_into_a_file(work):
    done = run(work, "score model.skops - --id id --out from_input.csv", LOANS.to_csv(index=False))
    assert done.exit_code == 0, done.stderr
    pd.testing.assert_frame_equal(pd.read_csv(work / "from_input.csv"), pd.read_parquet(work / "scores.parquet"))
    assert not list(work.glob("*.parts"))


def test_a_stopped_run_on_standard_input_does_not_claim_to_go_on(work, monkeypatch):
    def interrupted(self, batch):
        if len(batch) == 30:  # the last batch
            raise KeyboardInterrupt
        return original(self, batch)

    from likewise.cli.batch_scoring import ScoringJob

    original = ScoringJob.__call__
    monkeypatch.setattr(ScoringJob, "__call__", interrupted)
    monkeypatch.setattr("signal.signal", lambda *of: None)
    done = run(work, "score model.skops - --batch 40 --out stopped.csv", LOANS.to_csv(index=False))
    assert done.exit_code == 130
    assert "cannot be resumed" in done.stderr
    assert not list(work.glob("stopped*"))
    done = run(work, "score model.skops loans.csv --batch 40 --out stopped.csv")
    assert "120 of 150 people are done and kept in stopped.csv.parts: run the same command to resume" in done.stderr
    monkeypatch.setattr(ScoringJob, "__call__", original)
    assert run(work, "score model.skops loans.csv --batch 40 --out stopped.csv").exit_code == 0
    assert not list(work.glob("*.parts"))


def test_audit_takes_scores_from_standard_input_and_names_people(work):
    command = "audit - --metric metric.toml --scores score --id name --out worst.csv --force"
    done = run(work, command, SCORED.to_csv(index=False))
    assert done.exit_code == 0, done.stderr
    assert "The worst pairs (by name):" in done.stdout
    worst = pd.read_csv(work / "worst.csv")
    assert worst.columns.tolist()[:2] == ["name_a", "name_b"]
    by_name = SCORED.set_index("name")
    assert (by_name.score[worst.name_a].to_numpy() != by_name.score[worst.name_b].to_numpy()).all()
    assert "Left out, since the metric does not name them: id, approved." in done.stderr


def test_scores_on_another_scale(work):
    points = SCORED.assign(score=300 + 500 * SCORED.score).to_csv(index=False)
    command = "audit - --metric metric.toml --scores score --json"
    found = json.loads(run(work, f"{command} --range 300 800", points).stdout)
    plain = json.loads(run(work, command, SCORED.to_csv(index=False)).stdout)
    assert found["n_violations"] == plain["n_violations"] > 0
    assert found["max_excess"] == pytest.approx(plain["max_excess"])


def test_notes_are_in_the_document(work):
    facts = json.loads(
        run(work, "audit - --metric metric.toml --scores score --json", SCORED.to_csv(index=False)).stdout
    )
    assert facts["notes"] == ["Left out, since the metric does not name them: id, approved, name."]


def test_a_model_brings_its_metric(work):
    done = run(work, "audit loans.csv --model model.skops")
    assert done.exit_code == 0, done.output
    assert "Against the metric in model.skops." in done.output
    given = run(work, "audit loans.csv --model model.skops --metric metric.toml")
    assert given.stdout in done.stdout
    assert (
        "likewise audit loans.csv --model model.skops" in run(work, "score model.skops loans.csv --out hint.csv").stdout
    )


def test_no_text_in_a_csv_file_is_a_formula_for_a_spreadsheet(work):
    """Text ids and kept categories get a quote; numbers, also as text, and Parquet stay what they are."""
    ids = ["=HYPERLINK(1)", "+x", "-x", "@x", "\tx", "plain", "-5"]
    hostile = LOANS.head(7).assign(id=ids, change=[-1.5, -2, 3, 0, 1, 2, -7])
    hostile.to_csv(work / "hostile.csv", index=False)
    command = "score model.skops hostile.csv --id id --keep change --force --out"
    for name in ("hostile_scores.csv", "hostile_scores.parquet"):
        assert run(work, f"{command} {name}").exit_code == 0
    scores, stored = pd.read_csv(work / "hostile_scores.csv"), pd.read_parquet(work / "hostile_scores.parquet")
    assert stored["id"].tolist() == ids
    assert scores["id"].tolist() == [*(f"'{name}" for name in ids[:5]), "plain", "-5"]
    assert scores["change"].tolist() == hostile["change"].tolist()
    assert scores["id"].str.removeprefix("'").tolist() == ids  # so they can be joined
    done = run(work, "score model.skops hostile.csv --id id --out -")
    assert "\n'=HYPERLINK(1)," in done.stdout


def test_worst_pairs_and_comparisons_hold_no_formulas(work):
    named = SCORED.assign(name=[f"=A{i}" for i in range(len(SCORED))])
    named.to_csv(work / "named.csv", index=False)
    run(work, "audit named.csv --metric metric.toml --scores score --id name --out worst_named.csv --force")
    worst = pd.read_csv(work / "worst_named.csv")
    text = worst.select_dtypes(exclude="number")
    assert len(worst)
    assert worst.map(lambda cell: isinstance(cell, str) and cell.startswith("'=A")).any(axis=None)
    assert not text.map(lambda cell: isinstance(cell, str) and cell[:1] in "=+-@").any(axis=None)
