"""Metrics, models and tables on disk: readable, checked, and never half-written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator

from likewise.guarantees.curves import Curve
from likewise.metrics.abstract import Metric
from likewise.metrics.tabular import TableMetric

_VERSIONED = ("likewise", "numpy", "scikit-learn")
_FORMAT = 1


class FileError(ValueError):
    """A file that cannot be read or does not fit; the message says which, why, and what to do."""


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Give a temporary path in the same directory; it takes the place of `path` only if nothing fails."""
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror}.") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror or error}.") from None
    finally:
        temporary.unlink(missing_ok=True)


# -- metrics ----------------------------------------------------------------------------------------------------


def write_metric(metric: TableMetric, path: str | Path, *, note: str = "") -> None:
    """Write a metric as TOML that people can edit, with what each weight means as a comment."""
    with atomic_write(path) as temporary:
        temporary.write_text(format_metric(metric, note=note), encoding="utf-8")


def format_metric(metric: TableMetric, *, note: str = "") -> str:
    """Return the text of a metric file."""
    import tomlkit

    worth = dict(zip(metric.describe()["column"], metric.describe()["one point"], strict=True))
    document = tomlkit.document()
    for line in (
        "A distance between people. Two people at distance 0.05 may be treated differently by 5 percentage points.",
        "Edit the weights, then use this file with likewise smooth or likewise audit. 0 means: must not matter.",
        *note.splitlines(),
    ):
        document.add(tomlkit.comment(line))
    document.add("p", _number(metric.p))
    sections: list[tuple[str, str, Any]] = [
        (
            "numeric",
            "Weight per unit of the column, and the difference that is worth one percentage point.",
            metric.numeric,
        ),
        ("categorical", "Weight of any two different values, between 0 and 1.", metric.categorical),
        ("missing", "Weight between a person who has the number and one who has not, between 0 and 1.", metric.missing),
        ("units", "What one unit of a column is; shown in reports.", metric.units),
    ]
    for name, meaning, values in sections:
        if not values:
            continue
        table = tomlkit.table()
        table.add(tomlkit.comment(meaning))
        for column, value in values.items():
            item = tomlkit.item(value if isinstance(value, str) else _number(value))
            if name in ("numeric", "categorical"):
                item.comment(_plain(f"1 point = {worth[column]}" if name == "numeric" and value else worth[column]))
            table.add(column, item)
        document.add(tomlkit.nl())
        document.add(name, table)
    return tomlkit.dumps(document)


def read_metric(path: str | Path) -> TableMetric:
    """Read a metric file; errors name the line."""
    import tomlkit
    from tomlkit.exceptions import ParseError

    text = _read_text(path)
    try:
        given = tomlkit.parse(text).unwrap()
    except ParseError as error:
        raise FileError(f"{path}, line {error.line}: not valid TOML ({error}).") from None
    known = ("p", "numeric", "categorical", "missing", "units")
    for key in given:
        if key not in known:
            raise FileError(f"{path}, line {_line(text, None, key)}: unknown entry {key!r}; use {', '.join(known)}.")
    for section in known[1:]:
        if not isinstance(given.get(section, {}), dict):
            raise FileError(f"{path}, line {_line(text, None, section)}: [{section}] must be a section with columns.")
        for column, value in given.get(section, {}).items():
            weighted = [*given.get("numeric", {}), *(given.get("categorical", {}) if section == "units" else {})]
            if section in ("missing", "units") and column not in weighted:
                raise FileError(
                    f"{path}, line {_line(text, section, column)}: {column!r} has no weight in this metric."
                )
            # One column at a time, so that an error is about a line.
            sample: dict[str, Any] = {"numeric": {column: 1.0}, section: {column: value}}
            if section == "categorical":
                sample.pop("numeric")
            _try(lambda sample=sample: TableMetric(**sample), path, _line(text, section, column))
    missing: Any = given.pop("missing", None) or "refuse"
    metric: TableMetric = _try(lambda: TableMetric(**given, missing=missing), path, _line(text, None, "p"))
    return metric


def _try(make: Any, path: str | Path, line: int) -> Any:
    try:
        return make()
    except (TypeError, ValueError) as error:
        raise FileError(f"{path}, line {line}: {error}") from None


def _line(text: str, section: str | None, key: str) -> int:
    """Line of an entry; 1 if it is written in a way that is not found."""
    import tomlkit

    where = None
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if bare.startswith("["):
            where = bare.strip("[] \t")
            if section is None and where == key:
                return number
        elif where == section and "=" in bare:
            name = bare.split("=")[0].strip()
            if name in (key, tomlkit.string(key).as_string(), f"'{key}'"):
                return number
    return 1


def _number(value: float) -> int | float:
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else float(value)


def _plain(text: str) -> str:
    return " ".join(text.split())


# -- models -----------------------------------------------------------------------------------------------------


def save_model(model: Any, path: str | Path) -> None:
    """Save a fitted model, with the versions that it needs; never as a pickle."""
    import skops.io

    document = {"format": _FORMAT, "versions": {name: version(name) for name in _VERSIONED}, "model": model}
    data = skops.io.dumps(document)
    unknown = [kind for kind in skops.io.get_untrusted_types(data=data) if not _allowed(kind)]
    if unknown:
        raise FileError(
            f"Cannot save the model: it holds objects of type {unknown[0]}, which a likewise file may not. "
            "Use models of scikit-learn and likewise."
        )
    with atomic_write(path) as temporary:
        temporary.write_bytes(data)


def load_model(path: str | Path) -> Any:
    """Load a model, if it holds nothing but known types and was saved with fitting versions."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileError(f"There is no model file {path}. Make one with likewise smooth.") from None
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror}.") from None
    return model_from_bytes(data, str(path))


def model_from_bytes(data: bytes, name: str) -> Any:
    """Load a model from the content of a file; `name` is for errors."""
    import skops.io

    try:
        types = skops.io.get_untrusted_types(data=data)
        unknown = [kind for kind in types if not _allowed(kind)]
        document = None if unknown else skops.io.loads(data, trusted=types)
    except Exception as error:  # whatever a damaged archive leads to
        raise FileError(
            f"{name} is not a model saved by likewise, or it is damaged ({_plain(str(error))[:120]})."
        ) from None
    if unknown:
        raise FileError(f"{name} holds objects of type {unknown[0]}, which likewise does not load.")
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise FileError(f"{name} is not a model saved by likewise.")
    for package, saved in document["versions"].items():
        if _minor(saved) != _minor(version(package)):
            raise FileError(
                f"{name} was saved with {package} {saved}; here is {version(package)}, with which its scores could "
                f"differ. Install {package}=={saved}, or smooth the model again."
            )
    return document["model"]


# What a model file may hold beyond what skops trusts: our own classes, and the parts of models that hold nothing but
# numbers.
_OWN = ("likewise.enforce.", "likewise.guarantees.", "likewise.metrics.", "likewise.models.")
_FOREIGN = frozenset(
    {
        "numpy.dtype",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
    }
)


def _allowed(kind: str) -> bool:
    """Whether files may hold objects of this type.

    Of our own: estimators, metrics, curves and frozen dataclasses, whose state is data. Nothing of a file is run.
    """
    if kind in _FOREIGN or not kind.startswith(_OWN):
        return kind in _FOREIGN
    module, _, name = kind.rpartition(".")
    try:
        own = getattr(import_module(module), name, None)
    except ImportError:
        return False
    return isinstance(own, type) and (issubclass(own, (BaseEstimator, Curve, Metric)) or is_dataclass(own))


def _minor(text: str) -> tuple[str, ...]:
    return tuple(text.split(".")[:2])


# -- tables -----------------------------------------------------------------------------------------------------


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a CSV or Parquet file."""
    path = Path(path)
    if not path.is_file():
        raise FileError(f"There is no file {path}.")
    kind = "".join(path.suffixes).lower()
    try:
        if kind.endswith(".parquet"):
            return pd.read_parquet(path)
        if kind.endswith((".csv", ".csv.gz")):
            return pd.read_csv(path)
    except Exception as error:  # pandas and pyarrow raise many kinds
        raise FileError(f"Cannot read {path}: {_plain(str(error))[:200]}.") from None
    raise FileError(f"{path} must be a .csv, .csv.gz or .parquet file.")


def _read_text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"Cannot read {path}: {error}.") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
