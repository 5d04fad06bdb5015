"""Fuzz with fresh cases, print what happened, and keep the counts.

    PYTHONPATH=tests python -m fuzz --cases 1000000 --jobs 2

Cases come in rounds, each from a seed of its own that is printed with a finding; a run that is stopped goes on with the
next round. Findings end it with exit code 1.
"""

import argparse
import csv
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from hypothesis import Phase, given, seed, settings

from fuzz import targets

ROUND = 2_000
COUNTS = Path(__file__).parents[2] / "docs" / "trust" / "fuzz.csv"
FIELDS = ["seed", "target", "result", "refused", "findings", "seconds"]


def one_round(number):
    """Run every target on its share of a round of cases."""
    rows = []
    for target in targets.ALL:
        counts, findings, start = Counter(), [], time.process_time()

        @seed(number)
        @settings(
            max_examples=round(ROUND * target.share),
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=targets.UNHURRIED,
        )
        @given(target.strategy)
        def run(drawn, target=target, counts=counts, findings=findings):
            try:
                counts[target.case(drawn)] += 1
            except Exception as error:
                findings.append(f"{target.name}, seed {number}: {type(error).__name__}: {error}\n  {drawn!r}")

        run()
        refused = counts.total() - counts["result"]
        spent = round(time.process_time() - start, 2)
        rows.append(
            dict(zip(FIELDS, [number, target.name, counts["result"], refused, len(findings), spent], strict=True))
        )
        for finding in findings[:3]:
            print(finding, flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    wanted = parser.parse_args()
    done = list(csv.DictReader(COUNTS.open())) if COUNTS.exists() else []
    first = 1 + max((int(row["seed"]) for row in done), default=0)
    rounds = range(first, first + -(-wanted.cases // ROUND))
    COUNTS.parent.mkdir(exist_ok=True)
    findings = 0
    with ProcessPoolExecutor(wanted.jobs) as pool, COUNTS.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for i, rows in enumerate(pool.map(one_round, rounds), start=1):
            writer.writerows(rows)
            file.flush()
            findings += sum(row["findings"] for row in rows)
            print(f"{i * ROUND:,} of {len(rounds) * ROUND:,} cases, {findings} findings", flush=True)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
