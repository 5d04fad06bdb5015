"""Bound metrics made of their parts, for tests of what reads them."""

import numpy as np

from likewise.kernel.columns import CategoricalColumn, NumericColumn
from likewise.kernel.metric import bind
from likewise.kernel.schema import TableEncoder


def of_parts(weights, is_number, missing, p=1.0, tables=None):
    """A metric with these weights, kinds of columns and weights of blanks; codes have as many levels as their table."""
    codes = {i: len(table) - 1 for i, table in (tables or {}).items()}
    columns = tuple(
        NumericColumn(i) if number else CategoricalColumn(i, tuple(map(str, range(codes.get(i, 2)))), False, "object")
        for i, number in enumerate(is_number)
    )
    given = (np.asarray(each, dtype=np.float64) for each in (weights, missing))
    weights, missing = given
    return bind(None, TableEncoder(columns), weights, missing=missing, p=p, tables=tables)
