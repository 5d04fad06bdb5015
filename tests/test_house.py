"""The plan of the house: imports go downwards."""

import ast
from pathlib import Path

import pytest

import likewise

ROOT = Path(likewise.__file__).parent

# Each floor may import from the floors below it and from its own room, nothing else.
FLOORS = (
    {"errors"},
    {"_rules"},
    {"_checks", "_compiling", "_extras", "_frozen", "_html", "_progress", "_threads", "_typing", "_writing"},
    {"metrics"},
    {"guarantees"},
    {"models"},
    {"pairs"},
    {"reveal"},
    {"enforce"},
    {"auditing"},
    {"distributed"},
    {"datasets"},
    {"report", "plotting", "experiments"},
    {"app"},
)
# What takes a table hands a Dask DataFrame over to `distributed`, which does the same job on partitions.
HANDS_OVER = ("auditing/violations.py", "enforce/additive/additive_models.py", "enforce/base.py", "reveal/estimated.py")
FLOOR = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}


def modules():
    return [path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem not in ("__init__", "__main__")]


def room(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(source):
    """Rooms of likewise that a module imports, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("likewise."):
                yield name.split(".")[1]


def wrong_imports(path, source):
    own = room(path)
    allowed = {own, "distributed"} if path.relative_to(ROOT).as_posix() in HANDS_OVER else {own}
    return [other for other in imported_rooms(source) if other not in allowed and FLOOR[other] >= FLOOR[own]]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards(path):
    assert wrong_imports(path, path.read_text()) == []


def test_control_an_import_that_points_upwards_is_caught():
    source = "def f():\n    from likewise.enforce.base import Scorer"
    assert wrong_imports(ROOT / "metrics" / "lp.py", source) == ["enforce"]
