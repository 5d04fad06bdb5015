"""Draws are independent of each other, however many there are, and follow from the seed."""

import numpy as np
import pandas as pd
import pytest

from chance import too_few, too_many
from likewise import Gaussian, TableMetric, WeightedLp
from likewise.smoothing.mixed_type import MixedTypeNoise
from likewise.smoothing.sampling import CHUNK, SharedDraws

ROWS = np.random.default_rng(0).normal(size=(9, 2))


def shared_draws(seed=0):
    return SharedDraws.from_training_data(Gaussian.for_metric(WeightedLp([1.0, 0.0])), ROWS, seed)


def test_no_draw_comes_twice():
    draws = np.concatenate([part.t for _, part in shared_draws().iter_draws([3 * CHUNK])])
    assert len(np.unique(draws[:, 0])) == 3 * CHUNK
    again = np.concatenate([part.t for _, part in shared_draws().iter_draws([3 * CHUNK])])
    np.testing.assert_array_equal(draws, again)
    assert (np.concatenate([part.t for _, part in shared_draws(1).iter_draws([CHUNK])])[:, 0] != draws[:CHUNK, 0]).all()


def implausible_rows(drawn):
    """Training rows whose hidden value occurs too often or too seldom among draws that should be from all alike."""
    n = len(drawn)
    counts = [(drawn[:, 1] == value).sum() for value in ROWS[:, 1]]
    assert sum(counts) == n  # nothing else was drawn
    return [k for k, count in enumerate(counts) if too_many(count, n, 1 / 9) or too_few(count, n, 1 / 9)]


@pytest.mark.parametrize("how", ["shared", "own"])
def test_what_replaces_a_hidden_column_is_drawn_from_all_training_rows_alike(how):
    if how == "shared":
        drawn = np.concatenate([part.t for _, part in shared_draws().iter_draws([2 * CHUNK])])
    else:
        drawn = shared_draws().perturb(np.full((2 * CHUNK, 2), 7.0), np.random.default_rng(0))
    assert implausible_rows(drawn) == []
    # The control: a quarter of the draws of the first row go to the second.
    first = np.flatnonzero(drawn[:, 1] == ROWS[0, 1])
    drawn[first[: len(first) // 4], 1] = ROWS[1, 1]
    assert implausible_rows(drawn) == [0, 1]


@pytest.mark.parametrize("numbers", [False, True])
def test_what_is_kept_of_categories_is_drawn_anew_in_every_chunk(numbers):
    people = pd.DataFrame({"job": list("abcabcab"), "age": np.arange(8.0)})[["job", "age"] if numbers else ["job"]]
    metric = TableMetric({"age": 0.1} if numbers else {}, {"job": 0.5})
    coded = metric.encode_rows(people)
    mixed = MixedTypeNoise.from_training_data(Gaussian, coded.rows, coded.encoder, metric.bind(coded.encoder), 0)
    parts = [part for _, part in mixed.iter_draws([2 * CHUNK])]
    assert [len(part) for part in parts] == [CHUNK, CHUNK]
    for name in ("keep", "background"):
        first, second = (getattr(part, name) for part in parts)
        # Two independent fair coins agree half of the time; 6.2 standard deviations for 1e-9.
        if name == "keep":
            assert abs((first == second).mean() - 0.5) < 6.2 * 0.5 / np.sqrt(CHUNK)
        assert (first != second).any()
