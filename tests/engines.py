"""Both engines: compiled loops, and NumPy."""

from contextlib import contextmanager

import pytest

from likewise import _engine


@contextmanager
def plain():
    """Nothing is compiled, and compiled code is not called."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_engine, "_always_compiled", False)
        patch.setattr(_engine, "is_compiled", lambda function: False)
        patch.setattr(_engine, "PLAIN_CELLS_IF_KEPT", float("inf"))
        yield


def with_both(work):
    """Results of the same work, compiled and plain."""
    with _engine.always_compiled():
        compiled = work()
    with plain():
        return compiled, work()
