"""``python tests/planted``: plant each bug in a copy of the source, and see whether the tests catch it."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from pages import read_results, write
from planting import Workshop, of_the_day, read_list, today


def main():
    options = _options()
    bugs, controls = read_list(), read_list("control")
    if options.today or options.words or options.new:
        controls = controls[:1]
    known = {name for name, result in read_results().items() if result["outcome"] == "caught"}
    if options.new:
        bugs = [bug for bug in bugs if bug.name not in known]
    if options.today:  # those that were caught: what is new is tried by hand first
        bugs = of_the_day([bug for bug in bugs if bug.name in known], today())
    if options.words:
        bugs = [bug for bug in bugs if any(word in f"{bug.name} {bug.file}" for word in options.words)]
    started, verdicts, wrong = time.monotonic(), [], []
    with tempfile.TemporaryDirectory(prefix="planted-") as place:
        workshop = Workshop(Path(place))
        # Without this, "caught" would mean nothing. It also compiles what is compiled, once for all.
        tests = dict.fromkeys(test for bug in [*bugs, *controls] for test in bug.tests)
        fine, said = workshop.passes(tests)
        print(f"Without a bug: {said.strip().splitlines()[-1]}", flush=True)
        if not fine:
            sys.exit(f"{said}\nThe tests must pass, and none be skipped, where no bug is planted.")
        for bug in [*controls, *bugs]:
            if options.seconds and time.monotonic() - started > options.seconds:
                print(f"No time left: {len(bugs) + len(controls) - len(verdicts)} were not planted.")
                break
            verdict = workshop.try_bug(bug)
            verdicts.append(verdict)
            expected = "survived" if bug in controls else "caught"
            if verdict.outcome != expected:
                wrong.append(verdict)
            mark = " " if verdict.outcome == expected else "!"
            control = " (control: changes nothing)" if bug in controls else ""
            print(f"{mark} {verdict.outcome:8} {verdict.seconds:5.1f} s  {bug.name}{control}  {verdict.by}", flush=True)
    planted = [verdict for verdict in verdicts if verdict.bug in bugs]
    caught = sum(verdict.outcome == "caught" for verdict in planted)
    print(f"\n{caught} of {len(planted)} planted bugs were caught, in {time.monotonic() - started:.0f} seconds.")
    for verdict in wrong:
        print(f"{verdict.outcome}: {verdict.bug.name} ({verdict.bug.file}). {verdict.bug.breaks} {verdict.by}")
    if options.write:
        write(verdicts)
    sys.exit(1 if wrong else 0)


def _options():
    parser = argparse.ArgumentParser(prog="planted", description=__doc__)
    parser.add_argument("words", nargs="*", help="only bugs whose name or file contains one of these")
    parser.add_argument("--new", action="store_true", help="only bugs that were not caught yet")
    parser.add_argument("--today", action="store_true", help="ten of them, chosen by date")
    parser.add_argument("--seconds", type=float, help="plant no more after this time")
    parser.add_argument("--write", action="store_true", help="keep the results, and fill docs/trust.md with them")
    return parser.parse_args()


if __name__ == "__main__":
    main()
