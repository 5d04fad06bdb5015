"""Tables as they come: each surprise gets one line, and none a traceback."""

import pandas as pd
import pytest

from likewise import AdditiveClassifier, TableMetric
from likewise.cli import table_io
from likewise.cli.column_kinds import infer_kinds
from likewise.cli.console import Dialect
from likewise.cli.table_io import Unseen, read_table
from likewise.exceptions import FileError


@pytest.fixture
def notes():
    return []


def test_columns_of_one_name_are_told_apart(tmp_path, notes):
    (tmp_path / "t.csv").write_text("a,b,a,a\n1,2,3,4\n")
    assert read_table(tmp_path / "t.csv", note=notes.append).columns.tolist() == ["a", "b", "a.1", "a.2"]
    assert notes == [
        "The column 'a' occurs 3 times; the second is named 'a.1'.",
        "The column 'a' occurs 3 times; the third is named 'a.2'.",
    ]


def test_csv_of_another_dialect(tmp_path):
    (tmp_path / "t.csv").write_bytes("größe;b\n1.234,5;x\n0,25;y\n".encode("latin-1"))
    dialect = Dialect(";", "latin-1", ",")
    table, _ = infer_kinds(read_table(tmp_path / "t.csv", dialect), dialect)
    assert table["größe"].tolist() == [1234.5, 0.25]
    (tmp_path / "tabs.csv").write_text("a\tb\n1\t2\n")
    assert read_table(tmp_path / "tabs.csv", Dialect("tab")).columns.tolist() == ["a", "b"]
    with pytest.raises(FileError, match=r"as utf-8 .*Give --encoding"):
        read_table(tmp_path / "t.csv", Dialect(";"))


def test_columns_are_read_as_text_where_that_is_asked_for_and_where_zeros_lead(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n01,1,1\n,NA,2.0\n10,V9,3\n")
    plain = read_table(tmp_path / "t.csv")
    assert plain["a"].tolist()[::2] == [1, 10]
    table = read_table(tmp_path / "t.csv", as_text=["c"], padded=True)
    assert table["a"].tolist()[::2] == ["01", "10"]
    assert table["c"].tolist() == ["1", "2.0", "3"]
    assert table["b"].isna().tolist() == [False, True, False]
    (tmp_path / "negative.csv").write_text("a,b\n-05,-5\n10,0\n")
    negative = read_table(tmp_path / "negative.csv", padded=True)
    assert negative["a"].tolist() == ["-05", "10"]
    assert negative["b"].tolist() == [-5, 0]


def test_a_column_of_blanks_alone_is_no_other_spelling():
    X = pd.DataFrame({"job": ["clerk", "smith"] * 20})
    model = AdditiveClassifier(TableMetric({}, {"job": 0.2}), penalty=0.1).fit(X, [0, 1] * 20)
    blank, other = Unseen(model), Unseen(model)
    blank.look(pd.DataFrame({"job": [None] * 3}))
    blank.stop("t.csv")
    other.look(pd.DataFrame({"job": ["CLERK"] * 3}))
    with pytest.raises(FileError, match="it knows none of the people's values"):
        other.stop("t.csv")


def test_blanks_that_the_model_knows_are_no_spelling_that_it_knows():
    X = pd.DataFrame({"job": ["clerk", None] * 20})
    model = AdditiveClassifier(TableMetric({}, {"job": 0.2}), penalty=0.1).fit(X, [0, 1] * 20)
    people = Unseen(model)
    people.look(pd.DataFrame({"job": ["CLERK", None]}))
    with pytest.raises(FileError, match="it knows none of the people's values"):
        people.stop("t.csv")


def test_leading_zeros_are_found_wherever_they_are_and_stay_with_their_column(tmp_path, monkeypatch):
    """Of three columns, the first to have one is not the first of the table."""
    monkeypatch.setattr(table_io, "_ROWS", 2)
    (tmp_path / "t.csv").write_text("a,b,c\n1,02,3\n4,5,6\n7,8,9\n010,11,12\n")
    table = read_table(tmp_path / "t.csv", padded=True)
    assert table["a"].tolist() == ["1", "4", "7", "010"]
    assert table["b"].tolist() == ["02", "5", "8", "11"]
    assert table["c"].tolist() == [3, 6, 9, 12]


def test_a_long_file_is_read_as_one_piece(tmp_path):
    """pandas reads it in parts otherwise, and 30 is a number in the first and text in the last."""
    rows = ["30"] * 400_000 + ["V9"]
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(f"{code},{code}" for code in rows) + "\n")
    table = read_table(tmp_path / "t.csv", as_text=["a"])
    for name in ("a", "b"):
        assert table[name].map(type).eq(str).all()
        assert table[name].unique().tolist() == ["30", "V9"]


def test_a_word_for_no_value_is_one_with_spaces_around_it():
    table = pd.DataFrame({"pay": ["1", " n.a. ", "n.a", "n.a."]})
    assert table_io.without_words(table, Dialect(blank=("n.a.",)))["pay"].isna().tolist() == [False, True, False, True]
