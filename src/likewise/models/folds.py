"""Who is trained on and who is held out, in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv

from likewise._rules import FOLDS, in_a_line
from likewise._typing import IntArray
from likewise.errors import InvalidInputError


def positions_by(cv: Any, rows: Any, y: npt.NDArray[Any], *, classify: bool) -> list[tuple[IntArray, IntArray]]:
    """Positions of those who train and of those held out, for each fold of `cv`."""
    FOLDS.check("cv", cv)
    try:
        pairs = check_cv(cv, y, classifier=classify).split(rows, y)
        folds = [(np.arange(len(y))[train], np.arange(len(y))[test]) for train, test in pairs]
    except (TypeError, ValueError, IndexError) as error:
        raise InvalidInputError(f"cv must be {FOLDS.words} of these people ({error}).") from None
    if not all(len(train) and len(test) for train, test in folds):
        raise InvalidInputError(f"cv must leave people on both sides of each fold; got {in_a_line(cv)}.")
    return folds
