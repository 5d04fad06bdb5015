"""Tasks of Dask, and the cluster that runs them.

Work runs on the scheduler that Dask itself would use: the active `distributed.Client`, or threads of this process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from likewise._optional import need
from likewise._validation import short_repr
from likewise.exceptions import FileError, InvalidInputError

_FAN_IN = 8  # inputs of one task of a reduction


def delayed(function: Callable[..., Any]) -> Any:
    """A function whose calls are tasks of a Dask graph."""
    return need("dask", "A table in partitions").delayed(function)


def compute(values: Sequence[Any]) -> list[Any]:
    """Results of delayed values, in their order."""
    return list(need("dask", "A table in partitions").compute(*values))


def persist(values: Sequence[Any]) -> list[Any]:
    """Delayed values, computed and kept by the workers, which spill to disk what does not fit."""
    return list(need("dask", "A table in partitions").persist(*values)) if values else []


def shared(value: Any) -> Any:
    """A delayed constant, sent to each worker once however many tasks use it."""
    return need("dask", "A table in partitions").delayed(value, traverse=False)


def reduce(values: Sequence[Any], combine: Callable[[list[Any]], Any]) -> Any:
    """Combine delayed values in their order by a tree of tasks."""
    task = delayed(partial(_combine, combine))
    level = list(values)
    while True:
        level = [task(*level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)]
        if len(level) == 1:
            return level[0]


def _combine(combine: Callable[[list[Any]], Any], *values: Any) -> Any:
    return combine(list(values))


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """An active Dask client for the address of a scheduler, or "local" for new workers; None leaves the active one."""
    if address is None:
        yield None
        return
    distributed = need("distributed", "A cluster")
    if address == "local":
        with distributed.Client(threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR) as client:
            yield client
        return
    if not isinstance(address, str) or ":" not in address:
        raise InvalidInputError(
            "cluster must be 'local' or the address of a Dask scheduler, such as 'tcp://10.0.0.1:8786'; got "
            f"{short_repr(address)}."
        )
    with _quiet_client():
        try:
            client = distributed.Client(address, timeout="10s")
        except (OSError, TimeoutError, ValueError) as error:
            raise FileError(f"Cannot reach a Dask scheduler at {address} ({error}).") from None
        with client:
            try:
                yield client
            except Exception as error:
                # Cancelled futures and closed streams raise errors of their own.
                if client.status == "running" and type(error).__name__ not in (
                    "CommClosedError",
                    "FutureCancelledError",
                ):
                    raise
                raise FileError(
                    f"The Dask scheduler at {address} stopped responding ({type(error).__name__}). No file "
                    "was left incomplete: start a scheduler and run the command again."
                ) from None


@contextmanager
def _quiet_client() -> Iterator[None]:
    """Without the tracebacks that a client logs in addition to the error that it raises."""
    log = logging.getLogger("distributed.client")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
