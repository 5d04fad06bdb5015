"""Tables as they come: each surprise gets one line, and none a traceback."""

import numpy as np
import pandas as pd
import pytest

from likewise.app.batches import Batches
from likewise.app.tables import Dialect, date_columns, read_table, tidy
from likewise.errors import FileError


@pytest.fixture
def notes():
    return []


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["1,234", "5", None, "1,234,567.5"], [1234, 5, np.nan, 1234567.5]),
        (["$1,200", "-€3", " £7 ", "0"], [1200, -3, 7, 0]),
        (["1970-01-02", "2004-02-29", None, "1969-12-31"], [1, 12477, np.nan, -1]),
        (["1970-01-02T12:00", "1970-01-02 00:00:00Z", None, "1970-01-01T02:00+02:00"], [1.5, 1, np.nan, 0]),
    ],
)
def test_text_that_stands_for_numbers_is_read_as_numbers(values, numbers, notes):
    table = tidy(pd.DataFrame({"a": values, "b": list("wxyz")}), note=notes.append)
    np.testing.assert_array_equal(table["a"], numbers)
    assert len(notes) == 1
    assert notes[0].startswith("Column 'a' h")


@pytest.mark.parametrize(
    "values", [["1,23", "4"], ["12,34,567"], ["1,234", "x"], ["2004-13-01"], ["12:30"], ["yes", "no"], [True, "1,000"]]
)
def test_other_text_stays_text(values, notes):
    before = pd.DataFrame({"a": values})
    pd.testing.assert_frame_equal(tidy(before, note=notes.append), before)
    assert notes == []


def test_days_and_months_in_any_order_are_not_guessed(notes):
    before = pd.DataFrame({"a": ["1/2/2020", "03.04.2021"]})
    pd.testing.assert_frame_equal(tidy(before, note=notes.append), before)
    assert "each is a category of its own. Write them as YYYY-MM-DD" in notes[0]


def test_dates_of_parquet_are_days_too(notes):
    before = pd.DataFrame({"a": pd.to_datetime(["1970-01-03", None]), "b": [1, 2]})
    after = tidy(before, note=notes.append)
    np.testing.assert_array_equal(after["a"], [2, np.nan])
    assert date_columns(before, after) == ["a"]
    pd.testing.assert_frame_equal(tidy(before, categorical=["a"]), before)
    pd.testing.assert_frame_equal(tidy(before, only=["b"]), before)


def test_csv_of_another_dialect(tmp_path, notes):
    (tmp_path / "t.csv").write_bytes("größe;b\n1.234,5;x\n0,25;y\n".encode("latin-1"))
    dialect = Dialect(";", "latin-1", ",")
    table = tidy(read_table(tmp_path / "t.csv", dialect), dialect, notes.append)
    assert table["größe"].tolist() == [1234.5, 0.25]
    (tmp_path / "tabs.csv").write_text("a\tb\n1\t2\n")
    assert read_table(tmp_path / "tabs.csv", Dialect("tab")).columns.tolist() == ["a", "b"]
    with pytest.raises(FileError, match=r"as utf-8 .*Give --encoding"):
        read_table(tmp_path / "t.csv", Dialect(";"))


def test_columns_of_one_name_are_told_apart(tmp_path, notes):
    (tmp_path / "t.csv").write_text("a,b,a,a\n1,2,3,4\n")
    assert read_table(tmp_path / "t.csv", note=notes.append).columns.tolist() == ["a", "b", "a.1", "a.2"]
    assert notes == [
        "The column 'a' stands 3 times; the second is called 'a.1'.",
        "The column 'a' stands 3 times; the third is called 'a.2'.",
    ]


def test_batches_read_a_column_alike(tmp_path, notes):
    (tmp_path / "t.csv").write_text("n,word\n" + "5,a\n" * 3 + '"1,234",7\n' * 2)
    batches = Batches(tmp_path / "t.csv", 2, Dialect(), ["n"], notes.append)
    assert batches.n_people == 5
    assert [batch["n"].tolist() for batch in batches] == [[5, 5], [5, 1234], [1234]]
    assert [batch["word"].tolist() for batch in batches][2] == ["7"]
