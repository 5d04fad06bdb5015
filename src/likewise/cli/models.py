"""Models that commands take, from files, URLs or Python functions, and tables as these models take them."""

from __future__ import annotations

import functools
import json
import re
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from likewise._favourable import label_of, named_favourable
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


def load_any_model(name: str, categories: Path | None = None) -> Any:
    """Load a model by what its name looks like; `categories` are in a JSON file, for boosters that hold none."""
    from likewise.inspection.external_models import BOOSTER_ENDINGS, load_booster
    from likewise.io import load_inner, load_model

    if categories is not None and not name.lower().endswith(BOOSTER_ENDINGS):
        raise InvalidInputError(f"--categories is for files of XGBoost (.json, .ubj); got --model {name}.")
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
        return load_booster(path, None if categories is None else _read_categories(categories))
    try:
        return load_model(path)
    except FileError as error:
        try:
            return load_inner(path)
        except FileError:
            raise error from None


def _read_categories(path: Path) -> dict[str, list[Any]]:
    """Categories by column, from a JSON file."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise FileError(f"Cannot read {path}: {error}.") from None
    if not isinstance(found, dict) or not all(isinstance(listed, list) for listed in found.values()):
        raise FileError(f'{path} must hold lists of categories by column, such as {{"job": ["clerk", "other"]}}.')
    return found


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


def echo_favourable(echo: Output, given: Any, classes: Any) -> None:
    """Say which class is taken for the favourable one; `given` is a label of `classes`, or None."""
    echo.note(named_favourable(given, np.asarray(classes)))


def check_taken(option: str, names: Sequence[str], people: pd.DataFrame) -> None:
    """Raise if an option names a column that the model does not take, or a set of 0/1 columns."""
    from likewise.verification.one_hot import find_one_hot

    for name in names:
        if name not in people.columns and name not in {each.name for each in find_one_hot(people)}:
            listed = ", ".join(map(str, people.columns))
            raise InvalidInputError(f"{option} must name columns that the model takes, {listed}; got {name!r}.")


def answers_of(model: Any, people: pd.DataFrame) -> Any:
    """What a model of another system answers for the people; raises if it knows no value of a column."""
    import pandas as pd

    from likewise.ask import as_taken, steady_answers
    from likewise.known_values import check_known

    taken = as_taken(model, people)
    check_known(model, taken)
    found = steady_answers(model, taken)
    return pd.DataFrame(found, columns=getattr(model, "classes_", None)) if hasattr(model, "predict_proba") else found


@dataclass(frozen=True)
class PeopleSource:
    """The options of a command that reads people for a model."""

    table: Path
    id_column: str | None
    categorical: tuple[str, ...]
    drop: tuple[str, ...]
    dialect: Dialect
    scores: str | None = None
    categories: Path | None = None

    def load(self, echo: Output, model: Any) -> tuple[pd.DataFrame, pd.Series[Any] | None]:
        """The columns that the model takes, as it takes them; and the names of the people.

        A model that does not know its columns takes all of them but the names, the scores and those to be left out.
        Raises if there are scores that the model does not reproduce.
        """
        from likewise.ask import known_columns
        from likewise.base import ConstrainedEstimator
        from likewise.cli.column_kinds import Faults, Kinds, as_kinds, infer_kinds
        from likewise.cli.model_spelling import SpellingOfModel
        from likewise.cli.table_io import Unseen, check_columns, named, read_table

        kinds = Kinds.of_model(model) if isinstance(model, ConstrainedEstimator) else None
        ids, where = [] if self.id_column is None else [self.id_column], named(self.table)
        beside = [] if self.scores is None else [self.scores]
        own = known_columns(model) or list(getattr(model, "feature_names_", []))
        unnamed = len(own) if own == [str(i) for i in range(len(own))] else 0  # CatBoost counts columns without names
        own = [] if unnamed else own

        def taken(names: list[str]) -> list[str]:
            return own or [name for name in names if name not in (*ids, *beside, *self.drop)]

        def as_text(names: list[str]) -> list[str]:
            known = SpellingOfModel.of(model, taken(names)).columns if kinds is None else kinds.as_text
            return [*self.categorical, *ids, *beside, *known]

        whole = read_table(self.table, self.dialect, echo.note, as_text=as_text, padded=kinds is None)
        check_columns(whole, [*ids, *beside, *self.drop], self.table)
        columns = taken(list(whole.columns))
        absent = [name for name in columns if name not in whole.columns]
        if absent:
            raise FileError(f"{where} has no column {absent[0]!r}, which the model takes.")
        names = None if self.id_column is None else whole[self.id_column].reset_index(drop=True)
        n_taken = unnamed or (len(columns) if own else getattr(model, "n_features_in_", len(columns)))
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
            self._check_scores(echo, model, people, whole, names)
            return people, names
        spelling = SpellingOfModel.of(model, columns)
        others = chosen.drop(columns=spelling.columns)
        read, _ = infer_kinds(others, self.dialect, echo.note, categorical=self.categorical)
        people = spelling.applied_to(
            chosen.assign(**{str(name): column for name, column in read.items()}), self.dialect, where, echo.note
        )
        spelling.refuse_unknown_text(people, where)
        self._check_scores(echo, model, people, whole, names)
        return people, names

    def _check_scores(
        self, echo: Output, model: Any, people: pd.DataFrame, whole: pd.DataFrame, names: pd.Series[Any] | None
    ) -> None:
        """Raise if the model's answers are not the scores in the table, as far as these are written out."""
        from likewise.cli.column_kinds import read_numbers

        if self.scores is None:
            return
        given = read_numbers(whole[self.scores], self.dialect)
        answers = np.asarray(answers_of(model, people))
        found = answers[:, 0] if answers.ndim == 2 and answers.shape[1] == 1 else answers
        if answers.ndim == 2 and answers.shape[1] == 2:  # scores are of either class: of the one that fits better
            misses = np.abs(answers - np.nan_to_num(given.values)[:, None]).max(axis=0)
            found = answers[:, int(misses[1] <= misses[0])]
        if found.ndim != 1 or found.dtype.kind not in "biuf" or np.isnan(given.values).any():
            raise InvalidInputError(
                f"--scores beside --model must be one number per person; {self.scores!r} has blanks or text, or the "
                "model answers with labels or several classes. Leave --scores out."
            )
        found_digits = [re.search(r"[.,](\d+)$", str(value)) for value in whole[self.scores].tolist()]
        digits = [0 if each is None else len(each[1]) for each in found_digits]
        step = 10.0 ** -float(np.quantile(digits, 0.95, method="lower"))  # a few may be sums, with more digits
        tolerance = step / 2 + 1e-6 * max(1.0, float(np.abs(given.values).max()))
        gaps = np.abs(found - given.values)
        worst, n = int(gaps.argmax()), int((gaps > tolerance).sum())
        if n:
            who = f"row {worst + 1}" if names is None else f"{self.id_column} {names[worst]}"
            raise InvalidInputError(
                f"The model does not reproduce --scores {self.scores}: for {n:,} of {len(gaps):,} people its answer is "
                f"off by more than {tolerance:.2g} (half the last digit of the scores, and rounding of the model); "
                f"most for {who}, by {gaps[worst]:.3g}: {found[worst]:.6g} instead of {given.values[worst]:.6g}. It is "
                "another model, or was given other people: look at spellings, units and categories."
            )
        echo(
            f"The model reproduces the scores of all {len(gaps):,} people, up to {tolerance:.2g}.",
            scores_reproduced_within=tolerance,
        )


def model_option(*, required: bool) -> Callable[[Any], Any]:
    """Add --model, passed on as text."""
    return click.option("--model", "model_name", required=required, help=f"Model: {KINDS}.")


def reads_people(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a table and how to read it for a model, passed to the function as one `source`."""

    @click.argument("table", type=options.TABLE)
    @options.id_column
    @options.categorical
    @options.drop
    @click.option(
        "--scores",
        help="Column with the scores of another system, between 0 and 1; beside --model, those that it must reproduce.",
    )
    @click.option("--categories", type=options.FILE, help="JSON file with the categories that a model's file lacks.")
    @options.reads_table
    @functools.wraps(function)
    def wrapped(
        *args: Any,
        table: Path,
        id_column: str | None,
        categorical: tuple[str, ...],
        drop: tuple[str, ...],
        scores: str | None,
        categories: Path | None,
        dialect: Dialect,
        **given: Any,
    ) -> Any:
        source = PeopleSource(table, id_column, categorical, drop, dialect, scores, categories)
        return function(*args, source=source, **given)

    return wrapped
