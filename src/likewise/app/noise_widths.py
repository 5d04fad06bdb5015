"""How wide the noise of a smoothed model is, beside the people it is added to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from likewise.metrics.units import number

_DRAWS = 20_000
_SHARE = 0.95


def noise_widths(model: Any, X: pd.DataFrame) -> pd.DataFrame | None:
    """Per numeric column that matters: lowest and highest value, and ``noise``, within which 19 of 20 draws lie.

    None for a model without noise.
    """
    noise = getattr(model, "noise_", None)
    if noise is None:
        return None
    drawn = noise.sample(_DRAWS, np.random.default_rng(0))
    widths = np.quantile(np.abs(drawn), _SHARE, axis=0)
    names = noise.metric.feature_names or model.coding_.names
    rows = [
        (name, float(X[name].min()), float(X[name].max()), float(width))
        for name, width in zip(names, widths, strict=True)
        if width > 0 and pd.api.types.is_numeric_dtype(X[name].dtype)
    ]
    return pd.DataFrame(rows, columns=["column", "lowest", "highest", "noise"])


def wider_than_data(widths: pd.DataFrame) -> list[str]:
    """Columns in which the noise reaches further than from the lowest value to the highest."""
    return widths["column"][2 * widths["noise"] > widths["highest"] - widths["lowest"]].tolist()


def shown_widths(widths: pd.DataFrame) -> pd.DataFrame:
    """The same as text: years read 2004, and large amounts 120,000."""
    return pd.DataFrame(
        {
            "column": widths["column"],
            "people": [
                f"{number(a, 4)} to {number(b, 4)}" for a, b in zip(widths["lowest"], widths["highest"], strict=True)
            ],
            "noise": [f"± {number(float(f'{width:.3g}'))}" for width in widths["noise"]],
        }
    )
