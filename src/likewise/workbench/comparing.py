"""Two people, of the table or typed: their distance by column, their scores and the reasons."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from likewise.exceptions import InvalidInputError, LikewiseError
from likewise.kernel.columns import UNSEEN
from likewise.report.pairs import differences
from likewise.workbench.engine import BOOSTING, GUARANTEED, Engine
from likewise.workbench.judging import shown
from likewise.workbench.state import Sheet

_N_REASONS = 4


def person(engine: Engine, label: Any) -> dict[str, str]:
    """The values of a person of the table, as text."""
    if str(label) not in engine.labels:
        raise InvalidInputError(f"There is no person {str(label)[:80]!r} in the table.")
    row = engine.X.iloc[engine.labels[str(label)]]
    return {str(name): shown(row[name]) for name in engine.X.columns}


def compare(engine: Engine, sheet: Sheet, model: Any, a: Any, b: Any) -> dict[str, Any]:
    """Distance by column, scores with the guarantee and without, and reasons.

    Parameters
    ----------
    engine : Engine
    sheet : Sheet
    model : fitted estimator, or None if no column matters
    a, b : dict from column to text
        Empty text is a missing value. Columns that are not given are missing.
    """
    frame = pd.concat([_frame(engine, side) for side in (a, b)], ignore_index=True)
    rows = engine.encoder.encode(frame)
    columns = engine.bound(sheet)
    blank = np.isnan(rows)
    refused = [n for i, n in enumerate(engine.names) if blank[0, i] != blank[1, i] and np.isnan(columns.missing[i])]
    if refused:
        raise InvalidInputError(f"{refused[0]} must be given for both people: nobody in the table is without it.")
    terms, parts = columns.terms(rows[0], rows[1]), []
    for name in map(str, engine.X.columns):
        i = engine.names.index(name)
        # All categories that are not in the table have one code.
        unseen = rows[0, i] == rows[1, i] == UNSEEN and not columns.is_number[i]
        unseen = unseen and shown(frame[name][0]) != shown(frame[name][1])
        parts.append({"column": name, "points": float(columns.scales[i] if unseen else terms[i])})
    found: dict[str, Any] = {
        "parts": parts,
        "distance": sum(part["points"] for part in parts),
        "scores": [],
        "reasons": [],
    }
    found["scores"].append({"title": GUARANTEED, **_scores(engine, model, frame)})
    reference = engine.known_references(sheet.locked).get(BOOSTING)
    if reference is not None:
        kept = frame[[name for name in frame.columns if name not in sheet.locked]]
        with suppress(ValueError, LikewiseError):  # a value that this model cannot read; the other score is shown
            found["scores"].append({"title": engine.fitted, **_scores(engine, reference.model, kept)})
    if model is not None:
        for row in model.reasons(frame, n=_N_REASONS).itertuples(index=False):
            reasons = [str(reason).removesuffix(" against the average person") for reason in row[1:] if reason]
            found["reasons"].append({"outcome": str(row[0]), "reasons": reasons})
    return found


def _frame(engine: Engine, values: Any) -> pd.DataFrame:
    """One person as a table: numbers, and categories as text."""
    if not isinstance(values, dict):
        raise InvalidInputError("A person must be values by column.")
    row: dict[str, Any] = {}
    for name in map(str, engine.X.columns):
        text = str(values.get(name, "")).strip()
        column = engine.encoder.columns[engine.names.index(name)]
        if name in engine.categorical or getattr(column, "categories", None) is not None:
            row[name] = pd.Series([text or None], dtype=object)
            continue
        try:
            number = float(text) if text else np.nan
        except ValueError:
            number = np.inf
        if np.isinf(number):
            raise InvalidInputError(f"{name} must be a number; got {text[:40]!r}.")
        row[name] = pd.Series([number])
    return pd.DataFrame(row)


def _scores(engine: Engine, model: Any, frame: pd.DataFrame) -> dict[str, Any]:
    """Chances of the class that is shown, or predictions as shares of the range; and how far apart all outputs are."""
    outputs = engine.constant(slice(None), len(frame)) if model is None else engine.outputs(model, frame)
    shares = engine.shares(outputs)
    shown = 0 if engine.classes is None else list(engine.classes).index(engine.favourable)
    return {"values": shares[:, shown].tolist(), "gap": float(differences(shares, np.array([0]), np.array([1]))[0])}
