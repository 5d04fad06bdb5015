import subprocess
import sys

import likewise


def test_public_names_are_sorted_importable_and_documented():
    assert likewise.__all__ == sorted(likewise.__all__)
    for name in likewise.__all__:
        assert getattr(likewise, name).__doc__, name


def test_import_prints_nothing():
    done = subprocess.run([sys.executable, "-c", "import likewise"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
