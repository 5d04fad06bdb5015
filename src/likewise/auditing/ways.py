"""The ways to a model that are compared: those that enforce a metric, those without a promise, and a constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

from sklearn.base import is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator

from likewise._rules import in_a_line
from likewise.auditing.assignment import Assignment
from likewise.enforce.base import Enforced
from likewise.enforce.constant import ConstantClassifier, ConstantRegressor
from likewise.errors import InvalidInputError, InvalidTypeError
from likewise.models.pipelines import table_model

CONSTANT, REFERENCE = "constant", "boosting"
_COPIES = 5  # noisy copies of each person
_STEPS = 1000  # of training a network: on tables, more gain next to nothing and make a comparison long
_SEVERAL = "projection is for two classes and numbers"


@dataclass(frozen=True, eq=False)
class Way:
    """A way to a model.

    Attributes
    ----------
    name : str
    title : str
    estimator : unfitted estimator, or None if the way does not apply
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


def _pick(given: Assignment, of_classes: Any, of_numbers: Any, *inner: Any, **options: Any) -> Any:
    """An estimator for the task, within the metric."""
    if given.task == "classes":
        return of_classes(*inner, metric=given.metric, **options)
    return of_numbers(*inner, metric=given.metric, output_range=given.output_range, **options)


def _constant(given: Assignment) -> Way:
    what = "base rate" if given.task == "classes" else "mean"
    return Way(CONSTANT, f"constant ({what})", _pick(given, ConstantClassifier, ConstantRegressor))


def _additive(given: Assignment) -> Way:
    from likewise.enforce.additive.additive_models import AdditiveClassifier, AdditiveRegressor

    return Way("additive", "additive", _pick(given, AdditiveClassifier, AdditiveRegressor), may_fail=True)


def _network(given: Assignment) -> Way:
    from likewise.enforce.lipschitz.lipschitz_models import LipschitzClassifier, LipschitzRegressor

    title = "1-Lipschitz network"
    if find_spec("torch") is None:
        return Way("network", title, None, "needs PyTorch: pip install 'likewise[torch]'")
    estimator = _pick(given, LipschitzClassifier, LipschitzRegressor, n_steps=_STEPS, random_state=given.seed)
    return Way("network", title, estimator, may_fail=True)


def _projection(given: Assignment) -> Way:
    from likewise.enforce.projection.projected_models import ProjectedClassifier, ProjectedRegressor

    title = f"projected {_inner_title(given)}"
    if given.classes is not None and len(given.classes) > 2:
        return Way("projection", title, None, _SEVERAL)
    estimator = _pick(given, ProjectedClassifier, ProjectedRegressor, _inner(given), random_state=given.seed)
    return Way("projection", title, estimator, may_fail=True)


def _smoothing(given: Assignment, *, copies: int = 0) -> Way:
    from likewise.enforce.smoothing.estimators import SmoothedClassifier, SmoothedRegressor

    if not copies:
        name, title = "smoothing", f"smoothed {_inner_title(given)}"
    else:
        name, title, copies = "augmented", "smoothed, noisy copies", given.smoothing.get("augment", copies)
        if not copies:
            return Way(name, title, None, "no noisy copies were asked for")
    options: dict[str, Any] = {"vote": "soft"} if given.task == "classes" else {}
    options |= {"n_draws": given.n_draws, **given.smoothing, "augment": copies, "random_state": given.seed}
    estimator = _pick(given, SmoothedClassifier, SmoothedRegressor, _inner(given), **options)
    # What was asked of smoothing is done, or an error says why not.
    return Way(name, title, estimator, is_slow=True, may_fail=not given.smoothing)


def _linear(given: Assignment) -> Way:
    kind = "logistic" if given.task == "classes" else "linear"
    hidden = given.hidden
    kept = [name for name in given.table.columns if name not in hidden]
    title = f"{kind} without {listed_columns(hidden)}" if hidden else kind
    if not kept:
        return Way("linear", kind, None, "no column is left that may matter")
    return Way("linear", title, table_model(given.table, kind, given.task, columns=kept))


def _reference(given: Assignment) -> Way:
    hidden = given.hidden
    return Way(REFERENCE, f"boosting with {listed_columns(hidden)}" if hidden else "boosting", _boosted(given))


def _inner(given: Assignment) -> Any:
    """What is projected and smoothed."""
    return _boosted(given) if given.inner is None else given.inner


def _inner_title(given: Assignment) -> str:
    if given.inner is None:
        return "boosting"
    model = given.inner
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    return type(model.steps[-1][1] if hasattr(model, "steps") else model).__name__


def _boosted(given: Assignment) -> Any:
    model = table_model(given.table, "boosting", given.task)
    return model.set_params(**{f"{model.steps[-1][0]}__random_state": given.seed})


# In the order of simplicity, the simplest first: who reads the model, and what one answer costs.
_WAYS: dict[str, Callable[[Assignment], Way]] = {
    CONSTANT: _constant,
    "additive": _additive,
    "network": _network,
    "projection": _projection,
    "smoothing": _smoothing,
    "augmented": partial(_smoothing, copies=_COPIES),
    "linear": _linear,
    REFERENCE: _reference,
}
WAYS = tuple(_WAYS)


def ways_for(given: Assignment, asked: Any = "auto") -> list[Way]:
    """The ways that are asked for, the constant first and the model without a promise last.

    Parameters
    ----------
    given : Assignment
    asked : "auto" or list
        Names of `WAYS`, and pairs of a name and an unfitted estimator of one's own.
    """
    if isinstance(asked, str):
        if asked != "auto":
            raise InvalidInputError(f"ways must be 'auto' or a list; got {in_a_line(asked)}. Use [{asked!r}].")
        asked = WAYS
    names, own = {CONSTANT, REFERENCE}, dict[str, Way]()
    for entry in _entries(asked):
        if isinstance(entry, str):
            names.add(_known(entry))
            continue
        name, estimator = entry
        if not isinstance(name, str) or name in _WAYS or name in own:
            raise InvalidInputError(f"ways must have names of their own, none twice; got {name!r}.")
        own[name] = own_way(given, name, estimator)
    known = [build_way(given, name) for name in WAYS if name in names]
    return [*known[:-1], *own.values(), known[-1]]


def build_way(given: Assignment, name: str) -> Way:
    """The way of this name."""
    return _WAYS[_known(name)](given)


def own_way(given: Assignment, name: str, estimator: Any) -> Way:
    """A way of the user's own; if it enforces a metric, then this one."""
    right = is_classifier if given.task == "classes" else is_regressor
    if isinstance(estimator, type) or not hasattr(estimator, "fit") or not right(estimator):
        what = "a classifier" if given.task == "classes" else "a regressor"
        raise InvalidTypeError(f"{name!r} must be {what}, not yet fitted; got {in_a_line(estimator)}.")
    if isinstance(estimator, Enforced):
        estimator = estimator.with_metric(given.metric)
        if given.output_range is not None:
            estimator = estimator.set_params(output_range=given.output_range)
    return Way(name, name, estimator, is_slow=hasattr(estimator, "n_draws"))


def _entries(asked: Any) -> Sequence[Any]:
    wrong = f"ways must be 'auto', or a list of names and of pairs (name, estimator); got {in_a_line(asked)}."
    if not isinstance(asked, (list, tuple)) or not asked:
        raise InvalidInputError(wrong)
    for entry in asked:
        if not isinstance(entry, str) and not (isinstance(entry, tuple) and len(entry) == 2):
            raise InvalidInputError(wrong)
    return asked


def _known(name: str) -> str:
    if name not in _WAYS:
        raise InvalidInputError(
            f"A way must be one of {', '.join(WAYS)}; got {name!r}. Give your own as (name, estimator)."
        )
    return name


def listed_columns(names: list[Any]) -> str:
    """Names of columns for a sentence."""
    words = [str(name) if isinstance(name, str) else f"column {name}" for name in names]
    shown = words if len(words) <= 3 else [*words[:2], f"{len(words) - 2} other columns"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
