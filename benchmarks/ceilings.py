"""What a metric costs at least, from a thousand people to tens of thousands."""

from benchmarks.audit import people
from benchmarks.common import growth, seconds, section

PEOPLE = (1_000, 3_000, 10_000, 30_000)
PROGRAM = 1_000


def run() -> str:
    import numpy as np

    from likewise import ceiling
    from likewise.auditing import ceilings

    def labelled(n):
        X, scores, metric = people(n)
        return X, np.random.default_rng(1).random(n) < scores, metric

    ceiling(*labelled(500))  # compiled, or read from the cache
    rows, last = [], None
    for n in PEOPLE:
        arguments = labelled(n)
        found = []
        spent = seconds(lambda arguments=arguments, found=found: found.append(ceiling(*arguments)))
        allowed = "60 s" if n == 10_000 else ""
        rows.append([f"{n:,}", f"{spent:.3g} s", f"{found[0].n_constraints:,}", growth(last, (n, spent)), allowed])
        last = (n, spent)
    X, y, metric = labelled(PROGRAM)
    values = []
    ours = seconds(lambda: values.append(ceiling(X, y, metric).value))
    fast, ceilings._of_two_classes = ceilings._of_two_classes, by_program
    try:
        program = seconds(lambda: values.append(ceiling(X, y, metric).value))
    finally:
        ceilings._of_two_classes = fast
    return section(
        "The ceiling of a metric (`ceiling`)",
        ["people", "time", "pairs in the program", "growth", "allowed"],
        rows,
        "Synthetic people with 5 normal features and two classes, p = 1. The general linear program with cuts takes "
        f"{program:.1f} s for {PROGRAM:,} people and the transport problem {ours:.2f} s: **{program / ours:.0f} x**; "
        f"their values differ by {abs(values[0] - values[1]):.0e}.",
    )


def by_program(points, weights, tally):
    from likewise.auditing.ceilings import Confidence

    program = Confidence(points, weights, tally)
    n_rounds = program.solve_with_cuts(500, "")
    return float((tally * program.h).sum()), n_rounds, program.n_constraints


if __name__ == "__main__":
    print(run())
