"""Which of two decisions, classes or ends of a score is the favourable one: it is known by its word, or asked for.

Nothing is taken for favourable by its order. A score is the probability of a class; for a model of default risk the
lower one is favourable, and no number says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from likewise._validation import short_repr
from likewise.exceptions import InvalidInputError

HIGH, LOW = "high", "low"
_PAIRS = """
approved/denied, approve/deny, approval/denial, accepted/rejected, accept/reject, acceptance/rejection, granted/refused,
grant/refuse, admitted/declined, admit/decline, hired/dismissed, hire/dismiss, allowed/disallowed, passed/failed,
pass/fail, good/bad, eligible/ineligible, qualified/unqualified, selected/unselected, successful/unsuccessful,
funded/unfunded, favourable/unfavourable, favorable/unfavorable, loan originated/application denied,
originated/turned down, paid/default, paid/defaulted, fully paid/charged off, repaid/delinquent, paid off/foreclosed,
offered/adverse action
"""
_WORDS = {
    word: sign
    for pair in _PAIRS.replace("\n", " ").strip().split(", ")
    for word, sign in zip(pair.split("/"), (1, -1), strict=True)
}
_ANSWERS = {"yes": 1, "y": 1, "true": 1, "1": 1, "no": -1, "n": -1, "false": -1, "0": -1}


def _plain(value: Any) -> str:
    """A value as a word: without case, underscores, and the zero behind a whole number."""
    if isinstance(value, Real) and not isinstance(value, bool) and float(value).is_integer():
        return str(int(float(value)))
    return " ".join(str(value).casefold().replace("_", " ").replace("-", " ").split())


def _meaning(word: str) -> int:
    """1 for a favourable word, -1 for an unfavourable one, 0 for any other."""
    first, _, rest = word.partition(" ")
    if first in ("not", "no", "non") and rest:
        return -_WORDS.get(rest, 0)
    return _WORDS.get(word, 0)


def known_favourable(labels: Sequence[Any], question: Any = None) -> Any:
    """The favourable one of two labels, if both are known words, and of opposite meanings; None otherwise.

    Parameters
    ----------
    labels : sequence
    question : str, optional
        What yes and no, true and false, 1 and 0 answer, such as the name of a column of decisions. Without one they
        mean nothing, as for a model whose classes are 0 and 1; nor do they in a column such as ``denied``.

    Examples
    --------
    >>> known_favourable(["approved", "denied"]), known_favourable(["Charged off", "Fully paid"])
    ('approved', 'Fully paid')
    >>> known_favourable([0, 1]), known_favourable([0, 1], "decision"), known_favourable([0, 1], "denied")
    (None, 1, None)
    """
    words = [_plain(label) for label in labels]
    signs = [_meaning(word) for word in words]
    if not any(signs) and question is not None:
        asked = _plain(question)
        if all(_meaning(word) >= 0 for word in (asked, *asked.split())):
            signs = [_ANSWERS.get(word, 0) for word in words]
    return labels[signs.index(1)] if sorted(signs) == [-1, 1] else None


def label_of(given: Any, labels: Sequence[Any], parameter: str = "favourable", option: str = "--favourable") -> Any:
    """The label that was named, by itself or, as on a command line, by its text; raises if there is none."""
    for label in labels:
        if _is_label(given, label):
            return label
    for label in labels:
        if isinstance(given, str) and given == str(label):
            return label
    listed = ", ".join(map(str, labels))
    raise InvalidInputError(f"{parameter} must be one of {[*labels]}; got {short_repr(given)}.").in_commands(
        f"{option} must be one of {listed}; got {str(given)!r}."
    )


def _is_label(value: Any, label: Any) -> bool:
    return (
        isinstance(value, str | Real | np.generic)
        and isinstance(value, bool | np.bool_) <= isinstance(label, bool | np.bool_)
        and bool(value == label)
    )
