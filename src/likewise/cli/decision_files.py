"""Files of decisions: written for a table of any size, with a record of the round, and verified from it."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from likewise._fit_validation import model_columns
from likewise._shared_draw import SharedDraw, key_commitment
from likewise._writing import quoted, write_text
from likewise.cli.batch_scoring import BATCH_ROWS, ScoringJob, score_file
from likewise.cli.column_kinds import Kinds
from likewise.cli.console import Dialect
from likewise.cli.table_io import Batches, kind_of
from likewise.decisions.costs import DecisionCosts, decision_costs
from likewise.decisions.round_record import DecisionRule, RoundRecord
from likewise.decisions.threshold import ThresholdDecision
from likewise.exceptions import FileError, InvalidInputError

_SHOWN = 2000  # people among whom near pairs are counted
_AGREE = 1e-9  # probabilities on another machine may differ in the last digits


class VerificationError(Exception):
    """A file of decisions that does not follow from its record; the text names the first wrong row."""


def record_of(out: Path) -> Path:
    """Where the record of a file of decisions is."""
    return Path(f"{out}.round.json")


def write_record(
    job: ScoringJob, key: bytes, model: Path, table: Path, out: Path, kept: Sequence[str], n_people: int
) -> RoundRecord:
    """Write the record of a round beside its decisions, once all of these are seen to follow from its draw."""
    assert job.draw is not None
    assert job.rule is not None
    record = RoundRecord(
        round=job.draw.round,
        key_commitment=key_commitment(key),
        draw_commitment=job.draw.commitment,
        opening=job.draw.opening.hex(),
        rule=job.rule,
        n_people=n_people,
        kept=tuple(kept),
        model=digest_of(model),
        table=digest_of(table),
        decisions=digest_of(out),
    ).sealed(key)
    try:
        verify(out, record)  # parts that were resumed could be of another draw
    except VerificationError as error:
        raise FileError(f"No record was written: {error} Delete {out}, and decide again.") from None
    write_text(record_of(out), record.to_json())
    return record


def read_record(out: Path) -> RoundRecord:
    """Read the record beside a file of decisions."""
    path = record_of(out)
    try:
        return RoundRecord.from_json(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise FileError(f"Cannot read {path}, the record of the round: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise FileError(f"{path} must be a record of a round, as likewise decide writes it.") from None


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(out: Path, record: RoundRecord, id_column: str | None = None, key: bytes | None = None) -> int:
    """Recompute every decision from the draw of the record and the stored probabilities; return their number.

    Also compare the file with the digest in the record, and the record with its own digest, and with a key its seal.

    Raises
    ------
    VerificationError
    """
    draw = _opened(out, record)
    if key is not None and (why := record.changes(key)) is not None:
        raise VerificationError(f"{record_of(out)}: {why}")
    labels, n, wrong, first = np.array([quoted(label) for label in record.rule.labels], dtype=object), 0, 0, ""
    for rows in _rows_of(out, record.rule, id_column):
        faults = record.rule.faults(rows)
        expected = labels[record.rule.choose(rows, draw)]
        differs = faults | (rows["decision"].to_numpy() != expected)
        if differs.any() and not wrong:
            at = int(differs.argmax())
            why = f"{str(rows['decision'].iloc[at])!r} was written, and {expected[at]!r} follows from the draw"
            why = "its probabilities are not those of a model and the rule of the record" if faults[at] else why
            first = f"{_row_name(n + at, rows, at, id_column)}: {why}"
        wrong += int(differs.sum())
        n += len(rows)
    if wrong:
        raise VerificationError(f"{wrong:,} of {n:,} rows of {out} are wrong. The first is {first}.")
    if n != record.n_people:
        raise VerificationError(f"{out} has {n:,} rows, and the record is about {record.n_people:,} people.")
    if digest_of(out) != record.decisions:
        raise VerificationError(
            f"{out} was changed after the round: its digest is not that of the record. Every decision follows from its "
            "own row, so probabilities or other columns were changed; give the model and the table to find the row."
        )
    if (why := record.changes()) is not None:
        raise VerificationError(f"{record_of(out)}: {why}")
    return n


def _opened(out: Path, record: RoundRecord) -> SharedDraw:
    try:
        return record.draw
    except InvalidInputError as error:
        raise VerificationError(f"{record_of(out)}: {error}") from None


def verify_scores(
    out: Path, record: RoundRecord, model: Path, table: Path, dialect: Dialect, id_column: str | None
) -> None:
    """Score the table again; raise `VerificationError` at the first probability, or id, that differs.

    What was repeated beside the decisions must be in the table, in the same row and to the letter: otherwise somebody
    else's decision could be put beside an id.
    """
    for name, path, digest in (("model", model, record.model), ("table", table, record.table)):
        if digest_of(path) != digest:
            raise VerificationError(f"{path} is not the {name} of the round: its digest is not that of the record.")
    with tempfile.TemporaryDirectory(prefix="likewise-") as place:
        again = Path(place) / out.name
        job = ScoringJob(model.read_bytes(), draw=_opened(out, record), rule=record.rule)
        score_file(job, table, again, keep=record.kept, dialect=dialect)
        n, columns, kept = 0, record.rule.columns, list(record.kept)
        stored_rows, computed_rows = (_rows_of(path, record.rule, id_column, kept) for path in (out, again))
        for stored, computed in _aligned(stored_rows, computed_rows):
            if len(stored) != len(computed):
                raise VerificationError(f"{out} does not have one row for each of {table}.")
            given, right = stored[columns].to_numpy(), computed[columns].to_numpy()
            differs = ~(np.abs(given - right) <= _AGREE)
            if differs.any():
                at, column = np.argwhere(differs)[0].tolist()
                raise VerificationError(
                    f"{_row_name(n + at, stored, at, id_column)} of {out} has probabilities that the model does not "
                    f"give: {columns[column]} is {given[at, column]:.6g}, and should be {right[at, column]:.6g}."
                )
            for name in kept:
                both = zip(stored[name], computed[name], strict=True)
                at = next((i for i, (a, b) in enumerate(both) if a != b and not (pd.isna(a) and pd.isna(b))), -1)
                if at >= 0:
                    raise VerificationError(
                        f"row {n + at + 1} of {out} has {name} {stored[name].iloc[at]!s}; in this row of {table} it is "
                        f"{computed[name].iloc[at]!s}. Decisions stand beside other people."
                    )
            n += len(stored)


def _aligned(
    first: Iterator[pd.DataFrame], second: Iterator[pd.DataFrame]
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Batches of equal length from both; the rest of the longer one comes last, beside an empty batch."""
    a, b = next(first, None), next(second, None)
    while a is not None and b is not None:
        n = min(len(a), len(b))
        yield a[:n], b[:n]
        a = a[n:] if len(a) > n else next(first, None)
        b = b[n:] if len(b) > n else next(second, None)
    rest = a if a is not None else b
    if rest is not None:
        yield (rest, rest[:0]) if b is None else (rest[:0], rest)


def _row_name(position: int, rows: pd.DataFrame, at: int, id_column: str | None) -> str:
    name = f"row {position + 1}"
    return name if id_column is None else f"{name} ({id_column} {rows[id_column].iloc[at]})"


def _rows_of(path: Path, rule: DecisionRule, id_column: str | None, kept: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
    """Probabilities as numbers, decisions and what was kept as it is written, some rows at a time."""
    if not path.is_file():
        raise FileError(f"There is no file {path}.")
    needed = list(dict.fromkeys([*rule.columns, "decision", *kept, *([] if id_column is None else [id_column])]))
    kind, names = kind_of(path), Batches(path, BATCH_ROWS).columns
    absent = [name for name in needed if name not in names]
    if absent:
        raise FileError(f"{path} has no column {absent[0]!r}, so it is not the file of this record; it has {names}.")
    if kind == "parquet":
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=needed):
                yield _typed(batch.to_pandas(), rule)
        return
    options: Any = {"usecols": needed, "dtype": str, "keep_default_na": False, "encoding": "utf-8"}
    with pd.read_csv(path, chunksize=BATCH_ROWS, **options) as reader:
        for chunk in reader:
            yield _typed(chunk, rule)


def _typed(rows: pd.DataFrame, rule: DecisionRule) -> pd.DataFrame:
    rows = rows.reset_index(drop=True)
    for name in rule.columns:
        if not pd.api.types.is_float_dtype(rows[name].dtype):
            rows[name] = [_number(text) for text in rows[name]]
    rows["decision"] = [quoted(str(label)) for label in rows["decision"].tolist()]
    return rows


def _number(text: Any) -> float:
    try:
        return float(text)  # exact, unlike the fast parser of pandas
    except ValueError:
        return np.nan


def costs_beside_threshold(
    model: Any, rule: DecisionRule, table: Path, dialect: Dialect, near: float
) -> DecisionCosts | None:
    """Near pairs decided differently, by the plain threshold and by the rule; None for more than two classes or grades.

    Outcomes drawn from two probabilities are those of a threshold of 1/2 with a width of 1.
    """
    if len(rule.labels) != 2:
        return None
    inner = model.estimator_ if isinstance(model, ThresholdDecision) else model
    people = Batches(table, BATCH_ROWS, dialect, Kinds.of_model(inner))
    step, start, some = -(-people.n_people // _SHOWN), 0, []
    for batch in people:
        some.append(batch.people.iloc[-start % step :: step])
        start += len(batch.people)
    X = pd.concat(some, ignore_index=True)
    names = model_columns(inner, X)
    threshold, width = (rule.thresholds[0], rule.width) if rule.thresholds else (0.5, 1.0)
    assert width is not None
    favourable = inner.classes_.tolist()[rule.column]
    return decision_costs(
        inner, X[names], threshold=threshold, widths=[0.0, width], near=near, favourable=favourable, n_people=_SHOWN
    )
