"""An account without a writable home compiles anew, and gets the same answers."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import likewise

ROOT = Path(likewise.__file__).parent
CODE = (
    "import numpy as np, likewise\n"
    "from likewise.pairs.kernels import fill_differences\n"
    "found = np.empty(2)\n"
    "fill_differences(np.array([[0.25, 0.5, 1.0]]), 0, 1, 3, found)\n"
    "print(likewise.__file__, *found)\n"
)


def test_numba_comes_through_one_door():
    imports = re.compile(r"^\s*(?:import|from) numba\b", re.MULTILINE)
    others = [path.name for path in ROOT.rglob("*.py") if imports.search(path.read_text())]
    assert others == ["_numba.py"]


def nobody(place):
    """A copy of the package, and an environment, where no compiled code can be kept: not even by root."""
    shutil.copytree(ROOT, place / "likewise", ignore=shutil.ignore_patterns("__pycache__"))
    for package in [place / "likewise", *(p for p in (place / "likewise").rglob("*") if p.is_dir())]:
        (package / "__pycache__").write_text("in the way")
    home = str(place / "likewise" / "__pycache__" / "home")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
    return {**environment, "HOME": home, "XDG_CACHE_HOME": home, "PYTHONPATH": str(place)}


def run(environment, code):
    return subprocess.run(
        [sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True, timeout=600
    )


def test_no_place_for_compiled_code_is_no_error(tmp_path):
    environment = nobody(tmp_path)
    done = run(environment, CODE)
    assert done.returncode == 0, done.stderr
    file, *differences = done.stdout.split()
    assert Path(file).parent == tmp_path / "likewise"
    assert differences == ["0.25", "0.75"]
    assert done.stderr.count("RuntimeWarning: Compiled code cannot be kept here") == 1


def test_control_numba_itself_raises_there(tmp_path):
    environment = nobody(tmp_path)
    (tmp_path / "likewise" / "_kept.py").write_text(
        "import numba\n\n\n@numba.njit(cache=True)\ndef one():\n    return 1\n"
    )
    done = run(environment, "import likewise._kept")
    assert "cannot cache function" in done.stderr
