"""What is done with a case, and what must be true of the result. Whatever cannot be done ends in a `LikewiseError`.

Each function returns "result", or the kind of error with which the case was refused; anything else is a finding.
"""

import io
import os
import shutil
import tempfile
import warnings
import zipfile
import zlib
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner
from sklearn.base import clone

import likewise
from likewise import AdditiveClassifier, AdditiveRegressor, LikewiseError, TableMetric, VacuousGuaranteeWarning, audit
from likewise.errors import FileError, InvalidInputError

ROUNDING = 1e-12
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
            try:
                case(*drawn)
            except LikewiseError as error:
                words = str(error)
                check(len(words) > 10 and words.rstrip().endswith((".", ")", "?", "!", "`")), f"no sentence: {words!r}")
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
    from likewise.models.pipelines import table_model

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


@cache
def _place():
    # In memory, where there is such a place: thousands of small files would wait for the disk.
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    place = Path(tempfile.mkdtemp(prefix="likewise-fuzz-", dir=memory))
    Finalize(None, shutil.rmtree, (place, True), exitpriority=0)  # at the end of a worker too, unlike atexit
    return place


@refusable
def metric_file(text):
    from likewise.app.metric_files import read_metric, read_words, write_metric

    path = _place() / "metric.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    metric = read_metric(path)
    words = read_words(path)
    write_metric(metric, path, words=words)
    check(read_metric(path) == metric, "a metric comes back as it was written")


@refusable
def csv_file(content):
    from likewise.app.tables import read_table, tidy

    path = _place() / "table.csv"
    path.write_bytes(content)
    table = tidy(read_table(path))
    check(table.columns.is_unique, "columns have names of their own")


@cache
def _saved():
    """A fitted model as a file, and the people for it."""
    from likewise.app.files import save_model

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 70, 40).astype(float), "job": rng.choice(["a", "b"], 40)})
    metric = TableMetric({"age": 0.01}, {"job": 0.1})
    model = AdditiveClassifier(metric, penalty=1e-2, max_knots=4).fit(X, rng.integers(0, 2, 40))
    path = _place() / "saved.skops"
    save_model(model, path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return path.read_bytes(), parts, X, metric


@refusable
def model_file(change):
    """Pack a model file anew, or change a byte of it, or of a part of it that is packed again with sums that fit."""
    from likewise.app.files import model_from_bytes, sealed

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
        data = sealed(packed.getvalue())
    model = model_from_bytes(data, "model.skops")
    check(hasattr(model, "guarantee_"), "a model of ours")
    check(what != "packed" or np.array_equal(model.predict_proba(X), _scores()), "the same model")


@cache
def _scores():
    from likewise.app.files import model_from_bytes

    whole, _, X, _ = _saved()
    return model_from_bytes(whole, "model.skops").predict_proba(X)


def _with_byte(content, where, value):
    changed = bytearray(content)
    changed[where % len(changed)] = value
    return bytes(changed)


@cache
def _folder():
    place = _place() / "folder"
    place.mkdir()
    _, _, X, metric = _saved()
    from likewise.app.metric_files import write_metric

    X = X.assign(approved=np.where(X["age"] > 40, "yes", "no"), score=0.5, id=range(len(X)))
    X.to_csv(place / "loans.csv", index=False)
    write_metric(metric, place / "metric.toml")
    (place / "model.skops").write_bytes(_saved()[0])
    (place / "key").write_bytes(b"0" * 32)
    (place / "broken.csv").write_bytes(b'a,b\n"1,2')
    (place / "empty.csv").write_bytes(b"")
    return place


def command_line(words):
    """Run a command; what was there before is untouched, and nothing half-written is left."""
    from likewise.app.cli import main

    place = _folder()
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    here = os.getcwd()
    os.chdir(place)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = CliRunner().invoke(main, words)
    finally:
        os.chdir(here)
    check(
        done.exit_code in (0, 1, 2), f"{words} ended with {done.exit_code}: {done.output[-600:]!r} {done.exception!r}"
    )
    check("Traceback" not in done.output, f"{words}: {done.output[-600:]!r}")
    after = {path.name: path for path in place.iterdir()}
    for name, content in before.items():
        check(name in after and after[name].read_bytes() == content, f"{words} changed {name}")
    for name, path in after.items():
        if name not in before:
            check(not name.startswith(".") and done.exit_code in (0, 1), f"{words} left {name}, exit {done.exit_code}")
            path.unlink()
    return "result" if done.exit_code in (0, 1) else FileError.__name__
