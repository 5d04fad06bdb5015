"""A ReLU network, and the preprocessing in front of it, over ranges of the columns of a domain.

The first layer is a sum over columns, ``z = b + sum_i u_i(x_i)``, so that the largest value of a linear function of z
over a box is the sum over columns of their largest values: one category at a time, and the ends of ranges of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor

from likewise._typing import FloatArray
from likewise.exceptions import UnprovableError
from likewise.inspection.feature_sources import Preprocessing
from likewise.inspection.mlp import Network
from likewise.verification.base import InputSpace
from likewise.verification.domain import CategoricalDomain
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
        preprocessing = space.preprocessing()
        net = preprocessing.last
        if type(net) not in (MLPClassifier, MLPRegressor) or net.activation != "relu":
            raise UnprovableError(
                f"{type(net).__name__} with activation={getattr(net, 'activation', None)!r} is not read"
            )
        link = net.out_activation_
        if link not in ("logistic", "softmax", "identity") or (net.n_outputs_ > 1 and link != "softmax"):
            raise UnprovableError(f"{type(net).__name__} has {net.n_outputs_} outputs ({link})")
        weights = [np.asarray(part, dtype=np.float64) for part in net.coefs_]
        biases = [np.asarray(part, dtype=np.float64) for part in net.intercepts_]
        if len(weights) < 2:
            raise UnprovableError("the network has no hidden layer")

        def added(column: int, values: FloatArray) -> FloatArray:
            """What values of one column add to the first layer."""
            chosen = [j for j, source in enumerate(preprocessing.sources) if source and source.column == column]
            return preprocessing.numbers(space.given(space.varied(column, values)))[:, chosen] @ weights[0][chosen]

        constant = [j for j, source in enumerate(preprocessing.sources) if source is None]
        base = biases[0] + preprocessing.numbers(space.given(space.rows[:1]))[0, constant] @ weights[0][constant]
        ranges = [_ranges(space, i, preprocessing) for i in range(len(space.names))]
        lows, highs = ([added(i, part.ends[side]) for i, part in enumerate(ranges)] for side in (0, 1))

        kind, n_outputs = ("value", 1) if link == "identity" else ("soft", max(2, net.n_outputs_))
        network = Network(weights, biases, "relu", kind, n_outputs, (-np.inf, np.inf))
        expected = "the function of its weights that was expected"
        space.confirm(lambda rows: network.vote(preprocessing.numbers(space.given(rows))), expected)
        return cls(space, ranges, lows, highs, base, weights[1:], biases[1:], link)


def _ranges(space: InputSpace, column: int, preprocessing: Preprocessing) -> Cells:
    held = space.held[column]
    if isinstance(held, CategoricalDomain):
        codes = space.codes(column)
        return _cells(codes, np.full(len(codes), np.nan), np.full(len(codes), np.nan), ordered=False)
    own = [source for source in preprocessing.sources if source and source.column == column]
    # The ends of a range bound what it adds.
    bounded = all(source.linear for source in own) or (len(own) == 1 and own[0].monotone)
    if held.n_values <= _RANGES:
        low = high = held.every()
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
    low, high = (space.or_blank(column, each) for each in (low, high))
    return _cells(low, low, high, ordered=True)


def _cells(values: FloatArray, low: FloatArray, high: FloatArray, *, ordered: bool) -> Cells:
    return Cells(values, low, high, np.zeros((0, len(values)), dtype=bool), ordered)
