"""Fuzz with fresh cases, print what happened, and keep the counts.

    PYTHONPATH=tests python -m fuzz --cases 1000000 --jobs 2

Cases come in rounds, each from a seed of its own that is printed with a finding. Counts are kept after every round, per
version of the code, so that a run can be stopped at any time, and another one adds to it with other seeds. Findings end
it with exit code 1.
"""

import argparse
import csv
import os
import re
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from hypothesis import Phase, given, seed, settings

from fuzz import targets
from versions import code_of

ROUND = 2_000
DOCS = Path(__file__).parents[2] / "docs"
COUNTS = DOCS / "fuzzed" / "counts.csv"
COUNTED = ["result", "refused", "findings", "seconds"]
FIELDS = ["code", "target", "rounds", *COUNTED]
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
    return target.name, [counts["result"], refused, len(findings), spent]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    wanted = parser.parse_args()
    code = code_of("src/likewise", "tests/fuzz")
    table = read_counts()
    first = 1 + sum(max(rounds for rounds, _ in own.values()) for own in table.values())  # seeds that were not used yet
    seeds, findings = range(first, first + -(-wanted.cases // ROUND)), 0
    with ProcessPoolExecutor(wanted.jobs) as pool:
        for i, done in enumerate(as_completed([pool.submit(one_round, number) for number in seeds]), start=1):
            added = dict(done.result())
            findings += sum(counts[2] for counts in added.values())
            keep(with_round(read_counts(), code, added))
            print(f"{i * ROUND:,} of {len(seeds) * ROUND:,} cases, {findings} findings", flush=True)
    sys.exit(1 if findings else 0)


def read_counts():
    """Per version of the code, the last one at the end, and per target: rounds, and counts of results and so on."""
    table = {}
    text = COUNTS.read_text(encoding="utf-8") if COUNTS.exists() else ""
    for row in csv.DictReader(text.splitlines()):
        counts = [float(row[field]) for field in COUNTED]
        table.setdefault(row["code"], {})[row["target"]] = (int(row["rounds"]), counts)
    return table


def with_round(table, code, added):
    """The same counts, with one more round for a version of the code, which becomes the last."""
    own = {**table.get(code, {})}
    for target, counts in added.items():
        rounds, before = own.get(target, (0, [0.0] * len(COUNTED)))
        own[target] = (rounds + 1, [a + b for a, b in zip(before, counts, strict=True)])
    return {**{other: kept for other, kept in table.items() if other != code}, code: own}


def keep(table):
    """Write the counts, and the page that is filled from them; each file is complete when it appears."""
    lines = [",".join(FIELDS)]
    for code, own in table.items():
        for target, (rounds, counts) in own.items():
            numbers = [rounds, *(int(n) for n in counts[:-1]), round(counts[-1], 2)]
            lines.append(",".join([code, target, *map(str, numbers)]))
    page = DOCS / "trust.md"
    COUNTS.parent.mkdir(exist_ok=True)
    for path, text in ((COUNTS, "\n".join(lines) + "\n"), (page, fill(page.read_text(encoding="utf-8"), table))):
        part = path.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)


def fill(page, table):
    """The page, with what stands between the marks replaced by the counts of the last version of the code."""
    lines = [
        "| what | cases | gave a result | refused in one line | findings | ms per case |",
        "|---|---|---|---|---|---|",
    ]
    *earlier, last = table.values()
    sums = [counts for _, counts in last.values()]
    for name, (result, refused, findings, spent) in zip(last, sums, strict=True):
        n = result + refused + findings
        each = 1000 * spent / max(1, n)
        lines.append(f"| {name} | {n:,.0f} | {result:,.0f} | {refused:,.0f} | {findings:,.0f} | {each:.1f} |")
    totals = [sum(column) for column in zip(*sums, strict=True)]
    lines.append(
        f"| **all** | **{sum(totals[:3]):,.0f}** | {totals[0]:,.0f} | {totals[1]:,.0f} | **{totals[2]:,.0f}** | |"
    )
    before = sum(sum(counts[:3]) for own in earlier for _, counts in own.values())
    if before:
        lines += ["", f"These are of one version of the code. {before:,.0f} cases were run on earlier ones."]
    return _PLACE.sub(lambda match: f"{match[1]}" + "\n".join(lines) + f"\n{match[2]}", page)


if __name__ == "__main__":
    main()
