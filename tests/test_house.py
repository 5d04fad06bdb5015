"""The plan of the house: imports go downwards, and no two names can be confused."""

import ast
import re
from collections import defaultdict
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
    {"models", "partitions"},
    {"pairs"},
    {"reveal"},
    {"enforce"},
    {"auditing"},
    {"datasets"},
    {"report", "plotting", "experiments"},
    {"app"},
)
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
    return [other for other in imported_rooms(source) if other != own and FLOOR[other] >= FLOOR[own]]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards(path):
    assert wrong_imports(path, path.read_text()) == []


def test_control_an_import_that_points_upwards_is_caught():
    source = "def f():\n    from likewise.enforce.base import Scorer"
    assert wrong_imports(ROOT / "metrics" / "lp.py", source) == ["enforce"]


def stem(name):
    """What is left of a name without an ending: `smoothed` and `smoothing` are the same to a reader."""
    return re.sub(r"(ies|ing|ed|er|s)$", "", name.strip("_").lower()).rstrip("e")


def confusable(names):
    groups = defaultdict(set)
    for name, place in names:
        groups[stem(name)].add((name, str(place)))
    return [sorted(group) for group in groups.values() if len(group) > 1]


def module_names():
    packages = {path.parent for path in modules() if path.name == "__init__.py"}
    files = [(path.stem, path.relative_to(ROOT)) for path in modules() if path.name != "__init__.py"]
    return files + [(path.name, path.relative_to(ROOT)) for path in packages]


def class_names():
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                yield node.name, path.relative_to(ROOT)


def test_no_two_modules_share_a_name_or_differ_by_an_ending():
    assert confusable(module_names()) == []


def test_no_two_classes_share_a_name_or_differ_by_an_ending():
    assert confusable(class_names()) == []


def test_control_names_that_can_be_confused_are_found():
    assert confusable([("smoothed", "a"), ("smoothing", "b"), ("trees", "c")]) == [
        [("smoothed", "a"), ("smoothing", "b")]
    ]
    assert len(confusable([("Audit", "a"), ("Audit", "b"), ("Cell", "c"), ("Cells", "c")])) == 2
