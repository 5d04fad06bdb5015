"""Every triple of features that can meet, with fewer people and draws than for pairs (`make test-all`).

`LIKEWISE_TRIPLES=0.2` takes a fifth of the cells, others every day.
"""

import os
import warnings
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

import catalogue
from catalogue import covering, fit
from property.promises import SAME, Evidence, broken

pytestmark = pytest.mark.slow
SHARE = float(os.environ.get("LIKEWISE_TRIPLES", "1"))
N_PARTS = 40


@pytest.fixture(scope="module")
def cells():
    """The chosen cells; those of one model follow each other."""
    found, triples = covering(3)
    if SHARE < 1:
        rng = np.random.default_rng(date.today().toordinal())
        found = [found[i] for i in rng.permutation(len(found))[: round(SHARE * len(found))]]
    print(f"{len(found):,} cells; all of them hold {len(triples):,} triples")
    return sorted(found, key=str)


def holds(cells, part):
    """Run a share of the cells; the sentences that are false in any of them."""
    found = []
    for cell in cells[part::N_PARTS]:
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "X .* feature names")
                evidence = Evidence(fit(replace(cell, asked=SAME)), n=5)
                found += [f"{cell}: {sentence}" for sentence in broken(evidence, cell.asked)]
        except Exception as error:
            found.append(f"{cell}: {type(error).__name__}: {error}")
    return found


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    monkeypatch.setitem(catalogue.SAMPLED, "n_draws", 1500)


# Two classes, so that both workers have their share.
class TestFirstHalf:
    @pytest.mark.parametrize("part", range(0, N_PARTS, 2))
    def test_every_promise_holds_for_every_triple_of_features(self, cells, part):
        assert holds(cells, part) == []


class TestSecondHalf:
    @pytest.mark.parametrize("part", range(1, N_PARTS, 2))
    def test_every_promise_holds_for_every_triple_of_features(self, cells, part):
        assert holds(cells, part) == []
