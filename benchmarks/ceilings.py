"""Ceilings, from a thousand people to tens of thousands."""

from benchmarks.audit import people
from benchmarks.common import growth, seconds, section

PEOPLE = (1_000, 3_000, 10_000, 30_000)
PROGRAM, STRICTER = 1_000, 0.3


def run() -> str:
    import numpy as np

    from likewise import ceiling
    from likewise.auditing import ceiling as ceilings

    def labelled(n, factor):
        X, scores, metric = people(n)
        return X, np.random.default_rng(1).random(n) < scores, metric.scaled(factor)

    ceiling(*labelled(PROGRAM, 1.0))  # compiled, or read from the cache
    rows = []
    for factor in (1.0, STRICTER):
        last = None
        for n in PEOPLE:
            X, y, metric = labelled(n, factor)
            found = []
            spent = seconds(lambda found=found, given=(X, y, metric): found.append(ceiling(*given)))
            allowed = "60 s" if n == 10_000 else ""
            exponent = growth(last, (n, spent))
            pairs = f"{found[0].n_constraints:,}"
            rows.append([f"{n:,}", f"{factor:g}", f"{found[0].value:.3f}", f"{spent:.3g} s", pairs, exponent, allowed])
            last = (n, spent)
    X, y, metric = labelled(PROGRAM, STRICTER)
    values = []
    ours = seconds(lambda: values.append(ceiling(X, y, metric).value))
    fast, ceilings._of_two_classes = ceilings._of_two_classes, by_program
    try:
        program = seconds(lambda: values.append(ceiling(X, y, metric).value))
    finally:
        ceilings._of_two_classes = fast
    return section(
        "The ceiling of a metric (`ceiling`)",
        ["people", "metric times", "ceiling", "time", "pairs in the program", "growth", "allowed"],
        rows,
        "Synthetic people with 5 normal features and two classes, p = 1, under a metric and a stricter one. The "
        f"general linear program with cuts takes {program:.1f} s for {PROGRAM:,} people under the stricter metric, and "
        f"the transport problem {ours:.2f} s: **{program / ours:.0f} x**; "
        f"their values differ by {abs(values[0] - values[1]):.0e}.",
    )


def by_program(points, weights, tally):
    from likewise.auditing.ceiling import Confidence

    program = Confidence(points, weights, tally)
    n_rounds = program.solve_with_cuts(500, "")
    return float((tally * program.h).sum()), n_rounds, program.n_constraints


if __name__ == "__main__":
    print(run())
