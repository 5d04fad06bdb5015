"""Models and metrics in files, by the names that everybody imports."""

import io
import json
import subprocess
import sys
import zipfile
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

import likewise
from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    FunctionMetric,
    ProjectedClassifier,
    RecalibratedClassifier,
    TableMetric,
    WeightedLp,
)
from likewise.io import _OwnTypes

X, Y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]


def test_a_metric_is_what_it_was_after_writing_and_reading(tmp_path):
    metric = TableMetric({"age": 0.01}, {"region": 0.1})
    likewise.write_metric(metric, tmp_path / "metric.toml")
    assert likewise.read_metric(tmp_path / "metric.toml") == metric


def of_a_function_of_tables():
    metric = FunctionMetric(lambda a, b: abs(a["age"] - b["age"]) / 100, takes_tables=True)
    return ProjectedClassifier(lambda table: np.full(len(table), 0.5), metric=metric).fit(
        TABLE[["age"]], TABLE["age"] > 40
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda path: likewise.save_model(3, path), "model must be a fitted estimator; got 3"),
        (lambda path: likewise.save_model(LogisticRegression(), path), "not fitted yet"),
        (lambda path: likewise.save_model(LogisticRegression().fit(X, Y), 3), "path must be the name of a file"),
        (lambda path: likewise.save_model(of_a_function_of_tables(), path), "an object that no file can hold"),
        (lambda path: likewise.load_model(3), "path must be the name of a file"),
        (lambda path: likewise.load_model(path), "There is no model file"),
        (lambda path: likewise.read_metric(None), "path must be the name of a file"),
        (lambda path: likewise.read_metric(path), "There is no file"),
        (lambda path: likewise.write_metric(WeightedLp([1.0]), path), "metric must be a TableMetric"),
        (lambda path: likewise.write_metric(TableMetric({"age": 0.01}), 3), "path must be the name of a file"),
    ],
)
def test_what_cannot_be_saved_or_read_gets_one_clear_error_and_leaves_nothing(call, words, tmp_path):
    with pytest.raises(likewise.LikewiseError, match=words):
        call(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


TABLE = pd.DataFrame({"age": [20, 30, 40, 50, 60, 70] * 5, "job": ["a", None, "b"] * 10})
TABLE_METRIC = TableMetric({"age": 0.01}, {"job": 0.2}, missing="category", units={"age": "years"})
LABELS = np.array(["no", "perhaps", "yes"] * 10, dtype=object)
OWN_MODELS = {
    "labels": lambda: AdditiveClassifier(TABLE_METRIC, penalty=0.1).fit(TABLE, LABELS),
    "penalties": lambda: AdditiveClassifier(TABLE_METRIC, monotone={"age": 1}).fit(TABLE, LABELS == "yes"),
    "regression": lambda: AdditiveRegressor(WeightedLp([0.2]), output_range=(0, 9), penalty=0.1).fit(X, [1, 2, 3, 4]),
    "calibrated": lambda: RecalibratedClassifier(AdditiveClassifier(TABLE_METRIC, penalty=0.1), cv=2).fit(
        TABLE, LABELS == "yes"
    ),
}


def content(model):
    """Everything a model holds, and which objects are the same one; identities are numbered as they come."""
    numbers = {}

    def numbered(node):
        if isinstance(node, dict):
            node = {key: value for key, value in node.items() if key != "file"} | (
                {"bytes": archive.read(node["file"])} if "file" in node else {}
            )
            return {
                key: numbers.setdefault(value, len(numbers)) if key == "__id__" else numbered(value)
                for key, value in node.items()
            }
        return [numbered(each) for each in node] if isinstance(node, list) else node

    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as archive:
        return numbered(json.loads(archive.read("schema.json")))


@pytest.mark.parametrize("name", OWN_MODELS)
def test_models_of_own_types_are_read_as_skops_reads_them(name):
    data = skops.io.dumps(OWN_MODELS[name]())
    expected = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    assert content(_OwnTypes(data).load()) == content(expected)


def test_models_of_other_types_are_left_to_skops(tmp_path):
    model = ProjectedClassifier(LogisticRegression(), metric=WeightedLp([0.2])).fit(X, Y)
    with pytest.raises(likewise.LikewiseError, match=r"sklearn.*is not a type of likewise"):
        _OwnTypes(skops.io.dumps(model)).load()
    likewise.save_model(model, tmp_path / "model.skops")
    assert likewise.load_model(tmp_path / "model.skops").predict_proba(X).tolist() == model.predict_proba(X).tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"__loader__": "FunctionNode", "__module__": "os", "__class__": "getcwd"},
        {"__loader__": "TypeNode", "__module__": "subprocess", "__class__": "Popen"},
        {"__loader__": "ObjectNode", "__module__": "subprocess", "__class__": "Popen"},
        {"__loader__": "ObjectNode", "__module__": "likewise.metrics.weighted_lp", "__class__": "np"},
        {"__loader__": "ObjectNode", "__module__": "likewise.io", "__class__": "_OwnTypes"},
        {"__loader__": "ListNode", "__module__": "builtins", "__class__": "eval", "content": []},
        {"__loader__": "TupleNode", "__module__": "os", "__class__": "stat_result", "content": []},
        {"__loader__": "NdArrayNode", "__module__": "numpy", "__class__": "fromfile", "type": "numpy", "file": "x.npy"},
        {"__loader__": "OperatorFuncNode", "__module__": "operator", "__class__": "methodcaller", "attrs": {}},
    ],
)
def test_a_node_of_any_other_type_is_refused(change, tmp_path):
    data = skops.io.dumps(AdditiveClassifier(WeightedLp([0.2]), penalty=0.1).fit(X, Y))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        schema = json.loads(archive.read("schema.json"))
        parts = {name: archive.read(name) for name in archive.namelist()}
    schema["content"]["content"]["penalty"] = {"__id__": 1} | change
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in (parts | {"schema.json": json.dumps(schema), "x.npy": b""}).items():
            archive.writestr(name, part)
    with pytest.raises(likewise.LikewiseError, match="is not a type of likewise"):
        _OwnTypes(path.read_bytes()).load()
    with pytest.raises(likewise.LikewiseError, match=r"which likewise does not load|or it is damaged"):
        likewise.load_model(path)
    # The control: the same file with a number in that place.
    schema["content"]["content"]["penalty"] = {"__id__": 1, "__loader__": "JsonNode", "content": "0.1"} | {
        "__module__": "builtins",
        "__class__": "str",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in (parts | {"schema.json": json.dumps(schema)}).items():
            archive.writestr(name, part)
    assert _OwnTypes(path.read_bytes()).load().penalty == 0.1


def test_a_card_is_loaded_without_importing_all_of_scikit_learn(tmp_path):
    likewise.save_model(OWN_MODELS["labels"](), tmp_path / "model.skops")
    code = (
        "import sys; from likewise import load_model; load_model(sys.argv[1]);"
        "assert not {'skops', 'numba', 'sklearn.ensemble'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "model.skops"], check=True)


def test_a_model_of_another_minor_version_is_refused(tmp_path, monkeypatch):
    """Scores could differ; a patch release is taken."""
    likewise.save_model(OWN_MODELS["labels"](), tmp_path / "model.skops")
    real = version("scikit-learn").split(".")
    for changed, fits in (([*real[:2], "99"], True), ([real[0], "99", "0"], False), (["99", *real[1:]], False)):
        now = ".".join(changed)
        monkeypatch.setattr(
            "likewise.io.version", lambda name, now=now: now if name == "scikit-learn" else version(name)
        )
        if fits:
            likewise.load_model(tmp_path / "model.skops")
        else:
            with pytest.raises(likewise.LikewiseError, match="was saved with scikit-learn"):
                likewise.load_model(tmp_path / "model.skops")
