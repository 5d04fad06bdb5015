"""A 1-Lipschitz network as an ONNX graph, with a bound on its rounding errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._onnx import UNIT_ROUNDOFF, Graph, link_error, product_error, refuse_probit
from likewise._typing import FloatArray
from likewise.kernel.evidence import CATEGORY, NULLABLE, Layers
from likewise.kernel.links import LINKS


def onnx_model(scorer: Any, encoder: Any) -> Any:
    """What `to_onnx` of the estimators returns."""
    refuse_probit(scorer.link)
    graph, layers = Graph(), scorer.layers
    h = _first_layer(graph, layers, graph.read(encoder, layers.inputs.columns.tolist()))
    for W, bias in zip(layers.weights, layers.biases[1:], strict=True):
        h = graph.add("Add", graph.add("MatMul", _sorted_pairs(graph, h, len(W)), W), bias)
    for refused in graph.refused:
        h = graph.add("Add", h, refused)
    unit, limits = LINKS[scorer.link].unit, scorer.output_range
    error, size = score_error(layers)
    error = unit * error + 2 * UNIT_ROUNDOFF * unit * (size + error)
    scores = graph.add("Mul", np.float64(unit), h)
    if not limits:
        n_classes = max(2, len(layers.biases[-1]))
        outputs = {"probabilities": (graph.probabilities(scores, scorer.link), n_classes)}
        return graph.finish(outputs, scorer.guarantee, link_error(scorer.link, n_classes, error))
    low, high = limits
    share = graph.clip(graph.add("Add", np.float64(0.5), scores), 0, 1)
    moved = graph.add("Add", np.float64(low), graph.add("Mul", np.float64(high - low), share))
    # Each side rounds the product and the sum.
    largest = max(abs(low), abs(high)) + (high - low)
    error = (high - low) * link_error("clip", 2, error) + 4 * UNIT_ROUNDOFF * largest
    return graph.finish({"prediction": (graph.clip(moved, low, high), 1)}, scorer.guarantee, error)


def _sorted_pairs(graph: Graph, h: str, n: int) -> str:
    half = n // 2
    if not half:
        return h
    ends = [(0, half), (half, 2 * half), *([(n - 1, n)] if n % 2 else [])]
    left, right, *last = (graph.add("Slice", h, np.array([a]), np.array([b]), np.array([1])) for a, b in ends)
    return graph.add("Concat", graph.add("Max", left, right), graph.add("Min", left, right), *last, axis=1)


def _first_layer(graph: Graph, layers: Layers, columns: dict[int, str]) -> str:
    """The sum over columns, in the order of the kernel."""
    total: Any = layers.biases[0][None]
    inputs = layers.inputs
    for j, column in enumerate(inputs.columns.tolist()):
        rows = layers.first[inputs.rows_of(j)]
        if inputs.kinds[j] == CATEGORY:
            total = graph.add("Add", total, graph.levels(rows, columns[column]))
            continue
        x = graph.clip(columns[column], inputs.low[j], inputs.high[j])
        x = graph.add("Mul", graph.add("Sub", x, inputs.centre[j]), inputs.scale[j])
        term = graph.add("Mul", x, rows[:1])
        if inputs.kinds[j] == NULLABLE:
            low, high = rows[1:] - inputs.mismatch[j], rows[1:] + inputs.mismatch[j]
            cut = graph.add("Min", graph.add("Max", term, low), high)
            term = graph.add("Where", graph.add("IsNaN", x), rows[1:], cut)
        total = graph.add("Add", total, term)
    return str(total)


def score_error(layers: Layers) -> tuple[float, float]:
    """Bounds on the difference of two computed scores, and on a score, by forward error analysis (theory, §19).

    Unit by unit: after a layer ``h -> W h + b`` with n terms, ``error <- |W| error + 2 gamma_(n+1) (|W| size + |b|)``
    and ``size <- |W| size + |b|``. Sorting a pair takes the larger of both.
    """
    size = np.abs(layers.biases[0]) + _largest_inputs(layers)
    # Terms have at most five roundings before the sum: two of the units, a product, and two of the range of missing.
    error = product_error(len(layers.inputs.columns) + 6, size)
    for W, bias in zip(layers.weights, layers.biases[1:], strict=True):
        error, size = (_paired(each) for each in (error, size + error))
        size = size @ np.abs(W) + np.abs(bias)
        error = error @ np.abs(W) + product_error(len(W) + 2, size)
    slack = 1 + 2.0**-30  # rounding of this analysis
    return float(error.max()) * slack, float((size + error).max()) * slack


def _largest_inputs(layers: Layers) -> FloatArray:
    """Largest absolute sum of all terms of the first layer, unit by unit."""
    inputs, total = layers.inputs, np.zeros(layers.first.shape[1])
    for j, kind in enumerate(inputs.kinds):
        rows = np.abs(layers.first[inputs.rows_of(j)])
        if kind == CATEGORY:
            total += rows.max(axis=0)
            continue
        ends = np.abs(np.array([inputs.low[j], inputs.high[j]]) - inputs.centre[j]).max() * inputs.scale[j]
        size = ends * rows[0]
        total += np.maximum(size, rows[1] + inputs.mismatch[j]) if kind == NULLABLE else size
    return total


def _paired(values: FloatArray) -> FloatArray:
    half = len(values) // 2
    larger = np.maximum(values[:half], values[half : 2 * half])
    return np.concatenate([larger, larger, values[2 * half :]])
