"""Simulated judges with hidden weights."""

import numpy as np
import pandas as pd


def all_pairs(n, size, rng):
    """Random pairs of different people."""
    a = rng.integers(n, size=size)
    return a, (a + rng.integers(1, n, size=size)) % n


def distances(X, weights, a, b):
    return 100 * np.abs(X[a] - X[b]) @ weights


def answers_in_points(X, weights, n_questions, rng, width=1.0, judge="Ann"):
    """Two answers per question: the distance is at least and at most the ends of an interval of this width."""
    a, b = all_pairs(len(X), n_questions, rng)
    low = np.floor(distances(X, weights, a, b) / width) * width
    return pd.DataFrame(
        {
            "judge": judge,
            "kind": np.tile(["at_least", "at_most"], n_questions),
            "a": np.repeat(a, 2),
            "b": np.repeat(b, 2),
            "points": np.clip(np.column_stack([low, low + width]), 0, 100).ravel(),
        }
    )


def comparisons(X, weights, n_questions, rng, noise=0.0, judge="Ann"):
    """Which of two random pairs is more alike, with logistic noise in points."""
    (a, b), (c, d) = all_pairs(len(X), n_questions, rng), all_pairs(len(X), n_questions, rng)
    gap = distances(X, weights, c, d) - distances(X, weights, a, b)
    swapped = gap + noise * rng.logistic(size=n_questions) < 0
    first, second = np.where(swapped, [c, d], [a, b]), np.where(swapped, [a, b], [c, d])
    return pd.DataFrame(
        {"judge": judge, "kind": "closer", "a": first[0], "b": first[1], "c": second[0], "d": second[1]}
    )
