"""The methods to a model that are compared: those that enforce a metric, those without a promise, and a constant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length, column_or_1d

from likewise._validation import WHOLE_SEED, check_count, check_output_range, checking, in_a_line, one_of
from likewise.base import ConstrainedEstimator
from likewise.dummy import ConstantClassifier, ConstantRegressor
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.inspection.baselines import Task, table_model
from likewise.metrics.base import Metric, check_metric
from likewise.metrics.encoders import People, without_sparse

_MOST_CLASSES = 20
_SMOOTHING = ("noise", "vote", "epsilon", "delta", "n_draws", "augment")


@dataclass(frozen=True, eq=False)
class LearningTask:
    """What is to be learned, checked.

    Attributes
    ----------
    people : People
    outcomes : ndarray of shape (n_samples,)
    metric : Metric
    task : {"classification", "regression"}
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
        weights = self.metric.known_weights(self.people.encoder)
        if weights is None:
            return []
        return [name for name, used in zip(self.table.columns, weights.matters, strict=True) if not used]

    def under(self, metric: Metric) -> LearningTask:
        """The same for another metric."""
        return replace(self, metric=metric)


def read_learning_task(
    X: Any,
    y: Any,
    metric: Any,
    task: str,
    output_range: Any,
    n_draws: Any,
    random_state: Any,
    inner: Any = None,
    smoothing: Any = None,
) -> LearningTask:
    """Check what is to be learned."""
    metric = check_metric(metric)
    people = metric.people(without_sparse(X))
    WHOLE_SEED.check("random_state", random_state)
    one_of("auto", "classification", "regression").check("task", task)
    with checking():
        outcomes: npt.NDArray[Any] = column_or_1d(np.asarray(y))
        check_consistent_length(people.rows, outcomes)
    if pd.isna(outcomes).any():
        raise InvalidInputError("y must be known for everyone; some of it is missing. Drop these people first.")
    found = _task_of(outcomes) if task == "auto" else task
    classes, limits = None, None
    if found == "classification":
        classes = np.unique(outcomes)
        if output_range is not None:
            raise InvalidInputError("output_range must be None for classes; their probabilities are between 0 and 1.")
        if len(classes) < 2:
            raise InvalidInputError(f"y must hold at least two classes; got only {classes[0]!r}.")
    else:
        outcomes = _as_numbers(outcomes)
        limits = (outcomes.min(), outcomes.max()) if output_range is None else output_range
        limits = check_output_range(limits)
    return LearningTask(
        people,
        outcomes,
        metric,
        "classification" if found == "classification" else "regression",
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
    if "vote" in smoothing and task == "regression":
        raise InvalidInputError("smoothing must not have a vote for numbers, of which the mean is taken. Leave it out.")
    return dict(smoothing)


def _task_of(outcomes: npt.NDArray[Any]) -> str:
    if outcomes.dtype.kind not in "iuf":
        return "classification"
    values = np.unique(outcomes)
    return "regression" if (values != np.rint(values)).any() or len(values) > _MOST_CLASSES else "classification"


def _as_numbers(outcomes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    try:
        numbers = outcomes.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"y must hold numbers for task='regression'; got {outcomes[0]!r}, say.") from None
    if not np.isfinite(numbers).all():
        raise InvalidInputError("y must be finite. Drop people whose outcome is infinite, or cap it.")
    return np.asarray(numbers)


CONSTANT, REFERENCE = "constant", "boosting"
_COPIES = 5  # noisy copies of each person
_STEPS = 1000  # of training a network: on tables, more gain next to nothing and make a comparison long
_SEVERAL = "projection is for two classes and numbers"


@dataclass(frozen=True, eq=False)
class Method:
    """A method to a model.

    Attributes
    ----------
    name : str
    title : str
    estimator : unfitted estimator, or None if the method does not apply
    why_not : str
        Why it cannot.
    is_slow : bool
        Whether it evaluates a model many times per person, so that it is measured on fewer people.
    may_fail : bool
        Whether a refusal in `fit` is a reason to leave it out, and not an error.
    """

    name: str
    title: str
    estimator: Any
    why_not: str = ""
    is_slow: bool = False
    may_fail: bool = False


def _pick(given: LearningTask, of_classes: Any, of_numbers: Any, *inner: Any, **options: Any) -> Any:
    """An estimator for the task, within the metric."""
    if given.task == "classification":
        return of_classes(*inner, metric=given.metric, **options)
    return of_numbers(*inner, metric=given.metric, output_range=given.output_range, **options)


def _constant(given: LearningTask) -> Method:
    what = "base rate" if given.task == "classification" else "mean"
    return Method(CONSTANT, f"constant ({what})", _pick(given, ConstantClassifier, ConstantRegressor))


def _additive(given: LearningTask) -> Method:
    from likewise.additive.estimators import AdditiveClassifier, AdditiveRegressor

    return Method("additive", "additive", _pick(given, AdditiveClassifier, AdditiveRegressor), may_fail=True)


def _network(given: LearningTask) -> Method:
    from likewise.lipschitz.estimators import LipschitzClassifier, LipschitzRegressor

    title = "1-Lipschitz network"
    if find_spec("torch") is None:
        return Method("network", title, None, "needs PyTorch: pip install 'likewise[torch]'")
    estimator = _pick(given, LipschitzClassifier, LipschitzRegressor, n_steps=_STEPS, random_state=given.seed)
    return Method("network", title, estimator, may_fail=True)


def _projection(given: LearningTask) -> Method:
    from likewise.projection.estimators import ProjectedClassifier, ProjectedRegressor

    title = f"projected {_inner_title(given)}"
    if given.classes is not None and len(given.classes) > 2:
        return Method("projection", title, None, _SEVERAL)
    estimator = _pick(given, ProjectedClassifier, ProjectedRegressor, _inner(given), random_state=given.seed)
    return Method("projection", title, estimator, may_fail=True)


def _smoothing(given: LearningTask, *, copies: int = 0) -> Method:
    from likewise.smoothing.estimators import SmoothedClassifier, SmoothedRegressor

    if not copies:
        name, title = "smoothing", f"smoothed {_inner_title(given)}"
    else:
        name, title, copies = "augmented", "smoothed, noisy copies", given.smoothing.get("augment", copies)
        if not copies:
            return Method(name, title, None, "no noisy copies were asked for")
    options: dict[str, Any] = {"vote": "soft"} if given.task == "classification" else {}
    options |= {"n_draws": given.n_draws, **given.smoothing, "augment": copies, "random_state": given.seed}
    estimator = _pick(given, SmoothedClassifier, SmoothedRegressor, _inner(given), **options)
    # What was asked of smoothing is done, or an error says why not.
    return Method(name, title, estimator, is_slow=True, may_fail=not given.smoothing)


def _linear(given: LearningTask) -> Method:
    kind = "logistic" if given.task == "classification" else "linear"
    hidden = given.hidden
    kept = [name for name in given.table.columns if name not in hidden]
    title = f"{kind} without {listed_columns(hidden)}" if hidden else kind
    if not kept:
        return Method("linear", kind, None, "no column is left that may matter")
    return Method("linear", title, table_model(given.table, kind, given.task, columns=kept))


def _reference(given: LearningTask) -> Method:
    hidden = given.hidden
    return Method(REFERENCE, f"boosting with {listed_columns(hidden)}" if hidden else "boosting", _boosted(given))


def _inner(given: LearningTask) -> Any:
    """What is projected and smoothed."""
    return _boosted(given) if given.inner is None else given.inner


def _inner_title(given: LearningTask) -> str:
    if given.inner is None:
        return "boosting"
    model = given.inner
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    return type(model.steps[-1][1] if hasattr(model, "steps") else model).__name__


def _boosted(given: LearningTask) -> Any:
    model = table_model(given.table, "boosting", given.task)
    return model.set_params(**{f"{model.steps[-1][0]}__random_state": given.seed})


# In the order of simplicity, the simplest first: who reads the model, and what one answer costs.
_METHODS: dict[str, Callable[[LearningTask], Method]] = {
    CONSTANT: _constant,
    "additive": _additive,
    "network": _network,
    "projection": _projection,
    "smoothing": _smoothing,
    "augmented": partial(_smoothing, copies=_COPIES),
    "linear": _linear,
    REFERENCE: _reference,
}
METHODS = tuple(_METHODS)


def methods_for(given: LearningTask, asked: Any = "auto") -> list[Method]:
    """The methods that are asked for, the constant first and the model without a promise last.

    Parameters
    ----------
    given : Assignment
    asked : "auto" or list
        Names of `METHODS`, and pairs of a name and an unfitted estimator of one's own.
    """
    if isinstance(asked, str):
        if asked != "auto":
            raise InvalidInputError(f"methods must be 'auto' or a list; got {in_a_line(asked)}. Use [{asked!r}].")
        asked = METHODS
    names, own = {CONSTANT, REFERENCE}, dict[str, Method]()
    for entry in _entries(asked):
        if isinstance(entry, str):
            names.add(_known(entry))
            continue
        name, estimator = entry
        if not isinstance(name, str) or name in _METHODS or name in own:
            raise InvalidInputError(f"methods must have names of their own, none twice; got {name!r}.")
        own[name] = own_method(given, name, estimator)
    known = [build_method(given, name) for name in METHODS if name in names]
    return [*known[:-1], *own.values(), known[-1]]


def build_method(given: LearningTask, name: str) -> Method:
    """The method of this name."""
    return _METHODS[_known(name)](given)


def own_method(given: LearningTask, name: str, estimator: Any) -> Method:
    """A method of the user's own; if it enforces a metric, then this one."""
    right = is_classifier if given.task == "classification" else is_regressor
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not right(estimator):
        what = "a classifier" if given.task == "classification" else "a regressor"
        raise InvalidTypeError(f"{name!r} must be {what}, not yet fitted; got {in_a_line(estimator)}.")
    if isinstance(estimator, ConstrainedEstimator):
        estimator = estimator.with_metric(given.metric)
        if given.output_range is not None:
            estimator = estimator.set_params(output_range=given.output_range)
    return Method(name, name, estimator, is_slow=hasattr(estimator, "n_draws"))


def _entries(asked: Any) -> Sequence[Any]:
    wrong = f"methods must be 'auto', or a list of names and of pairs (name, estimator); got {in_a_line(asked)}."
    if not isinstance(asked, (list, tuple)) or not asked:
        raise InvalidInputError(wrong)
    for entry in asked:
        if not isinstance(entry, str) and not (isinstance(entry, tuple) and len(entry) == 2):
            raise InvalidInputError(wrong)
    return asked


def _known(name: str) -> str:
    if name not in _METHODS:
        raise InvalidInputError(
            f"A method must be one of {', '.join(METHODS)}; got {name!r}. Give your own as (name, estimator)."
        )
    return name


def listed_columns(names: list[Any]) -> str:
    """Names of columns for a sentence."""
    words = [str(name) if isinstance(name, str) else f"column {name}" for name in names]
    shown = words if len(words) <= 3 else [*words[:2], f"{len(words) - 2} other columns"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
