"""Metric, minutes and answers as files."""

import pandas as pd
import pytest

from committee import applicants, problem_of, session_of, tools_of
from likewise.exceptions import InvalidInputError
from likewise.metric_file import MetricFile, read_metric_file
from likewise.metrics.table import TableMetric
from likewise.workbench.engine import Engine
from likewise.workbench.exports import commands, write_texts
from likewise.workbench.judging import Judging
from likewise.workbench.minutes import minutes, record
from likewise.workbench.starts import from_answers, from_file, from_point, from_version


@pytest.fixture
def session(tmp_path):
    engine = Engine(problem_of(*applicants(60)))
    return session_of(engine, tmp_path / "people.likewise.json", locked=["race"])


def write(session, folder):
    return write_texts(session, problem_of(*applicants(60)), folder, {"figure": "0.1"}, {"people": 60, "rows": "d0"})


def test_the_metric_file_has_the_weights_of_the_page_and_its_locks(session, tmp_path):
    weights = {"numeric": {"income": 0.0123, "debt": 0}, "categorical": {"region": 0.07}, "missing": {"debt": 0.03}}
    session.act("weights", "Ann", set=weights, reason="agreed\n[numeric]\nrace = 1")
    session.act("start", "Bob", set={"categorical": {"race": 0.5}}, how="Revealed.")
    assert write(session, tmp_path) == ["metric.toml", "minutes.md"]
    file = read_metric_file(tmp_path / "metric.toml")
    assert file.metric == session.sheet.metric
    assert file.metric.numeric == weights["numeric"]
    assert file.metric.categorical == {"region": 0.07, "race": 0.0}
    assert file.metric.missing == {"debt": 0.03}
    assert (file.protected, file.not_used, file.as_written) == (("race",), ("debt",), True)
    assert "figure: 0.1" in (tmp_path / "minutes.md").read_text(encoding="utf-8")


def test_only_a_lock_says_that_a_column_must_not_matter(session, tmp_path):
    session.act("weights", "Ann", set={"numeric": {"income": 0.01, "debt": 0.0}})
    assert record(session)[0]["text"] == "set income to “1 point = 1”, debt to “not used”"
    write(session, tmp_path)
    text = (tmp_path / "minutes.md").read_text(encoding="utf-8")
    assert "| debt | not used |\n| region | not used |\n| race | must not matter (locked) |" in text
    assert text.count("must not matter") == 1


def test_commands_replace_no_file_of_the_folder(session, tmp_path):
    tools = tools_of(*applicants(60))
    first, report, audit, _ = commands(tools, "y", str(tmp_path))
    assert first.endswith(f"--out {tmp_path}/model.skops")
    for name in ("model.skops", "report.html"):
        (tmp_path / name).write_text("written by the page")
    first, report, audit, _ = commands(tools, "y", str(tmp_path))
    assert first.endswith(f"--out {tmp_path}/model-2.skops")
    assert f"{tmp_path}/model-2.skops" in report
    assert report.endswith(f"{tmp_path}/report-2.html")
    assert audit.endswith(f"--model {tmp_path}/model-2.skops")


def test_files_of_an_earlier_export_go_and_others_stay(session, tmp_path):
    folder = tmp_path / "out"
    session.act("weights", "Ann", set={"numeric": {"income": 0.01}})
    session.act("answer", "Ann", rows=[{"kind": "at_most", "a": 1, "b": 2, "points": 5}])
    files = write(session, folder)
    assert files == ["metric.toml", "minutes.md", "answers.csv"]
    assert pd.read_csv(folder / "answers.csv")["points"].tolist() == [5]
    (folder / "report.html").write_text("somebody else's")
    session.act("exported", "Ann", folder=str(tmp_path / "elsewhere"), files=["report.html"])
    session.act("exported", "Ann", folder=str(folder), files=files)
    session.act("withdraw", "Ann", of=2)
    write(session, folder)
    # What was written to another folder, or by others, stays.
    assert sorted(path.name for path in folder.iterdir()) == ["metric.toml", "minutes.md", "report.html"]
    session.act("exported", "Ann", folder=str(folder), files=["report.html"])
    write(session, folder)
    assert not (folder / "report.html").exists()


def test_nothing_is_written_within_weights_of_0(session, tmp_path):
    with pytest.raises(InvalidInputError, match="at least one column"):
        write(session, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_record_says_what_was_done_in_the_words_of_that_moment(session):
    session.act("weights", "Ann", set={"numeric": {"income": 0.01}}, reason="agreed")
    session.act("unit", "Bob", column="income", unit="$")
    session.act("weights", "Bob", set={"numeric": {"income": 0.02, "debt": 0.1}, "missing": {"debt": 0.25}})
    session.act("explain", "Cy", of=2, text="as in the table")
    session.act("weights", "Ann", set={"missing": {"debt": 0.01}, "categorical": {"region": 0.03}})
    session.act("undo", "Ann")
    lines = record(session)
    assert [line["text"] for line in lines] == [
        "set income to “1 point = 1”",
        "said that income is in $",
        "set income to “1 point = $0.5”, debt to “1 point = 0.1”",
        "set region to “mismatch = 3 points”, blanks of debt to 1 point",
        "took back no. 5",
    ]
    assert [line["n"] for line in lines] == [1, 2, 3, 5, 6]
    assert [line["reasons"] for line in lines] == [["agreed"], ["Cy: as in the table"], [], [], []]
    text = minutes(session)
    assert "| income | 1 point = $0.5 |\n| debt | 1 point = 0.1 |\n| region | not used |" in text
    assert "| race | must not matter (locked) |\n| debt, not known | 25 points |" in text
    assert "Present: Ann, Bob." in text
    # Blanks of a column that does not matter are not in the table, whatever they would weigh.
    session.act("weights", "Ann", set={"numeric": {"debt": 0}})
    assert "not known" not in minutes(session)


def test_a_file_in_shares_of_another_range_is_refused():
    X, _ = applicants(60)
    engine = Engine(problem_of(X, X["income"].to_numpy(), "regression", output_range=(0.0, 100.0)))
    metric = TableMetric({"income": 0.01})
    assert from_file(engine, MetricFile(metric, (0.0, 100.0)), "m.toml")["set"]["numeric"]["income"] == 0.01
    with pytest.raises(InvalidInputError, match="shares of the range"):
        from_file(engine, MetricFile(metric, (0.0, 50.0)), "m.toml")


def test_weights_to_start_from_are_those_of_the_version_the_point_or_the_answers(session):
    session.act("weights", "Ann", set={"numeric": {"income": 0.01}})
    session.act("version", "Ann", title="first")
    session.act("weights", "Ann", set={"numeric": {"income": 0.5}})
    found = from_version(session.log, "first")
    assert found["set"]["numeric"]["income"] == 0.01
    points = [{"set": {"numeric": {"income": w}}, "mean_distance": w, "loss": 0.2, "loss_se": 0.01} for w in (0.1, 0.3)]
    session.act("frontier", "Ann", points=points, locked=[], loss_name="Brier score", n_people=60, n_folds=5)
    assert from_point(session.log, 1)["set"] == points[1]["set"]
    assert "mean distance 0.3, Brier score 0.2 ± 0.01" in from_point(session.log, 1)["how"]
    for k in (2, -1, None):
        with pytest.raises(InvalidInputError, match="no such point"):
            from_point(session.log, k)
    # Two people who differ in their income alone are 4 to 6 points apart.
    X, y = applicants(60)
    X.loc[2] = X.loc[1]
    X.loc[2, "income"] = X.loc[1, "income"] + 10
    engine = Engine(problem_of(X, y))
    judging = Judging(engine, session)
    ends = [{"kind": kind, "a": 1, "b": 2, "points": n} for kind, n in (("at_least", 4), ("at_most", 6))]
    session.act("answer", "Ann", rows=ends)
    weights = {
        which: from_answers(engine, judging, which)["set"]["numeric"]["income"] for which in ("judged", "strict")
    }
    assert weights == pytest.approx({"judged": 0.005, "strict": 0.004}, rel=1e-6)
    # The closest to 0.5 per unit is the upper end.
    assert from_answers(engine, judging, "near")["set"]["numeric"]["income"] == pytest.approx(0.006, rel=1e-6)
