"""Loaders: what they return, where they look, and what they say when they find nothing."""

import functools
import gzip
import hashlib
import http.server
import os
import socket
import threading

import pandas as pd
import pytest

from likewise.datasets import (
    _base,
    fetch_adult,
    fetch_compas,
    load_mortgages,
)

needs_data = pytest.mark.skipif(
    not os.environ.get("LIKEWISE_DATA"), reason="LIKEWISE_DATA does not name a directory with the real data"
)

ADULT_DATA = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
    "United-States, <=50K\n"
    "54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male, 0, 0, 60, South, >50K\n"
    "\n"
)
ADULT_TEST = "|1x3 Cross validator\n" + ADULT_DATA.replace("50K\n", "50K.\n")


def assert_bunch_is_complete(bunch):
    assert list(bunch.data.columns) == bunch.feature_names == list(bunch.units)
    assert set(bunch.target.unique()) == {0, 1}
    assert len(bunch.target_names) == 2
    assert bunch.frame.shape == (len(bunch.data), bunch.data.shape[1] + 1)
    assert bunch.frame.columns[-1] == bunch.target.name
    assert len(bunch.data) == len(bunch.target)
    assert bunch.licence
    assert bunch.DESCR


# Adult


def test_adult_reads_the_original_files(tmp_path):
    (tmp_path / "adult.data").write_text(ADULT_DATA)
    (tmp_path / "adult.test").write_text(ADULT_TEST)
    adult = fetch_adult(subset="all", columns="all", data_home=tmp_path)
    assert_bunch_is_complete(adult)
    assert list(adult.target) == [0, 1, 0, 1]
    assert list(adult.data["age"]) == [39, 54, 39, 54]
    assert list(adult.data["workclass"].isna()) == [False, True, False, True]
    assert adult.data["race"].dtype == "category"


def test_adult_has_the_five_numeric_features_by_default(tmp_path):
    (tmp_path / "adult.data").write_text(ADULT_DATA)
    adult = fetch_adult(data_home=tmp_path)
    assert adult.feature_names == ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    assert adult.units["hours-per-week"] == "hours per week"


@pytest.mark.parametrize(("option", "value"), [("subset", "validation"), ("columns", "text")])
def test_adult_names_the_option_that_is_wrong(option, value):
    with pytest.raises(ValueError, match=f"{option} must be .*; got '{value}'"):
        fetch_adult(**{option: value})


@needs_data
def test_adult_real():
    train, test = fetch_adult(), fetch_adult(subset="test")
    for part in (train, test):
        assert_bunch_is_complete(part)
        assert not part.data.isna().any(axis=None)
    assert (len(train.data), len(test.data)) == (32_561, 16_281)
    assert (train.target.sum(), test.target.sum()) == (7_841, 3_846)
    assert fetch_adult(subset="all", columns="all").data.shape == (48_842, 14)


# COMPAS


@needs_data
def test_compas_has_8_features_and_15_columns_when_one_hot_coded():
    compas = fetch_compas()
    assert_bunch_is_complete(compas)
    assert compas.data.shape == (7_214, 8)
    assert pd.get_dummies(compas.data).shape == (7_214, 15)
    assert compas.target.sum() == 3_251


def test_compas_reads_the_original_file_with_its_other_columns(tmp_path):
    # The original has 53 columns, among them some names twice.
    (tmp_path / "compas-scores-two-years.csv").write_text(
        "id,name,sex,age,race,juv_fel_count,juv_misd_count,juv_other_count,priors_count,c_charge_degree,decile_score,"
        "priors_count,two_year_recid\n"
        "1,a b,Male,69,Other,0,0,0,0,F,1,0,0\n3,c d,Female,34,Hispanic,0,1,0,2,M,3,2,1\n"
    )
    compas = fetch_compas(data_home=tmp_path)
    assert_bunch_is_complete(compas)
    assert list(compas.data["priors_count"]) == [0, 2]
    assert "decile_score" not in compas.feature_names


def test_a_file_without_the_expected_columns_is_named_with_what_is_missing(tmp_path):
    (tmp_path / "compas-scores-two-years.csv").write_text("age,sex\n30,Male\n")
    with pytest.raises(ValueError, match=r"compas-scores-two-years.csv must have .*missing: .*two_year_recid"):
        fetch_compas(data_home=tmp_path)


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "compas_two_years.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(ValueError, match=r"compas_two_years.csv.gz must be a CSV file"):
        fetch_compas(data_home=tmp_path)


# Mortgages


def test_mortgages():
    mortgages = load_mortgages()
    assert_bunch_is_complete(mortgages)
    assert mortgages.data.shape == (1_989, 23)
    assert mortgages.target.sum() == 1_745
    assert mortgages.data["race"].value_counts().to_dict() == {"white": 1_681, "black": 197, "hispanic": 111}
    assert mortgages.data["sex"].value_counts(dropna=False).to_dict()["male"] == 1_605


def test_mortgages_have_no_sentinels_left():
    data = load_mortgages().data
    expected_missing = {"income": 22, "liquid_assets": 9, "credit_lines": 1, "term": 4, "dependents": 3}
    assert data[list(expected_missing)].isna().sum().to_dict() == expected_missing
    assert data.select_dtypes("number").max().max() < 100_000
    assert not (data["income"] == 666).any()


def test_mortgage_features_do_not_give_the_decision_away():
    # A column that encodes the outcome would alone separate it; the best one should be far from that.
    mortgages = load_mortgages()
    from sklearn.metrics import roc_auc_score

    codes = mortgages.data.apply(lambda column: column.cat.codes if column.dtype == "category" else column)
    auc = [roc_auc_score(mortgages.target, codes[c].fillna(codes[c].median())) for c in codes]
    assert max(max(a, 1 - a) for a in auc) < 0.75


def test_mortgages_print_nothing(capsys):
    load_mortgages()
    assert capsys.readouterr() == ("", "")


# Where files are looked for


def test_data_home_comes_before_the_environment_variable(tmp_path, monkeypatch):
    for name, age in (("home", 20), ("variable", 60)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "adult.data").write_text(ADULT_DATA.replace("39", str(age), 1))
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "variable"))
    assert fetch_adult().data["age"][0] == 60
    assert fetch_adult(data_home=tmp_path / "home").data["age"][0] == 20


def test_a_missing_data_home_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="data_home must be an existing directory"):
        fetch_adult(data_home=tmp_path / "nowhere")


def test_what_cannot_be_downloaded_comes_with_instructions(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        _base.find(_base.Source(("people.csv",), "the town hall"), tmp_path)
    for word in (str(tmp_path), "people.csv", "Get it from the town hall", "data_home=", "LIKEWISE_DATA"):
        assert word in str(caught.value)


# Downloads, from a server on this machine


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A directory that a local server serves, and its address; downloads are cached beside it."""
    (tmp_path / "served").mkdir()
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *args: None})
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(quiet, directory=str(tmp_path / "served"))
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache")
    yield tmp_path / "served", f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def source(address, content):
    digest = hashlib.sha256(content).hexdigest()
    return _base.Source(("people.csv",), "the town hall", address + "people.csv", digest)


def test_a_download_with_the_right_hash_is_kept(served):
    directory, address = served
    (directory / "people.csv").write_bytes(b"age\n30\n")
    path = _base.find(source(address, b"age\n30\n"), None)
    assert path.read_bytes() == b"age\n30\n"
    (directory / "people.csv").unlink()
    assert _base.find(source(address, b"age\n30\n"), None) == path


def test_a_download_with_another_hash_is_refused(served):
    directory, address = served
    (directory / "people.csv").write_bytes(b"age\n31\n")
    with pytest.raises(ValueError, match=r"people.csv was not found, and the file at its address has changed"):
        _base.find(source(address, b"age\n30\n"), None)
    assert not list(directory.parent.glob("cache/*.csv"))


def test_a_failed_download_comes_with_instructions(monkeypatch, tmp_path):
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path)
    with socket.socket() as taken:  # a port where nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/"
    with pytest.raises(ConnectionError) as caught:
        _base.find(source(address, b""), None)
    for word in ("people.csv", "the download failed", "the town hall", address, "data_home=", "LIKEWISE_DATA"):
        assert word in str(caught.value)


def test_the_users_own_file_is_taken_without_a_check(tmp_path):
    with gzip.open(tmp_path / "people.csv", "wb") as file:
        file.write(b"age\n32\n")
    assert _base.find(source("http://127.0.0.1:9/", b""), tmp_path) == tmp_path / "people.csv"
