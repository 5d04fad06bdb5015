"""Names of likewise in docstrings and pages are names that there are."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "docs").glob("**/*.md")), ROOT / "README.md"]
NAME = re.compile(r"`(likewise(?:\.\w+)+)`")


def exists(name):
    """Whether a dotted name is a module, or an attribute of one, or of a class in one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("name", sorted({name for file in FILES for name in NAME.findall(file.read_text("utf-8"))}))
def test_a_name_in_backticks_exists(name):
    assert exists(name)


def test_control_a_stale_name_is_found():
    assert not exists("likewise.pairs.kernels.points")
    assert not exists("likewise.pairs.nothing")
