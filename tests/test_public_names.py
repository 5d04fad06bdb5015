import pkgutil
import subprocess
import sys

import pytest

import likewise


def test_no_module_hides_a_public_name():
    """A submodule of the same name would take its place once it is imported."""
    modules = {module.name for module in pkgutil.iter_modules(likewise.__path__)}
    assert not modules & set(likewise.__all__)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'is_good'"):
        _ = likewise.is_good
    assert set(likewise.__all__) <= set(dir(likewise))


def test_public_names_are_sorted_importable_and_documented():
    assert likewise.__all__ == sorted(likewise.__all__)
    for name in likewise.__all__:
        assert getattr(likewise, name).__doc__, name


def test_import_prints_nothing():
    done = subprocess.run([sys.executable, "-c", "import likewise"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
