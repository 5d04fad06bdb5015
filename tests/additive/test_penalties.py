"""The penalty with the smallest loss on people held out, from losses written down by hand."""

from dataclasses import dataclass

import numpy as np
import pytest

from likewise.additive import fit as tuning
from likewise.additive.fit import PENALTIES, choose_penalty, content_folds
from likewise.additive.losses import SquaredLoss


@dataclass(frozen=True)
class Problem:
    """Stands for people in five folds; `losses` has the loss of each fold under each penalty."""

    losses: dict
    penalty: float = 0.0
    tolerance: float = 0.0
    fold: int = -1

    @property
    def loss(self):
        return SquaredLoss(np.zeros((1, 1)))

    def fold_shares(self, n_folds):
        return np.full(n_folds, 1 / n_folds)

    def without(self, fold, left):
        assert left == pytest.approx(0.8)
        return Problem(self.losses, fold=fold)

    def only(self, fold):
        return Problem(self.losses, fold=fold)

    def scores(self, x):
        return x

    def mean_loss(self, penalty):
        return self.losses[penalty][self.fold]


def chosen(monkeypatch, *totals):
    """Every fold has a fifth of the total; what is solved is the penalty itself."""
    tried = []

    def solve(problem, start):
        tried.append(problem.penalty)
        return problem.penalty

    monkeypatch.setattr(tuning, "solve_any", solve)
    losses = {penalty: [total / 5] * 5 for penalty, total in zip(PENALTIES, totals, strict=True)}
    best, start = choose_penalty(Problem(losses), 0.0)
    assert start == best
    return best, list(dict.fromkeys(tried))


def test_the_penalty_with_the_smallest_loss_is_taken(monkeypatch):
    for place in range(5):
        totals = [5.0 - k if k <= place else 5.0 - place + 0.1 * k for k in range(5)]
        assert chosen(monkeypatch, *totals)[0] == PENALTIES[place]


def test_two_penalties_in_a_row_that_bring_nothing_end_the_search(monkeypatch):
    assert chosen(monkeypatch, 5.0, 3.0, 4.0, 3.5, 0.0) == (PENALTIES[1], list(PENALTIES[:4]))
    assert chosen(monkeypatch, 5.0, 3.0, 4.0, 2.0, 1.0) == (PENALTIES[4], list(PENALTIES))


def test_folds_go_by_what_is_known_of_people():
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [np.nan, 2.0], [np.nan, 2.0]])
    for seed in range(10):  # by chance, two people share a fold in one case of five
        folds = content_folds(rows, np.array([[0.0, -0.0, 1.0, 1.0]]), seed)
        assert folds[0] == folds[1]
        assert folds[2] == folds[3]
    many = content_folds(np.arange(5000.0)[:, None], np.zeros((1, 5000)), 0)
    counts = np.bincount(many, minlength=5)
    assert len(counts) == 5
    assert abs(counts - 1000).max() < 5 * np.sqrt(5000 * 0.2 * 0.8) + 1
    assert (many != content_folds(np.arange(5000.0)[:, None], np.zeros((1, 5000)), 1)).any()
