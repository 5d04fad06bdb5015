"""Every command that a command suggests, run as it is printed: it works, and replaces nothing."""

import re
import shlex
import shutil

import numpy as np
import pytest

import likewise
from likewise.cli.main import main
from likewise.datasets import load_mortgages
from shell import run


def people(n=300):
    """Mortgages with an id, and a target with a blank in its name."""
    bunch = load_mortgages()
    table = bunch.data[["income", "obligations", "consumer_credit", "race"]].dropna()[:n]
    outcome = np.where(bunch.target[table.index] == 1, "yes", "no")
    return table.assign(id=range(len(table)), **{"was approved": outcome}).reset_index(drop=True)


@pytest.fixture(autouse=True)
def two_folds(monkeypatch):
    """Comparisons in two folds, which take less time than the default; tests/test_readme.py has a whole one."""
    real = likewise.compare
    monkeypatch.setattr(likewise, "compare", lambda *given, **options: real(*given, **options | {"cv": 2}))


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Mortgages in a file that no default would read, a metric, a model, and files with the default names."""
    place = tmp_path_factory.mktemp("suggested")
    table = people()
    table.to_csv(place / "the loans.csv", index=False, sep=";")
    (place / "parts").mkdir()
    table.to_parquet(place / "parts" / "0.parquet")
    revealed = call(place, 'metric "the loans.csv" --target "was approved" --drop id --zero race --delimiter ";"')
    assert revealed.exit_code == 0
    assert call(place, f"enforce {READ} --method additive --holdout 0 --out card.skops").exit_code == 0
    (place / "key").write_bytes(bytes(32))
    for name in ("model.skops", "scores.csv", "scores.parquet", "report.html", "metric-x0.5.toml", "metric-x2.toml"):
        (place / name).write_text("precious")
    return place


READ = '"the loans.csv" --target "was approved" --metric metric.toml --delimiter ";"'


def call(place, command):
    return run(place, shlex.split(command))


def suggested(output):
    """The commands in what is said to be next."""
    after = output.split("\nNext: ")[1] if "\nNext: " in output else ""
    return re.findall(r"likewise .*", after)


def contents(place):
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "n_suggested"),
    [
        ('metric "the loans.csv" --target "was approved" --drop id --out other.toml --delimiter ";"', 2),
        (
            'design "the loans.csv" --target "was approved" --id id --protected race --out other.toml --delimiter ";" '
            "--points 3 --folds 2 --bind 0.5 --loose",
            2,
        ),
        (f"enforce {READ} --method additive --out made.skops", 3),
        ('enforce parts --target "was approved" --metric metric.toml --method additive --out parts.skops', 1),
        ('score card.skops "the loans.csv" --delimiter ";" --id id --out fresh.csv', 1),
        ("card card.skops --out fresh.json", 1),
        ("card card.skops --out fresh.csv", 0),
        ('notice card.skops "the loans.csv" --delimiter ";" --id id --person 3 --threshold 0.9 --favourable yes', 0),
        ('decide card.skops "the loans.csv" --delimiter ";" --id id --round r --key-file key --out fresh.csv', 1),
        (f"enforce {READ} --method additive --decide --threshold 0.5 --width 0.2 --holdout 0 --out made.skops", 1),
        (f"compare {READ} --method additive --folds 2", 1),
        (f"compare {READ} --method smoothing --folds 2 --draws 20", 1),
        (f"tradeoff {READ} --scale 0.5 --folds 2", 2),
        (f"tradeoff {READ} --scale 2 --folds 2", 2),
        (f"tradeoff {READ} --scale 1 --folds 2", 1),
        ('report card.skops "the loans.csv" --target "was approved" --delimiter ";" --folds 2 --out page.html', 0),
        ('audit "the loans.csv" --model card.skops --delimiter ";"', 0),
    ],
)
def test_what_is_suggested_can_be_run_as_printed_and_replaces_nothing(work, tmp_path, command, n_suggested):
    shutil.copytree(work, tmp_path, dirs_exist_ok=True)
    done = call(tmp_path, command)
    assert done.exit_code == 0, done.output
    lines = suggested(done.output)
    assert len(lines) == n_suggested, done.output
    for line in lines:
        words = shlex.split(line, comments=True)
        assert "--force" not in words
        assert words[1] in main.commands, line
        before = contents(tmp_path)
        again = run(tmp_path, words[1:])
        assert again.exit_code == 0, (line, again.output)
        assert {path: data for path, data in contents(tmp_path).items() if path in before} == before


def test_a_task_that_was_given_is_repeated(work, tmp_path):
    shutil.copytree(work, tmp_path, dirs_exist_ok=True)
    table = people().assign(years=np.arange(300) % 30)
    table.drop(columns=["id", "was approved"]).to_csv(tmp_path / "years.csv", index=False)
    done = call(tmp_path, "metric years.csv --target years --task regression --out years.toml")
    assert all(line.endswith("--task regression") for line in suggested(done.output))
    compared = suggested(done.output)[0]
    assert call(tmp_path, f"{compared.removeprefix('likewise ')} --method additive --folds 2").exit_code == 0


def test_a_price_suggests_a_scale_that_was_measured(work):
    done = call(work, f"tradeoff {READ} --scale 0.5 --scale 2 --folds 2")
    (scale, enforce) = suggested(done.output)
    factor, out = re.fullmatch(r"likewise metric scale metric.toml --by (\S+) --out (\S+)", scale).groups()
    assert float(factor) in (0.5, 2)
    assert not (work / out).exists()
    assert f"--metric {out} " in enforce
