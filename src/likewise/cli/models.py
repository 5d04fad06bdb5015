"""Models that commands take, from files, URLs or Python functions, and tables as these models take them."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise._favourable import label_of
from likewise.cli import console as options
from likewise.cli.console import Dialect, Output
from likewise.exceptions import FileError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd


KINDS = (
    "a file of likewise or scikit-learn (.skops), XGBoost (.json, .ubj), LightGBM (.txt), CatBoost (.cbm) or ONNX "
    "(.onnx), the URL of a scoring server (http://...), or a Python function (module:function)"
)


def file_of(name: str | None) -> Path | None:
    """The file of a model, if it is in one."""
    return None if name is None or _is_url(name) or _function_of(name) is not None else Path(name)


def load_any_model(name: str) -> Any:
    """Load a model by what its name looks like."""
    from likewise.inspection.external_models import BOOSTER_ENDINGS, load_booster
    from likewise.io import load_inner, load_model

    if _is_url(name):
        from likewise.inspection.external_models import Endpoint

        return Endpoint(name)
    if (parts := _function_of(name)) is not None:
        return _import_function(*parts)
    path = Path(name)
    if path.suffix.lower() == ".onnx":
        from likewise.inspection.external_models import load_onnx

        return load_onnx(path)
    if path.suffix.lower() in BOOSTER_ENDINGS:
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


def class_named(name: str | None, classes: Any, option: str = "--favourable") -> Any:
    """The class of this name; None if there is no name, or for a regression."""
    return None if name is None or classes is None else label_of(name, classes.tolist(), option=option)


def check_taken(option: str, names: Sequence[str], people: pd.DataFrame) -> None:
    """Raise if an option names a column that the model does not take."""
    for name in names:
        if name not in people.columns:
            listed = ", ".join(map(str, people.columns))
            raise InvalidInputError(f"{option} must name columns that the model takes, {listed}; got {name!r}.")


def answers_of(model: Any, people: pd.DataFrame) -> Any:
    """What a model of another system answers for the people; raises if it knows no value of a column."""
    import pandas as pd

    from likewise.ask import answers, as_taken
    from likewise.known_values import check_known

    taken = as_taken(model, people)
    check_known(model, taken)
    found = answers(model, taken)
    return pd.DataFrame(found, columns=getattr(model, "classes_", None)) if hasattr(model, "predict_proba") else found


@dataclass(frozen=True)
class PeopleSource:
    """The options of a command that reads people for a model."""

    table: Path
    id_column: str | None
    categorical: tuple[str, ...]
    drop: tuple[str, ...]
    dialect: Dialect

    def load(self, echo: Output, model: Any) -> tuple[pd.DataFrame, pd.Series[Any] | None]:
        """The columns that the model takes, as it takes them; and the names of the people.

        A model that does not know its columns takes all of them but the names and those to be left out.
        """
        from likewise.ask import known_columns
        from likewise.base import ConstrainedEstimator
        from likewise.cli.column_kinds import Faults, Kinds, as_kinds, infer_kinds
        from likewise.cli.model_spelling import SpellingOfModel
        from likewise.cli.table_io import Unseen, check_columns, named, read_table

        kinds = Kinds.of_model(model) if isinstance(model, ConstrainedEstimator) else None
        ids, where = [] if self.id_column is None else [self.id_column], named(self.table)
        own = known_columns(model) or list(getattr(model, "feature_names_", []))

        def taken(names: list[str]) -> list[str]:
            return own or [name for name in names if name not in (*ids, *self.drop)]

        def as_text(names: list[str]) -> list[str]:
            known = SpellingOfModel.of(model, taken(names)).columns if kinds is None else kinds.as_text
            return [*self.categorical, *ids, *known]

        whole = read_table(self.table, self.dialect, echo.note, as_text=as_text, padded=kinds is None)
        check_columns(whole, [*ids, *self.drop], self.table)
        columns = taken(list(whole.columns))
        absent = [name for name in columns if name not in whole.columns]
        if absent:
            raise FileError(f"{where} has no column {absent[0]!r}, which the model takes.")
        names = None if self.id_column is None else whole[self.id_column].reset_index(drop=True)
        n_taken = len(columns) if own else getattr(model, "n_features_in_", len(columns))
        if n_taken != len(columns):
            raise InvalidInputError(
                f"The model takes {n_taken} columns without names; {where} has {len(columns)}: {columns}. "
                + ("Leave out the others with --drop." if n_taken < len(columns) else "Add the missing ones.")
            )
        chosen = whole[columns]
        if kinds is not None:
            faults = Faults(names)
            people = as_kinds(chosen, kinds, self.dialect, faults, echo.note)
            faults.stop(where, of_model=True)
            unseen = Unseen(model)
            unseen.look(people)
            unseen.stop(where)
            unseen.tell(echo.note)
            return people, names
        spelling = SpellingOfModel.of(model, columns)
        others = chosen.drop(columns=spelling.columns)
        read, _ = infer_kinds(others, self.dialect, echo.note, categorical=self.categorical)
        people = spelling.applied_to(
            chosen.assign(**{str(name): column for name, column in read.items()}), self.dialect, where, echo.note
        )
        spelling.refuse_unknown_text(people, where)
        return people, names


def model_option(*, required: bool) -> Callable[[Any], Any]:
    """Add --model, passed on as text."""
    return click.option("--model", "model_name", required=required, help=f"Model: {KINDS}.")


def reads_people(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a table and how to read it for a model, passed to the function as one `source`."""

    @click.argument("table", type=options.TABLE)
    @options.id_column
    @options.categorical
    @options.drop
    @options.reads_table
    @functools.wraps(function)
    def wrapped(
        *args: Any,
        table: Path,
        id_column: str | None,
        categorical: tuple[str, ...],
        drop: tuple[str, ...],
        dialect: Dialect,
        **given: Any,
    ) -> Any:
        source = PeopleSource(table, id_column, categorical, drop, dialect)
        return function(*args, source=source, **given)

    return wrapped
