"""Which of two decisions, classes or ends of a score is the favourable one: it is known by its word, or asked for.

Nothing is taken for favourable by its order. A score is the probability of a class; for a model of default risk the
lower one is favourable, and no number says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from likewise._typing import FloatArray
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
_NEUTRAL = {"decision", "decisions", "decided", "final", "loan", "credit"}
_TURNS = {"not", "no", "non", "never", "without", "late"}
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
        What yes and no, true and false, 1 and 0 answer: the name of a column. They are known where it has a favourable
        word, such as ``loan_approved``, or is ``decision``. Without a name they mean nothing, as for a model whose
        classes are 0 and 1; nor do they in a column such as ``denied``, or ``chargeoff``, whose meaning nobody knows.

    Examples
    --------
    >>> known_favourable(["approved", "denied"]), known_favourable(["Charged off", "Fully paid"])
    ('approved', 'Fully paid')
    >>> [known_favourable([0, 1], each) for each in (None, "decision", "approved", "denied", "chargeoff")]
    [None, 1, 1, None, None]
    """
    answers = [_plain(label) for label in labels]
    signs = [_meaning(word) for word in answers]
    if not any(signs) and question is not None:
        asked = _plain(question)
        words = asked.split()
        meanings = [_meaning(word) for word in (asked, *words)]
        plain = max(meanings) > 0 or _NEUTRAL.issuperset(words)
        if plain and min(meanings) >= 0 and _TURNS.isdisjoint(words):
            signs = [_ANSWERS.get(word, 0) for word in answers]
    return labels[signs.index(1)] if sorted(signs) == [-1, 1] else None


def label_of(given: Any, labels: Sequence[Any], parameter: str = "favourable", option: str = "--favourable") -> Any:
    """The label that was named, by itself or, as on a command line, by its text; raises if there is none."""
    for label in labels:
        if is_label(given, label):
            return label
    for label in labels:
        if isinstance(given, str) and given == str(label):
            return label
    listed = ", ".join(map(str, labels))
    what = "classes" if parameter == "favourable" else "decisions"
    raise InvalidInputError(f"{parameter} must be one of the {what} {[*labels]}; got {short_repr(given)}.").in_commands(
        f"{option} must be one of {listed}; got {str(given)!r}."
    )


def given_or_stored(favourable: Any, model: Any) -> Any:
    """What is favourable: as given, or else as stored with the model (``favourable_``); None if neither says it."""
    if favourable is not None:
        return favourable
    stored, classes = getattr(model, "favourable_", None), getattr(model, "classes_", None)
    return stored if stored is None or classes is None or stored in np.asarray(classes).tolist() else None


def the_favourable(favourable: Any, classes: Any) -> Any:
    """The favourable class: the given one, or the one that is known by its word; raises if neither says which it is.

    Examples
    --------
    >>> the_favourable(None, np.array(["approved", "denied"]))
    'approved'
    """
    labels: list[Any] = np.asarray(classes).tolist()
    found = known_favourable(labels) if favourable is None else label_of(favourable, labels)
    if found is None:
        why, listed = "as no word says which one is better for a person", ", ".join(map(str, labels))
        raise InvalidInputError(f"favourable must be one of the classes {labels}, {why}.").in_commands(
            f"--favourable must be one of {listed}, {why}."
        )
    return found


def column_of(favourable: Any, classes: Any) -> int:
    """Position of the class whose probability counts: the favourable one, if it is given or known by its word.

    Else the last one, the positive class of scikit-learn; nothing is then said of what is better.
    """
    labels: list[Any] = np.asarray(classes).tolist()
    known = known_favourable(labels) if favourable is None else label_of(favourable, labels)
    return len(labels) - 1 if known is None else labels.index(known)


def named_favourable(favourable: Any, classes: Any) -> str:
    """Which class is the favourable one, and how that is known, in a sentence.

    Examples
    --------
    >>> named_favourable(None, np.array(["approved", "denied"])), named_favourable("b", np.array(["a", "b"]))
    ("Favourable: 'approved', recognised by the word.", "Favourable: 'b', as named.")
    """
    how = "recognised by the word" if favourable is None else "as named"
    return f"Favourable: '{the_favourable(favourable, classes)}', {how}."


@dataclass(frozen=True)
class Direction:
    """Which of two outputs is better for a person.

    Attributes
    ----------
    sign : {1, -1, 0}
        Whether the higher or the lower one is; 0 if that is not known.
    position : int or None
        Of several outputs, the one that counts.
    text : str
        What is favourable, in words; empty if it is not known.
    """

    sign: int = 0
    position: int | None = None
    text: str = ""

    @classmethod
    def of(cls, favourable: Any, classes: Sequence[Any] | None, n_outputs: int = 1) -> Direction:
        """Of outputs that are probabilities of `classes`, of two the last one's, or of numbers (None).

        Parameters
        ----------
        favourable : class label, "high", "low" or None
            None is known only if the classes are two known words. A class that is called "high" or "low" is meant
            before the end of the score.

        Examples
        --------
        >>> Direction.of("paid", ["default", "paid"]).sign, Direction.of("paid", ["paid", "z"]).sign
        (1, -1)
        >>> Direction.of("low", None).text, Direction.of(None, ["default", "paid"]).text, Direction.of(None, [0, 1])
        ('a lower score', "'paid'", Direction(sign=0, position=None, text=''))
        """
        labels = [] if classes is None else list(classes)
        if favourable is None:
            favourable = known_favourable(labels)
        if favourable is None:
            return cls()
        texts = {str(label) for label in labels}
        if n_outputs == 1 and isinstance(favourable, str) and favourable in (HIGH, LOW) and favourable not in texts:
            return cls(1, text="a higher score") if favourable == HIGH else cls(-1, text="a lower score")
        if not labels:
            ends = "'high' or 'low'" if n_outputs == 1 else "left out"
            raise InvalidInputError(
                f"favourable must be {ends}, as these outputs name no classes; got {short_repr(favourable)}."
            ).in_commands(f"--favourable must be high or low, as the scores name no classes; got {favourable}.")
        label = label_of(favourable, labels)
        where, text = labels.index(label), f"'{label}'"
        return cls(1, where, text) if n_outputs > 1 else cls(1 if where == len(labels) - 1 else -1, text=text)

    @property
    def end(self) -> str | None:
        """The favourable end of a single score."""
        return {1: HIGH, -1: LOW}.get(self.sign)

    @property
    def names(self) -> tuple[str, str]:
        """What the one with the better output, or with the higher one, is called; and the other."""
        return ("favoured", "disfavoured") if self.sign else ("higher", "lower")

    def gains(self, outputs: FloatArray) -> FloatArray:
        """The output that counts, the last axis of `outputs`, turned so that more is better (or higher)."""
        gains: FloatArray = outputs[..., self.position or 0]
        return -gains if self.sign < 0 else gains


def is_label(value: Any, label: Any) -> bool:
    """Whether a value is this label; 1 is not True."""
    return (
        isinstance(value, str | Real | np.generic)
        and isinstance(value, bool | np.bool_) <= isinstance(label, bool | np.bool_)
        and bool(value == label)
    )
