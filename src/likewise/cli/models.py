"""Models that commands take, from files, URLs or Python functions, and tables as these models take them."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from likewise._favourable import (
    Direction,
    given_or_stored,
    known_favourable,
    label_of,
    named_favourable,
    the_favourable,
)
from likewise.cli import console as options
from likewise.cli.console import Destination, Output, as_one
from likewise.exceptions import FileError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas as pd

    from likewise.cli.dataset import Dataset
    from likewise.cli.sources import PeopleSource
    from likewise.metric_file import MetricFile


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
    found = None
    with suppress(ValueError):
        found = json.loads(path.read_bytes())
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


def echo_favourable(echo: Output, given: Any, classes: Any) -> Any:
    """The favourable one of some classes, which is said: `given`, a label or its text, or known by its word."""
    echo.note(named_favourable(given, np.asarray(classes)))
    return the_favourable(given, classes)


def settle_favourable(echo: Output, given: str | None, data: Dataset, target: str) -> Any:
    """What is favourable for people with these outcomes, once: as given, stored in the metric file, known, or asked.

    Yes and no, true and false, 1 and 0 are known if the name of the target asks the question, as "approved" does.
    None if nobody says it; then no command speaks of gain.
    """
    labels = np.unique(data.y).tolist() if data.is_classification else []
    stored = data.favourable
    if labels and stored and stored not in map(str, labels):
        echo.note(f"The metric file calls {stored!r} favourable, which is no class of {target!r}: not used.")
        stored = ""
    if given and stored and given != stored:
        raise InvalidInputError(
            f"--favourable {given} contradicts the metric file, which says {stored} under [output]. Leave it out, or "
            "change the file."
        )
    given = given or stored
    if given:
        Direction.of(given, labels or None, max(1, len(labels) - 1))  # raises for what is no class, or no end
        echo(f"Favourable: '{given}', as named.", favourable=given)
        return class_named(given, np.unique(data.y)) if labels else given
    if not labels:
        return None
    found, how = known_favourable(labels), "recognised by the word"
    if found is None:
        found, how = known_favourable(labels, target), f"by the name of the target, {target!r}"
    if found is None and options.is_terminal() and not echo.as_json:
        answer = click.prompt(
            f"Which outcome is better for a person: {', '.join(map(str, labels))}? Enter if none is",
            default="",
            show_default=False,
            err=True,
        )
        found, how = class_named(answer.strip() or None, np.unique(data.y)), "as named"
    if found is None:
        listed = " or ".join(map(str, labels))
        echo.note(f"Nobody has said which outcome is favourable. --favourable {listed} is kept in the file.")
    else:
        echo(f"Favourable: '{found}', {how}.", favourable=str(found))
    return found


def check_taken(option: str, names: Sequence[str], people: pd.DataFrame) -> None:
    """Raise if an option names a column that the model does not take, or a set of 0/1 columns."""
    from likewise.verification.one_hot import find_one_hot

    for name in names:
        if name not in people.columns and name not in {each.name for each in find_one_hot(people)}:
            listed = ", ".join(map(str, people.columns))
            raise InvalidInputError(f"{option} must name columns that the model takes, {listed}; got {name!r}.")


def answers_of(model: Any, people: pd.DataFrame) -> Any:
    """What a model answers for the people; raises if it knows no value of a column."""
    import pandas as pd

    from likewise.ask import as_taken, steady_answers
    from likewise.known_values import check_known

    taken = as_taken(model, people)
    check_known(model, taken)
    found = steady_answers(model, taken)
    own_range = getattr(getattr(model, "guarantee_", None), "output_range", None)
    if own_range is not None:
        return found.clip(*own_range)  # a mean may leave the range by a rounding error
    return pd.DataFrame(found, columns=getattr(model, "classes_", None)) if hasattr(model, "predict_proba") else found


def direction_of(given: str | None, model: Any, file: MetricFile | None) -> Any:
    """What is favourable: as given, or else as the metric file or the model says; None if nobody does."""
    if given is not None or file is None or not file.favourable:
        return given_or_stored(given, model)
    classes = getattr(model, "classes_", None)
    fits = file.favourable in (("high", "low") if classes is None else map(str, classes))
    return file.favourable if fits else given_or_stored(None, model)


@dataclass(frozen=True)
class Examined:
    """A model or scores under examination, what they are compared with, and what is favourable."""

    model_name: str | None
    metric_file: Path | None
    output_range: tuple[float, float] | None
    favourable: str | None

    def load(self, source: PeopleSource, to: Destination) -> tuple[Any, MetricFile | None, Any]:
        """The model, the metric file and, for another system, the range of its outputs."""
        from likewise.cli.dataset import resolve_range
        from likewise.metric_file import read_metric_file

        to.check(source.table, self.metric_file, file_of(self.model_name))
        model = None if self.model_name is None else load_any_model(self.model_name, source.categories)
        if self.metric_file is None:
            return model, None, self.output_range
        file = read_metric_file(self.metric_file)
        own = hasattr(model, "guarantee_")
        return model, file, self.output_range if own else resolve_range(file, self.output_range, self.metric_file)


def examines(metric_text: str = "by default the model's metric.", *, needs_model: bool = True) -> Callable[..., Any]:
    """Add --model, --metric, --range and --favourable, passed to the function as one `examined`."""
    return as_one(
        Examined,
        "examined",
        click.option("--model", "model_name", required=needs_model, help=f"Model: {KINDS}."),
        click.option("--metric", "metric_file", type=options.FILE, help=f"Metric file; {metric_text}"),
        options.score_range,
        options.favourable,
    )
