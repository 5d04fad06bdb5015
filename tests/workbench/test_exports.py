"""Metric, minutes and answers as files."""

import pandas as pd
import pytest

from committee import applicants, problem_of, session_of
from likewise.exceptions import InvalidInputError
from likewise.metric_file import read_metric_file
from likewise.workbench.engine import Engine
from likewise.workbench.exports import write_texts


@pytest.fixture
def session(tmp_path):
    engine = Engine(problem_of(*applicants(60)))
    return session_of(engine, tmp_path / "people.likewise.json", locked=["race"])


def write(session, folder):
    return write_texts(session, problem_of(*applicants(60)), folder, {"figure": "0.1"})


def test_the_metric_file_has_the_weights_of_the_page_and_its_locks(session, tmp_path):
    weights = {"numeric": {"income": 0.0123, "debt": 0.004}, "categorical": {"region": 0.07}, "missing": {"debt": 0.03}}
    session.act("weights", "Ann", set=weights, reason="agreed\n[numeric]\nrace = 1")
    session.act("start", "Bob", set={"categorical": {"race": 0.5}}, how="Revealed.")
    assert write(session, tmp_path) == ["metric.toml", "minutes.md"]
    file = read_metric_file(tmp_path / "metric.toml")
    assert file.metric == session.sheet.metric
    assert file.metric.numeric == weights["numeric"]
    assert file.metric.categorical == {"region": 0.07, "race": 0.0}
    assert file.metric.missing == {"debt": 0.03}
    assert (file.protected, file.not_used, file.as_written) == (("race",), (), True)
    assert "figure: 0.1" in (tmp_path / "minutes.md").read_text(encoding="utf-8")


def test_files_of_an_earlier_export_go_and_others_stay(session, tmp_path):
    folder = tmp_path / "out"
    session.act("weights", "Ann", set={"numeric": {"income": 0.01}})
    session.act("answer", "Ann", rows=[{"kind": "at_most", "a": 1, "b": 2, "points": 5}])
    files = write(session, folder)
    assert files == ["metric.toml", "minutes.md", "answers.csv"]
    assert pd.read_csv(folder / "answers.csv")["points"].tolist() == [5]
    (folder / "report.html").write_text("somebody else's")
    session.act("exported", "Ann", folder=str(folder), files=files)
    session.act("withdraw", "Ann", of=2)
    write(session, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["metric.toml", "minutes.md", "report.html"]
    session.act("exported", "Ann", folder=str(folder), files=["report.html"])
    write(session, folder)
    assert not (folder / "report.html").exists()


def test_nothing_is_written_within_weights_of_0(session, tmp_path):
    with pytest.raises(InvalidInputError, match="at least one column"):
        write(session, tmp_path / "out")
    assert not (tmp_path / "out").exists()
