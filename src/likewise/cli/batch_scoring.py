"""Scoring tables of any size: in batches, on several cores or machines, and resumable.

A score depends on the row alone, so the result is the same to the last bit wherever a batch is computed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from likewise._fit_validation import model_columns
from likewise._progress import progress_bar
from likewise._shared_draw import SharedDraw
from likewise._writing import atomic_write, write_csv, write_text
from likewise.cli.column_kinds import Kinds
from likewise.cli.console import Dialect, Note, no_note
from likewise.cli.table_io import Batches, ReadBatch, Unseen, as_it_is, kind_of
from likewise.decisions.round_record import DecisionRule
from likewise.distributed.cluster import connected
from likewise.exceptions import FileError
from likewise.io import model_from_bytes

BATCH_ROWS = 20_000
_PLAN = "plan.json"


@dataclass(frozen=True)
class ScoringJob:
    """What to compute for each row; picklable.

    Attributes
    ----------
    model : bytes
        A model file, as written by `likewise.io.save_model`.
    intervals : bool
        Whether to add the intervals of `certify`.
    draw, rule : SharedDraw and DecisionRule, or None
        For decisions with one draw for everybody.
    """

    model: bytes
    intervals: bool = False
    draw: SharedDraw | None = None
    rule: DecisionRule | None = None

    def __call__(self, X: pd.DataFrame) -> pd.DataFrame:
        """Score a batch."""
        model = _loaded(self.model)
        absent = [name for name in model.required_features_ if name not in X.columns]
        if absent:
            raise FileError(f"The table has no column {absent[0]!r}, which the model needs; it has {list(X.columns)}.")
        people = X[model_columns(model, X)]
        if self.draw is not None and self.rule is not None:
            scores = self.rule.scores(model, people)
            return scores.assign(decision=_labels(model, self.rule)[self.rule.choose(scores, self.draw)])
        regression = not hasattr(model, "classes_")
        names = ["prediction"] if regression else [f"p_{label}" for label in model.classes_]
        certificate = model.certify(people) if self.intervals else None
        if certificate is not None:
            outputs = certificate.estimate  # people are scored once
        else:
            outputs = model.predict(people)[:, None] if regression else model.predict_proba(people)
        scores = pd.DataFrame(outputs, columns=names)
        if certificate is not None:
            for j, name in enumerate(names):
                scores[f"{name}_lower"], scores[f"{name}_upper"] = certificate.lower[:, j], certificate.upper[:, j]
            if not regression:
                scores["certified_distance"] = certificate.distance
        return scores


def _labels(model: Any, rule: DecisionRule) -> npt.NDArray[Any]:
    """Labels of the decisions with the type of the model's classes, so that whole numbers stay such."""
    known = {str(label): label for label in model.classes_.tolist()}
    return np.array([known[label] for label in rule.labels])


def score_file(
    job: ScoringJob,
    source: str | Path,
    target: str | Path,
    *,
    id_column: str | None = None,
    keep: tuple[str, ...] = (),
    batch_rows: int = BATCH_ROWS,
    dialect: Dialect | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    verbose: bool = False,
    note: Note = no_note,
) -> int:
    """Score the people in a CSV or Parquet file into another one; return their number.

    Finished batches are kept in ``<target>.parts`` until the end, so an interrupted run can be resumed.

    Parameters
    ----------
    job : ScoringJob
    source, target : path-like
    id_column : str, optional
        Column of the source that names people, to be repeated in the target.
    keep : tuple of str
        Other columns of the source to repeat in the target.
    batch_rows : int
        People at a time: memory does not depend on the size of the file.
    dialect : Dialect, optional
        How the source is written, if it is CSV.
    jobs : int
        Processes on this machine.
    cluster : str, optional
        Address of a Dask scheduler, instead of processes here.
    verbose : bool
    note : callable
        Called with one line for each oddity of the source.

    Raises
    ------
    KeyboardInterrupt
        With the progress, and how to resume.
    """
    source, target = Path(source), Path(target)
    keep = columns_kept(id_column, keep)
    if kind_of(target) and target.resolve() == source.resolve():
        raise FileError(f"Scores must go into a file other than the table itself; got {target}.")
    dialect = dialect or Dialect()
    parts = Path(f"{target}.parts")
    with _working_in(parts, _plan(job, source, keep, batch_rows, dialect)):
        done = 0

        def pending(people: Batches, advance: Callable[[int], None]) -> Iterator[tuple[Path, ReadBatch]]:
            nonlocal done
            for i, batch in enumerate(people):
                unseen.look(batch.people)
                part = parts / f"{i:08d}.parquet"
                if part.exists():
                    done += len(batch.people)
                    advance(len(batch.people))
                elif len(batch.people):
                    yield part, batch

        def store(part: Path, batch: ReadBatch, scores: pd.DataFrame) -> None:
            with atomic_write(part) as temporary:
                beside = batch.beside[list(keep)].reset_index(drop=True)
                pd.concat([beside, scores], axis=1).to_parquet(temporary, index=False)

        total = None
        try:
            model = _loaded(job.model)
            people = Batches(source, batch_rows, dialect, Kinds.of_model(model), keep, id_column, note)
            unseen = Unseen(model)
            total = people.n_people
            _check_columns(people, model, keep)
            if total == 0:
                raise FileError(f"{source} has no rows, so there is nothing to score.")
            with progress_bar("Scoring", total, show=verbose) as advance:
                for part, batch, scores in _compute(job, pending(people, advance), jobs, cluster):
                    store(part, batch, scores)
                    done += len(batch.people)
                    advance(len(batch.people))
            unseen.tell(note)
            _join(_finished_parts(parts), total, target, keep if kind_of(source) == "csv" else ())
        except BaseException as error:
            if not _finished_parts(parts):  # nothing to resume
                _remove(parts)
            elif isinstance(error, KeyboardInterrupt):
                n_people = "" if total is None else f" of {total:,}"
                raise KeyboardInterrupt(
                    f"{done:,}{n_people} people are done and kept in {parts}: run the same command to resume."
                ) from None
            raise
        _remove(parts)
        return total


def columns_kept(id_column: str | None, keep: tuple[str, ...]) -> tuple[str, ...]:
    """Columns of the table to repeat in the output, the id first."""
    return tuple(dict.fromkeys((*([] if id_column is None else [id_column]), *keep)))


def _check_columns(people: Batches, model: Any, keep: tuple[str, ...]) -> None:
    if not hasattr(model, "feature_names_in_"):
        raise FileError("The model was trained on an array, so it has no column names. Train it on a table.")
    for names, why in ((keep, "to keep"), (model.required_features_, "which the model needs")):
        absent = [name for name in names if name not in people.columns]
        if absent:
            raise FileError(f"{people.source} has no column {absent[0]!r}, {why}; it has {people.columns}.")


def _compute(
    job: ScoringJob, work: Iterator[tuple[Path, ReadBatch]], jobs: int, cluster: str | None
) -> Iterator[tuple[Path, ReadBatch, pd.DataFrame]]:
    if cluster is not None:
        yield from _on_cluster(job, work, cluster)
    elif jobs == 1:
        for part, batch in work:
            yield part, batch, job(batch.people)
    else:
        from joblib.externals.loky import get_reusable_executor

        pool = get_reusable_executor(max_workers=jobs)
        try:
            yield from _in_flight(lambda batch: pool.submit(job, batch), work, 2 * jobs, wait)
        finally:
            pool.shutdown(wait=True, kill_workers=True)


def _on_cluster(
    job: ScoringJob, work: Iterator[tuple[Path, ReadBatch]], address: str
) -> Iterator[tuple[Path, ReadBatch, pd.DataFrame]]:
    with connected(address) as client:
        import distributed

        workers = max(1, len(client.scheduler_info()["workers"]))

        def submit(batch: pd.DataFrame) -> Any:
            # The model travels with each batch: data kept on a worker would be lost with it. `pure=False`: a batch is
            # computed for its place, even if another has the same rows.
            return client.submit(_score, job, batch, pure=False, retries=10)

        yield from _in_flight(submit, work, 2 * workers, distributed.wait)


def _score(job: ScoringJob, batch: pd.DataFrame) -> pd.DataFrame:
    return job(batch)


def _in_flight(
    submit: Callable[[pd.DataFrame], Any],
    work: Iterator[tuple[Path, ReadBatch]],
    max_running: int,
    wait_for: Callable[..., Any],
) -> Iterator[tuple[Path, ReadBatch, pd.DataFrame]]:
    """Keep at most `max_running` batches in flight, and yield them as they are done."""
    running: dict[Any, tuple[Path, ReadBatch]] = {}

    def finished() -> Iterator[tuple[Path, ReadBatch, pd.DataFrame]]:
        for future in list(wait_for(list(running), return_when=FIRST_COMPLETED).done):
            yield *running.pop(future), future.result()

    for part, batch in work:
        running[submit(batch.people)] = (part, batch)
        if len(running) >= max_running:
            yield from finished()
    while running:
        yield from finished()


# -- batches in, parts out --------------------------------------------------------------------------------------


def _plan(job: ScoringJob, source: Path, keep: tuple[str, ...], batch_rows: int, dialect: Dialect) -> dict[str, Any]:
    """Identity of a run, by which its parts are recognised when it is resumed."""
    if not source.is_file():
        raise FileError(f"There is no file {source}.")
    status = source.stat()
    plan = {
        "intervals": job.intervals,
        "rule": None if job.rule is None else asdict(job.rule),
        "draw": None if job.draw is None else job.draw.commitment,
        "model": hashlib.sha256(job.model).hexdigest(),
        "source": [str(source.resolve()), status.st_size, status.st_mtime_ns],
        "keep": list(keep),
        "batch_rows": batch_rows,
        "dialect": asdict(dialect),
    }
    return json.loads(json.dumps(plan))  # type: ignore[no-any-return]  # as it will be read again


@contextmanager
def _working_in(parts: Path, plan: dict[str, Any]) -> Iterator[None]:
    """Lock the directory of parts, new or of the same run, against other runs on the same output."""
    try:
        parts.mkdir(exist_ok=True)
        directory = os.open(parts, os.O_RDONLY)
    except OSError as error:
        raise FileError(f"Cannot write {parts}: {error.strerror}.") from None
    try:
        _lock(directory, parts)
        record = parts / _PLAN
        if record.is_file():
            if json.loads(record.read_text(encoding="utf-8")) != plan:
                raise FileError(
                    f"{parts} holds an unfinished run with another model, table or options. Finish that one, or delete "
                    "it."
                )
        elif _finished_parts(parts):
            raise FileError(f"{parts} holds scores of an unknown run. Delete it, or give another --out.")
        else:
            try:
                write_text(record, json.dumps(plan))
            except FileError:
                _remove(parts)
                raise
        yield
    finally:
        os.close(directory)  # and release the lock, as the end of a killed process does


def _lock(directory: int, parts: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on this system
        return
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise FileError(f"{parts} is in use: another run is writing to this output. Wait for it, or stop it.") from None


def _finished_parts(parts: Path) -> list[Path]:
    """Complete parts, in order; the name of an unfinished one begins with a dot."""
    return sorted(part for part in parts.glob("*.parquet") if not part.name.startswith("."))


def _remove(parts: Path) -> None:
    """Remove the directory, the plan last: if interrupted, the run can still be resumed."""
    for path in parts.iterdir():
        if path.name != _PLAN:
            path.unlink()
    (parts / _PLAN).unlink(missing_ok=True)
    parts.rmdir()


def _join(parts: list[Path], total: int, target: Path, texts: tuple[str, ...] = ()) -> None:
    """Write the parts, in order, into one file, one at a time; the columns `texts` were read as text."""
    found = sum(pq.read_metadata(part).num_rows for part in parts)
    if found != total:
        raise FileError(f"{parts[0].parent} holds {found:,} scores of {total:,} people. Delete it and run this again.")
    with atomic_write(target) as temporary:
        if kind_of(target) == "parquet":
            schema = _schema(parts, texts)
            with pq.ParquetWriter(temporary, schema) as writer:
                for part in parts:
                    writer.write_table(pq.read_table(part).cast(schema))
            return
        packed = target.name.lower().endswith(".gz")
        with gzip.open(temporary, "wb") if packed else open(temporary, "wb") as file:
            for i, part in enumerate(parts):
                write_csv(as_it_is(pq.read_table(part)), file, index=False, header=i == 0)


def _schema(parts: list[Path], texts: tuple[str, ...]) -> pa.Schema:
    """The types of all parts together; text that is whole numbers throughout, such as ids, is stored as such.

    Only where their digits are the text: neither 0007 nor 1.0 is an integer.
    """
    schema = pa.unify_schemas([pq.read_schema(part) for part in parts], promote_options="permissive")
    for i, column in enumerate(schema):
        if column.name in texts:
            read = (pd.read_parquet(part, columns=[column.name])[column.name] for part in parts)
            if all(values.str.fullmatch(r"0|-?[1-9]\d{0,17}").all() for values in read):
                schema = schema.set(i, pa.field(column.name, pa.int64()))
    return schema.remove_metadata()


@lru_cache(maxsize=1)
def _loaded(data: bytes) -> Any:
    """Load a model once per process."""
    return model_from_bytes(data, "The model")
