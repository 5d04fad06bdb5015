"""Imports go downwards: a package may import from the layers below it and from itself, nothing else."""

import ast
from pathlib import Path

import pytest

import likewise

ROOT = Path(likewise.__file__).parent

LAYERS = (
    {"exceptions", "_typing", "verify_card"},
    {"_validation"},
    {
        "_favourable",
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
    {"kernel"},
    {"_fit_validation"},
    {"metrics"},
    {"known_values"},
    {"_guarantee_warnings", "ask"},
    {"inspection"},
    {"pairs"},
    {"reveal"},
    {"base", "_onnx"},
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


# -- one place that asks a model ---------------------------------------------------------------------------------------

ASKING = {"predict", "predict_proba", "decision_function"}
ASKS = {
    "ask.py": "the one place",
    "inspection/external_models.py": "makes models of boosters, which answer by their own predict",
    "inspection/baselines.py": "models that it has fitted itself",
    "auditing/matched_pairs.py": "models of who is in a group, which it has fitted itself",
    "scorecard/points.py": "a card of likewise",
    "scorecard/prices.py": "cards of likewise",
    "decisions/round_record.py": "models of likewise",
    "cli/audit.py": "a model of likewise",
    "cli/batch_scoring.py": "a model of likewise",
    "cli/demo.py": "a model of likewise",
    "cli/training.py": "models that the command has fitted to this table",
    "cli/warm.py": "models that are fitted to be compiled",
    "cli/workbench.py": "a model whose columns are those of the table",
}


def asking(source):
    """Lines that take a method which asks a model, unless an object asks itself."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in ASKING and isinstance(node.ctx, ast.Load):
            if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                yield node.lineno
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
            yield from (node.lineno for each in node.args[1:2] if getattr(each, "value", None) in ASKING)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_else_asks_a_model(path):
    """Whoever asks a model by himself asks about people in an order, a dtype or a spelling that nobody compared."""
    if str(path.relative_to(ROOT)) not in ASKS:
        assert list(asking(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "line",
    [
        "model.predict(X)",
        "method = model.predict_proba",
        "self.estimator.predict(X)",
        "getattr(model, 'predict_proba', None)(X)",
        "f(model.decision_function)",
    ],
)
def test_control_a_model_that_is_asked_elsewhere_is_caught(line):
    assert list(asking(line)) == [1]
    assert list(asking("self.predict_proba(X); answers(model, X, 'predict'); hasattr(model, 'predict')")) == []


# -- one place that makes guarantees -----------------------------------------------------------------------------------

SEALED = {"Guarantee", "Proof", "BoundMetric"}
LEAVES = {"exceptions", "_typing", "_frozen", "_html", "_validation", "kernel"}


def made(source):
    """Lines that make something sealed, or take the seal."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in SEALED or (name == "__new__" and getattr(getattr(node.func, "value", None), "id", "") in SEALED):
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and any("SEAL" in alias.name for alias in node.names):
            yield node.lineno


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_kernel_makes_guarantees_and_it_rests_on_nothing_else_of_ours(path):
    source = path.read_text(encoding="utf-8")
    if package_of(path) == "kernel":
        assert {*imported_packages(source)} <= LEAVES
    else:
        assert list(made(source)) == []


def test_control_a_guarantee_that_is_made_elsewhere_is_caught():
    for line in (
        "Guarantee(m, c)",
        "g = kernel.Guarantee(m)",
        "BoundMetric(d)",
        "Proof(0.1, how)",
        "Guarantee.__new__(Guarantee)",
    ):
        assert list(made(line)) == [1]
    assert list(made("from likewise.kernel.guarantee import SEAL, Guarantee")) == [1]
    assert list(made("from likewise.kernel.proof import SEAL as mine")) == [1]
    assert list(made("from likewise.kernel.guarantee import Guarantee\nx: Guarantee = rules.constant(m, c)")) == []
    assert {*imported_packages("def f():\n    from likewise.metrics.base import Metric")} - LEAVES == {"metrics"}


MOST_BINDINGS = 30
"""Calls outside `kernel` and `metrics` that bind a metric; lower it when some go. Each should be where people enter."""


def bindings(source):
    """Lines that call a method which binds."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if getattr(call.func, "attr", "") == "bind"]


def test_metrics_are_bound_in_fewer_and_fewer_places():
    """Code that is handed a bound metric cannot bind it to other columns than its caller did."""
    outside = [path for path in modules() if package_of(path) not in ("kernel", "metrics")]
    found = {
        str(path.relative_to(ROOT)): n for path in outside if (n := len(bindings(path.read_text(encoding="utf-8"))))
    }
    assert sum(found.values()) <= MOST_BINDINGS, found


def test_control_what_binds_is_counted():
    assert bindings("metric.bind(schema)\nguarantee.metric.bind(encoder).scales\nbound.read(X)") == [1, 2]
