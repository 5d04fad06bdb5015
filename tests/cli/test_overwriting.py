"""No command writes over what it reads, nor over any other file unless told to."""

import pytest

from shell import LOANS, run


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    place = tmp_path_factory.mktemp("work")
    LOANS.to_csv(place / "loans.csv", index=False)
    for command in (
        "metric loans.csv --target approved --drop id --out metric.toml",
        "enforce loans.csv --method smoothing "
        "--target approved --metric metric.toml --draws 20 --holdout 0 --seed 0 --out model.skops",
    ):
        assert run(place, command).exit_code == 0
    (place / "key").write_bytes(bytes(32))
    (place / "notes.txt").write_text("mine")
    (place / "same.csv").symlink_to(place / "loans.csv")
    return place


WRITERS = {
    "metric loans.csv --target approved --drop id": ("loans.csv", "same.csv"),
    "enforce loans.csv --method smoothing --target approved --metric metric.toml --draws 20": (
        "loans.csv",
        "metric.toml",
    ),
    "score model.skops loans.csv": ("model.skops", "loans.csv", "same.csv"),
    "decide model.skops loans.csv --round r --key-file key": ("model.skops", "loans.csv", "same.csv", "key"),
    "audit loans.csv --metric metric.toml --model model.skops": ("loans.csv", "metric.toml", "model.skops"),
    "report model.skops loans.csv --target approved": ("model.skops", "loans.csv"),
}


@pytest.mark.parametrize(("command", "out"), [(c, out) for c, outs in WRITERS.items() for out in outs])
def test_inputs_are_never_written_over(work, command, out):
    before = (work / out).read_bytes()
    done = run(work, f"{command} --out {out} --force")
    assert done.exit_code == 2
    assert f"{out} is an input of this command" in done.stderr
    assert (work / out).read_bytes() == before


@pytest.mark.parametrize("command", WRITERS)
def test_other_files_are_replaced_only_by_force(work, command):
    out = work / "out.csv"
    out.write_text("mine")
    done = run(work, f"{command} --out out.csv")
    assert done.exit_code == 2
    assert "out.csv exists already. Give another --out, or --force to replace it." in done.stderr
    assert out.read_text() == "mine"
    assert run(work, f"{command} --out out.csv --force").exit_code == 0
    assert out.read_bytes() != b"mine"


def test_a_directory_is_not_a_file(work):
    (work / "place").mkdir()
    done = run(work, "metric loans.csv --target approved --drop id --out place --force")
    assert done.exit_code == 2
    assert "is a directory" in done.stderr
