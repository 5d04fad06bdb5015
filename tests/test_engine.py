"""When loops are compiled: by the work so far, and by what is compiled already."""

import sys
from types import ModuleType

import pytest

from likewise import _engine

IS_COMPILED = _engine.is_compiled
LOOP = "likewise.pairs.kernels.no_such_loop"


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.setattr(_engine, "_always_compiled", False)
    monkeypatch.setattr(_engine, "is_compiled", lambda function: False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    _engine._plain_cells.pop(LOOP, None)
    yield
    _engine._plain_cells.pop(LOOP, None)


def test_small_work_is_plain_until_it_has_added_up():
    half = _engine.PLAIN_CELLS / 2
    assert [_engine.should_compile(LOOP, half) for _ in range(3)] == [False, False, True]


def test_code_that_is_kept_is_read_sooner(tmp_path):
    assert not _engine.should_compile(LOOP, 2 * _engine.PLAIN_CELLS_IF_KEPT)
    (tmp_path / "pairs_0").mkdir()
    (tmp_path / "pairs_0" / "kernels.no_such_loop-12.py311.nbi").touch()
    assert not _engine.should_compile(LOOP, 0)  # the disk is asked once per process and folder
    _engine._is_kept.cache_clear()
    assert _engine.should_compile(LOOP, 0)


def test_code_in_memory_is_always_used(monkeypatch):
    monkeypatch.setattr(_engine, "is_compiled", lambda function: True)
    assert _engine.should_compile(LOOP, 1)


def test_compiling_can_be_asked_for():
    with _engine.always_compiled():
        assert _engine.should_compile(LOOP, 1)
    assert not _engine.should_compile(LOOP, 1)


def test_a_module_that_another_thread_is_importing_is_not_compiled_yet(monkeypatch):
    monkeypatch.setitem(sys.modules, "likewise.additive.kernels", ModuleType("likewise.additive.kernels"))
    assert not IS_COMPILED("likewise.additive.kernels.sum_categories")
