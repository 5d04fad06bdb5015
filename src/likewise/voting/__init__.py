"""How the smoothed model is computed for a given model and noise, fastest sound way first.

- `linear`, `trees`: exact, from a formula;
- `cells`: deterministic, over the K draws of a `Splitting`;
- `mixed`: the rows of tables, with categories, under either;
- `sampled`: over random draws of a `Bank`, a fixed number or as many as each person needs;
- `networks`: the fast forward pass; `scoring`: every other model.
"""

from likewise.voting.bank import Bank
from likewise.voting.cells import Cells
from likewise.voting.draws import Draws, Perturbation, Shift
from likewise.voting.mixed import Mixed
from likewise.voting.sampled import Estimate, single_votes
from likewise.voting.trees import output_limits
from likewise.voting.voters import Ballot, Voter, candidate_noise, choose_voter, has_formula, without_formula
from likewise.voting.votes import Decode, Vote, clipped_predictions, hard_votes, soft_votes, tree_votes

__all__ = [
    "Ballot",
    "Bank",
    "Cells",
    "Decode",
    "Draws",
    "Estimate",
    "Mixed",
    "Perturbation",
    "Shift",
    "Vote",
    "Voter",
    "candidate_noise",
    "choose_voter",
    "clipped_predictions",
    "hard_votes",
    "has_formula",
    "output_limits",
    "single_votes",
    "soft_votes",
    "tree_votes",
    "without_formula",
]
