"""Scoring in batches, on several processes and on a real cluster of two worker processes."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from killing import killed
from likewise import AdditiveClassifier, SmoothedClassifier, TableMetric
from likewise._shared_draw import SharedDraw
from likewise.cli.batch_scoring import ScoringJob, score_file
from likewise.decisions.round_record import DecisionRule
from likewise.exceptions import FileError
from likewise.inspection.baselines import table_model
from likewise.io import save_model

RNG = np.random.default_rng(0)
N = 500
PEOPLE = pd.DataFrame(
    {
        "id": np.arange(N),
        "age": RNG.integers(18, 70, N),
        "income": RNG.lognormal(8, 0.5, N),
        "race": RNG.choice(["x", "y"], N),
    }
)


@pytest.fixture(scope="module")
def model():
    X = PEOPLE.drop(columns="id")
    metric = TableMetric({"age": 0.02, "income": 1e-4}, {"race": 0})
    return SmoothedClassifier(table_model(X, "boosting"), metric=metric, vote="soft", n_draws=50, random_state=0).fit(
        X, np.where(X.age > 40, "yes", "no")
    )


@pytest.mark.parametrize("options", [{}, {"batch_rows": 7}, {"batch_rows": 100, "jobs": 2}, {"far.csv": True}])
def test_numbers_far_outside_of_what_was_learned_are_counted_and_named(place, options):
    """The same however the people come; the others are scored, and so are they."""
    people = PEOPLE.astype({"age": float}).assign(race="y")
    people.loc[[40, 300], "age"] = [130.0, 999.0]  # 18 to 69 was learned: beyond 120 is far
    people.loc[41, "age"] = 119.0
    people.loc[123, "income"] = -99999.0
    people.loc[7, "age"] = np.nan
    source = place / ("far.csv" if options.pop("far.csv", False) else "far.parquet")
    people.to_csv(source, index=False) if source.suffix == ".csv" else people.to_parquet(source, index=False)
    metric = TableMetric({"age": 0.02, "income": 1e-4}, {"race": 0}, missing={"age": 0.3})
    X = PEOPLE.drop(columns="id")
    save_model(AdditiveClassifier(metric).fit(X, np.where(X.age > 40, "yes", "no")), place / "model.skops")
    notes = []
    assert score_file(order(place), source, place / "scores.parquet", **options, note=notes.append) == N
    ages, incomes = (next(note for note in notes if f"'{name}'" in note) for name in ("age", "income"))
    assert "2 of 500 people are far outside the 18 to 69" in ages
    assert "the furthest 999 in row 301." in ages
    assert "1 of 500 people are far outside" in incomes
    assert "the furthest -99,999 in row 124." in incomes
    notes.clear()
    score_file(order(place), place / "people.parquet", place / "again.parquet", note=notes.append)
    assert notes == []  # control


def test_special_codes_are_no_numbers_far_outside(tmp_path):
    people = PEOPLE.drop(columns="id").astype({"age": float})
    people.loc[::9, "age"] = -999.0
    metric = TableMetric({"age": 0.02, "income": 1e-4}, {"race": 0}, special={"age": {-999.0: 0.2}})
    model = AdditiveClassifier(metric).fit(people, np.where(people.age > 40, "yes", "no"))
    np.testing.assert_array_equal(model.ranges_[0], [18, 69])
    save_model(model, tmp_path / "model.skops")
    notes = []
    for value, far in ((-999.0, 0), (-998.0, 1)):
        people.assign(age=people["age"].replace(-999.0, value)).to_csv(tmp_path / "people.csv", index=False)
        notes.clear()
        score_file(order(tmp_path), tmp_path / "people.csv", tmp_path / "scores.csv", note=notes.append)
        assert len(notes) == far


@pytest.fixture
def place(tmp_path, model):
    save_model(model, tmp_path / "model.skops")
    PEOPLE.to_parquet(tmp_path / "people.parquet", index=False)
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def order(place, **options):
    return ScoringJob((place / "model.skops").read_bytes(), **options)


def test_scores_are_those_of_the_model_in_any_batches(place, model):
    expected = model.predict_proba(PEOPLE.drop(columns="id"))
    for source, batch_rows, jobs in (("people.parquet", 64, 1), ("people.parquet", 1000, 1), ("people.parquet", 90, 2)):
        n = score_file(
            order(place), place / source, place / "out.parquet", keep=("id",), batch_rows=batch_rows, jobs=jobs
        )
        scores = pd.read_parquet(place / "out.parquet")
        assert n == N
        assert list(scores.columns) == ["id", "p_no", "p_yes"]
        np.testing.assert_array_equal(scores["id"], PEOPLE["id"])
        np.testing.assert_array_equal(scores[["p_no", "p_yes"]], expected)
        assert not (place / "out.parquet.parts").exists()


def test_intervals_hold_the_scores(place):
    score_file(order(place, intervals=True), place / "people.parquet", place / "out.parquet")
    scores = pd.read_parquet(place / "out.parquet")
    assert (scores["p_yes_lower"] <= scores["p_yes"]).all()
    assert (scores["certified_distance"] >= 0).all()


def test_an_interrupted_run_goes_on_where_it_stopped(place, monkeypatch):
    score_file(order(place), place / "people.parquet", place / "whole.parquet", batch_rows=50)
    calls = []
    original = ScoringJob.__call__

    def stumbling(self, batch):
        calls.append(len(batch))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, batch)

    monkeypatch.setattr(ScoringJob, "__call__", stumbling)
    with pytest.raises(KeyboardInterrupt):
        score_file(order(place), place / "people.parquet", place / "out.parquet", batch_rows=50)
    assert not (place / "out.parquet").exists()
    assert len(list((place / "out.parquet.parts").glob("*.parquet"))) == 3
    with pytest.raises(FileError, match="unfinished run with another model, table or options"):
        score_file(order(place), place / "people.parquet", place / "out.parquet", batch_rows=60)
    score_file(order(place), place / "people.parquet", place / "out.parquet", batch_rows=50)
    assert len(calls) == 4 + 7  # three parts were there
    pd.testing.assert_frame_equal(pd.read_parquet(place / "out.parquet"), pd.read_parquet(place / "whole.parquet"))


@pytest.mark.parametrize("change", ["model", "draw", "table", "intervals", "keep", "nothing"])
def test_an_unfinished_run_goes_on_only_if_it_is_the_very_same(place, model, change, monkeypatch):
    key, keep = b"0123456789abcdef", ("id",)
    options = {"draw": SharedDraw.from_key(key, "one"), "rule": DecisionRule.of(model)}
    arguments = (place / "people.parquet", place / "out.parquet")
    original = ScoringJob.__call__

    def stumbling(self, batch):
        if batch["id"].iloc[0] > 0:
            raise KeyboardInterrupt
        return original(self, batch)

    monkeypatch.setattr(ScoringJob, "__call__", stumbling)
    with pytest.raises(KeyboardInterrupt):
        score_file(order(place, **options), *arguments, keep=keep, batch_rows=200)
    monkeypatch.setattr(ScoringJob, "__call__", original)
    assert len(list((place / "out.parquet.parts").glob("*.parquet"))) == 1
    if change == "model":
        people = PEOPLE.drop(columns="id")
        other = clone(model).set_params(random_state=1).fit(people, np.where(people.age > 40, "yes", "no"))
        save_model(other, place / "model.skops")
    elif change == "draw":
        options["draw"] = SharedDraw.from_key(key, "another")
    elif change == "table":  # as many bytes, later
        os.utime(place / "people.parquet", ns=(1, (place / "people.parquet").stat().st_mtime_ns + 1))
    elif change == "intervals":
        options["intervals"] = True
    elif change == "keep":
        keep = ()
    if change == "nothing":  # the control
        assert score_file(order(place, **options), *arguments, keep=keep, batch_rows=200) == N
        return
    with pytest.raises(FileError, match="unfinished run with another model, table or options"):
        score_file(order(place, **options), *arguments, keep=keep, batch_rows=200)


def test_every_line_of_a_score_file_is_a_person(place):
    score_file(order(place), place / "people.parquet", place / "out.csv", keep=("id",), batch_rows=64)
    lines = (place / "out.csv").read_text().splitlines()
    assert lines[0] == "id,p_no,p_yes"
    assert [int(line.split(",")[0]) for line in lines[1:]] == PEOPLE["id"].tolist()


def test_bad_tables_are_one_clear_error(place):
    PEOPLE[:0].to_parquet(place / "nobody.parquet")
    PEOPLE.drop(columns="age").to_parquet(place / "ageless.parquet")
    (place / "broken.parquet").write_bytes((place / "people.parquet").read_bytes()[:500])
    for name, message in (
        ("nobody.parquet", "has no rows"),
        ("broken.parquet", "Cannot read"),
        ("absent.parquet", "There is no file"),
        ("people.txt", "There is no file"),
    ):
        with pytest.raises(FileError, match=message):
            score_file(order(place), place / name, place / f"{name}.out.parquet")
        assert not (place / f"{name}.out.parquet").exists()
    with pytest.raises(FileError, match="has no column 'age'"):
        score_file(order(place), place / "ageless.parquet", place / "out.parquet")


# -- a cluster ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_cluster_gives_the_same_bits_and_survives_a_killed_worker(place, cluster):
    address, workers, _ = cluster
    score_file(order(place), place / "people.parquet", place / "here.parquet", keep=("id",), batch_rows=3)
    with killed(workers[0], place / "there.parquet.parts", "*.parquet", 5) as left:
        n = score_file(
            order(place), place / "people.parquet", place / "there.parquet", keep=("id",), batch_rows=3, cluster=address
        )
    assert 5 <= left[0] < N / 3, "the worker must die while there is work left"
    assert n == N
    pd.testing.assert_frame_equal(pd.read_parquet(place / "there.parquet"), pd.read_parquet(place / "here.parquet"))


@pytest.mark.usefixtures("impatient")
def test_an_unreachable_cluster_is_one_clear_error(place):
    with pytest.raises(FileError, match=r"Cannot reach a Dask scheduler at tcp://127.0.0.1:1"):
        score_file(order(place), place / "people.parquet", place / "out.parquet", cluster="tcp://127.0.0.1:1")


def test_columns_that_must_not_matter_need_not_be_in_the_file(place, model):
    PEOPLE.drop(columns="race").to_csv(place / "blind.csv", index=False)
    score_file(order(place), place / "blind.csv", place / "blind-scores.csv", keep=("id",))
    scores = pd.read_csv(place / "blind-scores.csv")
    np.testing.assert_allclose(scores[["p_no", "p_yes"]], model.predict_proba(PEOPLE.drop(columns="id")), rtol=1e-12)
    PEOPLE.drop(columns="age").to_csv(place / "useless.csv", index=False)
    with pytest.raises(FileError, match="has no column 'age', which the model needs"):
        score_file(order(place), place / "useless.csv", place / "scores.csv")


KEPT = ["0007", "7", "NA", "None", "nan", "-0", "2.0", "1e5", "007.50", " 7 ", "", "12345678901234567890", "true"]


@pytest.mark.parametrize("ids", [KEPT, ["2.0", "-0"], ["0007", "12"], ["7", "-12"], ["1", "NA"], ["1", ""]], ids=str)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_kept_columns_are_written_as_they_stand_in_the_file(place, ids, ending):
    """Text is neither a number nor missing because it looks like one; only whole numbers throughout become such."""
    rows = pd.read_parquet(place / "people.parquet").head(len(ids)).astype(str).assign(name=ids, again=ids)
    rows.to_csv(place / "few.csv", index=False)
    score_file(
        ScoringJob((place / "model.skops").read_bytes()),
        place / "few.csv",
        place / f"scores.{ending}",
        id_column="name",
        keep=("again",),
        batch_rows=1,
    )
    if ending == "csv":
        found = pd.read_csv(place / "scores.csv", dtype=str, keep_default_na=False)
    else:
        found = pd.read_parquet(place / "scores.parquet").fillna({"name": "", "again": ""}).astype(str)
    assert found["name"].tolist() == found["again"].tolist() == ids


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_whole_numbers_beside_blanks_are_kept_as_such(place, ending):
    """2^53 + 1 is no float."""
    ids = [2**53 + 1, None, 7]
    people = pq.read_table(place / "people.parquet").slice(0, 3).append_column("name", pa.array(ids, pa.int64()))
    pq.write_table(people, place / "few.parquet")
    score_file(
        ScoringJob((place / "model.skops").read_bytes()),
        place / "few.parquet",
        place / f"scores.{ending}",
        id_column="name",
        batch_rows=2,
    )
    if ending == "csv":
        assert pd.read_csv(place / "scores.csv", dtype=str)["name"].fillna("").tolist() == [str(2**53 + 1), "", "7"]
    else:
        assert pq.read_table(place / "scores.parquet")["name"].to_pylist() == ids


def test_a_column_that_is_kept_is_read_for_the_model_as_ever(tmp_path):
    """Kept or not, the words for a missing value are one to the model."""
    people = pd.DataFrame({"age": np.arange(60), "region": ["north", "south", None] * 20})
    metric = TableMetric({"age": 0.01}, {"region": 0.3})
    model = AdditiveClassifier(metric, penalty=1e-3).fit(people, np.arange(60) % 3 // 2)
    save_model(model, tmp_path / "model.skops")
    rows = [(30, "NA"), (31, "None"), (32, ""), (33, "south"), (34, "new")]
    (tmp_path / "few.csv").write_text("age,region\n" + "".join(f"{age},{region}\n" for age, region in rows))
    read = people.head(5).assign(age=[age for age, _ in rows], region=[None, None, None, "south", "new"])
    for keep in ((), ("region", "age")):
        job = ScoringJob((tmp_path / "model.skops").read_bytes())
        score_file(job, tmp_path / "few.csv", tmp_path / f"{len(keep)}.parquet", keep=keep)
        scores = pd.read_parquet(tmp_path / f"{len(keep)}.parquet")
        assert (scores[["p_0", "p_1"]].to_numpy() == model.predict_proba(read)).all()
