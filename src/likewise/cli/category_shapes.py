"""Order, groups and distances of categories for a metric that is revealed: from options, or from a metric file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from likewise.cli.column_kinds import as_ordered
from likewise.exceptions import InvalidInputError
from likewise.kernel.columns import canonical_texts
from likewise.metrics.table import TableMetric


@dataclass(frozen=True)
class GivenShapes:
    """Order, groups and distances by column, as `estimate_minimal_metric` takes them."""

    order: Mapping[str, Sequence[Any]]
    groups: Mapping[str, Any]
    distances: Mapping[str, Any]

    @classmethod
    def of(cls, metric: TableMetric | None, X: pd.DataFrame, groups: Mapping[str, list[list[str]]]) -> GivenShapes:
        """Those of a metric, for columns that `X` has, and `groups` of options, which replace them."""
        for name in groups:
            if name not in X.columns:
                raise InvalidInputError(
                    f"--group must name columns of the table; there is no {name!r} among {list(X.columns)}."
                )
        if metric is None:
            return cls({}, groups, {})
        order, own, distances = (
            {name: given for name, given in part.items() if name in X.columns and name not in groups}
            for part in (metric.order, metric.groups, metric.distances)
        )
        return cls(order, {**own, **groups}, distances)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that have a shape."""
        return (*self.order, *self.groups, *self.distances)

    def applied_to(self, X: pd.DataFrame) -> pd.DataFrame:
        """People with these columns as ordered categories, or as text."""
        ordered = {name: as_ordered(X[name], listed) for name, listed in self.order.items()}
        return X.assign(**ordered, **{name: canonical_texts(X[name]) for name in (*self.groups, *self.distances)})


NO_SHAPES = GivenShapes({}, {}, {})
