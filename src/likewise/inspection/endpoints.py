"""Models behind a URL, asked over HTTP."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import numpy as np
import pandas as pd

from likewise.exceptions import InvalidInputError

_AT_ONCE = 10_000  # rows of one request
_SECONDS = 60  # for its answer


@dataclass(frozen=True)
class Endpoint:
    """A model that answers ``POST {"dataframe_split": {"columns": ..., "data": ...}}`` with ``{"predictions": ...}``.

    This is the protocol of MLflow's scoring server (``/invocations``). One number or one list of class probabilities is
    expected per row.
    """

    url: str

    def __call__(self, X: Any) -> Any:
        """Answers for every row."""
        table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        parts = [self._ask(table.iloc[start : start + _AT_ONCE]) for start in range(0, len(table), _AT_ONCE)]
        return np.concatenate(parts)

    def _ask(self, rows: pd.DataFrame) -> Any:
        content = rows.to_json(orient="split", index=False, double_precision=15)
        body = f'{{"dataframe_split": {content}}}'.encode()
        request = Request(self.url, body, {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=_SECONDS) as answer:
                found = json.loads(answer.read())
        except (URLError, OSError) as error:
            raise InvalidInputError(f"{self.url} must answer requests; it gave: {error}.") from None
        except ValueError:
            raise InvalidInputError(f"{self.url} must answer with JSON.") from None
        answers = found.get("predictions") if isinstance(found, dict) else found
        if not isinstance(answers, list) or len(answers) != len(rows):
            raise InvalidInputError(
                f'{self.url} must answer {len(rows):,} rows with {{"predictions": [...]}} of as many entries.'
            )
        return np.asarray(answers)
