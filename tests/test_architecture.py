"""Imports go downwards: a package may import from the layers below it and from itself, nothing else."""

import ast
from pathlib import Path

import pytest

import likewise

ROOT = Path(likewise.__file__).parent

LAYERS = (
    {"exceptions", "_typing", "verify_card"},
    {"_validation"},
    {"_fit_validation"},
    {
        "_engine",
        "_numba",
        "_optional",
        "_frozen",
        "_html",
        "_progress",
        "_parallel",
        "_writing",
        "_shared_draw",
        "_subsample",
    },
    {"metrics"},
    {"guarantees"},
    {"inspection"},
    {"pairs"},
    {"reveal"},
    {"base", "_links", "_onnx"},
    {"_inner_estimator"},
    {"dummy", "additive", "smoothing"},
    {"lipschitz", "projection", "design", "scorecard"},
    {"calibration", "decisions"},
    {"verification"},
    {"auditing"},
    {"selection"},
    {"distributed", "datasets", "io", "metric_file"},
    {"metric_edits"},
    {"display", "report"},
    {"workbench"},
    {"cli"},
)
# Modules that hand work over to a package above theirs, inside a function: Dask DataFrames, and readers of a scorecard.
HANDS_OVER = dict.fromkeys(
    ("auditing/audit.py", "reveal/empirical.py", "additive/estimators.py", "base.py"), "distributed"
)
HANDS_OVER["additive/scorecard_mixin.py"] = "scorecard"
LAYER = {package: height for height, packages in enumerate(LAYERS) for package in packages}


def modules():
    return [path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem not in ("__init__", "__main__")]


def package_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_packages(source):
    """Packages of likewise that a module imports, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if "." in node.module else [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("likewise.") and name.split(".")[1] in LAYER:
                yield name.split(".")[1]


def upward_imports(path, source):
    own = package_of(path)
    allowed = {own, HANDS_OVER.get(str(path.relative_to(ROOT)))}
    return [other for other in imported_packages(source) if other not in allowed and LAYER[other] >= LAYER[own]]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards(path):
    assert upward_imports(path, path.read_text(encoding="utf-8")) == []


def test_every_package_has_a_layer():
    assert {package_of(path) for path in modules()} <= set(LAYER)


def test_control_an_import_that_points_upwards_is_caught():
    source = "def f():\n    from likewise.base import Scorer"
    assert upward_imports(ROOT / "metrics" / "weighted_lp.py", source) == ["base"]
