"""Checks and helpers around `fit`: people, outcomes, sample weights, seeds, and whether an estimator is fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from likewise._typing import FloatArray, IntArray
from likewise._validation import check_random, check_size, checking
from likewise.exceptions import InvalidInputError, LikewiseError
from likewise.kernel.schema import ArrayEncoder, Encoder, People, as_frame, labels_of


@dataclass(frozen=True, eq=False)
class TrainingData:
    """People that a model learns from, with their outcomes and their weights in the loss.

    Attributes
    ----------
    people : People
    y : ndarray of shape (n_samples,)
    weights : ndarray of shape (n_samples,), or None
        None counts everybody once.
    """

    people: People
    y: npt.NDArray[Any]
    weights: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.people)

    @property
    def counts(self) -> FloatArray:
        """The weights; ones if there are none."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def take(self, rows: IntArray) -> TrainingData:
        """Some of the people."""
        return TrainingData(self.people.take(rows), self.y[rows], None if self.weights is None else self.weights[rows])


class UnfittedError(LikewiseError, NotFittedError):
    """Raised by methods that need a fitted estimator."""


def check_fitted(estimator: Any) -> None:
    """Raise `UnfittedError` if the estimator is not fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise UnfittedError(str(error)) from None


@contextmanager
def restore_on_error(estimator: Any) -> Iterator[None]:
    """Restore the estimator's attributes if an exception is raised."""
    before = estimator.__dict__.copy()
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def model_columns(model: Any, X: Any) -> list[Any]:
    """The columns of a table that a model was fitted on, in its order; those of weight 0 may be absent."""
    return [name for name in model.feature_names_in_ if name in X.columns]


def seed_from(random_state: Any) -> int:
    """A seed of 128 bits, too many to be guessed by trying."""
    words = check_random(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


def check_outcomes(y: Any, *, numeric: bool) -> npt.NDArray[Any]:
    """Return `y` as a one-dimensional array without missing values."""
    if y is None or pd.isna(np.asarray(y, dtype=object)).any():
        raise InvalidInputError(
            "y must hold one outcome per person, none of them missing; got None or NaN. Drop these rows."
        )
    try:
        dtype = np.float64 if numeric else None
        return column_or_1d(check_array(y, ensure_2d=False, dtype=dtype, input_name="y"))  # type: ignore[no-any-return]
    except (ValueError, TypeError) as error:
        what, words = "number" if numeric else "label", " ".join(str(error).split())
        raise InvalidInputError(f"y must hold one {what} per person ({words}).") from None


def check_labels(y: npt.NDArray[Any]) -> None:
    """Raise if `y` cannot be class labels: fractions, or values of types that cannot be sorted."""
    try:
        np.unique(y)
    except (TypeError, ArithmeticError):  # a Decimal NaN cannot be sorted
        kinds = ", ".join(sorted({type(label).__name__ for label in y.tolist()}))
        raise InvalidInputError(
            f"y must hold labels of one type, such as text or whole numbers; got {kinds}. Convert them first, for "
            "example with astype(str)."
        ) from None
    if y.dtype.kind == "f" and not (np.abs(y) <= 2.0**53).all():  # NaN fails every comparison
        wrong = y[~(np.abs(y) <= 2.0**53)][0]
        raise InvalidInputError(
            f"y must hold labels, such as text or whole numbers; got {wrong:g}. Convert them first."
        )
    with checking():
        check_classification_targets(y)


def check_classes(
    y: npt.NDArray[Any], known_classes: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """Return `known_classes(y)` if there are two or more, and they include all labels."""
    check_labels(y)
    found, classes = np.unique(y), known_classes(y)
    if len(classes) < 2:
        raise InvalidInputError(f"y must hold at least two classes; got only one class, {classes[0]!r}.")
    if not np.isin(found, classes).all():
        raise InvalidInputError(
            f"y must hold classes of the fitted estimator, {classes.tolist()}; got {found.tolist()}."
        )
    return classes


def range_of_outcomes(y: npt.NDArray[Any], output_range: tuple[float, float] | None) -> tuple[float, float]:
    """The given range of outputs, or that of `y`."""
    low, high = (y.min(), y.max()) if output_range is None else output_range
    if low == high:
        raise InvalidInputError(f"y is constant ({low:g}), so output_range cannot be taken from it. Give output_range.")
    return float(low), float(high)


def check_sample_weight(given: Any, n_samples: int) -> FloatArray | None:
    """Return sample weights as an array, or None."""
    if given is None:
        return None
    weights: FloatArray = column_or_1d(
        check_array(given, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    )
    if len(weights) != n_samples:
        raise InvalidInputError(f"sample_weight must have one weight per row of X ({n_samples}); got {len(weights)}.")
    if (weights < 0).any() or not weights.any():
        raise InvalidInputError(
            f"sample_weight must be non-negative and not zero for all; got a minimum of "
            f"{weights.min():g}. Use 0 for rows to ignore."
        )
    return weights


def read_training_array(X: Any, y: Any, estimator: Any, *, numeric: bool) -> tuple[People, npt.NDArray[Any]]:
    """Validated training data as rows of numbers, with `validate_data`; sets the estimator's `n_features_in_`."""
    labels = labels_of(X)
    X, y = validate_data(estimator, X, y, dtype=np.float64, y_numeric=numeric, ensure_min_samples=2)
    encoder = ArrayEncoder(X.shape[1], labels)
    check_size(X, encoder.names)
    return People(X, encoder, X), y


def read_training_table(
    X: Any, y: Any, estimator: Any, learn: Callable[[pd.DataFrame], Encoder], *, numeric: bool
) -> tuple[People, npt.NDArray[Any]]:
    """Validated training data as a table, with an encoder that `learn` makes of it; sets `feature_names_in_`."""
    frame = as_frame(X)
    if len(frame) < 2:
        raise InvalidInputError(f"X must hold at least two people; got {len(frame)} rows.")
    y = check_outcomes(y, numeric=numeric)
    check_consistent_length(frame, y)
    estimator.n_features_in_, estimator.feature_names_in_ = frame.shape[1], np.array(frame.columns, dtype=object)
    return replace(People.read(frame, learn(frame)), given=frame), y


def read_for_predict(X: Any, estimator: Any, encoder: Encoder) -> People:
    """Validated people at prediction; scikit-learn's errors name the estimator."""
    return encoder.read_for_predict(
        X, lambda given: validate_data(estimator, given, dtype=np.float64, order="C", reset=False)
    )
