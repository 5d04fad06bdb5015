"""Scoring tables of any size: in batches, on several cores or machines, and resumable.

A score depends on the row alone, so it does not matter who computes which batch: the result is the same to the last
bit.
"""

from __future__ import annotations

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
from likewise.app.files import FileError, atomic_write, model_from_bytes

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
        absent = [name for name in model.feature_names_in_ if name not in X.columns]
        if absent:
            raise FileError(f"The table has no column {absent[0]!r}, which the model needs; it has {list(X.columns)}.")
        people = X[list(model.feature_names_in_)]
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
                raise ValueError("Decisions are for classifiers; this model is a regressor.")
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
    jobs: int = 1,
    cluster: str | None = None,
    verbose: bool = False,
) -> int:
    """Score the people in a CSV or Parquet file into a Parquet file; return their number.

    Finished batches are kept in ``<target>.parts`` until all are there, so an interrupted run goes on where it stopped.

    Parameters
    ----------
    order : Order
    source, target : path-like
    keep : tuple of str
        Columns of the source to repeat in the target.
    batch_rows : int
        People at a time: memory does not depend on the size of the file.
    jobs : int
        Processes on this machine.
    cluster : str, optional
        Address of a Dask scheduler, instead of processes here.
    verbose : bool
    """
    source, target = Path(source), Path(target)
    if target.suffix.lower() != ".parquet" or target.resolve() == source.resolve():
        raise FileError(f"Scores must go into a .parquet file other than the table itself; got {target}.")
    parts = Path(f"{target}.parts")
    _prepare_parts(parts, order, source, keep, batch_rows)
    n_rows = 0

    def pending() -> Iterator[tuple[Path, pd.DataFrame]]:
        nonlocal n_rows
        for i, batch in enumerate(_batches(source, batch_rows)):
            absent = [name for name in keep if name not in batch.columns]
            if absent:
                raise FileError(f"{source} has no column {absent[0]!r} to keep; it has {list(batch.columns)}.")
            n_rows += len(batch)
            part = parts / f"{i:08d}.parquet"
            if len(batch) and not part.exists():
                yield part, batch

    def store(part: Path, batch: pd.DataFrame, scores: pd.DataFrame) -> None:
        columns = [batch[name].reset_index(drop=True) for name in keep]
        with atomic_write(part) as temporary:
            pd.concat([*columns, scores], axis=1).to_parquet(temporary, index=False)

    total = _count_rows(source)
    try:
        with progress_bar("Scoring", total, show=verbose) as advance:
            for part, batch, scores in _compute(order, pending(), jobs, cluster):
                store(part, batch, scores)
                advance(len(batch))
        if n_rows == 0:
            raise FileError(f"{source} has no rows, so there is nobody to score.")
    except BaseException:
        if not any(parts.glob("*.parquet")):  # nothing to go on from
            shutil.rmtree(parts)
        raise
    _join(sorted(parts.glob("*.parquet")), target)
    shutil.rmtree(parts)
    return n_rows


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
    try:
        import distributed
    except ImportError:
        raise FileError("A cluster needs Dask: pip install 'likewise[cluster]'.") from None

    connect: Any = distributed.Client  # untyped
    try:
        client = connect(address, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise FileError(f"Cannot reach a Dask scheduler at {address} ({error}).") from None
    with client:
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


def _batches(source: Path, batch_rows: int) -> Iterator[pd.DataFrame]:
    if not source.is_file():
        raise FileError(f"There is no file {source}.")
    name = source.name.lower()
    try:
        if name.endswith(".parquet"):
            with pq.ParquetFile(source) as file:
                for batch in file.iter_batches(batch_size=batch_rows):
                    yield batch.to_pandas()
        elif name.endswith((".csv", ".csv.gz")):
            # Types from the whole file, or a column could be text in one batch and numbers in the next.
            kinds = _csv_kinds(source, batch_rows)
            with pd.read_csv(source, chunksize=batch_rows, dtype=kinds) as reader:
                yield from reader
        else:
            raise FileError(f"{source} must be a .csv, .csv.gz or .parquet file.")
    except FileError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise FileError(f"Cannot read {source}: {' '.join(str(error).split())[:200]}.") from None


def _csv_kinds(source: Path, batch_rows: int) -> dict[str, Any]:
    kinds: dict[str, Any] = {}
    with pd.read_csv(source, chunksize=batch_rows) as reader:
        for batch in reader:
            for name, kind in batch.dtypes.items():
                known = kinds.setdefault(str(name), kind)
                if known != kind:
                    numbers = pd.api.types.is_numeric_dtype(known) and pd.api.types.is_numeric_dtype(kind)
                    booleans = pd.api.types.is_bool_dtype(known) or pd.api.types.is_bool_dtype(kind)
                    kinds[str(name)] = np.dtype(np.float64) if numbers and not booleans else np.dtype(object)
    return kinds


def _count_rows(source: Path) -> int | None:
    """Rows of a Parquet file; a CSV file would have to be read to tell."""
    if source.name.lower().endswith(".parquet") and source.is_file():
        try:
            return int(pq.read_metadata(source).num_rows)
        except (pa.ArrowException, OSError):
            return None  # reading it will say what is wrong
    return None


def _prepare_parts(parts: Path, order: Order, source: Path, keep: tuple[str, ...], batch_rows: int) -> None:
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
    """Write the parts, in order, into one Parquet file, one at a time."""
    schema = pa.unify_schemas([pq.read_schema(part) for part in parts], promote_options="permissive")
    with atomic_write(target) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        for part in parts:
            writer.write_table(pq.read_table(part).cast(schema))


@lru_cache(maxsize=1)
def _loaded(data: bytes) -> Any:
    """Load a model once per process."""
    return model_from_bytes(data, "The model")
