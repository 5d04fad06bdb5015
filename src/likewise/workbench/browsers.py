"""The browsers that watch a workbench, and what they are sent."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

_HEARTBEAT = 10.0  # seconds


class Browsers:
    """Streams of server-sent events, one per browser."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[str | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def open(self) -> None:
        """Deliver messages in the running event loop."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """End all streams."""
        self._closed = True
        for queue in self._queues:
            queue.put_nowait(None)

    def call(self, function: Callable[..., None], *args: Any) -> None:
        """Call a function in the loop's thread, unless streams have ended."""
        if self._loop is not None and not self._closed:
            self._loop.call_soon_threadsafe(function, *args)

    async def stream(self, snapshot: Callable[[], dict[str, Any]]) -> AsyncIterator[str]:
        """The state, then each change. The queue is registered before the state is taken, so that no change is lost."""
        queue: asyncio.Queue[str | None] = asyncio.Queue(200)
        self._queues.add(queue)
        try:
            yield _event(snapshot())
            while not self._closed:
                try:
                    message = await asyncio.wait_for(queue.get(), _HEARTBEAT)
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if message is None:
                    return
                yield message
        finally:
            self._queues.discard(queue)

    def tell(self, part: dict[str, Any]) -> None:
        """Send part of the state to all browsers, from any thread."""
        message = _event(part)

        def deliver() -> None:
            for queue in self._queues:
                if queue.full():  # a browser that does not read gets the whole state when it reconnects
                    while not queue.empty():
                        queue.get_nowait()
                    queue.put_nowait(None)
                else:
                    queue.put_nowait(message)

        self.call(deliver)


def _event(part: dict[str, Any]) -> str:
    return f"data: {json.dumps(as_json(part), ensure_ascii=False)}\n\n"


def as_json(document: dict[str, Any]) -> dict[str, Any]:
    """The document with None for numbers that JSON cannot represent, and without NumPy types."""
    return dict(_finite(document))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): each if key == "model" else _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
