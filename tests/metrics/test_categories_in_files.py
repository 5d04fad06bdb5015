"""Orders, groups and distances of categories in metric files."""

from __future__ import annotations

import pytest

from likewise import TableMetric, read_metric, write_metric
from likewise.exceptions import FileError
from likewise.metric_edits import read_comments, round_text, scale_text
from likewise.metric_file import MetricFile, read_metric_file

METRIC = TableMetric(
    {"income": 0.0123, "grade": 0.0234},
    {"job": 0.123, "region": 0.2},
    order={"grade": ["low", "middle", "high"]},
    groups={"job": {"within": 0.25, "groups": [["clerk", "teacher of maths"], ["farmer"], [1]]}},
    distances={"region": {"north": {"south": 8, "east": 4}, "east": {"south": 6.5}}},
)


def test_a_file_has_the_metric_and_comes_back_to_the_same_bytes(tmp_path):
    path, again = tmp_path / "metric.toml", tmp_path / "again.toml"
    write_metric(METRIC, path)
    assert read_metric(path) == METRIC
    assert read_metric(path).get_params() == METRIC.get_params()
    write_metric(read_metric_file(path), again)
    assert again.read_bytes() == path.read_bytes()
    text = path.read_text()
    assert 'grade = ["low", "middle", "high"]' in text
    assert "# one step = 2.34 points" in text
    assert "# mismatch = 3.08 to 12.3 points" in text


def test_comments_and_shapes_survive_scaling_and_rounding(tmp_path):
    path = tmp_path / "metric.toml"
    write_metric(MetricFile(METRIC, how="by hand", as_written=True), path)
    text = path.read_text()
    text = text.replace("12.3 points", "12.3 points; the panel agreed").replace("[groups]", "# of 2024\n[groups]")
    path.write_text(text)
    for changed, file in (scale_text(path, 0.5), round_text(path)):
        assert "points; the panel agreed" in changed
        assert "# of 2024\n[groups]" in changed
        assert changed.split("[order]")[1].split("[origin]")[0] == text.split("[order]")[1].split("[origin]")[0]
        assert file.metric.groups == METRIC.groups
    assert read_comments(path).beside[("categorical", "job")] == "the panel agreed"


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ('[order]\ngrade = ["low"]', "line 7: order must list at least two"),
        ('[order]\njob = ["low", "high"]', "line 7: order must name columns under numeric"),
        ('[groups]\njob = [["a"], ["b"]]', "line 7: groups must be like"),
        ("[distances]\njob = {a = {b = 1, c = 5}, b = {c = 1}}", "line 7: .* triangle inequality"),
        ("[distances]\nelsewhere = {a = {b = 1}}", "line 7: distances must name columns"),
    ],
)
def test_bad_shapes_name_the_line(tmp_path, section, words):
    path = tmp_path / "metric.toml"
    path.write_text(f"[numeric]\ngrade = 0.1\n[categorical]\njob = 0.2\n\n{section}\n")
    with pytest.raises(FileError, match=words) as error:
        read_metric(path)
    assert "\n" not in str(error.value)
