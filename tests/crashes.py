"""Kill a piece of work at every one of its file operations, let it run again, and compare what it leaves.

Run as a program of its own (`python crashes.py NAME PLACE TROUBLE`), since it forks: each attempt is a child that is
ended without warning at its n-th operation on a file in the working directory, as by SIGKILL. It prints, as JSON, how
many moments were tried and what was wrong after any of them.
"""

import errno
import json
import os
import resource
import shutil
import signal
import sys
import time
from pathlib import Path

OPERATIONS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree", "os.chmod", "os.truncate")


def die_at(moment, place):
    """End this process at the given operation on a file below `place`."""
    seen = 0

    def watch(event, arguments):
        nonlocal seen
        if event in OPERATIONS and _is_below(place, arguments):
            seen += 1
            if seen == moment:
                os._exit(137)

    sys.addaudithook(watch)


def read_only(place):
    """Refuse to write below `place`, to root too, to whom no directory is read-only."""

    def watch(event, arguments):
        writing = event in OPERATIONS and (event != "open" or arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if writing and _is_below(place, arguments):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    return lambda: sys.addaudithook(watch)


def _is_below(place, arguments):
    named = bool(arguments) and isinstance(arguments[0], (str, bytes, os.PathLike))
    return named and os.path.abspath(os.fsdecode(arguments[0])).startswith(str(place))


def attempt(work, place, *, moment=None, before=lambda: None):
    """Do the work in a child; return how the child ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            before()
            if moment is not None:
                die_at(moment, place)
            work(place)
            code = 0
        except SystemExit as end:
            code = end.code or 0
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            code = 2 if type(error).__module__.startswith("likewise") else 3
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def leftovers(place, known):
    found = {str(path.relative_to(place)) for path in place.rglob("*")}
    return sorted(found - set(known))


class Trial:
    """A piece of work that is ended before its end, and what must be true afterwards."""

    def __init__(self, work, place, result):
        self.work, self.place, self.result, self.wrong = work, place, result, []
        self.inputs = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
        self.names = set(leftovers(place, ()))
        self.before = result(place)
        start = time.monotonic()
        assert attempt(work, place) == 0
        self.seconds = time.monotonic() - start
        self.expected = result(place)
        self.made = set(leftovers(place, self.names))

    def ended(self, when, killed, **how):
        """End the work at some moment, let it run again, and compare with the undisturbed result."""
        self._clear()
        ended = attempt(self.work, self.place, **how)
        if ended not in (0, killed):
            self.wrong.append(f"{when}: ended with {ended}")
        if self.result(self.place) not in (self.before, self.expected):
            self.wrong.append(f"{when}: half a result was left")
        again = attempt(self.work, self.place)
        if again != 0 or self.result(self.place) != self.expected:
            self.wrong.append(f"{when}: the next run ended with {again}")
        # A temporary file that nobody could remove may stay, and so may the copy of a file before it is replaced;
        # nothing may take them for a result.
        extra = leftovers(self.place, self.names | self.made)
        if extra := [name for name in extra if not Path(name).name.startswith(".") and not name.endswith(".bak")]:
            self.wrong.append(f"{when}: {extra} stayed")
        return ended == killed

    def _clear(self):
        for name in leftovers(self.place, self.names):
            path = self.place / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        for path, content in self.inputs.items():
            path.write_bytes(content)


def everywhere(trial, most=2_000):
    """Crash at every operation on files in turn."""
    moment = 1
    while moment < most and trial.ended(f"moment {moment}", 137, moment=moment):
        moment += 1
    return {"moments": moment - 1, "wrong": trial.wrong[:10]}


def at_any_time(trial, n=10):
    """Kill at times spread over what the work takes, whatever it is doing then."""
    killed = 0
    for k in range(n):
        seconds = max(1e-4, trial.seconds * k / n)
        killed += trial.ended(f"after {seconds:.3f} s", -signal.SIGALRM, before=lambda t=seconds: _alarm(t))
    return {"killed": killed, "wrong": trial.wrong[:10]}


def _alarm(seconds):
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # by which a process ends at once
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _content(name):
    return lambda place: (place / name).read_bytes() if (place / name).exists() else None


def score(place):
    from likewise.cli.batch_scoring import ScoringJob, score_file

    score_file(
        ScoringJob((place / "model.skops").read_bytes()), place / "people.csv", place / "scores.csv", batch_rows=10
    )


def metric(place):
    _command(place, "metric people.csv --target approved --out metric.toml --force")


def metric_over_another(place):
    _command(place, "metric people.csv --target approved --out older.toml --force")


def enforce(place):
    _command(
        place,
        "enforce people.csv --target approved --metric given.toml --method additive --out new.skops --force --seed 0",
    )


def _command(place, words):
    from likewise.cli.main import main

    os.chdir(place)
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # the child ends with it
    main(words.split())


def _scores_of_model(place):
    """A model file has a time stamp inside: what counts is what it answers."""
    import pandas as pd

    from likewise.io import load_model

    if not (place / "new.skops").exists():
        return None
    people = pd.read_csv(place / "people.csv").drop(columns=["approved", "id"])
    return load_model(place / "new.skops").predict_proba(people).tobytes()


WORK = {
    "score": (score, _content("scores.csv")),
    "metric": (metric, _content("metric.toml")),
    "metric over another": (metric_over_another, _content("older.toml")),
    "enforce": (enforce, _scores_of_model),
}


def no_space(limit):
    """Files may not grow beyond `limit` bytes, as on a disk that is nearly full."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def main(name, place, trouble):
    work, result = WORK[name]
    if trouble in ("crash", "time"):
        trial = Trial(work, place, result)
        return everywhere(trial) if trouble == "crash" else at_any_time(trial)
    inputs = set(leftovers(place, ()))
    if trouble == "full":
        ended = [attempt(work, place, before=no_space(limit)) for limit in (0, 10, 200)]
    else:
        ended = [attempt(work, place, before=read_only(place))]
    stayed = [name for name in leftovers(place, inputs) if not name.endswith(".parts")]
    return {"ended": ended, "stayed": stayed, "recovers": attempt(work, place) == 0 and result(place) is not None}


if __name__ == "__main__":
    # Before forking, so that each attempt starts at once: the work takes a hundredth of what its imports do.
    import numba  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import rich.progress  # noqa: F401
    import skops.io  # noqa: F401

    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3])))
