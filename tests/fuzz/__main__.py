"""Fuzz with fresh cases, print what happened, and keep the counts.

    PYTHONPATH=tests python -m fuzz --cases 1000000 --jobs 2

Cases come in rounds, each from a seed of its own that is printed with a finding; a run that is stopped goes on with the
next round. Findings end it with exit code 1.
"""

import argparse
import csv
import re
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from hypothesis import Phase, given, seed, settings

from fuzz import targets

ROUND = 2_000
DOCS = Path(__file__).parents[2] / "docs"
COUNTS = DOCS / "fuzzed" / "counts.csv"
FIELDS = ["seed", "target", "result", "refused", "findings", "seconds"]
_PLACE = re.compile(r"(<!-- begin: fuzz -->\n).*?(<!-- end: fuzz -->)", re.DOTALL)


def one_round(number):
    """Run every target on its share of a round of cases."""
    return [tried(target, number) for target in targets.ALL]


def tried(target, number):
    """Counts of one target in a round; findings are printed."""
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
    def run(drawn):
        try:
            counts[target.case(drawn)] += 1
        except Exception as error:
            findings.append(f"{target.name}, seed {number}: {type(error).__name__}: {error}\n  {drawn!r}")

    run()
    for finding in findings[:3]:
        print(finding, flush=True)
    refused, spent = counts.total() - counts["result"], round(time.process_time() - start, 2)
    return dict(zip(FIELDS, [number, target.name, counts["result"], refused, len(findings), spent], strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    wanted = parser.parse_args()
    done = _rows()
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
    page = DOCS / "trust.md"
    page.write_text(fill(page.read_text(encoding="utf-8"), read_counts()), encoding="utf-8")
    sys.exit(1 if findings else 0)


def _rows():
    text = COUNTS.read_text(encoding="utf-8") if COUNTS.exists() else ""
    return list(csv.DictReader(text.splitlines()))


def read_counts():
    """Counts of all rounds so far, by target: results, refused, findings, seconds of processor time."""
    sums = {target.name: [0, 0, 0, 0.0] for target in targets.ALL}
    for row in _rows():
        if row["target"] in sums:
            for i, field in enumerate(FIELDS[2:]):
                sums[row["target"]][i] += float(row[field])
    return sums


def fill(page, sums):
    """The page, with what stands between the marks replaced by the counts."""
    lines = [
        "| what | cases | gave a result | refused in one line | findings | ms per case |",
        "|---|---|---|---|---|---|",
    ]
    for name, (result, refused, findings, spent) in sums.items():
        n = result + refused + findings
        each = 1000 * spent / max(1, n)
        lines.append(f"| {name} | {n:,.0f} | {result:,.0f} | {refused:,.0f} | {findings:,.0f} | {each:.1f} |")
    totals = [sum(column) for column in zip(*sums.values(), strict=True)]
    lines.append(
        f"| **all** | **{sum(totals[:3]):,.0f}** | {totals[0]:,.0f} | {totals[1]:,.0f} | **{totals[2]:,.0f}** | |"
    )
    return _PLACE.sub(lambda match: f"{match[1]}" + "\n".join(lines) + f"\n{match[2]}", page)


if __name__ == "__main__":
    main()
