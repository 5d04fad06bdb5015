"""Fully connected networks, as weights and biases."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor

from likewise._typing import FloatArray
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.inspection.preprocessing import affine_map, last_step

ACTIVATIONS = {"relu": 0, "tanh": 1, "logistic": 2, "identity": 3}
_TORCH_ACTIVATIONS = {"ReLU": "relu", "Tanh": "tanh", "Sigmoid": "logistic"}


@dataclass(frozen=True, eq=False)
class Network:
    """A fitted network, with preceding scalers folded into its first layer.

    Attributes
    ----------
    weights, biases : list of ndarray
        Of each layer; weights have shape (n_in, n_out).
    activation : str
        Of the hidden layers.
    kind : {"hard", "soft", "value"}
        Outputs: the predicted class, class probabilities, or a clipped prediction.
    n_outputs : int
    limits : tuple of float
        Range to which predictions are clipped.
    """

    weights: list[FloatArray]
    biases: list[FloatArray]
    activation: str
    kind: str
    n_outputs: int
    limits: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def from_model(
        cls, model: Any, *, kind: str, n_outputs: int, limits: tuple[float, float] = (0.0, 1.0)
    ) -> Network | None:
        """Read a scikit-learn MLP or a torch `Sequential` of linear layers; None for other models."""
        net = last_step(model)
        layers = _torch_layers(net) if is_torch(net) else _mlp_layers(net, kind)
        if layers is None:
            return None
        weights, biases, activation = layers
        factor, shift = affine_map(model, len(weights[0]))
        first = weights[0] * factor[:, None]
        units = weights[-1].shape[1]
        if units != n_outputs and not (units == 1 and n_outputs == 2):
            raise InvalidInputError(
                f"The network must have one output per class ({n_outputs}), or one for two classes; it has {units}."
            )
        biases = [biases[0] + shift @ weights[0], *biases[1:]]
        return cls([first, *weights[1:]], biases, activation, kind, n_outputs, limits)

    def vote(self, rows: FloatArray) -> FloatArray:
        """Outputs in NumPy, shape (n_rows, n_outputs)."""
        z = np.asarray(rows, dtype=np.float64)
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            z = _activate(z @ W + b, self.activation)
        z = z @ self.weights[-1] + self.biases[-1]
        if self.kind == "value":
            return np.asarray(np.clip(z, *self.limits))
        if z.shape[1] == 1:
            z = np.concatenate([np.zeros_like(z), z], axis=1)
        if self.kind == "hard":
            return np.asarray(np.eye(self.n_outputs)[z.argmax(axis=1)])
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return np.asarray(e / e.sum(axis=1, keepdims=True))


def is_torch(model: Any) -> bool:
    """Whether the model is a torch module, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _mlp_layers(net: Any, kind: str) -> tuple[list[FloatArray], list[FloatArray], str] | None:
    if type(net) not in (MLPClassifier, MLPRegressor) or net.activation not in ACTIVATIONS:
        return None
    expected = {"identity"} if kind == "value" else {"softmax"} if net.n_outputs_ > 1 else {"logistic"}
    if net.out_activation_ not in expected or (kind == "value" and net.n_outputs_ > 1):
        return None
    as_double = [[np.asarray(part, dtype=np.float64) for part in parts] for parts in (net.coefs_, net.intercepts_)]
    return as_double[0], as_double[1], str(net.activation)


def _torch_layers(net: Any) -> tuple[list[FloatArray], list[FloatArray], str] | None:
    layers = list(net) if type(net).__name__ == "Sequential" else []
    names = [type(layer).__name__ for layer in layers]
    between = set(names[1::2])
    if (
        len(layers) % 2 == 0
        or set(names[0::2]) != {"Linear"}
        or len(between) > 1
        or not between <= set(_TORCH_ACTIVATIONS)
    ):
        raise InvalidTypeError(
            f"A torch estimator must be a Sequential of Linear layers with one kind of activation "
            f"({', '.join(_TORCH_ACTIVATIONS)}) between them; got {names or type(net).__name__}. "
            "Wrap other modules in a function from NumPy rows to labels."
        )
    weights = [layer.weight.detach().cpu().double().numpy().T.copy() for layer in layers[0::2]]
    biases = [
        np.zeros(W.shape[1]) if layer.bias is None else layer.bias.detach().cpu().double().numpy().copy()
        for layer, W in zip(layers[0::2], weights, strict=True)
    ]
    return weights, biases, _TORCH_ACTIVATIONS[between.pop()] if between else "identity"


def _activate(z: FloatArray, activation: str) -> FloatArray:
    if activation == "relu":
        return np.maximum(z, 0)
    if activation == "tanh":
        return np.tanh(z)
    if activation == "logistic":
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.exp(-z)))
    return z
