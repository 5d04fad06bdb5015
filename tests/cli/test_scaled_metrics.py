"""Metrics that a command scales: by how much, and to what."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from likewise.auditing.coverage import measure_coverage
from likewise.cli.main import main
from likewise.metric_file import read_metric

RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame({"age": RNG.uniform(20, 60, 80).round(), "debt": RNG.gamma(2, 5, 80).round(2)})
TABLE = PEOPLE.assign(paid=(PEOPLE["age"] - PEOPLE["debt"] + RNG.normal(0, 5, 80) > 30).astype(int))


def made(place, *options):
    TABLE.to_csv(place / "people.csv", index=False)
    command = ["metric", str(place / "people.csv"), "--target", "paid", "--out", str(place / "m.toml"), "--force"]
    done = CliRunner().invoke(main, [*command, *options])
    assert done.exit_code == 0, done.output
    return read_metric(place / "m.toml")


def test_a_normalized_metric_has_the_median_pair_at_one_half(tmp_path):
    plain, normal = made(tmp_path), made(tmp_path, "--normalize")
    assert measure_coverage(normal, PEOPLE).median == pytest.approx(0.5, rel=1e-3)
    ratios = [normal.numeric[name] / plain.numeric[name] for name in ("age", "debt")]
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-3)


SHAPED = """\
[numeric]
age = 0.01  # ours

[categorical]
job = 0.5
region = 0.4

[groups]
job = {within = 0.3, groups = [["a", "b"], ["c"]]}  # near jobs

[distances]
region = {north = {south = 8, east = 4}, east = {south = 6}}  # hours
"""


@pytest.mark.parametrize("factor", ["0.5", "2", "4"])
def test_a_file_with_near_categories_has_the_capped_distances_times_the_factor(tmp_path, factor):
    path = tmp_path / "m.toml"
    path.write_text(SHAPED)
    people = pd.DataFrame({"age": 30, "job": ["a", "b", "c", "a"], "region": ["north", "north", "north", "east"]})
    before = read_metric(path).pairwise(people)
    made = tmp_path / "scaled.toml"
    done = CliRunner().invoke(main, ["metric", "scale", str(path), "--by", factor, "--out", str(made)])
    assert done.exit_code == 0, done.output
    after = read_metric(made).pairwise(people)
    # The first differs from each other in one column.
    np.testing.assert_allclose(after[0], np.minimum(1.0, float(factor) * before[0]), rtol=1e-12)
    for kept in ("# ours", "# near jobs", "# hours", 'groups = [["a", "b"], ["c"]]'):
        assert kept in made.read_text()
    assert ("within = 0.3" in made.read_text()) == (factor != "4")
