"""Which rows may share a call of the inner model, and what is known about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from likewise._threads import single_threaded_blas
from likewise._typing import FloatArray
from likewise.enforce.smoothing.ballot import Ballot
from likewise.enforce.smoothing.calls import CalledVotes
from likewise.errors import InvalidInputError
from likewise.models.company import N_PROBES, TILES, Changes, in_tiles, row_by_row, try_out
from likewise.models.rowwise import is_rowwise
from likewise.models.votes import Vote

Batch = bool | Literal["auto"]

_ROUNDING = 1e-5  # of float32 sums; what looks at other rows is above it by far


@dataclass(frozen=True)
class CallPlan:
    """How the inner model is called.

    Attributes
    ----------
    kind : {"any", "tiles", "person", "row"}
        Rows of many people share calls of any size or of fixed sizes, or a call sees one person's rows, or a single
        row.
    words : str
        What that rests on, for the guarantee.
    """

    kind: Literal["any", "tiles", "person", "row"]
    words: str

    def of(self, vote: Vote) -> Vote:
        """Votes, asked for in such calls."""
        ways: dict[str, Callable[[Vote], Vote]] = {"tiles": in_tiles, "row": row_by_row}
        return ways[self.kind](vote) if self.kind in ways else vote

    def sums(self, vote: Vote) -> CalledVotes:
        """Sums of votes over draws; nobody's depend on who else is asked about."""
        return CalledVotes(self.of(vote), shared=self.kind != "person")


def find_sharing(model: Any, ballot: Ballot, some_rows: Callable[[], FloatArray], batch: Batch) -> CallPlan:
    """How to call a model: as `batch` says, as is known of its type, or as trials on `some_rows` show.

    Raises
    ------
    InvalidInputError
        If the model looks at other rows, or answers at random: then no promise would hold.
    """
    if batch is True:
        return CallPlan("tiles", f"{_PREMISE}, which was not tested: batch=True says so.")
    if batch is False:
        return CallPlan("row", "The model is called with one row at a time (batch=False).")
    # Trees vote with whole numbers, whose sums are exact.
    known = True if ballot.vote == "trees" else is_rowwise(model)
    if known is not None:
        return CallPlan("any", "The model is of a kind that answers for each row by itself.") if known else _UNSTEADY
    rows = some_rows()
    with single_threaded_blas():
        found = try_out(ballot.in_detail(model), rows)
    _check(found)
    asked = f"asked about {min(len(rows), N_PROBES)} perturbed people alone, shuffled, and in calls of up to"
    if found.within:
        return CallPlan(
            "person",
            f"{_PREMISE}, up to rounding, which was tested, not proven: {asked} {TILES[-1]:,} rows, its answers "
            f"changed by up to {found.within:.1g}, so a call holds the draws of one person.",
        )
    sizes = f" ({found.beyond:.1g} apart in sizes in which it is not called)" if found.beyond else ""
    return CallPlan(
        "tiles",
        f"{_PREMISE}, which was tested, not proven: {asked} {TILES[-1]:,} rows, it gave the same answers to the last "
        f"bit{sizes}.",
    )


_PREMISE = "It rests on a model that answers for each row by itself"
_UNSTEADY = CallPlan(
    "person",
    "The model adds up its parts in any order, so its answers may change by rounding from call to call; a call holds "
    "the draws of one person.",
)


def _check(found: Changes) -> None:
    if found.again > _ROUNDING:
        raise InvalidInputError(
            "estimator must give the same answers to the same rows; asked twice, an answer changed by "
            f"{found.again:.2g}. Fix its random_state, or switch off what is random when it predicts."
        )
    change = max(found.within, found.beyond)
    if change > _ROUNDING:
        raise InvalidInputError(
            f"estimator must answer for each row by itself; an answer changed by {change:.2g} with the other rows of "
            "the call, so no promise about people would hold. Use batch=False to ask it for one row at a time."
        )
