"""What is to be learned, of whom, within which metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import check_consistent_length, column_or_1d

from likewise._checks import check_count, check_output_range, checking
from likewise._rules import WHOLE_SEED, in_a_line, one_of
from likewise.errors import InvalidInputError
from likewise.metrics.abstract import Metric, check_metric
from likewise.metrics.coding import without_sparse
from likewise.metrics.people import People
from likewise.models.pipelines import Task

_MOST_CLASSES = 20
_SMOOTHING = ("noise", "vote", "epsilon", "delta", "n_draws", "augment")


@dataclass(frozen=True, eq=False)
class Assignment:
    """What is to be learned, checked.

    Attributes
    ----------
    people : People
    outcomes : ndarray of shape (n_samples,)
    metric : Metric
    task : {"classes", "numbers"}
    classes : ndarray or None
    output_range : tuple of float, or None
        Of numbers: the unit of the promise.
    n_draws : int
        Evaluations per person of a smoothed model.
    seed : int
    inner : unfitted model, or None
        What is projected and smoothed; None for gradient boosting.
    smoothing : dict
        Parameters of smoothed models that were asked for.
    """

    people: People
    outcomes: npt.NDArray[Any]
    metric: Metric
    task: Task
    classes: npt.NDArray[Any] | None
    output_range: tuple[float, float] | None
    n_draws: int
    seed: int
    inner: Any = None
    smoothing: Mapping[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> pd.DataFrame:
        """The people as a table; columns of arrays are named by their positions."""
        return pd.DataFrame(self.people.table)

    @property
    def hidden(self) -> list[Any]:
        """Columns that must not matter; none is known of a metric without weights."""
        if not self.metric.has_weights:
            return []
        matters = self.metric.weights_of(self.people.coding).matters
        return [name for name, used in zip(self.table.columns, matters, strict=True) if not used]

    def under(self, metric: Metric) -> Assignment:
        """The same for another metric."""
        return replace(self, metric=metric)


def read_assignment(
    X: Any,
    y: Any,
    metric: Any,
    task: str,
    output_range: Any,
    n_draws: Any,
    random_state: Any,
    inner: Any = None,
    smoothing: Any = None,
) -> Assignment:
    """Check what is to be learned."""
    metric = check_metric(metric)
    people = metric.people(without_sparse(X))
    WHOLE_SEED.check("random_state", random_state)
    one_of("auto", "classes", "numbers").check("task", task)
    with checking():
        outcomes: npt.NDArray[Any] = column_or_1d(np.asarray(y))
        check_consistent_length(people.rows, outcomes)
    if pd.isna(outcomes).any():
        raise InvalidInputError("y must be known for everyone; some of it is missing. Drop these people first.")
    found = _task_of(outcomes) if task == "auto" else task
    classes, limits = None, None
    if found == "classes":
        classes = np.unique(outcomes)
        if output_range is not None:
            raise InvalidInputError("output_range must be None for classes; their probabilities are between 0 and 1.")
        if len(classes) < 2:
            raise InvalidInputError(f"y must hold at least two classes; got only {classes[0]!r}.")
    else:
        outcomes = _as_numbers(outcomes)
        limits = (outcomes.min(), outcomes.max()) if output_range is None else output_range
        limits = check_output_range(limits)
    return Assignment(
        people,
        outcomes,
        metric,
        "classes" if found == "classes" else "numbers",
        classes,
        limits,
        check_count("n_draws", n_draws),
        int(random_state),
        inner,
        _check_smoothing(smoothing, found),
    )


def _check_smoothing(smoothing: Any, task: str) -> dict[str, Any]:
    if smoothing is None:
        return {}
    unknown = [] if not isinstance(smoothing, Mapping) else [name for name in smoothing if name not in _SMOOTHING]
    if not isinstance(smoothing, Mapping) or unknown:
        got = repr(unknown[0]) if unknown else in_a_line(smoothing)
        raise InvalidInputError(
            f"smoothing must be a dictionary with parameters of smoothed models, {', '.join(_SMOOTHING)}; got {got}."
        )
    if "vote" in smoothing and task == "numbers":
        raise InvalidInputError("smoothing must not have a vote for numbers, of which the mean is taken. Leave it out.")
    return dict(smoothing)


def _task_of(outcomes: npt.NDArray[Any]) -> str:
    if outcomes.dtype.kind not in "iuf":
        return "classes"
    values = np.unique(outcomes)
    return "numbers" if (values != np.rint(values)).any() or len(values) > _MOST_CLASSES else "classes"


def _as_numbers(outcomes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    try:
        numbers = outcomes.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"y must hold numbers for task='numbers'; got {outcomes[0]!r}, say.") from None
    if not np.isfinite(numbers).all():
        raise InvalidInputError("y must be finite. Drop people whose outcome is infinite, or cap it.")
    return np.asarray(numbers)
