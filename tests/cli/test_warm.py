"""Loops are compiled ahead, and compiling is announced."""

import os
import subprocess
import sys

import pytest

from likewise import _engine
from shell import run

LOOPS = (
    "additive.kernels.points",
    "additive.kernels.cross_numbers",
    "pairs.box_search._run",
    "pairs.gather._gather",
    "pairs.kernels._fill_worst",
    "pairs.kernels.within_groups",
    "pairs.transport._shortest_paths",
    "projection.kernels.tighten",
    "projection.kernels.hildreth",
    "smoothing.kernels.cell_centres",
    "smoothing.kernels.leaf_average",
    "smoothing.kernels.network_votes",
)
AUDIT = (
    "import numpy as np, likewise, likewise._engine as engine\n"
    "X = np.arange({n}.0)[:, None]\n"
    "{limit}\n"
    "likewise.audit(None, X, likewise.WeightedLp([0.01]), predictions=(X[:, 0] > 20) * 1.0)\n"
    "import sys; print('numba' in sys.modules)\n"
)


def test_warm_compiles_the_loops(tmp_path):
    done = run(tmp_path, "warm")
    assert done.exit_code == 0, done.output
    assert "Compiling for audits." in done.stderr
    assert [name for name in LOOPS if not _engine.is_compiled(f"likewise.{name}")] == []


def in_a_fresh_process(code, cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)


def test_a_small_audit_compiles_nothing_and_says_nothing(tmp_path):
    done = in_a_fresh_process(AUDIT.format(n=500, limit=""), tmp_path)
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.slow
def test_compiling_is_announced_once_and_kept(tmp_path):
    code = AUDIT.format(n=500, limit="engine.PLAIN_CELLS = engine.PLAIN_CELLS_IF_KEPT = 0")
    first, second = in_a_fresh_process(code, tmp_path), in_a_fresh_process(code, tmp_path)
    assert first.stderr.count("`likewise warm` does it ahead") == 1
    assert (second.stdout, second.stderr) == ("True\n", "")
