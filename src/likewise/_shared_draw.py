"""One draw for everybody in a round, computed from a secret key and the name of the round.

People who share a draw are decided alike as far as their probabilities are alike (docs/theory.md §16): two people whose
probabilities are at total variation v are decided differently with probability at most v for two classes, and at most
``2 v / (1 + v)`` for several. Independent draws differ with probability up to 1/2 even where v is 0.

The key is kept secret. Its commitment is published once and that of each round before the round, so that neither can be
chosen later; the opening of a round, published afterwards, shows its draw and nothing about other rounds.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray
from likewise._validation import short_repr
from likewise.exceptions import InvalidInputError, InvalidTypeError

MIN_KEY = 16  # bytes: 128 bits cannot be brute-forced
_BITS = 128  # of a uniform number


@dataclass(frozen=True, repr=False)
class SharedDraw:
    """The random numbers that everybody in a round shares.

    Attributes
    ----------
    round : str
        Name of the round, such as a date.
    opening : bytes
        32 bytes from which all numbers of the round follow. Whoever has them can foresee its decisions.

    Examples
    --------
    >>> draw = SharedDraw.from_key(b"sixteen bytes ok", "2026-11-17")
    >>> draw.decide(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array(["no", "yes"])).tolist()
    ['no', 'yes']
    >>> SharedDraw.from_opening("2026-11-17", draw.opening.hex(), draw.commitment) == draw
    True
    """

    round: str
    opening: bytes

    @classmethod
    def from_key(cls, key: Any, round: Any) -> SharedDraw:
        """The draw of a round under a secret key."""
        key, name = check_key(key), _check_round(round)
        return cls(name, hmac.digest(key, b"likewise round\0" + name.encode(), "sha256"))

    @classmethod
    def from_opening(cls, round: Any, opening: str, commitment: str) -> SharedDraw:
        """The draw that was opened after a round; raise if it is not the one committed to before."""
        try:
            draw = cls(_check_round(round), bytes.fromhex(opening))
        except (TypeError, ValueError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError(f"opening must be hexadecimal digits; got {short_repr(opening)}.") from None
        if not hmac.compare_digest(draw.commitment, str(commitment)):
            raise InvalidInputError(
                f"opening must be the one committed to: its commitment is {draw.commitment}, and {commitment} was "
                "published. The round, the opening or the commitment was changed."
            )
        return draw

    @property
    def commitment(self) -> str:
        """Published before the round: it fixes the draw without showing it."""
        return hashlib.sha256(b"likewise commitment\0" + self.round.encode() + b"\0" + self.opening).hexdigest()

    @cached_property
    def uniform(self) -> float:
        """The largest float64 at or below a uniform number of 128 bits.

        A float64 exceeds the one exactly if it exceeds the other, so comparisons with it are exact.
        """
        return _round_down(self._bits("uniform"))

    def decide(self, probabilities: FloatArray, classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The outcome of each person, shape (n_samples,); the probability of each outcome is that in its column.

        An outcome of probability 0 is never given. For two classes the order of scores is kept: whoever has a larger
        probability of the second class gets it whenever someone with a smaller one does.
        """
        return np.asarray(classes[self.choose(probabilities, [str(label) for label in classes.tolist()])])

    def choose(self, probabilities: FloatArray, names: Sequence[str]) -> npt.NDArray[np.intp]:
        """Position of each person's outcome among the classes of these names."""
        if probabilities.shape[1] == 2:
            second = probabilities[:, 1] > self.uniform
            second = (second | (probabilities[:, 0] == 0)) & (probabilities[:, 1] > 0)
            return np.asarray(second, dtype=np.intp)
        with np.errstate(divide="ignore"):
            ratios = self._log_clocks(names) - np.log(probabilities)
        return np.asarray(ratios.argmin(axis=1))

    def grade(self, at_least: FloatArray) -> npt.NDArray[np.intp]:
        """The grade of each person, given the probabilities of reaching grades 1, 2, ..., which must not increase."""
        return np.asarray((at_least > self.uniform).sum(axis=1))

    def _log_clocks(self, names: Sequence[str]) -> FloatArray:
        """Logarithms of one exponential variable per class, seeded by its name: the order of classes is irrelevant."""
        return np.array([math.log(_exponential(self._bits(f"class\0{name}"))) for name in names])

    def _bits(self, use: str) -> int:
        digest = hmac.digest(self.opening, b"likewise draw\0" + use.encode(), "sha256")
        return int.from_bytes(digest[: _BITS // 8], "big")


def _exponential(bits: int) -> float:
    """``-log v`` of the number ``v = (bits + 1/2) / 2^128``, which is neither 0 nor 1."""
    odd, whole = 2 * bits + 1, 1 << (_BITS + 1)
    if 2 * odd < whole:
        return -math.log(math.ldexp(odd, -_BITS - 1))
    return -math.log1p(-math.ldexp(whole - odd, -_BITS - 1))


def _round_down(bits: int) -> float:
    """The largest float64 that is not above ``bits / 2^128``."""
    value = math.ldexp(bits, -_BITS)
    numerator, denominator = value.as_integer_ratio()
    return value if numerator << _BITS <= bits * denominator else math.nextafter(value, 0.0)


def probability_decided_differently(variation: npt.ArrayLike, n_classes: int) -> FloatArray:
    """Largest probability that two people of a round are decided differently, by the total variation between them.

    ``v`` for two classes, and ``2 v / (1 + v)`` for several.

    Examples
    --------
    >>> probability_decided_differently([0.0, 0.5, 1.0], 2).tolist()
    [0.0, 0.5, 1.0]
    >>> probability_decided_differently([0.0, 0.5, 1.0], 3).round(3).tolist()
    [0.0, 0.667, 1.0]
    """
    v = np.asarray(variation, dtype=np.float64)
    return (
        v if n_classes == 2 else np.minimum(1.0, np.nextafter(2 * v / (1 + v), 2.0, where=v > 0, out=np.zeros_like(v)))
    )


def key_commitment(key: Any) -> str:
    """Published once: it shows that later rounds use the same key, to whoever is shown the key."""
    return hashlib.sha256(b"likewise key\0" + check_key(key)).hexdigest()


def check_key(key: Any) -> bytes:
    """Validate a secret key."""
    if not isinstance(key, bytes | bytearray):
        raise InvalidTypeError(f"key must be bytes; got {type(key).__name__}. secrets.token_bytes(32) makes one.")
    if len(key) < MIN_KEY:
        raise InvalidInputError(
            f"key must have {MIN_KEY} bytes or more, or it can be brute-forced; got {len(key)}. "
            "secrets.token_bytes(32) makes one."
        )
    return bytes(key)


def _check_round(round: Any) -> str:
    if not isinstance(round, str) or not round.strip() or "\0" in round:
        raise InvalidInputError(f"round must be the name of a round, such as '2026-11-17'; got {short_repr(round)}.")
    return round
