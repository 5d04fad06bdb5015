"""What is voted on, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray
from likewise.enforce.smoothing.schedule import Schedule
from likewise.metrics.coding import Coding
from likewise.models.networks import Network, is_torch
from likewise.models.votes import Vote, clipped_predictions, hard_votes, scores_behind, soft_votes, tree_votes


@dataclass(frozen=True, eq=False)
class Ballot:
    """What is voted on, and how.

    Attributes
    ----------
    vote : {"hard", "soft", "trees", "value"}
        A class, class probabilities, a share of trees, or a prediction.
    classes : ndarray, or None for regression
    limits : tuple of float
        Range of a vote.
    coding : Coding, optional
        Turns perturbed rows into the table that the model takes; None if it takes them as they are.
    """

    vote: str
    classes: npt.NDArray[Any] | None = None
    limits: tuple[float, float] = (0.0, 1.0)
    coding: Coding | None = None

    @property
    def n_outputs(self) -> int:
        """Numbers per vote."""
        return 1 if self.classes is None else len(self.classes)

    def schedule(self, epsilon: float, delta: float) -> Schedule:
        """When to stop drawing."""
        return Schedule(epsilon, delta, self.n_outputs, self.vote == "hard")

    def network(self, model: Any) -> Network | None:
        """The model as a network, if it is one that takes rows as they are."""
        if self.vote == "trees" or self.coding is not None:
            return None
        return Network.from_model(model, kind=self.vote, n_outputs=self.n_outputs, limits=self.limits)

    def of(self, model: Any) -> Vote:
        """The model's votes for rows, in units of the output."""
        network = self.network(model) if is_torch(model) else None
        if network is not None:
            return network.vote
        decode = None if self.coding is None else self.coding.decode
        if self.classes is None:
            return clipped_predictions(model, self.limits, decode)
        if self.vote == "trees":
            return tree_votes(model, self.classes)
        return (hard_votes if self.vote == "hard" else soft_votes)(model, self.classes, decode)

    def unit_votes(self, model: Any) -> Vote:
        """The model's votes in units of their range."""
        vote, (low, high) = self.of(model), self.limits
        if self.limits == (0.0, 1.0):
            return vote
        return lambda rows: np.clip((vote(rows) - low) / (high - low), 0.0, 1.0)

    def in_detail(self, model: Any) -> Vote:
        """The model's votes, with the scores behind them where it shows any: labels hide small changes."""
        vote, decode = self.unit_votes(model), None if self.coding is None else self.coding.decode
        scores = None if is_torch(model) else scores_behind(model, decode)
        return vote if scores is None else lambda rows: np.hstack([vote(rows), scores(rows)])

    def in_range(self, share: FloatArray) -> FloatArray:
        """From units of the range to units of the output."""
        low, high = self.limits
        return low + (high - low) * share
