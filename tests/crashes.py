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
import sys
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


def everywhere(work, place, result, most=2_000):
    """Crash at every moment in turn; then run again without a crash, and compare with the undisturbed result."""
    inputs = set(leftovers(place, ()))
    assert attempt(work, place) == 0
    expected = result(place)
    made = set(leftovers(place, inputs))
    wrong, moment, ended = [], 0, 137
    while ended == 137 and moment < most:
        moment += 1
        _clear(place, inputs)
        ended = attempt(work, place, moment=moment)
        if ended not in (0, 137):
            wrong.append(f"moment {moment}: ended with {ended}")
        found = result(place)
        if found is not None and found != expected:
            wrong.append(f"moment {moment}: half a result was left")
        again = attempt(work, place)
        if again != 0 or result(place) != expected:
            wrong.append(f"moment {moment}: the next run ended with {again}")
        # A temporary file that nobody could remove may stay; nothing may take it for a result.
        if extra := [name for name in leftovers(place, inputs | made) if not Path(name).name.startswith(".")]:
            wrong.append(f"moment {moment}: {extra} stayed")
    return {"moments": moment - 1, "wrong": wrong[:10]}


def _clear(place, inputs):
    for name in leftovers(place, inputs):
        path = place / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _content(name):
    return lambda place: (place / name).read_bytes() if (place / name).exists() else None


def score(place):
    from likewise.app.scale import Order, score_file

    score_file(Order((place / "model.skops").read_bytes()), place / "people.csv", place / "scores.csv", batch_rows=10)


def metric(place):
    _command(place, "metric people.csv --target approved --out metric.toml --force")


def enforce(place):
    _command(
        place, "enforce people.csv --target approved --metric given.toml --by additive --out new.skops --force --seed 0"
    )


def _command(place, words):
    from likewise.app.cli import main

    os.chdir(place)
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # the child ends with it
    main(words.split())


def _scores_of_model(place):
    """A model file has a time stamp inside: what counts is what it answers."""
    import pandas as pd

    from likewise.app.files import load_model

    if not (place / "new.skops").exists():
        return None
    people = pd.read_csv(place / "people.csv").drop(columns=["approved", "id"])
    return load_model(place / "new.skops").predict_proba(people).tobytes()


WORK = {
    "score": (score, _content("scores.csv")),
    "metric": (metric, _content("metric.toml")),
    "enforce": (enforce, _scores_of_model),
}


def no_space(limit):
    """Files may not grow beyond `limit` bytes, as on a disk that is nearly full."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def main(name, place, trouble):
    work, result = WORK[name]
    if trouble == "crash":
        return everywhere(work, place, result)
    inputs = set(leftovers(place, ()))
    if trouble == "full":
        ended = [attempt(work, place, before=no_space(limit)) for limit in (0, 10, 200)]
    else:
        ended = [attempt(work, place, before=read_only(place))]
    stayed = [name for name in leftovers(place, inputs) if not name.endswith(".parts")]
    return {"ended": ended, "stayed": stayed, "recovers": attempt(work, place) == 0 and result(place) is not None}


if __name__ == "__main__":
    import likewise.app.scale  # noqa: F401  # before forking, so that each attempt starts at once

    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3])))
