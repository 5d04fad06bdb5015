import io
import pickle
import zipfile
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from likewise import AdditiveClassifier, SmoothedClassifier, SmoothedRegressor, TableMetric, WeightedLp
from likewise._writing import atomic_write
from likewise.cli.table_io import read_table
from likewise.exceptions import FileError
from likewise.inspection.baselines import MODELS, table_model
from likewise.io import _allowed, load_model, save_model, with_checksum
from likewise.metric_file import format_metric, read_metric, write_metric

METRIC = TableMetric(
    {"income": 0.01 / 4300, "age": 0.004, "zip code": 0},
    {"race": 0, 'a "b" = <c> #': 0.25},
    missing="category",
    units={"income": "$", "age": "years"},
)


def test_a_metric_file_is_read_back_as_it_was_written(tmp_path):
    for metric in (METRIC, TableMetric({"a": 1e-12}), TableMetric(categorical={"b": 1 / 3})):
        write_metric(metric, tmp_path / "metric.toml")
        assert read_metric(tmp_path / "metric.toml") == metric
        assert read_metric(tmp_path / "metric.toml").missing == metric.missing  # of columns of weight 0 as well


def test_a_metric_file_explains_each_weight():
    text = format_metric(METRIC)
    for line in (
        'income = "1 point = $4,300"',
        'age = "1 point = 2.5 years"',
        "race = 0 # must not matter",
        '= "mismatch = 25 points"',
    ):
        assert line in text


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('age = "1 point = 2.5 years"', "age = -0.004", 8, "non-negative and finite; got -0.004 for 'age'"),
        ('age = "1 point = 2.5 years"', "age = 'much'", 8, "a weight must be a number, or odds"),
        ("race = 0", "race = 3", 13, "must be between 0 and 1 .* got 3 for 'race'"),
        ("[units]", "[unit]", 22, "unknown entry 'unit'"),
        ("p = 1", "p = 0.5", 3, "p must be 1, so that"),
        ("p = 1", "p = = 1", 3, "not valid TOML"),
        ('income = "$"', 'incme = "$"', 24, "'incme' has no weight in this metric"),
    ],
)
def test_a_bad_edit_is_refused_with_its_line(tmp_path, old, new, line, message):
    path = tmp_path / "metric.toml"
    path.write_text(format_metric(METRIC).replace(old, new, 1))
    with pytest.raises(FileError, match=rf"metric.toml, line {line}: .*{message}"):
        read_metric(path)


PEOPLE = pd.DataFrame({"age": [20, 30, 40, 50] * 10, "income": np.arange(40.0), "region": ["n", "s", None, "e"] * 10})
OUTCOME = np.array([0, 1] * 20)


NOISES = ["gaussian", "laplace", "uniform", "splitting"]


# A file has the noise beside the model, so every noise with one model and every model with one noise show it all.
@pytest.mark.parametrize(
    ("kind", "noise"),
    [
        *((kind, "auto") for kind in MODELS),
        *(
            pytest.param(kind, noise, marks=[pytest.mark.slow] * (kind != "boosting"))
            for kind in MODELS
            for noise in NOISES
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_come_back_as_they_were(tmp_path, kind, noise):
    metric = TableMetric({"age": 0.01, "income": 0.02}, {"region": 0.2})
    model = SmoothedClassifier(table_model(PEOPLE, kind), metric=metric, noise=noise, n_draws=50).fit(PEOPLE, OUTCOME)
    save_model(model, tmp_path / "model.skops")
    again = load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(PEOPLE), model.predict_proba(PEOPLE))
    assert again.guarantee_ == model.guarantee_
    assert list(again.feature_names_in_) == list(PEOPLE.columns)


def test_models_of_arrays_are_saved_too(tmp_path):
    X = PEOPLE[["age", "income"]].to_numpy()
    for model in (
        SmoothedClassifier(LogisticRegression(), metric=WeightedLp([1, 1])).fit(X, OUTCOME),
        SmoothedRegressor(LogisticRegression(), n_draws=20).fit(X, OUTCOME),
    ):
        save_model(model, tmp_path / "model.skops")
        np.testing.assert_array_equal(load_model(tmp_path / "model.skops").predict(X), model.predict(X))


class Foreign(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


def test_foreign_types_are_neither_saved_nor_loaded(tmp_path):
    X = PEOPLE[["age", "income"]].to_numpy()
    model = SmoothedClassifier(Foreign(), metric=WeightedLp([1, 1]), n_draws=10).fit(X, OUTCOME)
    with pytest.raises(FileError, match=r"it holds objects of type .*Foreign, which likewise would not load"):
        save_model(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())
    skops.io.dump({"format": 2, "versions": {}, "model": Foreign()}, tmp_path / "model.skops")
    with pytest.raises(FileError, match=r"holds objects of type .*Foreign, which likewise does not load"):
        load_model(tmp_path / "model.skops")


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was executed",))


def test_pickles_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "model.skops"
    model = SmoothedClassifier(LogisticRegression(), metric=WeightedLp([1])).fit([[1], [2]], [0, 1])
    save_model(model, path)
    good = path.read_bytes()
    for content in (pickle.dumps(Bomb()), b"", b"PK\x03\x04 nothing", good[: len(good) // 2], good[:200] + good[300:]):
        path.write_bytes(content)
        with pytest.raises(FileError, match=r"model.skops is not a model saved by likewise, or it is damaged"):
            load_model(path)
    with pytest.raises(FileError, match="There is no model file"):
        load_model(tmp_path / "other.skops")


def test_a_model_of_another_version_is_refused(tmp_path, monkeypatch):
    model = SmoothedClassifier(LogisticRegression(), metric=WeightedLp([1])).fit([[1], [2]], [0, 1])
    save_model(model, tmp_path / "model.skops")
    monkeypatch.setattr("likewise.io.version", lambda name: "99.1.0")
    with pytest.raises(FileError, match=r"was saved with likewise .*, and 99.1.0 is installed"):
        load_model(tmp_path / "model.skops")


def test_a_model_of_another_format_or_minor_version_is_refused(tmp_path):
    model = SmoothedClassifier(LogisticRegression(), metric=WeightedLp([1])).fit([[1], [2]], [0, 1])
    versions = {name: version(name) for name in ("likewise", "numpy", "scikit-learn")}
    major, minor, *_ = versions["numpy"].split(".")
    documents = [
        ({"format": 2, "versions": versions, "model": model}, None),
        ({"format": 1, "versions": versions, "model": model}, r"saved by likewise 0\.2.*Fit the model again"),
        ({"format": 3, "versions": versions, "model": model}, "is not a model saved by likewise"),
        ([model], "is not a model saved by likewise"),
        ({"format": 2, "versions": versions}, "is not a model saved by likewise"),
        ({"format": 2, "versions": {"nonsense": "1.0"}, "model": model}, "does not say with which versions"),
        ({"format": 2, "versions": versions | {"numpy": 2}, "model": model}, "was saved with numpy 2"),
        (
            {"format": 2, "versions": versions | {"numpy": f"{major}.{int(minor) + 1}.0"}, "model": model},
            "was saved with numpy",
        ),
    ]
    for document, message in documents:
        (tmp_path / "model.skops").write_bytes(with_checksum(skops.io.dumps(document)))
        if message is None:  # the control
            assert load_model(tmp_path / "model.skops").predict([[1]]).shape == (1,)
            continue
        with pytest.raises(FileError, match=message):
            load_model(tmp_path / "model.skops")


def repacked(content, change=lambda name, part: part, comment=None, **options):
    """An archive written anew, with the sums of its parts that fit."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(packed, "w", **options) as new:
        for name in reversed(old.namelist()):
            new.writestr(name, change(name, old.read(name)))
        new.comment = old.comment if comment is None else comment
    return packed.getvalue()


def test_a_model_in_which_a_number_was_changed_is_refused(tmp_path):
    X = PEOPLE[["age", "income"]].to_numpy()
    model = AdditiveClassifier(WeightedLp([0.01, 0.01]), penalty=0.0123).fit(X, OUTCOME)
    path = tmp_path / "model.skops"
    save_model(model, path)
    good = path.read_bytes()

    def steeper(name, part):
        return part.replace(b"0.0123", b"0.0923") if name == "schema.json" else part

    assert repacked(good, steeper) != repacked(good)
    path.write_bytes(repacked(good, steeper))
    with pytest.raises(FileError, match=r"model.skops was changed after it was saved"):
        load_model(path)
    path.write_bytes(repacked(good, comment=b""))
    with pytest.raises(FileError, match=r"model.skops was changed after it was saved"):
        load_model(path)
    # The control: packed in another way, it is the same model.
    path.write_bytes(repacked(good, compression=zipfile.ZIP_DEFLATED))
    np.testing.assert_array_equal(load_model(path).predict_proba(X), model.predict_proba(X))


def test_of_our_own_only_data_may_stand_in_a_file():
    for kind in ("base.Scorer", "kernel.bounds.Bound", "metrics.weighted_lp.WeightedLp", "kernel.schema.People"):
        assert _allowed(f"likewise.{kind}")
    for kind in (
        "metrics.encoders.as_frame",
        "inspection.prediction.hard_votes",
        "metrics.weighted_lp.np",
        "metrics.nowhere.X",
        "cli.main.main",
    ):
        assert not _allowed(f"likewise.{kind}")
    assert not _allowed("likewise.kernel.guarantee.Guarantee")  # it follows from what is in the file, or not at all
    assert not _allowed("os.system")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write_half(temporary):
        temporary.write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError), atomic_write(path) as temporary:
        write_half(temporary)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_where_one_cannot_is_one_clear_error(tmp_path):
    with pytest.raises(FileError, match=r"Cannot write .*: No such file or directory"):
        write_metric(METRIC, tmp_path / "nowhere" / "metric.toml")


def test_tables_are_read_by_their_kind(tmp_path):
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    PEOPLE.to_parquet(tmp_path / "people.parquet")
    assert read_table(tmp_path / "people.csv").shape == read_table(tmp_path / "people.parquet").shape == (40, 3)
    (tmp_path / "broken.parquet").write_bytes((tmp_path / "people.parquet").read_bytes()[:100])
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "people.xlsx").write_text("")
    for name, message in (
        ("broken.parquet", "Cannot read"),
        ("empty.csv", "Cannot read .*: it is empty"),
        ("people.xlsx", "must be a .csv, .csv.gz or .parquet file"),
        ("absent.csv", "There is no file"),
    ):
        with pytest.raises(FileError, match=message):
            read_table(tmp_path / name)
