"""A ReLU network, and the preprocessing in front of it, over ranges of the columns of a domain.

The first layer is a sum over columns, ``z = b + sum_i u_i(x_i)``, so that the largest value of a linear function of z
over a box is the sum over columns of their largest values: one category at a time, and the ends of ranges of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax
from sklearn.neural_network import MLPClassifier, MLPRegressor

from likewise._typing import FloatArray
from likewise.exceptions import UnprovableError
from likewise.inspection.feature_sources import Preprocessing
from likewise.verification.base import InputSpace
from likewise.verification.domain import CategoricalDomain

_RANGES = 32  # into which a column of numbers is divided


@dataclass(frozen=True, eq=False)
class NumberRanges:
    """Ranges of the values of one column; a category is a range of one value.

    Attributes
    ----------
    low, high : ndarray of shape (n_ranges,)
        Encoded values at both ends.
    ordered : bool
    """

    low: FloatArray
    high: FloatArray
    ordered: bool

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A network over ranges of columns.

    Attributes
    ----------
    space : InputSpace
    ranges : list of NumberRanges
    first_low, first_high : list of ndarray of shape (n_ranges, n_units)
        What the lower and the upper end of each range of a column add to the first layer.
    weights, biases : list of ndarray
        Of the later layers; weights have shape (n_in, n_out). `bias` is that of the first.
    link : {"identity", "logistic", "softmax"}
    """

    space: InputSpace
    ranges: list[NumberRanges]
    first_low: list[FloatArray]
    first_high: list[FloatArray]
    bias: FloatArray
    weights: list[FloatArray]
    biases: list[FloatArray]
    link: str

    @classmethod
    def read(cls, space: InputSpace) -> NetworkModel:
        """Read scikit-learn's `MLPClassifier` or `MLPRegressor` with ReLU units, or raise `UnprovableError`."""
        columns = space.encoder.names if space.as_array else list(space.given(space.rows[:1]).columns)
        where = [space.column_of[space.encoder.names.index(name)] for name in columns]
        preprocessing = Preprocessing.of(space.model, len(where))
        net = preprocessing.last
        if type(net) not in (MLPClassifier, MLPRegressor) or net.activation != "relu":
            raise UnprovableError(
                f"{type(net).__name__} with activation={getattr(net, 'activation', None)!r} is not read"
            )
        links = {"logistic": "logistic", "softmax": "softmax", "identity": "identity"}
        if net.out_activation_ not in links or (net.n_outputs_ > 1 and net.out_activation_ != "softmax"):
            raise UnprovableError(f"{type(net).__name__} has {net.n_outputs_} outputs ({net.out_activation_})")
        weights = [np.asarray(part, dtype=np.float64) for part in net.coefs_]
        biases = [np.asarray(part, dtype=np.float64) for part in net.intercepts_]
        if len(weights) < 2:
            raise UnprovableError("the network has no hidden layer")

        def added(column: int, values: FloatArray) -> FloatArray:
            """What values of one column add to the first layer."""
            rows = np.repeat(space.rows[:1], len(values), axis=0)
            rows[:, column] = values
            features = np.asarray(preprocessing(space.given(rows)), dtype=np.float64)
            chosen = [j for j, s in enumerate(preprocessing.sources) if s is not None and where[s.column] == column]
            return features[:, chosen] @ weights[0][chosen]

        constant = [j for j, source in enumerate(preprocessing.sources) if source is None]
        base = biases[0]
        if constant:
            features = np.asarray(preprocessing(space.given(space.rows[:1])), dtype=np.float64)
            base = base + features[0, constant] @ weights[0][constant]
        ranges = [_ranges(space, i, preprocessing, where) for i in range(len(space.names))]
        lows = [added(i, part.low) for i, part in enumerate(ranges)]
        highs = [added(i, part.high) for i, part in enumerate(ranges)]
        _confirm(space, preprocessing, weights, biases)
        return cls(space, ranges, lows, highs, base, weights[1:], biases[1:], links[net.out_activation_])


def _confirm(
    space: InputSpace, preprocessing: Preprocessing, weights: list[FloatArray], biases: list[FloatArray]
) -> None:
    """Raise if the model's own outputs differ from those of the weights read from it."""
    rows = space.rows[:: max(1, len(space.rows) // 500)]
    z = np.asarray(preprocessing(space.given(rows)), dtype=np.float64)
    for layer, (W, b) in enumerate(zip(weights, biases, strict=True)):
        z = z @ W + b
        z = np.maximum(z, 0) if layer < len(weights) - 1 else z
    answers, probable = space.answers(rows)
    if z.shape[1] > 1:
        expected = softmax(z, axis=1) / 2
    elif probable:
        expected = expit(z)
    else:
        low, high = space.output_range or (0.0, 1.0)
        expected = (z - (low if space.output_range else 0.0)) / (high - low)
    if answers.shape != expected.shape or not np.allclose(answers, expected, rtol=1e-7, atol=1e-9):
        raise UnprovableError(
            f"the outputs of {type(space.model).__name__} are not the function of its weights that was expected"
        )


def _ranges(space: InputSpace, column: int, preprocessing: Preprocessing, where: list[int]) -> NumberRanges:
    held = space.held[column]
    if isinstance(held, CategoricalDomain):
        codes = space.codes(column)
        return NumberRanges(codes, codes, False)
    own = [s for s in preprocessing.sources if s is not None and where[s.column] == column]
    # The ends of a range bound what it adds.
    bounded = all(s.linear for s in own) or (len(own) == 1 and own[0].monotone)
    if held.step is not None and held.last - held.first < _RANGES:
        low = high = held.at(np.arange(held.first, held.last + 1))
    elif not bounded:
        raise UnprovableError(
            f"the numbers of {space.names[column]!r} are coded one by one or clipped, and there are too many"
        )
    elif held.step is not None:
        places = np.linspace(held.first, held.last + 1, _RANGES + 1).astype(np.int64)
        low, high = held.at(places[:-1]), held.at(places[1:] - 1)
    else:
        ends = np.linspace(held.low, held.high, _RANGES + 1)
        low, high = ends[:-1], ends[1:]
    if held.blank:
        low, high = np.append(low, np.nan), np.append(high, np.nan)
    return NumberRanges(low, high, True)
