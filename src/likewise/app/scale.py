"""Scoring tables of any size: in batches, on several cores or machines, and resumable.

A score depends on the row alone, so it does not matter who computes which batch: the result is the same to the last
bit.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from likewise._progress import progress_bar
from likewise._typing import FloatArray
from likewise.app.batches import Batches
from likewise.app.files import atomic_write, model_from_bytes
from likewise.app.tables import Dialect, Note, kind_of, no_note
from likewise.errors import FileError, InvalidInputError
from likewise.metrics.columns import NumericColumn
from likewise.partitions.workforce import connect

BATCH_ROWS = 20_000


@dataclass(frozen=True)
class Order:
    """What is computed for each row: a picklable order, the same on every machine.

    Attributes
    ----------
    model : bytes
        A model file, as written by `likewise.app.files.save_model`.
    intervals : bool
        Whether to add what `certify` says.
    key : bytes or None
        Secret with which decisions are drawn; None for no decisions.
    """

    model: bytes
    intervals: bool = False
    key: bytes | None = None

    def __call__(self, X: pd.DataFrame) -> pd.DataFrame:
        """Score a batch."""
        model = _loaded(self.model)
        absent = [name for name in model.needed_columns_ if name not in X.columns]
        if absent:
            raise FileError(f"The table has no column {absent[0]!r}, which the model needs; it has {list(X.columns)}.")
        people = X[[name for name in model.feature_names_in_ if name in X.columns]]
        certificate = model.certify(people)
        regression = not hasattr(model, "classes_")
        names = ["prediction"] if regression else [f"p_{label}" for label in model.classes_]
        scores = pd.DataFrame(certificate.estimate, columns=names)
        if self.intervals:
            for j, name in enumerate(names):
                scores[f"{name}_lower"], scores[f"{name}_upper"] = certificate.lower[:, j], certificate.upper[:, j]
            if not regression:
                scores["certified_distance"] = certificate.distance
        if self.key is not None:
            if regression:
                raise InvalidInputError("Decisions are for classifiers; this model is a regressor.")
            scores["decision"] = keyed_decisions(model, people, certificate.estimate, self.key)
        return scores


def keyed_decisions(model: Any, people: pd.DataFrame, probabilities: FloatArray, key: bytes) -> npt.NDArray[Any]:
    """Draw one outcome per person by a secret key: the same row always gets the same one.

    The draw is a keyed hash of what the model may see of the person, so columns that must not matter do not change
    it, and without the key nobody can search for a row that wins. Its law over keys is `probabilities`.
    """
    seen = np.ascontiguousarray(model.visible_rows(people))
    digests = [hmac.new(key, row.tobytes(), hashlib.blake2b).digest()[:8] for row in seen]
    uniform = np.frombuffer(b"".join(digests), dtype="<u8") / 2.0**64
    return model.outcomes_at(probabilities, uniform)  # type: ignore[no-any-return]


def score_file(
    order: Order,
    source: str | Path,
    target: str | Path,
    *,
    keep: tuple[str, ...] = (),
    batch_rows: int = BATCH_ROWS,
    dialect: Dialect | None = None,
    jobs: int = 1,
    cluster: str | None = None,
    verbose: bool = False,
    note: Note = no_note,
) -> int:
    """Score the people in a CSV or Parquet file into another one; return their number.

    Finished batches are kept in ``<target>.parts`` until all are there, so an interrupted run goes on where it stopped.

    Parameters
    ----------
    order : Order
    source, target : path-like
    keep : tuple of str
        Columns of the source to repeat in the target.
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
        Takes a line on what is not plain in the source.

    Raises
    ------
    KeyboardInterrupt
        With what is done, and how to go on.
    """
    source, target = Path(source), Path(target)
    if kind_of(target) and target.resolve() == source.resolve():
        raise FileError(f"Scores must go into a file other than the table itself; got {target}.")
    dialect = dialect or Dialect()
    parts = Path(f"{target}.parts")
    _prepare_parts(parts, order, source, keep, batch_rows, dialect)
    done = 0

    def pending(people: Batches, advance: Callable[[int], None]) -> Iterator[tuple[Path, pd.DataFrame]]:
        nonlocal done
        for i, batch in enumerate(people):
            absent = [name for name in keep if name not in batch.columns]
            if absent:
                raise FileError(f"{source} has no column {absent[0]!r} to keep; it has {list(batch.columns)}.")
            part = parts / f"{i:08d}.parquet"
            if part.exists():
                done += len(batch)
                advance(len(batch))
            elif len(batch):
                yield part, batch

    def store(part: Path, batch: pd.DataFrame, scores: pd.DataFrame) -> None:
        columns = [batch[name].reset_index(drop=True) for name in keep]
        with atomic_write(part) as temporary:
            pd.concat([*columns, scores], axis=1).to_parquet(temporary, index=False)

    total = None
    try:
        numbers = [name for name in numeric_columns(_loaded(order.model)) if name not in keep]
        people = Batches(source, batch_rows, dialect, numbers, note)
        total = people.n_people
        if total == 0:
            raise FileError(f"{source} has no rows, so there is nobody to score.")
        with progress_bar("Scoring", total, show=verbose) as advance:
            for part, batch, scores in _compute(order, pending(people, advance), jobs, cluster):
                store(part, batch, scores)
                done += len(batch)
                advance(len(batch))
        _join(sorted(parts.glob("*.parquet")), target)
    except BaseException as error:
        if not any(parts.glob("*.parquet")):  # nothing to go on from
            shutil.rmtree(parts)
        elif isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(
                f"{done:,} of {total:,} people are done and kept in {parts}: the same command goes on from there."
            ) from None
        raise
    shutil.rmtree(parts)
    return total


def numeric_columns(model: Any) -> list[str]:
    """Columns of a model's table that hold plain numbers."""
    columns = getattr(getattr(model, "coding_", None), "columns", ())
    return [str(c.name) for c in columns if isinstance(c, NumericColumn) and c.categories is None]


def _compute(
    order: Order, work: Iterator[tuple[Path, pd.DataFrame]], jobs: int, cluster: str | None
) -> Iterator[tuple[Path, pd.DataFrame, pd.DataFrame]]:
    if cluster is not None:
        yield from _on_cluster(order, work, cluster)
    elif jobs == 1:
        for part, batch in work:
            yield part, batch, order(batch)
    else:
        from joblib.externals.loky import get_reusable_executor

        pool = get_reusable_executor(max_workers=jobs)
        try:
            yield from _in_flight(lambda batch: pool.submit(order, batch), work, 2 * jobs, wait)
        finally:
            pool.shutdown(wait=True, kill_workers=True)


def _on_cluster(
    order: Order, work: Iterator[tuple[Path, pd.DataFrame]], address: str
) -> Iterator[tuple[Path, pd.DataFrame, pd.DataFrame]]:
    with connect(address) as client:
        import distributed

        workers = max(1, len(client.scheduler_info()["workers"]))

        def submit(batch: pd.DataFrame) -> Any:
            # The model travels with each batch: data kept on a worker would be lost with it. `pure=False`: a batch is
            # computed for its place, even if another has the same rows.
            return client.submit(_score, order, batch, pure=False, retries=10)

        yield from _in_flight(submit, work, 2 * workers, distributed.wait)


def _score(order: Order, batch: pd.DataFrame) -> pd.DataFrame:
    return order(batch)


def _in_flight(
    submit: Callable[[pd.DataFrame], Any],
    work: Iterator[tuple[Path, pd.DataFrame]],
    most: int,
    wait_for: Callable[..., Any],
) -> Iterator[tuple[Path, pd.DataFrame, pd.DataFrame]]:
    """Keep at most `most` batches in flight, and yield them as they are done."""
    running: dict[Any, tuple[Path, pd.DataFrame]] = {}
    for part, batch in work:
        running[submit(batch)] = (part, batch)
        if len(running) >= most:
            yield from _finished(running, wait_for)
    while running:
        yield from _finished(running, wait_for)


def _finished(
    running: dict[Future[Any], tuple[Path, pd.DataFrame]], wait_for: Callable[..., Any]
) -> Iterator[tuple[Path, pd.DataFrame, pd.DataFrame]]:
    for future in list(wait_for(list(running), return_when=FIRST_COMPLETED).done):
        part, batch = running.pop(future)
        yield part, batch, future.result()


# -- batches in, parts out --------------------------------------------------------------------------------------


def _prepare_parts(
    parts: Path, order: Order, source: Path, keep: tuple[str, ...], batch_rows: int, dialect: Dialect
) -> None:
    """Make the directory of parts, or check that the one that is there belongs to this very run."""
    if not source.is_file():
        raise FileError(f"There is no file {source}.")
    options = {name: value for name, value in asdict(order).items() if name not in ("model", "key")}
    status = source.stat()
    plan = {
        **options,
        "model": hashlib.sha256(order.model).hexdigest(),
        "key": None if order.key is None else hashlib.sha256(b"likewise" + order.key).hexdigest(),
        "source": [str(source.resolve()), status.st_size, status.st_mtime_ns],
        "keep": list(keep),
        "batch_rows": batch_rows,
        "dialect": asdict(dialect),
    }
    record = parts / "plan.json"
    if parts.exists():
        if not record.is_file() or json.loads(record.read_text(encoding="utf-8")) != plan:
            raise FileError(
                f"{parts} holds an unfinished run with another model, table or options. Finish that one, or delete it."
            )
        return
    try:
        parts.mkdir()
    except OSError as error:
        raise FileError(f"Cannot write {parts}: {error.strerror}.") from None
    with atomic_write(record) as temporary:
        temporary.write_text(json.dumps(plan), encoding="utf-8")


def _join(parts: list[Path], target: Path) -> None:
    """Write the parts, in order, into one file, one at a time."""
    with atomic_write(target) as temporary:
        if kind_of(target) == "parquet":
            schema = pa.unify_schemas([pq.read_schema(part) for part in parts], promote_options="permissive")
            with pq.ParquetWriter(temporary, schema) as writer:
                for part in parts:
                    writer.write_table(pq.read_table(part).cast(schema))
            return
        packed = target.name.lower().endswith(".gz")
        with gzip.open(temporary, "wb") if packed else open(temporary, "wb") as file:
            for i, part in enumerate(parts):
                pd.read_parquet(part).to_csv(file, index=False, header=i == 0)


@lru_cache(maxsize=1)
def _loaded(data: bytes) -> Any:
    """Load a model once per process."""
    return model_from_bytes(data, "The model")
