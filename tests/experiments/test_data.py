"""The loaders that only the experiments use, and how their data are split."""

import os

import numpy as np
import pandas as pd
import pytest

from experiments.data import fetch_seizure, fetch_ssl, make_ssl_like

needs_data = pytest.mark.skipif(
    not os.environ.get("LIKEWISE_DATA"), reason="LIKEWISE_DATA does not name a directory with the real data"
)


def assert_bunch_is_complete(bunch):
    assert list(bunch.data.columns) == bunch.feature_names == list(bunch.units)
    assert set(bunch.target.unique()) == {0, 1}
    assert len(bunch.target_names) == 2
    assert bunch.frame.shape == (len(bunch.data), bunch.data.shape[1] + 1)
    assert bunch.frame.columns[-1] == bunch.target.name
    assert len(bunch.data) == len(bunch.target)
    assert bunch.licence
    assert bunch.DESCR


# Seizure


@needs_data
def test_seizure_has_23_chunks_of_each_of_500_recordings():
    seizure = fetch_seizure()
    assert_bunch_is_complete(seizure)
    assert seizure.data.shape == (11_500, 178)
    assert (seizure.groups.value_counts() == 23).all()
    assert seizure.groups.nunique() == 500
    assert seizure.target.sum() == 2_300
    assert (seizure.target.groupby(seizure.groups).nunique() == 1).all()


def test_seizure_reads_the_original_with_recordings_numbered_per_class(tmp_path):
    readings = pd.DataFrame(np.arange(4 * 178).reshape(4, 178), columns=[f"X{i}" for i in range(1, 179)])
    readings.insert(0, "Unnamed", ["X21.V1.791", "X3.V1.791", "X1.V1.791", "X2.V1.5"])
    readings.assign(y=[4, 4, 1, 1]).to_csv(tmp_path / "Epileptic Seizure Recognition.csv", index=False)
    seizure = fetch_seizure(data_home=tmp_path)
    assert_bunch_is_complete(seizure)
    assert list(seizure.target) == [0, 0, 1, 1]
    groups = list(seizure.groups)
    assert groups[0] == groups[1]
    assert len(set(groups)) == 3


# Strategic Subject List


def test_synthetic_ssl_says_that_it_is_synthetic():
    ssl = make_ssl_like(100, random_state=0)
    assert "SYNTHETIC" in ssl.DESCR
    assert "synthetic" in ssl.licence


def test_synthetic_ssl_has_the_published_marginals():
    ssl = make_ssl_like(100_000, random_state=0)
    assert_bunch_is_complete(ssl)
    score = ssl.score
    assert score.mean() == pytest.approx(279.84, abs=0.1)
    assert score.std() == pytest.approx(58.00, abs=0.1)
    assert list(score.quantile([0, 0.25, 0.5, 0.75, 1])) == [10, 242, 289, 322, 500]
    means = [0.0202, 0.0359, 0.1150, 0.1629, 0.3358, -0.0495, 0.0333]
    sds = np.array([0.153, 0.211, 0.406, 0.369, 0.838, 0.405, 0.193])
    # A mean of 100,000 draws is within 5.1 standard errors of the truth except with probability 3.4e-7 (normal
    # approximation); seven of them keep the false-alarm rate below 1e-5, and the seed is fixed.
    assert (np.abs(ssl.data.mean()[1:] - means) <= 5.1 * sds / np.sqrt(100_000)).all()
    np.testing.assert_allclose(ssl.data.std()[1:], sds, rtol=0.05)


def test_synthetic_ssl_is_determined_by_its_seed():
    first, same, other = (make_ssl_like(50, random_state=seed).official for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, same)
    assert not first.equals(other)


@pytest.mark.parametrize("underscores", [False, True], ids=["spaces", "underscores"])
@pytest.mark.parametrize("name", ["Strategic_Subject_List_-_Historical.csv", "Strategic_Subject_List.csv.gz"])
def test_ssl_reads_the_official_format(tmp_path, underscores, name):
    synthetic = make_ssl_like(500, random_state=0)
    official = synthetic.official.assign(**{"RACE CODE CD": "BLK"})
    if underscores:
        official.columns = official.columns.str.replace(" ", "_")
    official.to_csv(tmp_path / name, index=False)
    ssl = fetch_ssl(data_home=tmp_path)
    assert_bunch_is_complete(ssl)
    pd.testing.assert_frame_equal(ssl.data, synthetic.data)
    pd.testing.assert_series_equal(ssl.score, synthetic.score)
    pd.testing.assert_series_equal(ssl.target, synthetic.target)


def test_ssl_age_bands_become_their_middle(tmp_path):
    official = make_ssl_like(4, random_state=0).official
    official["PREDICTOR RAT AGE AT LATEST ARREST"] = ["less than 20", "20-30", "70-80", None]
    official.to_csv(tmp_path / "Strategic_Subject_List.csv", index=False)
    ssl = fetch_ssl(data_home=tmp_path)
    assert list(ssl.data["age_at_latest_arrest"]) == [15, 25, 75]
    assert "1 rows with a missing value were left out" in ssl.DESCR


def test_ssl_names_an_age_band_that_it_does_not_know(tmp_path):
    official = make_ssl_like(2, random_state=0).official
    official["PREDICTOR RAT AGE AT LATEST ARREST"] = ["20-30", "young"]
    official.to_csv(tmp_path / "Strategic_Subject_List.csv", index=False)
    with pytest.raises(ValueError, match=r"age band .* must read like '20-30'.*; got 'young'"):
        fetch_ssl(data_home=tmp_path)


def test_ssl_high_risk_is_a_score_above_the_median():
    ssl = make_ssl_like(1000, random_state=0)
    assert ((ssl.score > ssl.score.median()) == (ssl.target == 1)).all()


@pytest.mark.parametrize("fetch", [fetch_ssl, fetch_seizure])
def test_what_cannot_be_downloaded_comes_with_instructions(fetch, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        fetch(data_home=tmp_path)
    for word in (str(tmp_path), ".csv", "Get it from", "data_home=", "LIKEWISE_DATA"):
        assert word in str(caught.value)
