"""What every loader returns."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.utils import Bunch


def make_bunch(
    data: pd.DataFrame,
    target: pd.Series[Any],
    *,
    target_names: list[str],
    units: dict[str, str],
    licence: str,
    descr: str,
    **more: Any,
) -> Bunch:
    """Assemble a Bunch with the fields of scikit-learn's loaders, and `units` and `licence`."""
    return Bunch(
        data=data,
        target=target,
        frame=pd.concat([data, target], axis=1),
        feature_names=list(data.columns),
        target_names=target_names,
        units={name: units[name] for name in data.columns},
        licence=licence,
        DESCR=descr,
        **more,
    )
