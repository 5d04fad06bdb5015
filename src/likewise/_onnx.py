"""ONNX graphs in double precision, and a proven bound on their rounding.

Both sides compute in IEEE double precision: ``+ - * /``, comparisons and rounding to whole numbers give the same bits.
What differs is ``exp``, of which a relative error of at most `EXP` is assumed on either side, and the order of the sums
of a matrix product. `docs/theory.md` §19 has the proofs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from likewise._optional import need
from likewise._typing import FloatArray
from likewise._validation import LARGEST, short_repr
from likewise._writing import atomic_write
from likewise.exceptions import InvalidInputError
from likewise.kernel.columns import LevelIndex, NumericColumn
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.schema import ArrayEncoder, Encoder

OPSET, ML_OPSET, IR = 18, 3, 8  # of 2022: read by onnxruntime 1.14 and later
UNIT_ROUNDOFF = 2.0**-53
EXP = 8 * UNIT_ROUNDOFF  # relative error of exp, on either side: 4 units in the last place
_HIGHER_ORDER = 1 + 2.0**-20  # products of errors
_UNDERFLOW = 2.0**-1000  # of exp, where its results are subnormal or flushed to 0
ERROR_BOUND = "likewise_error_bound"
_MOST_EXACT = 2**53  # of whole numbers in double precision


class Graph:
    """Nodes in the order of computation; arrays become constants."""

    def __init__(self) -> None:
        self.onnx = need("onnx", "ONNX export")
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.constants: list[Any] = []
        self.n_codes: dict[str, int] = {}
        """How many codes a column of categories has, that of unseen ones included."""
        self.refused: list[str] = []
        """Columns of 0, or NaN where a row has a value that `predict_proba` would refuse."""

    def add(self, op: str, *inputs: Any, **attributes: Any) -> str:
        """Append a node, and return the name of its output."""
        name = f"likewise/{len(self.nodes)}"
        named = [each if isinstance(each, str) else self._constant(each) for each in inputs]
        self.nodes.append(self.onnx.helper.make_node(op, named, [name], **attributes))
        return name

    def _constant(self, value: Any) -> str:
        name = f"likewise/constant {len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def read(self, encoder: Encoder, used: list[int]) -> dict[int, str]:
        """The columns in use: numbers of shape (n, 1), NaN where missing, and codes of categories of shape (n,).

        An array is one input ``X``. A table has one input of shape (n, 1) per column: doubles for numbers, and for
        categories that are numbers or booleans (1 and 0), NaN where missing; text for other categories, in which empty
        text is missing.
        """
        if not used:
            raise InvalidInputError("to_onnx needs a model that uses at least one column; this one is constant.")
        types, value_info = self.onnx.TensorProto, self.onnx.helper.make_tensor_value_info
        if isinstance(encoder, ArrayEncoder):
            self.inputs = [value_info("X", types.DOUBLE, ["n", encoder.n_columns])]
            return {i: self._number(self.add("Gather", "X", np.array([i]), axis=1)) for i in used}
        names = {i: str(encoder.names[i]) for i in used}
        if len({*names.values()}) < len(names) or {"probabilities", "prediction", "points"} & {*names.values()}:
            raise InvalidInputError(
                "to_onnx needs distinct columns that are not called probabilities, prediction or points; got "
                f"{list(names.values())}."
            )
        found = {}
        for i, name in names.items():
            column = encoder.columns[i]
            ordered = isinstance(column, NumericColumn)
            levels = column.categories if isinstance(column, NumericColumn) else column.levels
            is_text = levels is not None and not are_amounts("to_onnx", name, levels)
            self.inputs.append(value_info(name, types.STRING if is_text else types.DOUBLE, ["n", 1]))
            if levels is None:
                found[i] = self._number(name)
            else:
                code = (self._of_text if is_text else self._of_amounts)(name, levels)
                found[i] = self._ranks(code, len(levels)) if ordered else self._codes(code, len(levels), column)
        return found

    def _number(self, x: str) -> str:
        """Numbers as they are; those that `predict_proba` refuses make the output NaN."""
        too_large = self.add("Greater", self.add("Abs", x), np.float64(LARGEST))
        self.refused.append(self.add("Where", too_large, np.float64(np.nan), np.float64(0)))
        return x

    def _of_text(self, name: str, levels: Any) -> str:
        """Positions of categories that are text; then that of missing values, and of others."""
        known = LevelIndex(levels).texts()
        if "" in known:
            raise InvalidInputError(
                f"to_onnx needs categories that are not empty text, which stands for missing values; {name!r} has it."
            )
        options = {"keys_strings": ["", *known], "values_int64s": [len(levels), *known.values()]}
        return self.add("LabelEncoder", name, domain="ai.onnx.ml", **options, default_int64=len(levels) + 1)

    def _of_amounts(self, name: str, levels: Any) -> str:
        """Positions of categories that are numbers; then that of missing values, and of others."""
        n, unseen = len(levels), len(levels) + 1
        same = self.add("Equal", name, np.array([levels], dtype=np.float64))
        place = self.add("Mul", self.add("Cast", same, to=self.onnx.TensorProto.INT64), np.arange(n) - unseen)
        code = self.add("Add", self.add("ReduceSum", place, np.array([1])), np.array([unseen]))
        return self.add("Where", self.add("IsNaN", name), np.array([n]), code)

    def _codes(self, code: str, n: int, column: Any) -> str:
        """Codes of categories, that of unseen ones last; missing values are unseen if there were none in training."""
        last = n + bool(column.has_missing)
        code = self.add("Squeeze", self.add("Min", code, np.array([last])), np.array([1]))
        self.n_codes[code] = last + 1
        return code

    def _ranks(self, code: str, n: int) -> str:
        """Ranks of ordered categories, NaN where missing; others are refused."""
        self.refused.append(self.add("Gather", np.append(np.zeros(n + 1), np.nan), code))
        return self.add("Gather", np.append(np.arange(float(n)), [np.nan, np.nan]), code)

    def levels(self, rows: FloatArray, code: str) -> str:
        """The row of each code; those that have none get the last one, of unseen categories."""
        return self.add("Gather", rows[np.minimum(np.arange(self.n_codes[code]), len(rows) - 1)], code)

    def clip(self, x: str, low: Any, high: Any) -> str:
        """Numbers cut to a range; NaN stays."""
        cut = self.add("Min", self.add("Max", x, np.float64(low)), np.float64(high))
        return self.add("Where", self.add("IsNaN", x), np.float64(np.nan), cut)

    def probabilities(self, scores: str, link: str) -> str:
        """Class probabilities of scores, by the operations of `LINKS`."""
        if link == "softmax":
            top = self.add("ReduceMax", scores, np.array([1]))
            parts = self.add("Exp", self.add("Sub", scores, top))
            return self.add("Div", parts, self.add("ReduceSum", parts, np.array([1])))
        one, zero = np.float64(1), np.float64(0)
        if link == "clip":
            h = self.clip(self.add("Add", np.float64(0.5), scores), 0, 1)
            return self.add("Concat", self.add("Sub", one, h), h, axis=1)
        small = self.add("Exp", self.add("Neg", self.add("Abs", scores)))
        total = self.add("Add", one, small)
        likely, unlikely = self.add("Div", one, total), self.add("Div", small, total)
        up = self.add("GreaterOrEqual", scores, zero)
        pair = self.add("Where", up, unlikely, likely), self.add("Where", up, likely, unlikely)
        return self.add("Concat", *pair, axis=1)

    def finish(self, outputs: dict[str, tuple[str, int]], guarantee: Guarantee, error: float) -> Any:
        """The checked model, from names of outputs to nodes and widths; its metadata say how close it is."""
        from likewise import __version__

        helper, shown = self.onnx.helper, []
        for name, (node, width) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [node], [name]))
            shown.append(helper.make_tensor_value_info(name, self.onnx.TensorProto.DOUBLE, ["n", width]))
        graph = helper.make_graph(self.nodes, "likewise", self.inputs, shown, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="likewise", producer_version=__version__)
        model.ir_version = IR
        helper.set_model_props(model, {ERROR_BOUND: repr(error), "likewise_guarantee": guarantee.statement})
        self.onnx.checker.check_model(model)
        return model


def are_amounts(method: str, name: Any, levels: Any) -> bool:
    """Whether categories are numbers or booleans, rather than text, in an export.

    It compares such categories as numbers in double precision, of which a number in single precision is another one
    unless both write it alike.
    """
    kinds = {type(level) if isinstance(level, (bool, int, float)) else str for level in levels}
    amounts = [level for level in levels if not isinstance(level, bool) and isinstance(level, (int, float))]
    exact = all(abs(each) <= _MOST_EXACT and (each == int(each) or each == float(np.float32(each))) for each in amounts)
    odd = any(isinstance(level, (bytes, tuple, complex)) for level in levels)
    if odd or not exact or (kinds not in ({str}, {bool}) and kinds - {int, float}):
        raise InvalidInputError(
            f"{method} needs categories that are text, booleans, or numbers that are exact in single precision; those "
            f"of {name!r} are {short_repr(levels)}. Turn them into text before fitting."
        )
    return bool(kinds) and str not in kinds


def refuse_probit(link: str) -> None:
    """Raise for the link that runtimes lack in double precision."""
    if link == "probit":
        raise InvalidInputError(
            "to_onnx needs the link 'logistic' or 'clip': onnxruntime has no error function in double precision."
        )


def link_error(link: str, n_classes: int, of_scores: float = 0.0) -> float:
    """Bound on the difference of two computed probabilities whose scores differ by at most `of_scores`."""
    u = UNIT_ROUNDOFF
    if link == "clip":  # each side rounds 1/2 + z and 1 - h; the same bits of the same score
        return of_scores + 4 * u if of_scores else 0.0
    if link == "logistic":  # s / (1 + s)^2 <= 1/4; a sum and a quotient on each side
        return (of_scores / 4 + EXP / 2 + 4 * u) * _HIGHER_ORDER + _UNDERFLOW
    slack = (n_classes + 1) * u if of_scores else 0.0  # differences from the largest score are rounded
    return (of_scores / 2 + 2 * (2 * EXP + n_classes * u) + slack) * _HIGHER_ORDER + _UNDERFLOW


def product_error(n_terms: int, size: FloatArray) -> FloatArray:
    """Bound on the difference of two computed sums of products, in any order, fused or not: ``2 gamma_n size``."""
    return np.asarray(2 * n_terms * UNIT_ROUNDOFF / (1 - n_terms * UNIT_ROUNDOFF) * size * _HIGHER_ORDER)


def write(model: Any, path: str | Path | None) -> None:
    """Write an ONNX model, all or nothing."""
    if path is not None:
        with atomic_write(path) as temporary:
            temporary.write_bytes(model.SerializeToString())
