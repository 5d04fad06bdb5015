"""Blocks of the README and the docs are tests; generated examples are the same in every run.

Python blocks run as they stand. In the docs, so do the `likewise` commands of console blocks: the blocks of a page
share one directory, which is empty at first.
"""

import os
import shlex
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

HERE = Path(__file__).parent
os.environ.pop("COLUMNS", None)  # pytest's workers say 80, and commands would break their lines there


def run_commands(example: Example) -> str | None:
    """Run the `likewise` commands of a block; one that must fail says so in a comment: `# exit 1`."""
    from click.testing import CliRunner

    from likewise.cli.main import main

    for line in example.parsed.replace("\\\n", " ").splitlines():
        command, _, comment = line.partition("#")
        words = shlex.split(command.strip().removeprefix("$ "))
        if words[:1] != ["likewise"]:
            continue
        expected = int(comment.split("exit ")[1].split()[0]) if "exit " in comment else 0
        done = CliRunner().invoke(main, words[1:])
        if done.exit_code != expected:
            return f"{line}\nexit {done.exit_code}, not {expected}\n{done.output}"
    return None


def enter(namespace: dict[str, object]) -> None:
    """Begin a page in an empty directory."""
    place = tempfile.TemporaryDirectory()
    namespace["_place"], namespace["_back"] = place, Path.cwd()
    os.chdir(place.name)


def leave(namespace: dict[str, object]) -> None:
    """Go back where the tests were."""
    os.chdir(namespace["_back"])
    namespace["_place"].cleanup()


readme = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    path=str(HERE),
    filenames=["README.md"],
    setup=enter,
    teardown=leave,
)
docs = Sybil(
    parsers=[PythonCodeBlockParser(), CodeBlockParser("console", run_commands), SkipParser()],
    path=str(HERE / "docs"),
    patterns=["*.md"],
    excludes=["reference/generated/*", "gallery/generated/*"],
    setup=enter,
    teardown=leave,
)
pytest_collect_file = (readme + docs).pytest()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the examples of networks without PyTorch; where CI expects every package, they run and fail."""
    if find_spec("torch") is None and not os.environ.get("LIKEWISE_EVERY_PACKAGE"):
        for item in items:
            if item.name.startswith("likewise.lipschitz.estimators."):
                item.add_marker(pytest.mark.skip(reason="could not import 'torch'"))
