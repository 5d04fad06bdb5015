"""Guarantees and scorers that no rule made, for tests of what reads them."""

import copy
from dataclasses import dataclass
from types import SimpleNamespace

from likewise import WeightedLp
from likewise.base import PlainScorer
from likewise.kernel.bounds import Bound
from likewise.kernel.guarantee import SEAL, Guarantee
from likewise.kernel.metric import BoundMetric


def promise(metric, curve=None, level="exact", basis="By hand.", *numbers, **more):
    """A guarantee with the seal of the rules; a metric of tables is bound to none."""
    bound = metric
    if isinstance(metric, WeightedLp):
        bound = metric.bind(metric.encoder())
    elif not isinstance(metric, BoundMetric):
        nobody = SimpleNamespace(raw_labels=None)
        bound = SimpleNamespace(description=metric, is_of=metric.__eq__, schema=nobody, rebound=metric.bind)
    return Guarantee(bound, curve or Bound(), level, basis, *numbers, **more, seal=SEAL)


@dataclass(frozen=True, eq=False, repr=False)
class Promised(PlainScorer):
    """A scorer that promises what it is told to."""

    promised: Guarantee

    def estimate(self, people, *, verbose=False):
        raise NotImplementedError

    def visible(self, people):
        return people.rows

    def prove(self):
        return self.promised


def unchecked(scorer, metric, **numbers):
    """A scorer of numbers that no rule has seen, with a guarantee that says they are within a metric."""
    scorer.__dict__["guarantee"] = promise(metric, **numbers)
    return scorer


def falsified(scorer, **changes):
    """A scorer with other numbers, and the guarantee of the old ones: no rule has seen it."""
    found = copy.copy(scorer)
    found.__dict__.update({"guarantee": scorer.guarantee, **changes})
    return found
