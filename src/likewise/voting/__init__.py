"""How the smoothed model is computed for a given model and noise."""

from likewise.voting.bank import Bank
from likewise.voting.sampled import mean_votes, single_votes
from likewise.voting.votes import Vote, clipped_predictions, hard_votes, soft_votes

__all__ = ["Bank", "Vote", "clipped_predictions", "hard_votes", "mean_votes", "single_votes", "soft_votes"]
