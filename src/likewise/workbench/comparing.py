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
    row = engine.X.iloc[engine.row_of(label)]
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
    frame = engine.encoder.as_table(pd.DataFrame([_typed(engine, side) for side in (a, b)], dtype=object), "A person")
    rows = engine.encoder.encode(frame)
    columns = engine.bound(sheet)
    blank = np.isnan(rows)
    refused = [n for i, n in enumerate(engine.names) if blank[0, i] != blank[1, i] and np.isnan(columns.missing[i])]
    if refused:
        raise InvalidInputError(f"{refused[0]} must be given for both people: nobody in the table is without it.")
    terms = columns.terms(rows[0], rows[1])
    for i, name in enumerate(engine.names):
        # All categories that are not in the table have one code.
        unseen = rows[0, i] == rows[1, i] == UNSEEN and not columns.is_number[i]
        if unseen and shown(frame[name][0]) != shown(frame[name][1]):
            terms[i] = columns.scales[i]
    parts = [{"column": name, "points": points} for name, points in zip(engine.names, terms.tolist(), strict=True)]
    scores = [{"title": GUARANTEED, **_scores(engine, model, frame)}]
    reference = engine.known_references(sheet.locked).get(BOOSTING)
    if reference is not None:
        kept = frame[[name for name in frame.columns if name not in sheet.locked]]
        with suppress(ValueError, LikewiseError):  # a value that this model cannot read; the other score is shown
            scores.append({"title": engine.fitted, **_scores(engine, reference.model, kept)})
    reasons = []
    for row in () if model is None else model.reasons(frame, n=_N_REASONS).itertuples(index=False):
        said = [str(reason).removesuffix(" against the average person") for reason in row[1:] if reason]
        reasons.append({"outcome": str(row[0]), "reasons": said})
    return {"parts": parts, "distance": sum(terms.tolist()), "scores": scores, "reasons": reasons}


def _typed(engine: Engine, values: Any) -> dict[str, str | None]:
    """One person as text by column; None for what is not known."""
    if not isinstance(values, dict):
        raise InvalidInputError("A person must be values by column.")
    return {name: str(values.get(name, "")).strip() or None for name in engine.names}


def _scores(engine: Engine, model: Any, frame: pd.DataFrame) -> dict[str, Any]:
    """Chances of the class that is shown, or predictions as shares of the range; and how far apart all outputs are."""
    outputs = engine.constant(slice(None), len(frame)) if model is None else engine.outputs(model, frame)
    shares = engine.shares(outputs)
    shown = 0 if engine.classes is None else list(engine.classes).index(engine.favourable)
    return {"values": shares[:, shown].tolist(), "gap": float(differences(shares, np.array([0]), np.array([1]))[0])}
