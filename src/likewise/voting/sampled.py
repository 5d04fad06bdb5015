"""Votes averaged over draws: works for every model."""

from __future__ import annotations

import numpy as np

from likewise.metrics import FloatArray
from likewise.progress import progress_bar
from likewise.voting.bank import CHUNK, Bank
from likewise.voting.votes import Vote


def mean_votes(
    vote: Vote, X: FloatArray, bank: Bank, n_draws: int, n_outputs: int, *, verbose: bool = False
) -> FloatArray:
    """Average the votes for each person over the first `n_draws` draws of the bank.

    Each call of the model sees one person under one chunk of the bank, whoever else is asked about, so the
    result for a row is the same to the last bit in any batch. Memory is one chunk.

    Returns
    -------
    ndarray of shape (n_samples, n_outputs)
    """
    people = bank.mask(X)
    total = np.zeros((len(X), n_outputs))
    rows = np.empty((min(CHUNK, n_draws), X.shape[1]))
    with progress_bar("Smoothing", len(X) * n_draws, show=verbose) as advance:
        for draws in bank.chunks(n_draws):
            for person, person_total in zip(people, total, strict=True):
                np.add(draws, person, out=rows[: len(draws)])
                person_total += vote(rows[: len(draws)]).sum(axis=0)
                advance(len(draws))
    return total / n_draws


def single_votes(vote: Vote, X: FloatArray, bank: Bank, n_outputs: int, rng: np.random.Generator) -> FloatArray:
    """One vote per person, each under a fresh draw of its own; shape (n_samples, n_outputs)."""
    people = bank.mask(X)
    votes = np.empty((len(X), n_outputs))
    for start in range(0, len(X), CHUNK):
        block = people[start : start + CHUNK]
        votes[start : start + CHUNK] = vote(block + bank.fresh(len(block), rng))
    return votes
