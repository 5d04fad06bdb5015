"""Metric files: what is written is read, and scaled, rounded and edited as the metric itself is."""

import datetime

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric
from likewise.metric_edits import round_text, scale_text
from likewise.metric_file import MetricFile, format_metric, read_metric_file, write_metric
from likewise.verification.domain import Domain


def metric_of(seed):
    """A metric with everything that a metric can have."""
    rng = np.random.default_rng(seed)
    share = lambda: float(rng.uniform(0.05, 0.9))  # noqa: E731
    return TableMetric(
        {"pay": float(rng.uniform(1e-6, 1e-4)), "cards": 0.031, "grade": share(), "race_code": 0},
        {"job": share(), "region": share(), "race": 0, "town": 0},
        missing={"pay": share(), "race_code": 0.5},
        units={"pay": "$1000", "cards": "1 card", "job": "kind of work"},
        order={"grade": ["low", "mid", "high"]},
        groups={"job": {"within": float(rng.uniform(0.2, 0.8)), "groups": [["a b", "c"], ["d"]]}},
        distances={"region": {"north": {"south": 8, "east": 4.5}, "south": {"east": 6}}},
        zero_reasons={"race_code": "protected", "race": "protected", "town": "not_used"},
    )


def file_of(seed):
    domain = Domain.from_entries({"pay": {"low": 0, "high": 9e5}, "cards": {"low": 0, "high": 20, "step": 1}})
    return MetricFile(
        metric_of(seed),
        (-1.0, 3.5) if seed % 2 else None,
        "Agreed.",
        as_written=True,
        domain=domain,
        source="designed",
        date=datetime.date(2026, 3, 1),
    )


def written(folder, file):
    write_metric(file, folder / "m.toml")
    return folder / "m.toml"


def all_of(file):
    """What a file says; metrics are equal whatever their units and reasons."""
    return {**vars(file), "metric": file.metric.get_params(), "domain": file.domain and file.domain.entries()}


@pytest.mark.parametrize("seed", range(6))
def test_what_is_written_is_read(seed, tmp_path):
    file = file_of(seed)
    found = read_metric_file(written(tmp_path, file))
    assert all_of(found) == all_of(file)
    assert format_metric(found) == format_metric(file)


@pytest.mark.parametrize("factor", [0.25, 1.0, 1.7, 40.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_scaled_and_a_rounded_file_have_the_scaled_and_the_rounded_metric(seed, factor, tmp_path):
    file = file_of(seed)
    path = written(tmp_path, file)
    text, said = scale_text(path, factor)
    (tmp_path / "scaled.toml").write_text(text, encoding="utf-8")
    found = read_metric_file(tmp_path / "scaled.toml")
    assert found.metric.get_params() == file.metric.scaled(factor).get_params() == said.metric.get_params()
    assert (found.scaled_by, found.as_written) == (factor, True)
    assert "Agreed" in found.how
    assert found.domain.entries() == file.domain.entries()
    # Scaled twice, the factors are multiplied; back at 1, none is written.
    again, _ = scale_text(tmp_path / "scaled.toml", 1 / factor)
    (tmp_path / "again.toml").write_text(again, encoding="utf-8")
    assert read_metric_file(tmp_path / "again.toml").scaled_by == 1
    assert "scaled_by" not in again
    text, _ = round_text(path)
    path.write_text(text, encoding="utf-8")
    assert read_metric_file(path).metric.get_params() == file.metric.rounded().get_params()


def test_the_domain_of_a_file_is_completed_from_people_and_keeps_the_rules_on_columns_that_are_there():
    entries = {"pay": {"low": 0, "high": 9e5}, "debt": {"low": 0, "high": 100}}
    domain = Domain.from_entries(entries, ["debt <= pay", "pay >= 5"])
    file = MetricFile(TableMetric({"pay": 0.01}, {"job": 0.1}), domain=domain)
    X = pd.DataFrame({"pay": [10.0, 20.0], "job": ["x", "y"], "age": [30, 50]})
    found = file.domain_for(X)
    learned = Domain.learn(X, ["job"]).entries()
    assert found.entries() == learned | {"pay": domain.entries()["pay"]}
    assert [str(rule) for rule in found.rules] == [str(domain.rules[1])]
    assert len(file.domain_for(X.assign(debt=[1.0, 2.0])).rules) == 2
    assert MetricFile(file.metric).domain_for(X) is None


EDITS = {
    "a weight": ('"one more card = 3.1 points"', '"one more card = 3 points"'),
    "a category": ("town = 0", "town = 0.1"),
    "a blank": ('race_code = "50 points"', 'race_code = "60 points"'),
    "an order": ('"mid", "high"', '"high", "mid"'),
    "a group": ('["d"]', '["d", "e"]'),
    "a distance": ("east = 4.5", "east = 4.6"),
    "the range": ("[-1, 3.5]", "[-1, 3.6]"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_file_that_people_have_edited_says_so(edit, tmp_path):
    path = written(tmp_path, file_of(1))
    assert read_metric_file(path).as_written
    text = path.read_text(encoding="utf-8")
    was, becomes = EDITS[edit]
    assert text.count(was) == 1
    path.write_text(text.replace(was, becomes), encoding="utf-8")
    found = read_metric_file(path)
    assert not found.as_written
    assert found.origin() == "designed, 2026-03-01, edited by hand since"
    # A reason for a weight of 0 goes with it; a protected column keeps its own.
    assert found.not_used == (() if edit == "a category" else ("town",))
    assert set(found.protected) == {"race_code", "race"}


@pytest.mark.parametrize("p", ["2", "inf", "1.5", "true"])
def test_other_exponents_are_refused_with_what_to_do(p, tmp_path):
    """Version 0.2 took them."""
    path = written(tmp_path, file_of(1))
    path.write_text(path.read_text(encoding="utf-8").replace("p = 1", f"p = {p}"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"m.toml, line 3: p must be 1, .* Write p = 1, and review") as error:
        read_metric_file(path)
    assert "\n" not in str(error.value)


def test_units_and_comments_are_no_part_of_the_weights(tmp_path):
    path = written(tmp_path, file_of(1))
    text = path.read_text(encoding="utf-8").replace('"1 card"', '"1 account"').replace("town = 0", "town = 0 # nothing")
    path.write_text(text, encoding="utf-8")
    assert read_metric_file(path).as_written
