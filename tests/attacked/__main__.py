"""The long run: every case attacked, round after round, until all methods together have seen a billion pairs.

``python -m attacked`` continues where it was stopped, if the code is still the same: what is finished is kept in
``.attacked/``, one small file per case and round. At the end, or when interrupted, it prints the table, writes it to
``docs/attacked/results.csv`` and puts it into ``docs/trust.md``. ``--rounds 1`` makes a short run.
"""

import argparse
import json
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from attacked.cases import cases, controls
from attacked.page import FIGURES, PAGE, RESULTS, fill, summed
from likewise import VacuousGuaranteeWarning, attack
from likewise._progress import progress_bar
from versions import code_of

ROUNDS = 5
# Pairs per method, in millions: by what a pair costs in large groups, about 0.1, 0.1, 0.4 and 2 microseconds.
MILLIONS = {"additive": 700, "network": 300, "projection": 150, "smoothing": 50}
PACKAGES = (
    "metrics",
    "kernel",
    "inspection",
    "pairs",
    "verification",
    "auditing",
    "additive",
    "lipschitz",
    "projection",
    "smoothing",
)
FINISHED = Path(".attacked") / code_of("tests/attacked/cases.py", *(f"src/likewise/{package}" for package in PACKAGES))
ROUNDING = 1e-12
CONTROL_PAIRS = 50_000


def pairs_of(case):
    """Pairs for one round of a case."""
    of_its_method = sum(other.method == case.method for other in cases())
    return MILLIONS[case.method] * 1_000_000 // (of_its_method * ROUNDS * case.thinned)


@cache
def made(number):
    """A case, fitted once for all its rounds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousGuaranteeWarning)
        return cases()[number].make()


def caught(number):
    """Attack a control; return what was found, for a table."""
    case = controls()[number]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousGuaranteeWarning)
        model, people = case.make()
    n = CONTROL_PAIRS // case.thinned
    found = attack(model, model.guarantee_.metric, people, n_pairs=n, tolerance=ROUNDING, random_state=0)
    return {
        "method": case.method,
        "metric": case.metric,
        "columns": case.columns,
        "pairs": found.n_pairs,
        "violations": found.n_violations,
        "largest excess": found.excess_over_bound,
        "caught": found.n_violations > 0,
    }


def attacked(number, seed):
    """Attack a case with a seed; return what was found, for a file."""
    case, (model, people) = cases()[number], made(number)
    found = attack(
        model, model.guarantee_.metric, people, n_pairs=pairs_of(case), tolerance=ROUNDING, random_state=seed
    )
    return {
        "case": case.name,
        "seed": seed,
        **found.tried,
        "largest excess": found.excess_over_bound,
        "share used": found.largest_share,
        "violations": found.n_violations,
        "worst pair": "none" if found.pair is None else differing(found.pair),
    }


def differing(pair):
    """Two people in words: the columns in which they differ."""
    pair = pd.DataFrame(pair)
    one, other = (pair.iloc[i].astype(object) for i in (0, 1))
    parts = [f"{name}: {_value(a)} / {_value(b)}" for name, a, b in zip(pair.columns, one, other, strict=True) if
             not (a == b or (pd.isna(a) and pd.isna(b)))]  # fmt: skip
    return ", ".join(parts) or "nothing"


def _value(value):
    return "missing" if pd.isna(value) else repr(float(value)) if isinstance(value, float) else str(value)


def main():
    """Run what is not finished."""
    parser = argparse.ArgumentParser(prog="python -m attacked", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if find_spec("torch") is None:
        sys.exit("The attack trains networks, which needs PyTorch: pip install 'likewise[torch]'.")
    FINISHED.mkdir(parents=True, exist_ok=True)
    todo = [
        (number, seed)
        for seed in range(options.rounds)
        for number in range(len(cases()))
        if not (FINISHED / f"{number}-{seed}.json").exists()
    ]
    pool = ProcessPoolExecutor(options.workers)
    try:
        table = pd.DataFrame(list(pool.map(caught, range(len(controls())))))
        print(table.to_string(index=False), flush=True)
        assert table["caught"].all(), "a search that does not find what is planted is worth nothing"
        with progress_bar("Attacking", len(todo), show=True) as advance:
            running = {pool.submit(attacked, *task): task for task in todo}
            for done in as_completed(running):
                number, seed = running[done]
                _write(FINISHED / f"{number}-{seed}.json", json.dumps(done.result(), indent=1))
                advance(1)
    finally:
        pool.shutdown(cancel_futures=True)  # what runs is finished, what waits is left for another time
        _report()


def _report():
    """Put what is finished into the table and the page."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FINISHED.glob("*.json"))]
    if not found:
        return
    table = summed(found)
    print(table[["case", "pairs", *FIGURES]].to_string(index=False))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    _write(RESULTS, table.to_csv(index=False))
    _write(PAGE, fill(PAGE.read_text(encoding="utf-8"), table))


def _write(path, text):
    """All or nothing: a file is complete when it appears."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


if __name__ == "__main__":
    main()
