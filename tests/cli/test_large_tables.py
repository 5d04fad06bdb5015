"""Commands on a directory of Parquet files: the words and results of those on one file."""

import json

import pandas as pd
import pytest

from likewise import TableMetric
from likewise.io import load_model
from likewise.metric_file import write_metric
from shell import LOANS, run

SCORED = LOANS.assign(score=(LOANS["approved"] == "yes") * 0.9)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    place = tmp_path_factory.mktemp("work")
    metric = TableMetric({"income": 0.0001, "years": 0.01}, {"region": 0.1, "race": 0})
    write_metric(metric, place / "metric.toml")
    SCORED.to_parquet(place / "loans.parquet", index=False)
    (place / "loans").mkdir()
    for i in range(3):
        SCORED[50 * i : 50 * (i + 1)].to_parquet(place / "loans" / f"{i}.parquet", index=False, row_group_size=20)
    return place


def test_an_audit_of_a_directory_is_that_of_one_file(work, threads):
    words = "--metric metric.toml --scores score --id id --worst 5 --json --force --out"
    one = json.loads(run(work, f"audit loans.parquet {words} one.csv").output)
    many = json.loads(run(work, f"audit loans {words} many.csv").output)
    assert many["n_violations"] == one["n_violations"] > 0
    assert many["max_excess"] == one["max_excess"]
    pd.testing.assert_frame_equal(pd.read_csv(work / "many.csv"), pd.read_csv(work / "one.csv"), check_exact=True)
    assert "id_a" in pd.read_csv(work / "many.csv")
    local = json.loads(run(work, f"audit loans {words} local.csv --cluster {threads}").output)
    assert (local["n_violations"], local["max_excess"]) == (many["n_violations"], many["max_excess"])
    gate = run(work, "audit loans --metric metric.toml --scores score --max-excess 0")
    assert gate.exit_code == 1


def test_enforce_and_audit_a_directory(work):
    done = run(work, "enforce loans --target approved --metric metric.toml --method additive --seed 0 --out many.skops")
    assert done.exit_code == 0, done.output
    assert "Wrote many.skops" in done.output
    assert "Nobody was held out" in done.output
    words = "--target approved --metric metric.toml --method additive --seed 0 --holdout 0 --out one.skops"
    assert run(work, f"enforce loans.parquet {words}").exit_code == 0
    X = LOANS[["income", "years", "region", "race"]]
    many, one = load_model(work / "many.skops"), load_model(work / "one.skops")
    assert (many.predict_proba(X) == one.predict_proba(X)).all()
    audited = run(work, "audit loans --model many.skops")
    assert audited.exit_code == 0
    assert "No pair was found to exceed it" in audited.output


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("enforce loans --target approved --metric metric.toml --out x.skops", "--method must be additive"),
        ("enforce loans --target years --metric metric.toml --method additive --out x.skops", "--task must say"),
        (
            "enforce loans --target points --metric metric.toml --method additive --out x.skops",
            "has no column 'points'",
        ),
        ("audit loans --metric metric.toml --scores points", "has no column 'points'"),
        ("audit loans --metric metric.toml --scores score --id name", "has no column 'name'"),
        ("audit metric.toml --metric metric.toml --scores score --cluster tcp://127.0.0.1:1", "must be a .csv"),
        ("audit loans --metric metric.toml --scores score --cluster tcp://127.0.0.1:1", "Cannot reach a Dask"),
    ],
)
@pytest.mark.usefixtures("impatient")
def test_mistakes_are_one_clear_line(work, command, message):
    done = run(work, command)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
