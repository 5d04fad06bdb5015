"""A metric file is people's own: what they write into it survives."""

import pytest

from likewise import TableMetric
from likewise.app.metric_files import format_metric, read_metric, read_words, write_metric
from likewise.errors import FileError
from shell import LOANS, run

METRIC = TableMetric(
    {"income": 0.01 / 4300, "age": 0.004, "zip": 0}, {"race": 0}, units={"income": "$", "age": "years"}
)


def test_a_file_that_nobody_edited_has_no_words_but_its_units(tmp_path):
    write_metric(METRIC, tmp_path / "m.toml", note="Revealed exactly.\nSet to 0: race.", unused=["zip"])
    words = read_words(tmp_path / "m.toml")
    assert words.n_comments == 0
    assert words.units == {"income": "$", "age": "years"}


def test_comments_stay_where_they_are(tmp_path):
    path = tmp_path / "m.toml"
    text = format_metric(METRIC)
    text = text.replace("p = 1", "# Agreed in May 2024.\np = 1  # taxi")
    text = text.replace("[categorical]", "# By law:\n[categorical]")
    text = text.replace("race = 0 # must not matter", "# Article 21\nrace = 0 # must not matter; never")
    text = text.replace("# 1 point = $4,300", "# 1 point = $4,300, says the bank")
    path.write_text(text + "\n# The end.\n")
    stricter = METRIC.scaled(2)
    again = format_metric(stricter, words=read_words(path))
    for line in (
        "# Agreed in May 2024.\np = 1 # taxi",
        "# By law:",
        "# Article 21\nrace = 0 # must not matter; never",
        "# 1 point = $2,150; says the bank",
        "# The end.",
    ):
        assert line in again
    assert "4,300" not in again
    path.write_text(again)
    assert read_metric(path) == stricter
    assert format_metric(stricter, words=read_words(path)).count("says the bank") == 1


def test_a_column_that_stands_twice_is_one_clear_error(tmp_path):
    path = tmp_path / "m.toml"
    path.write_text("p = 1\n[numeric]\nage = 1\nage = 2\n")
    with pytest.raises(FileError, match=r'm.toml.*: not valid TOML \(Key "age" already exists'):
        read_metric(path)


def test_comments_on_a_column_that_is_gone_are_not_lost(tmp_path):
    path = tmp_path / "m.toml"
    path.write_text(format_metric(METRIC).replace("age = 0.004 #", "# ask Ada\nage = 0.004 # disputed;"))
    text = format_metric(TableMetric({"income": 1e-6}), words=read_words(path))
    assert "# ask Ada" in text
    assert "# age: disputed" in text


def test_metric_again_keeps_units_and_comments_and_says_so(tmp_path):
    LOANS.to_csv(tmp_path / "loans.csv", index=False)
    command = "metric loans.csv --target approved --drop id --out m.toml"
    assert run(tmp_path, f"{command} --zero race").exit_code == 0
    path = tmp_path / "m.toml"
    path.write_text(path.read_text().replace("race = 0", "# By law.\nrace = 0") + '\n[units]\nincome = "$"\n')
    assert "there already" in run(tmp_path, command).stderr
    done = run(tmp_path, f"{command} --force")
    assert "Kept of the old m.toml: the units of income and 1 comment." in done.stdout
    assert "had a weight of 0 for race; this one has not. To keep it: --zero race." in done.stderr
    assert "# By law.\nrace = 0." in path.read_text()
    assert read_metric(path).units == {"income": "$"}
    assert "$" in done.stdout
    path.write_text("p = nonsense")
    done = run(tmp_path, f"{command} --force")
    assert done.exit_code == 0
    assert "Nothing is kept of the old file" in done.stderr
