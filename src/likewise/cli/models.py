"""Models that commands take, from files, URLs or Python functions, and tables as these models take them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Output
from likewise.exceptions import FileError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from likewise.cli.table_io import Dialect

KINDS = (
    "a file of likewise or scikit-learn (.skops), XGBoost (.json, .ubj), LightGBM (.txt), CatBoost (.cbm) or ONNX "
    "(.onnx), the URL of a scoring server (http://...), or a Python function (module:function)"
)


def model_option(*, required: bool) -> Callable[[Any], Any]:
    """The option --model, passed on as a text."""
    return click.option("--model", "model_name", required=required, help=f"Model: {KINDS}.")


def file_of(name: str | None) -> Path | None:
    """The file of a model, if it is in one."""
    return None if name is None or _is_url(name) or _function_of(name) is not None else Path(name)


def load_any_model(name: str) -> Any:
    """Load a model by what its name looks like."""
    from likewise.inspection.booster_files import ENDINGS, load_booster
    from likewise.io import load_inner, load_model

    if _is_url(name):
        from likewise.inspection.endpoints import Endpoint

        return Endpoint(name)
    if (parts := _function_of(name)) is not None:
        return _import_function(*parts)
    path = Path(name)
    if path.suffix.lower() == ".onnx":
        from likewise.inspection.onnx_files import load_onnx

        return load_onnx(path)
    if path.suffix.lower() in ENDINGS:
        return load_booster(path)
    try:
        return load_model(path)
    except FileError as error:
        try:
            return load_inner(path)
        except FileError:
            raise error from None


def _is_url(name: str) -> bool:
    return name.startswith(("http://", "https://"))


def _function_of(name: str) -> tuple[str, str] | None:
    """Module and function of ``package.module:function``; None for anything else."""
    module, colon, function = name.rpartition(":")
    fits = colon and function.isidentifier() and all(part.isidentifier() for part in module.split("."))
    return (module, function) if fits and not Path(name).exists() else None


def _import_function(module: str, function: str) -> Any:
    """A function of a module that can be imported, here or from the current directory."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found = getattr(import_module(module), function, None)
    except ImportError as error:
        raise InvalidInputError(f"--model {module}:{function} cannot be imported: {error}.") from None
    finally:
        sys.path.remove(here)
    if not callable(found) and not hasattr(found, "predict"):
        raise InvalidInputError(f"--model must name a function or a model; {module} has no such {function!r}.")
    return found


def read_people(
    echo: Output,
    path: Path,
    dialect: Dialect,
    model: Any,
    *,
    categorical: Sequence[str] = (),
    id_column: str | None = None,
    drop: Sequence[str] = (),
) -> tuple[pd.DataFrame, pd.Series[Any] | None]:
    """The columns of a table that the model takes, as it takes them; and the names of the people.

    A model that does not know its columns takes all of them but the names and those to be left out.
    """
    from likewise.base import ConstrainedEstimator
    from likewise.cli.column_kinds import Faults, Kinds, as_kinds, infer_kinds
    from likewise.cli.table_io import named, read_table

    known = list(getattr(model, "feature_names_in_", getattr(model, "feature_names_", [])))
    kinds = Kinds.of_model(model) if isinstance(model, ConstrainedEstimator) else None
    others = [*([] if id_column is None else [id_column]), *drop]
    as_text = [*categorical, *others[:1], *([] if kinds is None else kinds.as_text)]
    whole = read_table(path, dialect, echo.note, as_text=as_text, padded=kinds is None)
    for name in [*others, *known]:
        if name not in whole.columns:
            what = "which the model takes" if name in known else f"it has {list(whole.columns)}"
            raise FileError(f"{named(path)} has no column {name!r}; {what}.")
    ids = None if id_column is None else whole[id_column].reset_index(drop=True)
    known = known or [name for name in whole.columns if name not in others]
    n_taken = getattr(model, "n_features_in_", len(known))
    if n_taken != len(known):
        raise InvalidInputError(
            f"The model takes {n_taken} columns without names; {named(path)} has {len(known)}: {known}. "
            + ("Leave out the others with --drop." if n_taken < len(known) else "Add the missing ones.")
        )
    chosen = whole[known]
    if kinds is not None:
        faults = Faults(ids)
        people = as_kinds(chosen, kinds, dialect, faults, echo.note)
        faults.stop(named(path), of_model=True)
        return people, ids
    people, _ = infer_kinds(chosen, dialect, echo.note, categorical=categorical)
    if type(model).__module__.partition(".")[0] in ("xgboost", "lightgbm", "catboost") or hasattr(model, "booster_"):
        people = people.astype({name: "category" for name in people if people[name].dtype.kind not in "iufb"})
    return people, ids


def check_taken(option: str, names: Sequence[str], people: pd.DataFrame) -> None:
    """Raise if an option names a column that the model does not take."""
    for name in names:
        if name not in people.columns:
            listed = ", ".join(map(str, people.columns))
            raise InvalidInputError(f"{option} must name columns that the model takes, {listed}; got {name!r}.")


def reads_model(*, required: bool) -> Callable[[Any], Any]:
    """Add --model and how to read a table for it."""

    def decorate(function: Any) -> Any:
        for option in (options.drop, options.categorical, options.id_column, model_option(required=required)):
            function = option(function)
        return function

    return decorate
