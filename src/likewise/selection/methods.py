"""The methods that `compare` fits: those that enforce a metric, the unconstrained model, and a constant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_consistent_length

from likewise._fit_validation import check_outcomes
from likewise._validation import INTEGER_SEED, check_count, check_output_range, checking, list_words, one_of, short_repr
from likewise.base import ConstrainedEstimator
from likewise.dummy import ConstantClassifier, ConstantRegressor
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.inspection.baselines import Task, table_model, unconstrained_model
from likewise.kernel.schema import People, without_sparse
from likewise.metrics.base import Metric, check_metric

_MOST_CLASSES = 20
_SMOOTHING = ("noise", "vote", "epsilon", "delta", "n_draws", "augment")


@dataclass(frozen=True, eq=False)
class LearningProblem:
    """Validated input of `compare` and `tradeoff`.

    Attributes
    ----------
    people : People
    y : ndarray of shape (n_samples,)
    metric : Metric
    task : {"classification", "regression"}
    classes : ndarray, or None for a regression
    output_range : tuple of float, or None for classes
        Unit of the guarantee of a regression.
    n_draws : int
        Evaluations per person of a smoothed model.
    seed : int
    estimator : unfitted model, or None
        What is projected and smoothed; None for gradient boosting.
    smoothing : dict
        Parameters of smoothed models.
    scale : float
        Factor on the distances of `metric`, and of metrics made in folds.
    """

    people: People
    y: npt.NDArray[Any]
    metric: Metric
    task: Task
    classes: npt.NDArray[Any] | None
    output_range: tuple[float, float] | None
    n_draws: int
    seed: int
    estimator: Any = None
    smoothing: Mapping[str, Any] = field(default_factory=dict)
    scale: float = 1.0

    @property
    def table(self) -> pd.DataFrame:
        """The people as a table; columns of an array are named by position."""
        return pd.DataFrame(self.people.table)

    @property
    def protected_columns(self) -> list[Any]:
        """Columns that people have set to 0: the reason is "protected", or there is none."""
        bound = self.metric.bind(self.people.encoder)
        if not bound.has_parts or bound.schema.mixes_features:
            return []
        hidden = [name for name, used in zip(self.table.columns, bound.matters, strict=True) if not used]
        return [name for name in hidden if self.metric.zero_reasons.get(name, "protected") == "protected"]

    @property
    def categorical_columns(self) -> list[Any]:
        """Columns that are categorical to the metric, whatever their dtype."""
        is_number = self.people.encoder.is_number
        return [name for name, number in zip(self.table.columns, is_number, strict=True) if not number]

    def scaled(self, factor: float) -> LearningProblem:
        """The same problem under a stricter or looser metric."""
        return replace(self, metric=self.metric.scaled(factor), scale=factor)

    def in_fold(self, metric: Metric | None) -> LearningProblem:
        """The same problem under the metric of a fold, if it has one."""
        return self if metric is None else replace(self, metric=metric.scaled(self.scale))


def check_problem(
    X: Any,
    y: Any,
    metric: Any,
    task: str,
    output_range: Any,
    n_draws: Any,
    random_state: Any,
    estimator: Any = None,
    smoothing: Any = None,
) -> LearningProblem:
    """Validate the parameters that `compare` and `tradeoff` share."""
    metric = check_metric(metric)
    people = metric.encode_rows(without_sparse(X))
    INTEGER_SEED.check("random_state", random_state)
    one_of("auto", "classification", "regression").check("task", task)
    outcomes = check_outcomes(y, numeric=False)
    with checking():
        check_consistent_length(people.rows, outcomes)
    found = _task_of(outcomes) if task == "auto" else task
    classes, limits = None, None
    if found == "classification":
        classes = np.unique(outcomes)
        if output_range is not None:
            raise InvalidInputError("output_range must be None for classes: probabilities are between 0 and 1.")
        if len(classes) < 2:
            raise InvalidInputError(f"y must hold at least two classes; got only {classes[0]!r}.")
    else:
        outcomes = check_outcomes(y, numeric=True)
        limits = (outcomes.min(), outcomes.max()) if output_range is None else output_range
        limits = check_output_range(limits)
    kind: Task = "classification" if classes is not None else "regression"
    n_draws, smoothing = check_count("n_draws", n_draws), _check_smoothing(smoothing, kind)
    return LearningProblem(
        people, outcomes, metric, kind, classes, limits, n_draws, int(random_state), estimator, smoothing
    )


def _check_smoothing(smoothing: Any, task: str) -> dict[str, Any]:
    if smoothing is None:
        return {}
    wrong = [name for name in smoothing if name not in _SMOOTHING] if isinstance(smoothing, Mapping) else [smoothing]
    if wrong:
        got = short_repr(wrong[0])
        raise InvalidInputError(
            f"smoothing must be a dictionary with parameters of smoothed models, {', '.join(_SMOOTHING)}; got {got}."
        )
    if "vote" in smoothing and task == "regression":
        raise InvalidInputError("smoothing must not have a vote for a regression, which takes the mean. Leave it out.")
    return dict(smoothing)


def _task_of(outcomes: npt.NDArray[Any]) -> str:
    if outcomes.dtype.kind not in "iuf":
        return "classification"
    values = np.unique(outcomes)
    return "regression" if (values != np.rint(values)).any() or len(values) > _MOST_CLASSES else "classification"


CONSTANT, UNCONSTRAINED = "constant", "unconstrained"
_AUGMENT = 5  # noisy copies of each person
_N_STEPS = 1000  # of training a network: on tables, more steps gain almost nothing


@dataclass(frozen=True, eq=False)
class Method:
    """A method that `compare` fits.

    Attributes
    ----------
    name : str
    title : str
    estimator : unfitted estimator, or None if the method does not apply
    why_not : str
        Why it does not apply.
    is_slow : bool
        Whether it evaluates a model many times per person, so that it is measured on fewer people.
    may_fail : bool
        Whether an error in `fit` skips the method instead of being raised.
    note : str
        Beside its results.
    """

    name: str
    title: str
    estimator: Any
    why_not: str = ""
    is_slow: bool = False
    may_fail: bool = False
    note: str = ""


def _constrained(problem: LearningProblem, classifier: Any, regressor: Any, *inner: Any, **options: Any) -> Any:
    """The classifier or regressor, within the metric."""
    if problem.task == "classification":
        return classifier(*inner, metric=problem.metric, **options)
    return regressor(*inner, metric=problem.metric, output_range=problem.output_range, **options)


def _constant(problem: LearningProblem) -> Method:
    value = "base rate" if problem.task == "classification" else "mean"
    return Method(CONSTANT, f"constant ({value})", _constrained(problem, ConstantClassifier, ConstantRegressor))


def _additive(problem: LearningProblem) -> Method:
    from likewise.additive.estimators import AdditiveClassifier, AdditiveRegressor

    return Method("additive", "additive", _constrained(problem, AdditiveClassifier, AdditiveRegressor), may_fail=True)


def _network(problem: LearningProblem) -> Method:
    from likewise.lipschitz.estimators import LipschitzClassifier, LipschitzRegressor

    title = "1-Lipschitz network"
    if find_spec("torch") is None:
        return Method("network", title, None, "needs PyTorch: pip install 'likewise[torch]'")
    options = {"n_steps": _N_STEPS, "random_state": problem.seed}
    estimator = _constrained(problem, LipschitzClassifier, LipschitzRegressor, **options)
    return Method("network", title, estimator, may_fail=True)


def _projection(problem: LearningProblem) -> Method:
    from likewise.projection.estimators import ProjectedClassifier, ProjectedRegressor

    title = f"projected {_inner_title(problem)}"
    if problem.classes is not None and len(problem.classes) > 2:
        return Method("projection", title, None, "projection is for two classes, or a regression")
    estimators = ProjectedClassifier, ProjectedRegressor
    estimator = _constrained(problem, *estimators, _inner(problem), random_state=problem.seed)
    return Method("projection", title, estimator, may_fail=True)


def _smoothing(problem: LearningProblem, *, augment: int = 0) -> Method:
    from likewise.smoothing.estimators import SmoothedClassifier, SmoothedRegressor

    name, title = "smoothing", f"smoothed {_inner_title(problem)}"
    if augment:
        name, title, augment = "augmented", "smoothed, noisy copies", problem.smoothing.get("augment", augment)
        if not augment:
            return Method(name, title, None, "augment is 0")
    options: dict[str, Any] = {"vote": "soft"} if problem.task == "classification" else {}
    options |= {"n_draws": problem.n_draws, **problem.smoothing, "augment": augment, "random_state": problem.seed}
    estimator = _constrained(problem, SmoothedClassifier, SmoothedRegressor, _inner(problem), **options)
    # Parameters that the user has chosen must be obeyed, or raise.
    return Method(name, title, estimator, is_slow=True, may_fail=not problem.smoothing)


def _unconstrained(problem: LearningProblem) -> Method:
    protected = problem.protected_columns
    kinds = {"protected": protected, "categorical": problem.categorical_columns}
    model = unconstrained_model(problem.table, problem.task, **kinds, seed=problem.seed)
    words = list_words([name if isinstance(name, str) else f"column {name}" for name in protected])
    note = f"reads all columns but the protected: {words}" if protected else ""
    return Method(UNCONSTRAINED, "unconstrained model", model, note=note)


def _inner(problem: LearningProblem) -> Any:
    """What is projected and smoothed: boosting, if nothing is given."""
    if problem.estimator is not None:
        return problem.estimator
    model = table_model(problem.table, "boosting", problem.task, categorical=problem.categorical_columns)
    return model.set_params(**{f"{model.steps[-1][0]}__random_state": problem.seed})


def _inner_title(problem: LearningProblem) -> str:
    if problem.estimator is None:
        return "boosting"
    model = problem.estimator
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    return type(model.steps[-1][1] if hasattr(model, "steps") else model).__name__


# The simplest first: how readable a model is, and what one prediction costs.
_METHODS: dict[str, Callable[[LearningProblem], Method]] = {
    CONSTANT: _constant,
    "additive": _additive,
    "network": _network,
    "projection": _projection,
    "smoothing": _smoothing,
    "augmented": partial(_smoothing, augment=_AUGMENT),
    UNCONSTRAINED: _unconstrained,
}
METHODS = tuple(_METHODS)


def build_methods(problem: LearningProblem, methods: Any = "auto") -> list[Method]:
    """Methods from names and pairs ``(name, estimator)``: the constant first, the unconstrained model last."""
    if isinstance(methods, str):
        if methods != "auto":
            raise InvalidInputError(f"methods must be 'auto' or a list; got {short_repr(methods)}. Use [{methods!r}].")
        methods = METHODS
    names, own = {CONSTANT, UNCONSTRAINED}, dict[str, Method]()
    for entry in methods if isinstance(methods, (list, tuple)) and methods else [None]:
        if isinstance(entry, str):
            names.add(_check_name(entry))
            continue
        if not isinstance(entry, tuple) or len(entry) != 2:
            raise InvalidInputError(
                f"methods must be 'auto', or a list of names and pairs (name, estimator); got {short_repr(methods)}."
            )
        name, estimator = entry
        if not isinstance(name, str) or name in _METHODS or name in own:
            raise InvalidInputError(f"methods must have distinct names, none of them built in; got {name!r}.")
        own[name] = custom_method(problem, name, estimator)
    known = [build_method(problem, name) for name in METHODS if name in names]
    return [*known[:-1], *own.values(), known[-1]]


def build_method(problem: LearningProblem, name: str) -> Method:
    """The method of this name."""
    return _METHODS[_check_name(name)](problem)


def custom_method(problem: LearningProblem, name: str, estimator: Any) -> Method:
    """A user's estimator; if it enforces a metric, it gets the problem's."""
    is_right = is_classifier if problem.task == "classification" else is_regressor
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not is_right(estimator):
        kind = "classifier" if problem.task == "classification" else "regressor"
        raise InvalidTypeError(f"{name!r} must be an unfitted {kind}; got {short_repr(estimator)}.")
    if isinstance(estimator, ConstrainedEstimator):
        estimator = clone(estimator).with_metric(problem.metric)  # a fitted one may have seen who is held out
        if problem.output_range is not None:
            estimator = estimator.set_params(output_range=problem.output_range)
    return Method(name, name, estimator, is_slow=hasattr(estimator, "n_draws"))


def _check_name(name: str) -> str:
    if name not in _METHODS:
        raise InvalidInputError(
            f"method must be one of {', '.join(METHODS)}; got {name!r}. Pass your own as (name, estimator)."
        )
    return name
