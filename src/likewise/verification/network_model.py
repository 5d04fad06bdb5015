"""A ReLU network, and the preprocessing in front of it, over ranges of the columns of a domain.

The first layer is a sum over columns, ``z = b + sum_i u_i(x_i)``, so that the largest value of a linear function of z
over a box is the sum over columns of their largest values: one category at a time, and the ends of ranges of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.neural_network import MLPClassifier, MLPRegressor

from likewise._typing import FloatArray
from likewise.exceptions import UnprovableError
from likewise.inspection.feature_sources import Preprocessing
from likewise.verification.base import InputSpace
from likewise.verification.domain import CategoricalDomain
from likewise.verification.outputs import softmax_of_rows
from likewise.verification.tree_problem import Cells

_RANGES = 32  # into which a column of numbers is divided


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """A network over ranges of columns.

    Attributes
    ----------
    space : InputSpace
    ranges : list of Cells
        Ranges of the values of each column; a category is a range of one value.
    first_low, first_high : list of ndarray of shape (n_ranges, n_units)
        What the lower and the upper end of each range of a column add to the first layer.
    weights, biases : list of ndarray
        Of the later layers; weights have shape (n_in, n_out). `bias` is that of the first.
    link : {"identity", "logistic", "softmax"}
    """

    space: InputSpace
    ranges: list[Cells]
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
        lows, highs = ([added(i, part.ends[side]) for i, part in enumerate(ranges)] for side in (0, 1))

        def outputs(rows: FloatArray) -> FloatArray:
            z = np.asarray(preprocessing(space.given(rows)), dtype=np.float64)
            for W, b in zip(weights[:-1], biases[:-1], strict=True):
                z = np.maximum(z @ W + b, 0)
            z = z @ weights[-1] + biases[-1]
            if net.out_activation_ == "softmax":
                return softmax_of_rows(z)
            return np.asarray(expit(z) if net.out_activation_ == "logistic" else z)

        space.confirm(outputs, "the function of its weights that was expected")
        return cls(space, ranges, lows, highs, base, weights[1:], biases[1:], links[net.out_activation_])


def _ranges(space: InputSpace, column: int, preprocessing: Preprocessing, where: list[int]) -> Cells:
    held = space.held[column]
    if isinstance(held, CategoricalDomain):
        codes = space.codes(column)
        return _cells(codes, np.full(len(codes), np.nan), np.full(len(codes), np.nan), ordered=False)
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
    return _cells(low, low, high, ordered=True)


def _cells(values: FloatArray, low: FloatArray, high: FloatArray, *, ordered: bool) -> Cells:
    return Cells(values, low, high, np.zeros((0, len(values)), dtype=bool), ordered)
