"""A scorecard as JSON, as one SQL expression, and as an ONNX graph."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from likewise._onnx import Graph, are_amounts, link_error, refuse_probit, write
from likewise._optional import need
from likewise._typing import FloatArray
from likewise._validation import LARGEST, PATH
from likewise._writing import atomic_write, quoted, write_csv
from likewise.additive.scorer import AdditiveScorer, PointsScorer, level_names
from likewise.exceptions import FileError, InvalidInputError
from likewise.kernel.columns import CategoricalColumn, LevelIndex, NumericColumn, json_value
from likewise.kernel.evidence import Shape, SumOfShapes
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import ArrayEncoder, Encoder, TableEncoder
from likewise.metrics.table import TableMetric
from likewise.metrics.weighted_lp import WeightedLp
from likewise.verify_card import BOUNDS, DAMAGE, NotProvenError, damaged, load, prove


def to_excel(model: Any, path: str | Path, outcome: Any = None) -> None:
    """Write `scorecard` as an Excel file; needs openpyxl. Text that looks like a formula gets a single quote."""
    need("openpyxl", "An Excel file")
    table = model.scorecard(outcome)
    safe = pd.DataFrame({name: table[name].map(quoted) for name in table.columns})
    with atomic_write(path) as temporary:
        safe.to_excel(temporary, index=False, sheet_name="scorecard", engine="openpyxl")


def to_csv(model: Any, path: str | Path, outcome: Any = None) -> None:
    """Write `scorecard` as a CSV file, with all digits.

    Text that a spreadsheet would take for a formula, such as a category ``=A1``, gets a single quote in front.
    """
    card = model.scorecard(outcome)
    with atomic_write(path) as temporary:
        write_csv(card, temporary, index=False)


def to_json(model: Any, path: str | Path | None = None, outcome: Any = None) -> str:
    """The whole model as JSON text, with all digits; also written to `path` if given.

    Points at knots (linear between them, constant outside), of categories, of missing numbers and unseen
    categories; the link; the metric; and the guarantee, which ``likewise verify-card`` proves from these numbers.
    A category is ``{"value": ..., "points": ...}`` with its value as it was in training; null is a missing one, and
    1 and "1" are one category. Values that JSON cannot represent are text, with their ``"type"``. For more than two
    classes, points are lists with one value per class; with `outcome`, those of one class, which prove nothing on
    their own.
    """
    text = json.dumps(_document(model, outcome), indent=2)
    if path is not None:
        with atomic_write(path) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
    return text


def _document(model: Any, outcome: Any) -> dict[str, Any]:
    """What `to_json` writes."""
    scorer, encoder = model._scorer(), model.encoder_
    n_functions = len(scorer.model.intercepts)
    signs = np.eye(n_functions) if n_functions > 1 and outcome is None else model._signs(outcome)
    kind = np.int64 if scorer.scale else np.float64
    columns = []
    for shape in scorer.model.shapes:
        column = encoder.columns[shape.column]
        entry: dict[str, Any] = {"column": str(encoder.names[shape.column])}
        points = (signs @ shape.values).astype(kind)
        other = None if shape.other is None else (signs @ shape.other).astype(kind).tolist()
        if shape.knots is not None:
            entry |= {"knots": shape.knots.tolist(), "points": points.tolist(), "missing": other}
            if shape.special is not None:
                codes, values = scorer.model.metric.codes(shape.column), (signs @ shape.special).astype(kind)
                entry["special"] = [{"value": c, "points": p} for c, p in zip(codes, values.T.tolist(), strict=True)]
            if column.categories is not None:
                entry["order"] = [json_value(level) for level in column.categories]
        else:
            levels = [*map(json_value, column.levels), *([{"value": None}] if column.has_missing else [])]
            entry |= {
                "categories": [level | {"points": p} for level, p in zip(levels, points.T.tolist(), strict=True)],
                "unseen": other,
            }
        columns.append(entry)
    regression = scorer.guarantee.output_range is not None
    return {
        "format": 1,
        "model": type(model).__name__,
        "input": "array" if isinstance(encoder, ArrayEncoder) else "table",
        "outcome": None if regression else json_value(model._outcome(outcome))["value"],
        "classes": None if regression else [json_value(label)["value"] for label in model._labels()],
        "link": scorer.link,
        "output_range": scorer.guarantee.output_range,
        "scale": scorer.scale,
        "bits": scorer.model.bits,
        "intercept": (signs @ scorer.model.intercepts).astype(kind).tolist(),
        "columns": columns,
        "metric": metric_document(scorer.model.metric),
        "guarantee": guarantee_document(scorer),
    }


def metric_document(metric: BoundMetric) -> dict[str, Any]:
    """The parts of the metric, which a proof needs, with the units, reasons and absent columns of its description."""
    document, described = metric.to_dict(), metric.description
    units, names = getattr(described, "units", {}), metric.schema.names
    absent = [name for name in getattr(described, "hidden", []) if name not in names]
    if absent:
        document["absent"] = [
            {"column": str(name), "kind": "numeric" if name in described.numeric else "categorical"}
            | {"weight": 0.0, "missing": None}
            for name in absent
        ]
    for name, entry in zip([*names, *absent], document["columns"] + document.get("absent", []), strict=True):
        entry |= {"unit": units[name]} if name in units else {}
        entry |= {"zero_reason": described.zero_reasons[name]} if name in described.zero_reasons else {}
    return document


def guarantee_document(scorer: AdditiveScorer) -> dict[str, Any]:
    """The guarantee, its bound, and the share of what the metric allows that the model uses, rounded upwards."""
    used = scorer.model.used(scorer.unit)
    guarantee = scorer.guarantee
    statement = guarantee.statement.splitlines()[0].removesuffix(guarantee.odds_statement).rstrip()  # what is proven
    return {"statement": statement, "bound": BOUNDS[scorer.link], "used": float(used.max())}


def from_json(cls: Any, card: str | Path) -> Any:
    """The model that a card describes: the text of `to_json`, or the path of its file.

    Its probabilities have the same bits. The guarantee is proven from the card's numbers (`likewise.verify_card`);
    a card without a proof is refused. Column names are text. Parameters of the fit are the defaults.

    Examples
    --------
    >>> from likewise import AdditiveClassifier, WeightedLp
    >>> model = AdditiveClassifier(WeightedLp([0.5]), penalty=1.0).fit([[0], [1]], [0, 1])
    >>> same = AdditiveClassifier.from_json(model.to_json())
    >>> bool((same.predict_proba([[0.3]]) == model.predict_proba([[0.3]])).all())
    True
    """
    model = cls()
    try:
        document = _card_text(card)
        prove(document)
        if document["model"] != type(model).__name__:
            raise InvalidInputError(f"The card is of an {document['model']}. Use {document['model']}.from_json.")
        metric = _read_metric(document)
        model.metric, encoder, link = metric.description, metric.schema, document["link"]
        model.encoder_ = encoder
        model.n_features_in_ = len(encoder.names)
        if encoder.labels is not None:
            model.feature_names_in_ = np.array(encoder.labels, dtype=object)
        if document["classes"] is None:
            model.output_range = model.output_range_ = tuple(document["output_range"])
        else:
            model.classes_ = np.array(document["classes"])
            model.link = "logistic" if link == "softmax" else link
        model.scorer_ = _read_scorer(document, metric)
        _ = model.guarantee_  # raises if none follows
    except (NotProvenError, *DAMAGE) as problem:
        if isinstance(problem, InvalidInputError):
            raise
        why = str(problem) if isinstance(problem, NotProvenError) else damaged(problem)
        raise InvalidInputError(f"card must be the output of to_json(), with a proven guarantee: {why}") from None
    return model


def _card_text(card: Any) -> Any:
    """The document, from its text or the path of a file."""
    if not (isinstance(card, str) and card.lstrip().startswith("{")):
        PATH.check("card", card)
        try:
            card = Path(card).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"Cannot read {card}: {getattr(error, 'strerror', None) or error}.") from None
    try:
        return load(card)
    except ValueError as error:
        raise FileError(f"The card is not JSON ({error}).") from None


def _read_metric(document: dict[str, Any]) -> BoundMetric:
    """The metric, bound to its columns; those off the card need no categories, as scores do not depend on them."""
    entries = document["metric"]["columns"]
    names = [entry["column"] for entry in entries]
    if document["input"] == "array":
        unnamed = names == [f"feature {i}" for i in range(len(names))]
        weights = [entry["weight"] for entry in entries]
        metric = WeightedLp(weights) if unnamed else WeightedLp(dict(zip(names, weights, strict=True)))
        return metric.bind(ArrayEncoder(len(names), None if unnamed else tuple(names)))
    listed: dict[str, Any] = {entry["column"]: entry.get("categories", []) for entry in document["columns"]}
    columns: list[NumericColumn | CategoricalColumn] = []
    for entry in entries:
        name = entry["column"]
        if entry["kind"] == "numeric":
            columns.append(NumericColumn(name, tuple(map(_level, entry["order"])) if "order" in entry else None))
            continue
        levels = [_level(level) for level in listed.get(name, entry.get("categories", []))]
        blank = len(entry.get("distances", ())) == len(levels) + 2 if name not in listed else levels[-1] is None
        levels = [level for level in levels if level is not None]
        columns.append(CategoricalColumn(name, tuple(levels), blank, "object"))
    by_kind: dict[str, dict[str, float]] = {"numeric": {}, "categorical": {}}
    described = entries + document["metric"].get("absent", [])
    for entry in described:
        by_kind[entry["kind"]][entry["column"]] = entry["weight"]
    special = {e["column"]: {code["value"]: code["weight"] for code in e["special"]} for e in entries if "special" in e}
    blanks = {e["column"]: e["missing"] for e in entries if e["kind"] == "numeric" and e["missing"] is not None}
    units = {entry["column"]: entry["unit"] for entry in described if "unit" in entry}
    reasons = {entry["column"]: entry["zero_reason"] for entry in described if "zero_reason" in entry}
    shapes: dict[str, Any] = _read_shapes(entries, columns)
    numeric, categorical = by_kind["numeric"], by_kind["categorical"]
    shapes |= {"missing": blanks or "refuse", "special": special, "units": units, "zero_reasons": reasons}
    table = TableMetric(numeric, categorical, **shapes)
    bound = table.bind(TableEncoder(tuple(columns), tuple(table.hidden)))
    for i, entry in enumerate(entries):
        if "distances" in entry and not np.array_equal(bound.tables.get(i, ()), entry["distances"]):
            raise InvalidInputError(
                f"from_json cannot read the distances between the categories of {entry['column']!r}; keep such a model "
                "with save_model."
            )
    return bound


def _read_shapes(
    entries: list[dict[str, Any]], columns: list[NumericColumn | CategoricalColumn]
) -> dict[str, dict[str, Any]]:
    """Distances between the categories of a card; as one group if none are at the column's weight."""
    shapes: dict[str, dict[str, Any]] = {"groups": {}, "distances": {}}
    for entry, column in zip(entries, columns, strict=True):
        if "distances" not in entry or not isinstance(column, CategoricalColumn):
            continue
        levels = list(column.levels)
        shares = np.array(entry["distances"], dtype=np.float64)[: len(levels), : len(levels)]
        if shares.max(initial=0.0) < 1:
            shapes["groups"][entry["column"]] = {"within": float(shares.max(initial=0.0)), "groups": [levels]}
        else:
            rows = {a: dict(zip(levels, row, strict=True)) for a, row in zip(levels, shares.tolist(), strict=True)}
            shapes["distances"][entry["column"]] = rows
    return shapes


def _level(level: dict[str, Any]) -> Any:
    if "type" in level:
        raise InvalidInputError(f"from_json cannot read the category {level['value']} of type {level['type']}.")
    return level["value"]


def _read_scorer(document: dict[str, Any], metric: BoundMetric) -> AdditiveScorer:
    """The numbers of the model: for the first of two classes, those of the card with the opposite sign."""
    link, scale, classes = document["link"], document["scale"], document["classes"]
    position = 1 if classes is None or link == "softmax" else classes.index(document["outcome"])
    sign = 1.0 if position or scale else -1.0

    def functions(numbers: Any) -> FloatArray:
        found = sign * np.asarray(numbers, dtype=np.float64)
        return found if link == "softmax" else found[None]

    shapes = []
    for entry in document["columns"]:
        i = metric.schema.names.index(entry["column"])
        if "knots" in entry:
            other = None if entry["missing"] is None else functions(entry["missing"])
            special = np.array([functions(code["points"]) for code in entry.get("special", ())]).T
            knots, points = np.array(entry["knots"], dtype=np.float64), functions(entry["points"])
            shapes.append(Shape(i, knots, points, other, special=special if special.size else None))
        else:
            values = np.array([functions(level["points"]) for level in entry["categories"]]).T
            shapes.append(Shape(i, None, values, functions(entry["unseen"])))
    sums = SumOfShapes(metric, functions(document["intercept"]), tuple(shapes), int(document["bits"]))
    limits = None if classes is not None else tuple(document["output_range"])
    if scale:
        return PointsScorer(sums, link, limits, **scale, position=position)
    return AdditiveScorer(sums, link, limits)


Written = Callable[[float], str]
_OF_NUMBERS = " \t\n\r\x0b\x0c+-.0123456789eE"  # characters that numbers are written with


def to_sql(model: Any, outcome: Any = None) -> str:
    """An SQL expression for the probability of the outcome, the prediction, or, after `in_points`, the points.

    The expression is plain SQL with ``CASE``, ``CAST``, ``EXP`` and arithmetic in double precision, and agrees with
    `predict_proba` (or `predict`) to 1e-12. Columns are referred to by name. Those of numbers, and of categories
    that are numbers, must have a numeric type in the database; other categories are compared as text. ``NULL`` and
    NaN are missing. What the model would read otherwise is refused: the score is NULL, or the database raises an
    error.

    Examples
    --------
    >>> from likewise import AdditiveClassifier, WeightedLp
    >>> model = AdditiveClassifier(WeightedLp({"x": 0.5}), penalty=1.0).fit(pd.DataFrame({"x": [0, 1]}), [0, 1])
    >>> model.to_sql()[:22]
    '1.0e0 / (1.0e0 + EXP(-'
    """
    scorer, encoder = model._scorer(), model.encoder_
    if isinstance(scorer, PointsScorer):
        model._signs(outcome)  # raises for the other outcome
        return _sum(scorer, encoder, 0, _integer)
    if scorer.link == "probit":
        raise InvalidInputError("to_sql needs the link 'logistic' or 'clip': plain SQL has no normal distribution.")
    n_functions = len(scorer.model.intercepts)
    score = [_sum(scorer, encoder, k, _number) for k in range(n_functions)]
    limits = scorer.guarantee.output_range
    if limits:
        return _cut(score[0], *limits)
    position = model._labels().index(model._outcome(outcome))
    if scorer.link == "clip":
        inside = _cut(f"({score[0]}) + {_number(0.5)}", 0.0, 1.0)
        return inside if position else f"{_number(1.0)} - ({inside})"
    if n_functions == 1:
        sign = "-" if position else ""
        return f"{_number(1.0)} / ({_number(1.0)} + EXP({sign}({score[0]})))"
    # 1 / sum_k exp(a_k - a_position): no term overflows before the share is 0 to the last bit.
    own = score[position]
    return f"{_number(1.0)} / (" + " + ".join(f"EXP(({other}) - ({own}))" for other in score) + ")"


def _sum(scorer: AdditiveScorer, encoder: Encoder, function: int, written: Written) -> str:
    terms = [written(scorer.model.intercepts[function])]
    codes = scorer.model.metric.codes
    terms += [_points(shape, codes(shape.column), encoder, function, written) for shape in scorer.model.shapes]
    return "\n  + ".join(terms)


def _points(shape: Shape, codes: FloatArray, encoder: Encoder, function: int, written: Written) -> str:
    """What one column adds, as a CASE whose value is NULL where the model refuses the value.

    A database holds a value in a type, and compares it with a literal by rules of its own. So numbers are compared as
    numbers, after a ``+`` that text does not survive: most databases refuse it, and SQLite, which does not, then takes
    all text to be above all numbers. Text is compared as text, also where the column is none.
    """
    name = _identifier(encoder, shape.column)
    values, levels = shape.values[function], level_names(encoder, shape.column)
    other = None if shape.other is None else written(shape.other[function])
    if levels is None:
        assert shape.knots is not None
        cases = [
            f"WHEN +{name} = {_number(code)} THEN {written(shape.special[function, k])}"  # type: ignore[index]
            for k, code in enumerate(codes.tolist())
        ]
        return _case([*cases, *_segments(f"+{name}", shape.knots, values, written)], f"+{name}", blank=other)
    if shape.knots is not None:  # ordered categories stand at whole numbers, and others are refused
        points = [written(each) for each in np.interp(np.arange(len(levels)), shape.knots, values)]
        blank, unseen = other, None
    else:
        points, unseen = [written(each) for each in values], other
        blank = points.pop() if None in levels else other  # a missing category is the last one
        levels = [level for level in levels if level is not None]
    if not are_amounts("to_sql", encoder.names[shape.column], levels) or isinstance(levels[0], bool):
        return _text_case(name, levels, points, blank, unseen)
    x, most = f"+{name}", _number(sys.float_info.max)
    cases = [f"WHEN {x} = {_number(level)} THEN {each}" for level, each in zip(levels, points, strict=True)]
    if unseen is not None:
        cases.append(f"WHEN {x} BETWEEN -{most} AND {most} THEN {unseen}")
    return _case(cases, x, blank=blank, infinite=unseen)


def _identifier(encoder: Encoder, column: int) -> str:
    """The name of a column, quoted. Many databases do not tell quoted names apart by case either."""
    name, names = str(encoder.names[column]), [str(each) for each in encoder.names]
    if not name or "\0" in name or [each.casefold() for each in names].count(name.casefold()) > 1:
        raise InvalidInputError(
            "to_sql needs columns with names that are not empty and differ in more than upper and lower case; got "
            f"{names}. Rename one before fitting."
        )
    return '"' + name.replace('"', '""') + '"'


def _case(cases: list[str], x: str, *, blank: str | None, infinite: str | None = None) -> str:
    """Cases of known numbers, and those of others: NULL and NaN are missing, and what SQLite holds as text is refused.

    Of NaN, databases say that it is above all numbers, or not comparable; what is left after the finite cases is told
    apart by arithmetic: text minus itself is 0 in SQLite, and 1 divided by an infinity is 0.
    """
    if blank is not None:
        cases = [*cases, f"WHEN {x} IS NULL THEN {blank}", f"WHEN {x} - {x} <= 0.0e0 THEN NULL"]
        cases += [f"WHEN 1.0e0 / {x} <= 1.0e0 THEN {infinite or 'NULL'} ELSE {blank}"]
    return f"CASE {' '.join(cases)} END"


def _segments(x: str, knots: FloatArray, values: FloatArray, written: Written) -> list[str]:
    """Lines between knots; numbers beyond `LARGEST` are refused, as by the model."""
    cases = [f"WHEN {x} < {_number(-LARGEST)} THEN NULL WHEN {x} <= {_number(knots[0])} THEN {written(values[0])}"]
    for k in range(len(knots) - 1):
        share = f"({x} - {_number(knots[k])}) / {_number(knots[k + 1] - knots[k])}"
        rise = values[k + 1] - values[k]
        line = f"{written(values[k])} + {written(rise)} * ({share})" if rise else written(values[k])
        cases.append(f"WHEN {x} < {_number(knots[k + 1])} THEN {line}")
    return [*cases, f"WHEN {x} BETWEEN {_number(knots[-1])} AND {_number(LARGEST)} THEN {written(values[-1])}"]


def _text_case(name: str, levels: list[Any], points: list[str], blank: str | None, unseen: str | None) -> str:
    """Cases of text and booleans, by all texts that are the same category.

    A number or a boolean of a database becomes text that may be written in other ways than in Python, and with fewer
    digits: where it could be one of the categories, it is refused.
    """
    text, known = f"CAST({name} AS VARCHAR(8000))", LevelIndex(levels).texts()
    floats = {spelling: known.pop(spelling) for spelling in [*known] if spelling.endswith(".0") or "e+" in spelling}
    cases = [f"WHEN {_literal(spelling)} THEN {points[place]}" for spelling, place in known.items()]
    rest = [f"WHEN {text} = {_literal(s)} AND {name} = {text} THEN {points[place]}" for s, place in floats.items()]
    is_number = f"{text} <> '' AND LTRIM({text}, {_literal(_OF_NUMBERS)}) = ''"
    if any(isinstance(level, bool) for level in levels):
        rest.append(f"WHEN {is_number} THEN NULL")
    elif floats:
        rest.append(f"WHEN {is_number} AND ({text} LIKE '%.%' OR {text} LIKE '%e%') THEN NULL")
    if any(spelling.lower() in ("true", "false") for spelling in known):
        rest.append(f"WHEN LOWER({text}) IN ('true', 'false') THEN NULL")
    if blank != unseen:
        rest.append(f"WHEN {text} IS NULL THEN {blank} WHEN LOWER({text}) = 'nan' THEN NULL")
    others = f"CASE {' '.join(rest)} ELSE {unseen or 'NULL'} END" if rest else unseen or "NULL"
    return f"CASE {text} {' '.join(cases)} ELSE {others} END" if cases else others


def _cut(score: str, low: float, high: float) -> str:
    return (
        f"CASE WHEN {score} < {_number(low)} THEN {_number(low)} WHEN {score} > {_number(high)} THEN {_number(high)} "
        f"ELSE {score} END"
    )


def _number(value: float) -> str:
    """A double: with an exponent, so that no database takes it for a decimal."""
    digits = repr(float(value))
    digits = digits if "e" in digits else f"{digits}e0"
    return f"({digits})" if value < 0 else digits


def _integer(value: float) -> str:
    return f"({value:.0f})" if value < 0 else f"{value:.0f}"


def _literal(text: str) -> str:
    if "\0" in text:
        raise InvalidInputError(
            f"to_sql needs categories that a database can hold; {text!r} has a zero byte. Rename it before fitting."
        )
    return "'" + text.replace("'", "''") + "'"


def to_onnx(model: Any, path: str | Path | None = None) -> Any:
    """The model as an ONNX graph in double precision; also written to `path` if given. Needs the extra ``onnx``.

    Its output ``probabilities`` (``prediction`` for regression) is that of `predict_proba` (`predict`), to within
    the ``likewise_error_bound`` in its metadata: 1e-15 for two classes, and 0 for the link "clip" and for
    regression (`docs/theory.md` §19). A card in whole points has an output ``points`` as well, without any error.

    Inputs are one array ``X`` for a model of arrays, and otherwise one of shape (n, 1) per column on the card:
    doubles for numbers, and for categories that are numbers or booleans (1 and 0); text for other categories. NaN
    and empty text are missing, and what is not listed is unseen. Where `predict_proba` refuses a value, the output
    is NaN.

    Returns
    -------
    onnx.ModelProto
    """
    found = _graph(model)
    write(found, path)
    return found


def _graph(model: Any) -> Any:
    """What `to_onnx` returns: the sums have the bits of `AdditiveScorer.scores`."""
    scorer, encoder = model._scorer(), model.encoder_
    refuse_probit(scorer.link)
    graph = Graph()
    columns = graph.read(encoder, [shape.column for shape in scorer.model.shapes])
    scores: Any = scorer.model.intercepts[None]
    for shape in scorer.model.shapes:
        column = columns[shape.column]
        if shape.knots is None:
            points = graph.levels(shape.all_values.T, column)
        else:
            points = _onnx_lines(graph, shape, column, scorer.model.bits)
            for k, code in enumerate(scorer.model.metric.codes(shape.column)):
                assert shape.special is not None
                points = graph.add("Where", graph.add("Equal", column, code), shape.special[:, k], points)
        scores = graph.add("Add", scores, points)
    for refused in graph.refused:
        scores = graph.add("Add", scores, refused)
    guarantee = scorer.guarantee
    if guarantee.output_range:
        outputs = {"prediction": (graph.clip(scores, *guarantee.output_range), 1)}
        return graph.finish(outputs, guarantee, 0.0)
    outputs = {}
    if scorer.scale:
        outputs["points"] = scores, 1
        scores = graph.add("Sub", scores, np.float64(scorer.base_score))
        scores = graph.add("Mul", scores, np.float64(math.log(2) / scorer.points_to_double))
        scores = graph.add("Add", np.float64(math.log(scorer.base_odds)), scores)
        scores = scores if scorer.position else graph.add("Neg", scores)
    n_classes = scorer.n_outputs
    outputs["probabilities"] = graph.probabilities(scores, scorer.link), n_classes
    return graph.finish(outputs, guarantee, link_error(scorer.link, n_classes))


def _onnx_lines(graph: Graph, shape: Shape, x: str, bits: int) -> str:
    """The operations of `kernels.points`, on x cut to the knots: at the ends they give the values there."""
    assert shape.knots is not None
    knots, values = shape.knots, shape.values.T
    missing = graph.add("IsNaN", x)
    other = np.full(values.shape[1], np.nan) if shape.other is None else shape.other
    if len(knots) == 1:
        return graph.add("Where", missing, other, values)
    known = graph.add("Where", missing, knots[:1], x)
    known = graph.add("Min", graph.add("Max", known, knots[:1]), knots[-1:])
    passed = graph.add("GreaterOrEqual", known, np.append(knots[1:-1], np.inf))  # one knot at least: no empty array
    place = graph.add(
        "ReduceSum", graph.add("Cast", passed, to=graph.onnx.TensorProto.INT64), np.array([1]), keepdims=0
    )
    low, gap = (graph.add("Gather", each[:, None], place) for each in (knots[:-1], np.diff(knots)))
    low_value, rise = (graph.add("Gather", each, place) for each in (values[:-1], np.diff(values, axis=0)))
    share = graph.add("Div", graph.add("Sub", known, low), gap)
    steps = graph.add("Round", graph.add("Mul", graph.add("Mul", rise, share), np.float64(2.0**bits)))
    points = graph.add("Add", low_value, graph.add("Mul", steps, np.float64(2.0**-bits)))
    return graph.add("Where", missing, other, points)
