"""The command line as a person meets it: on tables it has never seen, and with every mistake a hurry can make."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric
from likewise.cli.console import Output
from likewise.cli.demo import _echo_conclusion
from likewise.datasets import load_mortgages
from likewise.io import load_model
from likewise.metric_file import MetricFile, read_metric, read_metric_file
from shell import LOANS, N, run


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A directory with a table, a metric, and two models."""
    place = tmp_path_factory.mktemp("work")
    LOANS.to_csv(place / "loans.csv", index=False)
    LOANS.to_parquet(place / "loans.parquet", index=False)
    LOANS.assign(score=(LOANS.approved == "yes") * 1.0).to_csv(place / "scored.csv", index=False)
    for command in (
        "metric loans.csv --target approved --drop id --zero race --out metric.toml",
        "enforce loans.csv --method smoothing "
        "--target approved --metric metric.toml --draws 50 --seed 0 --vote soft --out model.skops",
    ):
        assert run(place, command).exit_code == 0
    return place


def test_metric_writes_a_file_that_people_can_edit(work):
    metric = read_metric(work / "metric.toml")
    assert metric.categorical["race"] == 0
    assert metric.numeric["constant"] == 0
    assert set(metric.columns) == {"income", "years", "region", "race", "constant"}
    assert 'protected = ["race"] # set to 0 by people: must not matter' in (work / "metric.toml").read_text()


def test_smooth_says_what_is_promised_and_what_next(work):
    done = run(
        work,
        "enforce loans.parquet --method smoothing --target approved --metric metric.toml --draws 50 --out other.skops",
    )
    assert done.exit_code == 0
    assert "Not covered" in done.output
    assert "Wrote other.skops" in done.output
    assert "likewise score other.skops" in done.output


def test_no_command_asks_for_columns_that_must_not_matter(work, tmp_path):
    for name in ("metric.toml", "model.skops"):
        (tmp_path / name).write_bytes((work / name).read_bytes())
    blind = LOANS.drop(columns=["race", "constant"])
    blind.assign(score=0.5).to_csv(tmp_path / "blind.csv", index=False)
    (tmp_path / "parts").mkdir()
    blind.to_parquet(tmp_path / "parts" / "0.parquet")
    enforce = "--target approved --metric metric.toml --method additive"
    for command in (
        "score model.skops blind.csv --out scores.csv",
        "audit blind.csv --model model.skops",
        "audit parts --model model.skops",
        "audit blind.csv --metric metric.toml --scores score",
        "report model.skops blind.csv --target approved --folds 2",
        "compare blind.csv --target approved --metric metric.toml --method additive --folds 2",
        "tradeoff blind.csv --target approved --metric metric.toml --scale 1 --folds 2",
        f"enforce blind.csv {enforce} --out card.skops",
        f"enforce parts {enforce} --out partitioned.skops",
        "report card.skops blind.csv --target approved --folds 2 --out card.html",
    ):
        done = run(tmp_path, command)
        assert (done.exit_code, command) == (0, command), done.output


def test_score_audit_and_report(work):
    assert run(work, "score model.skops loans.csv --keep id --out scores.parquet").exit_code == 0
    scores = pd.read_parquet(work / "scores.parquet")
    assert list(scores.columns) == ["id", "p_no", "p_yes"]
    done = run(work, "audit loans.csv --metric metric.toml --model model.skops --max-excess 10")
    assert done.exit_code == 0
    assert "Above D + 10 points, the gate: 0 pairs. The gate passed." in done.output
    command = "report model.skops loans.csv --target approved --outcome yes --folds 2"
    assert run(work, f"{command} --out report.html").exit_code == 0
    page = (work / "report.html").read_text(encoding="utf-8")
    assert "model.skops, smoothed model" in page
    assert "Data of" not in page  # the date of a file is not that of its data
    assert re.search(r'<option value="0">row \d+</option>', page)  # as audit counts them
    assert "row 0<" not in page
    assert "row 151" not in page
    assert run(work, f"{command} --id income --date 2004 --out named.html").exit_code == 0
    named = (work / "named.html").read_text(encoding="utf-8")
    assert re.search(r'<option value="0">income [\d.]+</option>', named)
    assert '<dd class="data">2004</dd>' in named
    assert "&lt;b&gt;" in page
    assert "<b>" not in page.split("<body")[1].replace("<b>0", "")
    assert "fair model" not in page


def test_audit_is_a_gate(work):
    done = run(work, "audit scored.csv --metric metric.toml --scores score --max-excess 0 --out worst.csv")
    assert done.exit_code == 1
    assert "The gate failed." in done.output
    assert len(pd.read_csv(work / "worst.csv")) > 0
    assert run(work, "audit scored.csv --metric metric.toml --scores score").exit_code == 0


@pytest.fixture(scope="module")
def gated(work):
    """Four people at distance 0 and a fifth at a distance of 5 points; the scores differ by 2, 0.4 and 7 points."""
    (work / "gate.toml").write_text("p = 1\n[numeric]\nincome = 0.05\n[categorical]\nrace = 0\n")
    people = pd.DataFrame({"income": [0, 0, 0, 1], "race": list("xyxy"), "score": [0.5, 0.52, 0.504, 0.57]})
    people.to_csv(work / "gated.csv", index=False)
    people.assign(score=300 + 550 * people["score"]).to_csv(work / "ranged.csv", index=False)
    (work / "gated").mkdir()
    people.to_parquet(work / "gated" / "0.parquet")
    return work


@pytest.mark.parametrize("table", ["gated.csv", "gated", "ranged.csv --range 300 850"])
@pytest.mark.parametrize(("gate", "n_above"), [(0, 5), (0.3, 5), (0.5, 4), (1.5, 4), (1.8, 2), (2.5, 0), (99.9, 0)])
def test_the_gate_is_in_points_and_is_not_what_is_searched_with(gated, table, gate, n_above):
    """Excesses are 2, 0.4, 1.6, 2, 0 and 1.6 points: five pairs are above D, whatever the gate tolerates."""
    width = 5.5 if "--range" in table else 1.0  # of a point, in the unit of the scores
    command = f"audit {table} --metric gate.toml --scores score --max-excess {width * gate:.12g}"
    facts = json.loads(run(gated, f"{command} --json").output)
    assert (facts["n_violations"], facts["n_above_gate"], facts["passed"]) == (5, n_above, n_above == 0)
    assert facts["max_excess"] == pytest.approx(0.02)
    assert len(facts["worst"]) == 5
    done = run(gated, command)
    assert done.exit_code == (1 if n_above else 0)
    worst = "2 points" if width == 1 else "11"
    assert f"Above the distance D: 5 pairs, the worst by {worst}." in done.output
    assert "No pair was found" not in done.output


@pytest.mark.parametrize("gate", ["100", "1e9", "inf", "nan", "-0.1"])
def test_a_gate_that_cannot_fail_is_refused(gated, gate):
    done = run(gated, f"audit gated.csv --metric gate.toml --scores score --max-excess {gate}")
    assert done.exit_code == 2
    assert "--max-excess must be at least 0 and below 100, in percentage points" in done.stderr


def test_the_gate_of_the_help_can_fail(gated):
    gate = re.search(r"--max-excess ([\d.]+)", run(gated, "audit --help").output).group(1)
    assert run(gated, f"audit gated.csv --metric gate.toml --scores score --max-excess {gate}").exit_code == 1


def test_a_sampled_model_is_counted_against_its_distance_and_its_epsilon(work):
    enforce = (
        "--target approved --metric metric.toml --method smoothing --noise gaussian --model forest --draws 30 --seed 1"
    )
    assert run(work, f"enforce loans.csv {enforce} --out sampled.skops").exit_code == 0
    done = run(work, "audit loans.csv --model sampled.skops --max-excess 0 --json")
    facts = json.loads(done.output)
    assert facts["epsilon"] > 0.1
    assert facts["n_violations"] == facts["n_above_gate"] > 0  # above D itself
    assert facts["n_above_epsilon"] == 0
    assert "is below the" in facts["notes"][-1]
    wide = run(work, f"audit loans.csv --model sampled.skops --max-excess {100 * facts['epsilon'] + 0.1:.1f}")
    assert wide.exit_code == 0
    assert "the epsilon of the guarantee: 0 pairs." in wide.output


def test_the_worst_pairs_show_protected_columns_first_and_both_scores(work):
    names = [f"x{k}" for k in range(9)]
    people = pd.DataFrame({name: [0, 1] for name in names}).assign(sex=["f", "m"], score=[0.2, 0.9])
    people.to_csv(work / "wide.csv", index=False)
    weights = "".join(f"{name} = 0.001\n" for name in names)
    (work / "wide.toml").write_text(f"p = 1\n[numeric]\n{weights}[categorical]\nsex = 0\n")
    done = run(work, "audit wide.csv --metric wide.toml --scores score --out wide_worst.csv")
    assert re.search(r"0\.2 +0\.9 .* sex: f / m, x0: 0 / 1.*, 3 more columns$", done.output, re.MULTILINE)
    facts = json.loads(run(work, "audit wide.csv --metric wide.toml --scores score --json").output)
    written = pd.read_csv(work / "wide_worst.csv")
    assert facts["worst"][0]["differs"] == written["differs"][0]
    assert written["differs"][0] == ", ".join(["sex: f / m", *(f"{name}: 0 / 1" for name in names)])
    assert written[["score_a", "score_b"]].to_numpy().tolist() == [[0.2, 0.9]]


def test_the_outcome_that_differs_is_named(work):
    assert run(work, "audit loans.csv --model model.skops --metric strict.toml --out named.csv").exit_code == 2
    strict = (work / "metric.toml").read_text()
    (work / "strict.toml").write_text(re.sub(r"^(income|years) = .*$", r"\1 = 0", strict, flags=re.MULTILINE))
    assert run(work, "audit loans.csv --model model.skops --metric strict.toml --out named.csv").exit_code == 0
    assert set(pd.read_csv(work / "named.csv")["outcome"]) == {"yes"}


def test_json_is_one_document(work):
    done = run(work, "audit scored.csv --metric metric.toml --scores score --json")
    facts = json.loads(done.output)
    assert facts["n_pairs"] == N * (N - 1) // 2
    assert facts["n_violations"] > 0
    assert facts["worst"][0]["excess"] == pytest.approx(facts["max_excess"])
    facts = json.loads(run(work, "metric loans.csv --target approved --drop id --out j.toml --json").output)
    assert facts["metric_file"] == "j.toml"


FRESH = {"metric": "fresh.toml", "enforce": "fresh.skops", "score": "fresh.parquet", "report": "fresh.html"}


@pytest.fixture(scope="module")
def mistakes(work):
    LOANS[:0].to_csv(work / "nobody.csv", index=False)
    LOANS[:1].to_csv(work / "one.csv", index=False)
    LOANS.drop(columns="income").to_csv(work / "poor.csv", index=False)
    LOANS.assign(income=LOANS.income.where(LOANS.id != 3)).to_csv(work / "blank.csv", index=False)
    LOANS.assign(approved="yes").to_csv(work / "same.csv", index=False)
    LOANS[["approved"]].to_csv(work / "bare.csv", index=False)
    (work / "empty.csv").write_text("")
    LOANS.to_csv(work / "semicolon.csv", index=False, sep=";")
    LOANS[["approved"]].assign(nothing=np.nan).to_csv(work / "hollow.csv", index=False)
    (work / "half.parquet").write_bytes((work / "loans.parquet").read_bytes()[:300])
    (work / "bad.toml").write_text((work / "metric.toml").read_text().replace("p = 1", "p = 0.5"))
    (work / "bad.skops").write_bytes((work / "model.skops").read_bytes()[:-100])
    (work / "people.xlsx").write_text("x")
    return work


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("metric absent.csv --target approved", "There is no file absent.csv"),
        ("metric loans.csv --target aproved", "loans.csv has no column 'aproved'; it has 'id', 'income'"),
        ("metric loans.csv --target approved --zero rase --drop id", "there is no 'rase' among"),
        ("metric loans.csv --target approved --drop nothing", "has no column 'nothing'"),
        ("metric loans.csv --target years", "has 30 different whole numbers, which could be class labels or numeric"),
        ("metric loans.csv --target income --task classification", "has .* different values, too many for classes"),
        ("metric loans.csv --target approved --task regression", "must hold numbers for --task regression"),
        ("metric loans.csv --target approved --delimiter ab", "--delimiter must be one character"),
        (
            "enforce loans.csv --target approved --metric metric.toml --delimiter ab",
            "--delimiter must be one character",
        ),
        ("metric loans.csv --target approved --decimal ,", "needs another --delimiter, such as ';'"),
        ("metric loans.csv --target approved --encoding klingon", "--encoding 'klingon' is unknown"),
        ("metric loans.csv --target approved --encoding ascii", "Cannot read loans.csv as ascii .*Give --encoding"),
        ("metric semicolon.csv --target approved --delimiter ,", "has one column only.*as --delimiter"),
        ("metric hollow.csv --target approved", "Every column but the target is entirely empty"),
        ("metric nobody.csv --target approved", "nobody.csv has no rows"),
        ("metric one.csv --target approved", "for everyone"),
        ("metric same.csv --target approved", "for everyone, so there is nothing to learn"),
        ("metric bare.csv --target approved", "no column but the target"),
        ("metric empty.csv --target approved", "Cannot read empty.csv: it is empty"),
        ("metric half.parquet --target approved", "Cannot read half.parquet"),
        ("metric people.xlsx --target approved", "must be a .csv, .csv.gz or .parquet file"),
        ("metric loans.csv --target approved --drop id --out nowhere/m.toml", "Cannot write nowhere/m.toml"),
        ("enforce loans.csv --method smoothing --target approved --metric absent.toml", "There is no file absent.toml"),
        ("compare loans.csv --target income --metric metric.toml", "The metric names the target 'income'"),
        ("attack loans.csv --model model.skops --only Race", "--only must name columns that the model takes, .*'Race'"),
        (
            "enforce loans.csv --method smoothing --target approved --metric bad.toml",
            "bad.toml, line 3: p must be 1, so that",
        ),
        (
            "enforce poor.csv --method smoothing --target approved --metric metric.toml",
            "poor.csv has no column 'income'",
        ),
        (
            "enforce blank.csv --method smoothing --target approved --metric metric.toml",
            "Column 'income' has missing numbers",
        ),
        (
            "enforce loans.csv --method smoothing --target approved --metric metric.toml --epsilon 0",
            "epsilon must be a positive",
        ),
        (
            "enforce loans.csv --method smoothing --target approved --metric metric.toml --holdout 1",
            "--holdout must be a share",
        ),
        (
            "enforce loans.csv --method smoothing --target approved --metric metric.toml --draws 0",
            "n_draws must be .auto. or a whole number >= 1",
        ),
        ("score absent.skops loans.csv", "There is no model file absent.skops"),
        ("score bad.skops loans.csv", "bad.skops is not a model saved by likewise, or it is damaged"),
        ("score loans.csv loans.csv", "loans.csv is not a model saved by likewise"),
        ("score model.skops poor.csv --out poor.parquet", "no column 'income', which the model needs"),
        ("score model.skops nobody.csv --out nobody.parquet", "nobody.csv has no rows"),
        ("score model.skops half.parquet --out half_out.parquet", "Cannot read half.parquet"),
        ("score model.skops loans.csv --out nowhere/s.parquet", "Cannot write nowhere"),
        ("score model.skops loans.csv --keep nothing --out kept.parquet", "has no column 'nothing', to keep"),
        ("score model.skops loans.csv --out scores.xlsx", "scores.xlsx must be a .csv, .csv.gz or .parquet file"),
        ("score model.skops loans.csv --out - --json", "cannot both write to standard output"),
        ("audit loans.csv --metric metric.toml", "Give --model or --scores"),
        ("audit loans.csv --scores income", "Give --metric"),
        ("audit loans.csv --model model.skops --range 0 1", "--range is for scores and models of other systems"),
        ("audit loans.csv --metric metric.toml --scores income --id name", "has no column 'name'"),
        ("audit loans.csv --metric metric.toml --scores nothing", "has no column 'nothing'"),
        (
            "audit loans.csv --metric metric.toml --scores income",
            "must be probabilities within 0 and 1; got .*give --range",
        ),
        ("audit loans.csv --metric metric.toml --scores income --range 0 5", "within --range 0 5; got .*wider --range"),
        (
            "audit loans.csv --metric metric.toml --scores approved",
            "Scores must be numbers, one per person; column 'approved' has 'no' in rows 1, 2, 3",
        ),
        ("audit one.csv --metric metric.toml --model model.skops", "at least two people"),
        ("report model.skops loans.csv --target approved --outcome maybe", "must be one of no, yes"),
        ("report model.skops loans.csv --target approved --id name", "has no column 'name'"),
    ],
)
def test_mistakes_get_one_clear_line_and_leave_nothing(mistakes, command, message):
    before = {path.name for path in mistakes.iterdir()}
    name = command.split()[0]
    if name in FRESH and "--out " not in command:
        command += f" --out {FRESH[name]}"
    done = run(mistakes, command)
    assert done.exit_code == 2
    *notes, last = done.stderr.splitlines()
    assert last.startswith("Error: ")
    assert all(line.startswith("Note: ") for line in notes)
    assert re.search(message, last), done.stderr
    assert not re.search(r"TableMetric\(|output_range|BadZipFile|predictions|astype|X\[", last), "advice for Python"
    assert {path.name for path in mistakes.iterdir()} == before


def test_a_full_disk_is_one_clear_line(work, monkeypatch):
    def full(self, *given, **options):
        raise OSError(28, "No space left on device")

    for name in ("write_text", "write_bytes"):
        monkeypatch.setattr(Path, name, full)
    done = run(work, "metric loans.csv --target approved --drop id --out full.toml")
    assert done.exit_code == 2
    assert done.output.splitlines()[-1] == "Error: Cannot write full.toml: No space left on device."
    assert not list(work.glob("*full.toml*"))


def test_control_c_leaves_no_half_written_file(work, tmp_path):
    big = pd.concat([LOANS] * 400, ignore_index=True).assign(income=lambda t: t.income + np.arange(len(t)))
    big.to_parquet(tmp_path / "big.parquet", index=False)
    process = subprocess.Popen(
        [sys.executable, "-m", "likewise", "score", str(work / "model.skops"), "big.parquet", "--batch", "50"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    parts = tmp_path / "scores.parquet.parts"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(list(parts.glob("0*.parquet"))) < 2:
        time.sleep(0.05)
    while process.poll() is None and time.monotonic() < deadline:  # a library may swallow one, as for a person
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=2)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 130, error
    assert re.search(
        r"Stopped. No file was left incomplete. [\d,]+ of 60,000 people are done and kept in scores.parquet.parts: "
        "run the same command to resume.",
        error,
    ), error
    assert "Traceback" not in error
    assert {path.name for path in tmp_path.iterdir()} == {"big.parquet", "scores.parquet.parts"}
    assert all(path.name[0] in "0p" for path in parts.iterdir())  # finished parts and the plan


def test_demo_does_the_main_job(tmp_path):
    done = run(tmp_path, "demo --out show --json")
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    facts = json.loads(done.output)
    assert facts["violations_before"] > 0
    assert facts["violations_after"] == 0
    for name in ("metric.toml", "model.skops", "scores.parquet", "report.html"):
        assert (tmp_path / "show" / name).stat().st_size > 0
    assert (tmp_path / "show" / "report.html").stat().st_size < 500_000
    page = (tmp_path / "show" / "report.html").read_text(encoding="utf-8")
    count = f"Without the guarantee, {facts['violations_before']:,} of "
    assert count in page  # the verdict and the page say the same
    assert f"{facts['brier']['with the guarantee']:.4f}" in page
    assert facts["brier"]["with the guarantee"] < facts["brier"]["a constant"]
    assert facts["how"].startswith("Designed together with a scorecard")
    assert "How this distance was designed" in page
    model = load_model(tmp_path / "show" / "model.skops")
    names, people = list(model.feature_names_in_), load_mortgages().data
    metric = model.guarantee_.metric
    blank = people.iloc[[0, 0]].assign(dependents=[people["dependents"].median(), np.nan])[names]
    assert metric.missing["dependents"] > 0
    assert np.ptp(model.predict_proba(blank)[:, 1]) > 0.001  # a weight for blanks was designed too
    assert read_metric_file(tmp_path / "show" / "metric.toml").protected == (
        "race",
        "sex",
        "married",
        "older_than_median",
    )
    file = read_metric_file(tmp_path / "show" / "metric.toml")
    assert file.people + len(pd.read_parquet(tmp_path / "show" / "people.parquet")) == len(people)  # not seen by it
    assert "understated" not in page


@pytest.mark.parametrize("width", [80, 120])
def test_the_demo_ends_in_one_screen_that_breaks_no_word(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    rows = {"additive": (0.0955, 0.768), "unconstrained": (0.0962, 0.749), "constant": (0.1115, 0.5)}
    table = pd.DataFrame(rows, index=["brier", "auc"]).T
    units = {name: unit for name, unit in load_mortgages().units.items() if unit != "category"}
    file = MetricFile(TableMetric(dict.fromkeys(units, 0.01), units=units, missing=dict.fromkeys(units, 0.1)))
    result = SimpleNamespace(table=table, cost="Cost of the guarantee: none that can be told from chance.")
    audits = [SimpleNamespace(n_violations=n, n_pairs=60_031) for n in (2243, 0)]
    _echo_conclusion(Output(as_json=False), result, "additive", *audits, file)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0][0] + lines[0][-1] == "╭╮"  # the conclusion first, in a panel
    assert len(lines) <= 24
    assert max(map(len, lines)) <= width
    words = " ".join(line.strip("│╭╮╰╯─ ") for line in lines).split()
    assert {"approval", "unconstrained", "2,243", "unemployment:", "percentage"} <= set(words)


@pytest.mark.parametrize(("flag", "expected"), [("", 0), ("-v", 1)])
def test_the_demo_prints_its_tables_on_request(flag, expected, tmp_path, monkeypatch):
    monkeypatch.setattr("likewise.cli.demo._run", lambda out, begin: ("the conclusion", ["a frontier", "a comparison"]))
    monkeypatch.setattr("likewise.cli.demo._echo_conclusion", lambda echo, text: echo(text))
    said = run(tmp_path, f"demo {flag}").stdout
    assert said.count("\na frontier\n\na comparison\n") == expected
    assert said.index("the conclusion") < said.index("Wrote metric.toml")


def test_a_stranger_gets_from_a_table_to_a_report_in_three_commands(tmp_path):
    LOANS.drop(columns="id").to_csv(tmp_path / "loans.csv", index=False)
    done = run(tmp_path, "metric loans.csv --target approved --zero race")
    for name in ("enforce", "report"):  # as the command before says
        hint = next(line for line in done.output.splitlines() if f"likewise {name} " in line)
        command = hint.split("likewise ", 1)[1] + (" --method additive" if name == "enforce" else "")
        done = run(tmp_path, command)
        assert done.exit_code == 0, done.output
    assert "The promise" in (tmp_path / "report.html").read_text(encoding="utf-8")
