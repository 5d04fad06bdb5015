"""Why a column has the weight 0: people decided it, or nothing asked for more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from likewise._validation import short_repr
from likewise.exceptions import InvalidInputError

MUST_NOT_MATTER = "must not matter"


@dataclass(frozen=True)
class ZeroReason:
    """The texts of a reason.

    Attributes
    ----------
    short : str
        Beside a name.
    meaning : str
        In place of what a weight is worth.
    title : str
        Above a list of columns.
    note : str
        The comment in a metric file.
    """

    short: str
    meaning: str
    title: str
    note: str


ZERO_REASONS: Mapping[str, ZeroReason] = {
    "protected": ZeroReason(
        "protected",
        f"protected: {MUST_NOT_MATTER}",
        "Protected, set to 0 by people",
        "set to 0 by people: must not matter",
    ),
    "not_used": ZeroReason(
        "not used", "not used by this model", "Not used by the model", "0, since the model does not use them"
    ),
    "not_forced": ZeroReason(
        "not forced by these people",
        "not forced by these people",
        "Not forced by the people it was revealed from, so not known",
        "0, since the people in the table force no more; the model may use them",
    ),
    "not_judged": ZeroReason(
        "not judged",
        "no answer says that a difference is fine",
        "Not judged: no answer says that a difference is fine",
        "0, since no answer says that a difference is fine",
    ),
}


def check_reasons(given: Mapping[Any, Any], weights: Mapping[Any, float], least: float) -> dict[Any, str]:
    """Reasons of the columns whose weight is below `least`; others have a weight now, and need none."""
    for name, reason in given.items():
        if name not in weights:
            raise InvalidInputError(f"zero_reasons must name columns of the metric; it has no {name!r}.")
        if not isinstance(reason, str) or reason not in ZERO_REASONS:
            raise InvalidInputError(
                f"zero_reasons must be one of {', '.join(ZERO_REASONS)}; got {short_repr(reason)} for {name!r}."
            )
        if reason == "protected" and weights[name]:
            raise InvalidInputError(
                f"A protected column must have the weight 0; {name!r} has {weights[name]:g}. Set the weight to 0, or "
                "take the column out of zero_reasons."
            )
    return {name: reason for name, reason in given.items() if weights[name] < least}


def list_by_reason(columns: Iterable[tuple[Any, str | None]]) -> dict[str, list[Any]]:
    """Columns of weight 0, given with their reasons, by its title; "Weight 0" if it is not known.

    Examples
    --------
    >>> list_by_reason([("zip", "not_used"), ("race", "protected"), ("age", None)])
    {'Protected, set to 0 by people': ['race'], 'Not used by the model': ['zip'], 'Weight 0': ['age']}
    """
    found: dict[str, list[Any]] = {each.title: [] for each in ZERO_REASONS.values()} | {"Weight 0": []}
    for column, reason in columns:
        found["Weight 0" if reason is None else ZERO_REASONS[reason].title].append(column)
    return {title: listed for title, listed in found.items() if listed}
