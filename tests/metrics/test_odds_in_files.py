"""Weights of a metric file that are stated in odds."""

import numpy as np
import pytest

from likewise.exceptions import FileError
from likewise.metric_edits import scale_text
from likewise.metric_file import read_metric

FILE = """p = 1

[numeric]
balance = "5% of odds per $1,000" # agreed
income = "5% of the odds per $1,000"
age = "2.5% of odds per 5 years"
cards = "10% of odds per card"
share = "3% of odds per 1 percentage point"

[categorical]
region = "20% of odds"

[missing]
age = "10% of odds"

[units]
balance = "$"
income = "$1000 a year"
age = "years"
cards = "1 card"
share = "ratio"
"""


def write(tmp_path, text):
    (tmp_path / "m.toml").write_text(text)
    return tmp_path / "m.toml"


def test_odds_in_a_file_are_weights(tmp_path):
    metric = read_metric(write(tmp_path, FILE))
    expected = {
        "balance": np.log(1.05) / 4 / 1000,
        "income": np.log(1.05) / 4,
        "age": np.log(1.025) / 4 / 5,
        "cards": np.log(1.1) / 4,
        "share": np.log(1.03) / 4 * 100,
    }
    assert metric.numeric == pytest.approx(expected)
    assert metric.categorical["region"] == pytest.approx(np.log(1.2) / 4)
    assert metric.missing["age"] == pytest.approx(np.log(1.1) / 4)
    # Nothing is further apart than 1.
    huge = FILE.replace("20% of odds", "9900% of odds").replace('age = "10% of odds"', 'age = "9900% of odds"')
    assert (
        read_metric(write(tmp_path, huge)).categorical["region"] == read_metric(tmp_path / "m.toml").missing["age"] == 1
    )


def test_a_scaled_file_keeps_what_was_written_as_a_comment(tmp_path):
    text, file = scale_text(write(tmp_path, FILE), 0.5)
    assert "# 1 point = $1,640; was 5% of odds per $1,000; agreed" in text
    assert read_metric(write(tmp_path, text)) == file.metric


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ('"-5% of odds per $1,000"', "odds must not be below 0"),
        ('"1,5% of odds per $1,000"', "with a decimal point as in 1.5%"),  # was read as 15%
        ('"5% of odds per 1,5"', "with a decimal point and commas between thousands"),  # was read as per 15
        ('"5% per $1,000"', "a weight must be a number, or odds such as"),
        ('"5% of odds per 3 months"', "odds must be per an amount in the unit of the column"),
        ('"5% of odds per €1,000"', "odds must be per an amount in the unit of the column"),
        ('"5% of odds per $0"', "odds must be per a positive amount"),
    ],
)
def test_wrong_odds_are_refused_in_a_line_that_names_it(tmp_path, wrong, words):
    path = write(tmp_path, FILE.replace('"5% of odds per $1,000"', wrong))
    with pytest.raises(FileError, match="line 4") as error:
        read_metric(path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
