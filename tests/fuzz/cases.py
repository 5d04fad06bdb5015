"""What is done with a case, and what must be true of the result. Whatever cannot be done ends in a `LikewiseError`.

Each function returns "result", or the kind of error with which the case was refused; anything else is a finding.
"""

import contextlib
import io
import json
import shutil
import sqlite3
import warnings
import zipfile
import zlib
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.base import clone

import likewise
from fuzz.parameters import calls
from fuzz.places import place
from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    IneffectiveWeightWarning,
    LikewiseError,
    TableMetric,
    VacuousGuaranteeWarning,
    WeightedLp,
    audit,
)
from likewise.exceptions import FileError, InvalidInputError

ROUNDING = 1e-12
OF_SCIKIT_LEARN = ("X has feature names, but", "The number of unique classes", "A column-vector y was passed")
TRACES = ("Traceback", "numba", "site-packages", "object at")


class FindingError(AssertionError):
    """Something that must not happen."""


def check(condition, words):
    if not condition:
        raise FindingError(words)


def refusable(case):
    """A case may end in one of our errors, said in full sentences. No warning is let through: few have a cure."""

    def run(*drawn):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", VacuousGuaranteeWarning)
            warnings.simplefilter("ignore", IneffectiveWeightWarning)
            for words in OF_SCIKIT_LEARN:
                warnings.filterwarnings("ignore", words)
            warnings.filterwarnings("ignore", "The inplace keyword", DeprecationWarning, "dask")  # Dask's own
            try:
                case(*drawn)
            except LikewiseError as error:
                words = str(error)
                check(len(words) > 10 and words.rstrip().endswith((".", ")", "?", "!", "`")), f"no sentence: {words!r}")
                check(len(words) < 1500 and words.count("\n") < 3, f"too many words: {words[:1500]!r}")
                check(not any(trace in words for trace in TRACES), f"internals are shown: {words!r}")
                return type(error).__name__
        return "result"

    run.__name__ = case.__name__
    return run


def _differences(outputs):
    outputs = outputs if outputs.ndim == 2 else np.stack([outputs, -outputs], axis=1)
    return np.maximum(outputs[:, None] - outputs[None], 0).sum(axis=2)


def _keeps_promise(model, metric, X):
    if "predict_proba" in dir(model):
        outputs = model.predict_proba(X)
        check(np.isfinite(outputs).all() and (outputs >= 0).all(), "probabilities are finite and not negative")
        check(np.allclose(outputs.sum(axis=1), 1, rtol=0, atol=1e-9), "probabilities add up to 1")
    else:
        outputs = model.predict(X)
        low, high = model.output_range_
        check(((low <= outputs) & (outputs <= high)).all(), "predictions are within their range")
    if len(X) < 2:
        return
    bound = model.guarantee_.bound(metric.pairwise(X))
    unit = 1 if model.guarantee_.output_range is None else np.ptp(model.output_range_)
    excess = _differences(outputs) - bound
    check((excess <= ROUNDING * unit).all(), f"the promise is broken by {np.nanmax(excess)}")


def _by_row(table):
    """A score for each person that jumps everywhere; the same for people whose rows look the same."""
    codes = pd.util.hash_pandas_object(table.astype(str), index=False).to_numpy()
    return (codes % np.uint64(1000)) / 1000.0


@refusable
def distances(drawn):
    metric = TableMetric(**drawn.metric)
    D = metric.pairwise(drawn.X, drawn.others)
    check(D.shape == (len(drawn.X), len(drawn.others)), "a distance per pair")
    check(not np.isnan(D).any() and (D >= 0).all(), "distances are numbers and not negative")
    turn = len(drawn.X) % 3
    if turn == 0:
        check(np.array_equal(D.T, metric.pairwise(drawn.others, drawn.X)), "distances are symmetric")
    elif turn == 1:
        own = metric.pairwise(drawn.others)
        check(np.array_equal(own, own.T) and not np.diag(own).any(), "nobody is at a distance from themselves")
    else:
        metric.describe(), repr(metric), metric.scaled(0.5)


@refusable
def additive(drawn):
    metric = TableMetric(**drawn.metric)
    numbers = np.asarray(drawn.y).dtype.kind == "f"
    model = (AdditiveRegressor if numbers else AdditiveClassifier)(metric, penalty=0.1, max_knots=4)
    model.fit(drawn.X, drawn.y)
    _keeps_promise(model, metric, drawn.X)
    whole = model.predict(drawn.X)
    check(np.array_equal(whole[:1], model.predict(drawn.X[:1])), "the same answer alone and in a batch")
    model.scorecard(), model.explain(drawn.X)
    _keeps_promise(model, metric, drawn.others)


@refusable
def projected(drawn):
    metric = TableMetric(**drawn.metric)

    model = likewise.ProjectedClassifier(_by_row, metric=metric, base=0.5, random_state=0).fit(drawn.X, drawn.y)
    _keeps_promise(model, metric, drawn.X)
    _keeps_promise(model, metric, drawn.others)


@refusable
def smoothed(drawn):
    from likewise.inspection.baselines import table_model

    metric = TableMetric(**drawn.metric)
    inner = table_model(drawn.X, "forest")
    inner.set_params(**{name: 2 for name in inner.get_params() if name.endswith("n_estimators")})
    try:
        clone(inner).fit(drawn.X, drawn.y)
    except Exception as error:  # the model's own objections to this table are its own
        raise InvalidInputError(f"The model refuses the table ({type(error).__name__}).") from None
    model = likewise.SmoothedClassifier(inner, metric=metric, n_draws=20, random_state=0).fit(drawn.X, drawn.y)
    if model.guarantee_.level != "sampled":
        _keeps_promise(model, metric, drawn.X)
        _keeps_promise(model, metric, drawn.others)


@refusable
def audited(drawn):
    metric = TableMetric(**drawn.metric)
    scores = np.random.default_rng(len(drawn.X)).random(len(drawn.X))
    found = audit(None, drawn.X, metric, predictions=scores)
    excess = (_differences(scores) - metric.pairwise(drawn.X))[np.triu_indices(len(scores), 1)]
    check(found.n_violations == (excess > found.tolerance).sum(), "as many violations as by brute force")
    check(isinstance(found.coverage, str), "words")


@refusable
def revealed(drawn):
    categorical = list(drawn.metric["categorical"])
    scores = _by_row(drawn.X)
    found = likewise.estimate_minimal_metric(
        None, drawn.X, p=drawn.metric["p"], predictions=scores, categorical=categorical
    )
    check(
        audit(None, drawn.X, found.metric, predictions=scores, tolerance=1e-6).n_violations == 0, "a metric that fits"
    )


@refusable
def ceilings(drawn):
    found = likewise.ceiling(drawn.X, drawn.y, TableMetric(**drawn.metric))
    check(0 <= found.value <= 1 + 1e-9, "a share of the people")


@refusable
def parameter(chosen):
    """Call something with an odd value of one parameter; what it writes goes to a place of its own."""
    written = place() / "written"
    written.mkdir(exist_ok=True)
    with contextlib.chdir(written), contextlib.redirect_stderr(io.StringIO()):
        calls()[chosen.call].with_one(chosen.parameter, chosen.value)


@refusable
def array(drawn):
    """An array is taken as it is, or refused: no names, no kinds of columns."""
    rows, others = drawn.X.to_numpy(), drawn.others.to_numpy()
    weights = [*drawn.metric["numeric"].values(), *drawn.metric["categorical"].values()]
    metric = WeightedLp(weights, p=[1, 1, 2, np.inf, 1.5][len(drawn.X) % 5])
    scores = np.random.default_rng(len(rows)).random(len(rows))
    found = audit(None, rows, metric, predictions=scores)
    excess = (_differences(scores) - metric.pairwise(rows))[np.triu_indices(len(scores), 1)]
    check(found.n_violations == (excess > found.tolerance).sum(), "as many violations as by brute force")
    model = likewise.SmoothedRegressor(_row_sums, metric=metric, output_range=(0, 1), noise="splitting", n_draws=20)
    model.fit(rows, scores)
    _keeps_promise(model, metric, rows)
    _keeps_promise(model, metric, others)


def _row_sums(rows):
    return np.abs(rows.sum(axis=1)) % 1


@refusable
def strangers(pair):
    """A model of one table is asked about people of another, whose columns have the same names and other kinds."""
    drawn, other = pair
    metric = TableMetric(**drawn.metric)
    if len(drawn.X) % 2:
        model = AdditiveClassifier(metric, penalty=0.1, max_knots=4)
    else:
        model = likewise.ProjectedClassifier(_by_row, metric=metric, base=0.5, random_state=0)
    model.fit(drawn.X, drawn.y)
    columns = [other.X.iloc[:, i % other.X.shape[1]] for i in range(drawn.X.shape[1])]
    mixed = pd.concat([drawn.X.iloc[:, i] if i % 2 else column for i, column in enumerate(columns)], axis=1)
    _keeps_promise(model, metric, mixed.set_axis(drawn.X.columns, axis=1))


@refusable
def scorecard(drawn):
    """What a database computes from a scorecard is what the model says."""
    model = AdditiveClassifier(TableMetric(**drawn.metric), penalty=0.1, max_knots=4).fit(drawn.X, drawn.y)
    json.loads(model.to_json()), model.reasons(drawn.others)
    query = f"SELECT {model.to_sql()} FROM people ORDER BY place"
    people = pd.concat([drawn.X, drawn.others], ignore_index=True)
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        try:
            people.astype(object).assign(place=range(len(people))).to_sql("people", database, index=False)
        except Exception as error:  # what a database does not hold, it cannot be asked about
            raise InvalidInputError(f"The database refuses the table ({type(error).__name__}).") from None
        found = np.array(database.execute(query).fetchall(), dtype=float)[:, 0]
    apart = np.abs(found - model.predict_proba(people)[:, -1]).max()
    check(apart <= ROUNDING, f"a database is {apart} away")


@refusable
def attacked(drawn):
    metric = TableMetric(**drawn.metric)
    if len(drawn.X) % 2:
        model = AdditiveClassifier(metric, penalty=0.1, max_knots=4).fit(drawn.X, drawn.y)
        found = likewise.attack(model, metric, drawn.X, n_pairs=1000, random_state=0)
        check(found.n_violations == 0, f"the promise is broken by {found.difference - found.bound}")
    else:
        found = likewise.attack(_by_row, metric, drawn.X, n_pairs=1000, random_state=0)
    if found.pair is None:  # everybody is at distance 0
        check(found.difference == found.distance == 0, "without a pair there is no difference")
        return
    if not len(drawn.X) % 2:
        check(found.difference == pytest.approx(np.ptp(_by_row(found.pair)), abs=ROUNDING), "the pair differs by that")
    distance = metric.pairwise(found.pair)[0, 1]
    check(found.distance == pytest.approx(distance, rel=1e-9, abs=1e-300), "the pair is at that distance")


@refusable
def parquet(drawn):
    """An audit of files is that of the table in memory."""
    metric = TableMetric(**drawn.metric)
    table = drawn.X.assign(score=np.random.default_rng(len(drawn.X)).random(len(drawn.X)))
    stored = place() / "parquet"
    shutil.rmtree(stored, ignore_errors=True)
    stored.mkdir()
    half = len(table) // 2
    try:
        table[:half].to_parquet(stored / "0.parquet")
        table[half:].to_parquet(stored / "1.parquet")
    except Exception as error:
        raise InvalidInputError(f"The format refuses the table ({type(error).__name__}).") from None
    whole = audit(None, drawn.X, metric, predictions=table["score"])
    found = audit(None, stored, metric, predictions="score")
    check((found.n_pairs, found.n_violations) == (whole.n_pairs, whole.n_violations), "the same in files")


@refusable
def reported(drawn):
    from likewise.report.build import build_report
    from likewise.report.render import render

    numbers = np.asarray(drawn.y).dtype.kind == "f"
    model = (AdditiveRegressor if numbers else AdditiveClassifier)(TableMetric(**drawn.metric), penalty=0.1)
    page = render(build_report(model.fit(drawn.X, drawn.y), drawn.X, drawn.y, cv=2))
    check(page.lower().startswith("<!doctype html>") and page.rstrip().endswith("</html>"), "a whole page")


@refusable
def metric_file(text):
    from likewise.metric_edits import read_comments
    from likewise.metric_file import read_metric, write_metric

    path = place() / "metric.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    metric = read_metric(path)
    words = read_comments(path)
    write_metric(metric, path, words=words)
    check(read_metric(path) == metric, "a metric comes back as it was written")


@refusable
def csv_file(content):
    from likewise.cli.column_kinds import Faults, Kinds, as_kinds, infer_kinds
    from likewise.cli.console import Dialect, no_note
    from likewise.cli.doubtful import note_doubtful
    from likewise.cli.table_io import read_table

    path = place() / "table.csv"
    path.write_bytes(content)
    table, _ = infer_kinds(read_table(path, padded=True), Dialect())
    check(table.columns.is_unique, "columns have names of their own")
    note_doubtful(table, no_note)
    texts = read_table(path, as_text=list(table.columns))
    for kinds in (Kinds(tuple(table.columns)), Kinds(categorical=tuple(table.columns))):
        whole = as_kinds(texts, kinds, Dialect(), Faults())
        halves = [as_kinds(texts[i::2], kinds, Dialect(), Faults()) for i in range(2) if len(texts) > 1]
        for i, half in enumerate(halves):
            check(
                all((half[name] == whole[name][i::2]).where(half[name].notna(), True).all() for name in table.columns),
                "a value is read by itself",
            )


@cache
def _saved():
    """A fitted model as a file, and the people for it."""
    from likewise.io import save_model

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 70, 40).astype(float), "job": rng.choice(["a", "b"], 40)})
    metric = TableMetric({"age": 0.01}, {"job": 0.1})
    model = AdditiveClassifier(metric, penalty=1e-2, max_knots=4).fit(X, rng.integers(0, 2, 40))
    path = place() / "saved.skops"
    save_model(model, path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return path.read_bytes(), parts, X, metric


@refusable
def model_file(change):
    """Pack a model file anew, or change a byte of it, or of a part of it that is packed again with sums that fit."""
    from likewise.io import model_from_bytes, with_checksum

    whole, parts, X, _ = _saved()
    what, where, value = change
    if what == "archive":
        data = _with_byte(whole, where, value)
    else:
        name, packed = sorted(parts)[where % len(parts)], io.BytesIO()
        part = parts[name] if what == "packed" else _with_byte(parts[name], where, value)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=value % 10) as archive:
            for other in sorted(parts, key=lambda other: zlib.crc32(f"{other} {where}".encode())):
                archive.writestr(other, part if other == name else parts[other])
        data = with_checksum(packed.getvalue())
    model = model_from_bytes(data, "model.skops")
    check(hasattr(model, "guarantee_"), "a model of ours")
    check(what != "packed" or np.array_equal(model.predict_proba(X), _scores()), "the same model")


@cache
def _scores():
    from likewise.io import model_from_bytes

    whole, _, X, _ = _saved()
    return model_from_bytes(whole, "model.skops").predict_proba(X)


def _with_byte(content, where, value):
    changed = bytearray(content)
    changed[where % len(changed)] = value
    return bytes(changed)


@cache
def _folder():
    folder = place() / "folder"
    folder.mkdir()
    _, _, X, metric = _saved()
    from likewise.metric_file import write_metric

    X = X.assign(approved=np.where(X["age"] > 40, "yes", "no"), score=0.5, id=range(len(X)))
    X.to_csv(folder / "loans.csv", index=False)
    write_metric(metric, folder / "metric.toml")
    (folder / "model.skops").write_bytes(_saved()[0])
    (folder / "key").write_bytes(b"0" * 32)
    (folder / "broken.csv").write_bytes(b'a,b\n"1,2')
    (folder / "empty.csv").write_bytes(b"")
    return folder


def command_line(words):
    """Run a command; what was there before is untouched unless it is what to replace, and nothing is half-written."""
    from likewise.cli.main import main

    folder = _folder()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = CliRunner().invoke(main, words)
    ended = done.exception is None or isinstance(done.exception, SystemExit)  # any other one is shown as a traceback
    check(
        ended and done.exit_code in (0, 1, 2),
        f"{words} ended with {done.exit_code}: {done.output[-600:]!r} {done.exception!r}",
    )
    check("Traceback" not in done.output, f"{words}: {done.output[-600:]!r}")
    after = {path.name: path for path in folder.iterdir()}
    replaceable = {b for a, b in pairwise(words) if a == "--out" and "--force" in words} - {*_given(words)}
    for name, content in before.items():
        check(name in after, f"{words} removed {name}")
        if name in replaceable:
            after[name].write_bytes(content)
        check(after[name].read_bytes() == content, f"{words} changed {name}")
    for name, path in after.items():
        if name not in before:
            check(not name.startswith(".") and done.exit_code in (0, 1), f"{words} left {name}, exit {done.exit_code}")
            path.unlink()
    return "result" if done.exit_code in (0, 1) else FileError.__name__


def _given(words):
    """Files that a command reads: whatever does not follow `--out`."""
    return [word for before, word in pairwise(["", *words]) if before != "--out"]
