"""Distances learned from the same answers: likewise, metric-learn and EXPLORE of inFairness.

A simulated judge has a hidden distance on standardised people. Answers are comparisons of two pairs, with logistic
noise, or "within 15 points, or not" of one pair. Every method gets the same answers; its distance is compared with
the hidden one on fresh pairs. What is not installed is left out, and the page says so.
"""

import warnings

import numpy as np
import pandas as pd

from benchmarks.common import section
from likewise import WeightedLp, learn_metric

TITLE = "Distances learned from judgements"
WEIGHTS = np.array([0.01, 0.04, 0.02, 0.06, 0.03, 0.01])
N_PEOPLE, N_FRESH, N_JUDGES, NOISE, THRESHOLD = 300, 2_000, 5, 3.0, 15.0
SIZES = (50, 200, 800)


def people(rng):
    """Standardised people with correlated columns."""
    X = rng.normal(size=(N_PEOPLE, len(WEIGHTS))) @ (np.eye(len(WEIGHTS)) + 0.3)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def truth(kind, gaps):
    """The hidden distance in points: a weighted sum of differences, or a Euclidean norm of weighted ones."""
    gaps = 100 * np.abs(gaps) * WEIGHTS
    return gaps.sum(axis=1) if kind == "L1" else np.sqrt(2.5 * (gaps**2).sum(axis=1))


def pairs(rng, n):
    a = rng.integers(N_PEOPLE, size=n)
    return a, (a + rng.integers(1, N_PEOPLE, size=n)) % N_PEOPLE


def comparisons(kind, X, rng, n):
    """Positions a, b, c, d: the judge says that a and b are more alike."""
    first, second = pairs(rng, n), pairs(rng, n)
    gap = truth(kind, X[second[0]] - X[second[1]]) - truth(kind, X[first[0]] - X[first[1]])
    swapped = gap + NOISE * rng.logistic(size=n) < 0
    return np.where(swapped, [*second, *first], [*first, *second]).T


def by_likewise_comparisons(X, answers):
    table = pd.DataFrame(answers, columns=list("abcd")).assign(kind="closer")
    start = WeightedLp(np.full(X.shape[1], 0.03))
    weights = learn_metric(table, X, start, comparisons="logistic").metric.weights
    return lambda gaps: np.abs(gaps) @ weights


def by_lsml(X, answers):
    from metric_learn import LSML

    model = LSML(preprocessor=X).fit(answers)
    return mahalanobis(model.get_mahalanobis_matrix())


def by_likewise_limits(X, a, b, near):
    kinds = np.where(near, "at_most", "at_least")
    table = pd.DataFrame({"kind": kinds, "a": a, "b": b, "points": THRESHOLD})
    weights = learn_metric(table, X).metric.weights
    return lambda gaps: np.abs(gaps) @ weights


def by_itml(X, a, b, near):
    from metric_learn import ITML

    model = ITML(preprocessor=X, random_state=0).fit(np.column_stack([a, b]), np.where(near, 1, -1))
    return mahalanobis(model.get_mahalanobis_matrix())


def by_mmc(X, a, b, near):
    from metric_learn import MMC

    model = MMC(preprocessor=X, diagonal=True, random_state=0).fit(np.column_stack([a, b]), np.where(near, 1, -1))
    return mahalanobis(model.get_mahalanobis_matrix())


def by_explore(X, a, b, near):
    import torch
    from inFairness.distances import EXPLOREDistance

    np.random.seed(0)  # noqa: NPY002  # it draws from the global generator
    rows, model = torch.tensor(X, dtype=torch.float32), EXPLOREDistance()
    model.fit(rows[a], rows[b], torch.tensor(near, dtype=torch.float32), iters=5_000, batchsize=min(50, len(a)))
    return mahalanobis(model.sigma.numpy().astype(float))


def mahalanobis(matrix):
    return lambda gaps: np.sqrt(np.maximum(np.einsum("ni,ij,nj->n", gaps, matrix, gaps), 0))


def error(kind, learned, X, rng):
    """Median relative error on fresh pairs, after the best factor for all distances."""
    a, b = pairs(rng, N_FRESH)
    found, hidden = learned(X[a] - X[b]), truth(kind, X[a] - X[b])
    factors = np.geomspace(0.05, 20, 400) * np.median(hidden) / max(np.median(found), 1e-300)
    return min(np.median(np.abs(factor * found / hidden - 1)) for factor in factors)


METHODS = {
    "comparisons": {"likewise": by_likewise_comparisons, "LSML": by_lsml},
    "within 15 points, or not": {
        "likewise": by_likewise_limits,
        "EXPLORE": by_explore,
        "ITML": by_itml,
        "MMC": by_mmc,
    },
}


def one(kind, style, method, n, seed):
    rng = np.random.default_rng(seed)
    X = people(rng)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if style == "comparisons":
            learned = method(X, comparisons(kind, X, rng, n))
        else:
            a, b = pairs(rng, n)
            learned = method(X, a, b, truth(kind, X[a] - X[b]) <= THRESHOLD)
        return error(kind, learned, X, rng)


def run() -> str:
    rows, absent = [], []
    for kind in ("L1", "Euclidean"):
        for style, methods in METHODS.items():
            for name, method in methods.items():
                try:
                    cells = [np.median([one(kind, style, method, n, seed) for seed in range(N_JUDGES)]) for n in SIZES]
                except ImportError:
                    absent.append(name)
                    continue
                rows.append([kind, style, name, *(f"{cell:.1%}" for cell in cells)])
    missing = f" Not installed, so not compared: {', '.join(dict.fromkeys(absent))}." if absent else ""
    return section(
        TITLE,
        ["hidden distance", "answers", "method", *(f"{n} answers" for n in SIZES)],
        rows,
        "Median relative error of the learned distance on fresh pairs, after the best factor for all distances; median "
        f"of {N_JUDGES} judges, {len(WEIGHTS)} columns, comparisons with a logistic noise of {NOISE:g} points. LSML, "
        "ITML and MMC are of metric-learn, EXPLORE of inFairness; their distances are Mahalanobis distances, which "
        f"contain the Euclidean one, as those of likewise contain L1.{missing}",
    )


if __name__ == "__main__":
    print(run())
