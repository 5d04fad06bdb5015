"""Bugs planted on purpose, one line each, and whether the tests that should see them do.

`bugs.toml` holds them as data. Each is applied to a copy of the source in a temporary folder, and the tests named
beside it run against that copy. What `make test` runs must fail for each of them; slow tests are left out.
"""

import ast
import datetime
import hashlib
import multiprocessing
import os
import re
import resource
import shutil
import signal
import sys
import time
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# Loaded here, once: each run is a fork of this process, and need not load them again.
import numba.core.config
import pandas  # noqa: F401
import pyarrow.parquet  # noqa: F401
import pytest
import scipy.optimize
import scipy.stats  # noqa: F401
import sklearn.ensemble
import sklearn.pipeline
import sklearn.utils.estimator_checks  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("bugs.toml")
SOURCE = ROOT / "src" / "likewise"
PER_DAY = 10
_LONGEST = 120  # seconds of computing, however busy the machine: a bug that makes a loop endless is caught by that


@dataclass(frozen=True)
class Bug:
    """A change of one line.

    Attributes
    ----------
    name : str
    file : str
        Below ``src/likewise``.
    was, becomes : str
        A part of one line that occurs once in the file, and what stands there instead.
    after : str
        Where the part occurs more than once: something that does not, in front of the one that is meant.
    tests : tuple of str
        Those that should fail: files or names, as narrow as possible.
    breaks : str
        What promise it would break; for a change that is none, why it is none.
    """

    name: str
    file: str
    was: str
    becomes: str
    tests: tuple[str, ...]
    breaks: str
    after: str = ""


def read_list(part="bug"):
    """The bugs, or another part of the list: "control" and "equivalent", which change nothing."""
    entries = tomllib.loads(LIST.read_text(encoding="utf-8")).get(part, [])
    return [Bug(**{**entry, "tests": tuple(entry.get("tests", ()))}) for entry in entries]


def changed(text, bug):
    """The text of a file with the bug in it."""
    if "\n" in bug.was or "\n" in bug.becomes or bug.was == bug.becomes:
        raise ValueError(f"{bug.name}: a bug is a change of one line.")
    where = bug.after or bug.was
    if text.count(where) != 1:
        raise ValueError(f"{bug.name}: {where!r} must occur once in {bug.file}; it does {text.count(where)} times.")
    at = text.index(bug.was, text.index(where))
    after = text[:at] + bug.becomes + text[at + len(bug.was) :]
    ast.parse(after)
    return after


def of_the_day(bugs, day):
    """Ten of the bugs, others every day, until all have had their turn."""
    turn = sorted(bugs, key=lambda bug: hashlib.sha256(bug.name.encode()).digest())
    first = day.toordinal() * PER_DAY
    return [turn[(first + i) % len(turn)] for i in range(min(PER_DAY, len(turn)))]


@dataclass(frozen=True)
class Verdict:
    """How the tests took to a bug: "caught", "survived", or "broken" if nothing could be run."""

    bug: Bug
    outcome: str
    by: str
    seconds: float


class Workshop:
    """A copy of the source where one bug at a time is planted, and tests that run against it.

    Compiled code is kept in a folder of its own. numba looks at the file of a function only, not at those of the
    functions and constants in it, so that for a bug in compiled code whatever was compiled from it is thrown away.
    """

    def __init__(self, place):
        self.source, self._said = place / "src", place / "said"
        self.cache, self._other_cache = place / "cache", place / "other cache"
        shutil.copytree(SOURCE, self.source / "likewise", ignore=shutil.ignore_patterns("__pycache__"))
        self.cache.mkdir()
        self._stamp = int(time.time())

    def passes(self, tests):
        """Run tests without any bug: whether all pass, and what pytest said; a test that is skipped catches nothing."""
        code, said = self._run(tests, self.cache)
        return code == 0 and "skipped" not in said.splitlines()[-1], said

    def try_bug(self, bug):
        """Plant a bug, run its tests, and take it out again."""
        path = self.source / "likewise" / bug.file
        text, before, start = path.read_text(encoding="utf-8"), path.stat(), time.monotonic()
        stale = _compiled_from(self.source, bug.file)
        cache = self._cache_without(stale) if stale else self.cache
        try:
            path.write_text(changed(text, bug), encoding="utf-8")
            self._stamp += 10  # a time of its own: whatever was compiled from another text of this file is older
            os.utime(path, (self._stamp, self._stamp))
            outcome, by = read_outcome(*self._run(["-x", *bug.tests], cache, _LONGEST))
        finally:
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        return Verdict(bug, outcome, by, time.monotonic() - start)

    def _cache_without(self, stale):
        shutil.rmtree(self._other_cache, ignore_errors=True)
        shutil.copytree(self.cache, self._other_cache)
        for file in stale:
            for compiled in self._other_cache.glob(f"{file.parent.name}_*/{file.stem}.*"):
                compiled.unlink()
        return self._other_cache

    def _run(self, arguments, cache, longest=None):
        """Run pytest in a fork of this process, on the copy; return its exit code and its words."""
        child = multiprocessing.get_context("fork").Process(target=self._test, args=(arguments, cache, longest))
        child.start()
        child.join()
        return child.exitcode, self._said.read_text(encoding="utf-8")

    def _test(self, arguments, cache, longest):
        if longest is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (longest, longest + 10))
        with open(self._said, "wb") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        os.chdir(ROOT)
        os.environ |= {"PYTHONPATH": str(self.source), "NUMBA_CACHE_DIR": str(cache)}
        numba.core.config.CACHE_DIR = str(cache)
        sys.path.insert(0, str(self.source))
        import likewise

        if not likewise.__file__.startswith(str(self.source)):
            os._exit(pytest.ExitCode.INTERNAL_ERROR)
        code = pytest.main([*_QUIETLY, *arguments])
        sys.stdout.flush()
        os._exit(code)


_QUIETLY = ("-q", "--no-header", "--tb=no", "-rfE", "-p", "no:cacheprovider")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (?:\S*/)?(\w+\.py)(?:::([\w:]+))?", re.MULTILINE)


def read_outcome(code, said):
    """What pytest's exit code and last words mean."""
    found = _FAILED.search(said)
    if code == -signal.SIGXCPU:
        return "caught", "the clock"
    if code == 0:
        return "survived", ""
    if code != 1 or found is None:  # nothing was collected, or the copy cannot even be imported
        return "broken", said.strip().splitlines()[-1] if said.strip() else f"exit code {code}"
    return "caught", "::".join(part for part in found.groups() if part)


def _compiled_from(source, changed_file):
    """Compiled modules into which something of a file may have gone: functions and constants, by way of others too."""
    files, taken = _imports(source)
    compiled = {name for name in files if "likewise._numba" in taken[name]}
    reached = {f"likewise/{changed_file}".removesuffix(".py").replace("/", ".")}
    waiting = [*reached]
    while waiting:
        module = waiting.pop()
        for name in set(files) - reached:
            words = taken[name].get(module, ())
            if any(word.isupper() for word in words) or (words and name in compiled):
                reached.add(name)
                waiting.append(name)
    return sorted(files[name] for name in reached & compiled)


@cache
def _imports(source):
    """All modules, and what each imports; bugs change no imports."""
    paths = sorted((source / "likewise").rglob("*.py"))
    files = {path.relative_to(source).with_suffix("").as_posix().replace("/", "."): path for path in paths}
    return files, {name: _taken(ast.parse(path.read_text(encoding="utf-8"))) for name, path in files.items()}


def _taken(tree):
    """What a module imports at its top, by module."""
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    return {node.module: {alias.name for alias in node.names} for node in imports}


def today():
    """The day by which bugs are chosen."""
    return datetime.datetime.now(tz=datetime.UTC).date()
