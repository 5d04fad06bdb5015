"""The command that bounds how much columns can matter: effect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Output, command
from likewise.exceptions import FileError, InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing.effect import Effect
    from likewise.cli.table_io import Dialect
    from likewise.metric_file import MetricFile


@click.command()
@click.argument("table", type=options.TABLE)
@click.option(
    "--model",
    "model_file",
    type=options.FILE,
    required=True,
    help="Model file: of likewise or scikit-learn (.skops), XGBoost (.json, .ubj), LightGBM (.txt) or CatBoost (.cbm).",
)
@click.option("--column", "columns", multiple=True, required=True, help="Column to exchange; repeat it for several.")
@click.option("--metric", "metric_file", type=options.FILE, help="Metric file, for its domain and the smallest excess.")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True, help="Time for the proof."
)
@click.option("--boxes", type=click.IntRange(1), help="Boxes to bound at most, in place of a time.")
@click.option("--categorical", multiple=True, help="Numeric column that holds codes; may be given several times.")
@click.option(
    "--max-effect",
    type=click.FloatRange(0, 100),
    help="Exit 1 unless the effect is proven to be at most this many percentage points.",
)
@click.option("--out", type=options.FILE, help="Write what exchanging the column does to each person as CSV.")
@options.force
@command
@options.reads_table
def effect(
    echo: Output,
    table: Path,
    model_file: Path,
    columns: tuple[str, ...],
    metric_file: Path | None,
    seconds: float,
    boxes: int | None,
    categorical: tuple[str, ...],
    max_effect: float | None,
    out: Path | None,
    force: bool,
    dialect: Dialect,
) -> None:
    """Find how much a column can matter: for these people, for the worst pair there can be, and at most.

    Example: likewise effect loans.csv --model model.skops --column sex --out effect.csv
    """
    import sys

    from likewise import effect as find_effect
    from likewise._writing import atomic_write, write_csv
    from likewise.io import check_output_path
    from likewise.metric_file import read_metric_file

    if out is not None:
        check_output_path(out, table, metric_file, model_file, force=force)
    file = None if metric_file is None else read_metric_file(metric_file)
    model = _load(model_file)
    X = _people(echo, table, dialect, model, file, categorical)
    with echo.busy("Bounding"):
        found = find_effect(
            model,
            X,
            list(columns),
            None if file is None else file.metric,
            domain=None if file is None else file.domain_for(X),
            max_seconds=None if boxes is not None else seconds,
            max_boxes=boxes,
        )
    _tell(echo, found)
    if out is not None:
        with atomic_write(out) as temporary:
            write_csv(found.on_people, temporary, index=False)
        echo(f"\nWrote {out}", people_file=str(out))
    passed = max_effect is None or (found.proven is not None and 100 * found.proven <= max_effect)
    if max_effect is not None:
        echo(
            f"\nThe gate, at most {max_effect:g} points for anybody in the domain, {'passed' if passed else 'failed'}.",
            gate=max_effect / 100,
            passed=passed,
        )
    echo.finish()
    if not passed:
        sys.exit(1)


def _load(path: Path) -> Any:
    """A model of likewise, of scikit-learn, or of a library of boosting, by the ending of its file."""
    from likewise.inspection.booster_files import ENDINGS, load_booster
    from likewise.io import load_inner, load_model

    if path.suffix.lower() in ENDINGS:
        return load_booster(path)
    try:
        return load_model(path)
    except FileError as error:
        try:
            return load_inner(path)
        except FileError:
            raise error from None


def _people(
    echo: Output, path: Path, dialect: Dialect, model: Any, file: MetricFile | None, categorical: tuple[str, ...]
) -> pd.DataFrame:
    """The columns of a table that the model takes, as the model takes them."""
    from likewise.base import ConstrainedEstimator
    from likewise.cli.column_kinds import Faults, Kinds, as_kinds, infer_kinds
    from likewise.cli.table_io import named, read_table

    known = list(getattr(model, "feature_names_in_", getattr(model, "feature_names_", [])))
    kinds = Kinds.of_model(model) if isinstance(model, ConstrainedEstimator) else None
    as_text = [*categorical, *([] if kinds is None else kinds.as_text)]
    whole = read_table(path, dialect, echo.note, as_text=as_text, padded=kinds is None)
    absent = [name for name in known if name not in whole.columns]
    if absent:
        raise FileError(f"{named(path)} has no column {absent[0]!r}, which the model takes.")
    if not known:
        raise InvalidInputError(
            "The model does not know the names of its columns. Train it on a table with named columns."
        )
    chosen = whole[known]
    if kinds is not None:
        faults = Faults()
        people = as_kinds(chosen, kinds, dialect, faults, echo.note)
        faults.stop(named(path), of_model=True)
        return people
    people, _ = infer_kinds(chosen, dialect, echo.note, categorical=categorical)
    if type(model).__module__.partition(".")[0] in ("xgboost", "lightgbm", "catboost") or hasattr(model, "booster_"):
        texts = {name: "category" for name in people if people[name].dtype.kind not in "iufb"}
        people = people.astype(texts)
    return people


def points(share: float) -> str:
    """A share of 1 in percentage points."""
    return f"{100 * share:.4g}"


def _tell(echo: Output, found: Effect) -> None:
    """The answers in the order of an examination: people, the worst pair, the proof."""
    names = " and ".join(map(str, found.columns))
    largest = float(found.on_people["effect"].max())
    low, high = found.mean_interval
    echo(
        f"For these {len(found.on_people):,} people: exchanging {names} alone changes the output by "
        f"{points(found.mean)} points on average ({points(low)} to {points(high)} in the population, at 95%), and by "
        f"{points(largest)} at most.",
        n_people=len(found.on_people),
        mean=found.mean,
        mean_interval=list(found.mean_interval),
        largest_on_people=largest,
    )
    if len(found.directions):
        echo("\nWho gains:")
        echo.table(found.directions, "directions")
    if len(found.groups):
        echo("\nBy the people's own value:")
        echo.table(found.groups, "groups")
    echo(f"\nThe worst pair found in the domain differs by {points(found.found)} points:", found=found.found)
    echo.table(found.pair.astype(object).T.reset_index().set_axis(["column", "one", "other"], axis=1), "pair")
    if found.meets:
        text = f"Proven: no two people of the domain who differ in {names} alone differ by more ({found.how})."
    elif found.proven is not None:
        text = (
            f"Proven: no two people of the domain who differ in {names} alone differ by more than "
            f"{points(found.proven)} points ({found.how}). Between the two, the answer is open: more --seconds may "
            "close it."
        )
    else:
        text = f"No upper bound is proven: {found.how}."
    echo(f"\n{text}", proven=found.proven, meets=found.meets, how=found.how, n_boxes=found.n_boxes)
    if found.excess is not None:
        limit = "no upper bound is proven" if found.excess.proven is None else f"at most {points(found.excess.proven)}"
        echo(
            f"\nOver all pairs of the domain, outputs exceed the metric by {points(found.excess.found)} points in the "
            f"worst pair found; {limit}{'' if found.excess.proven is not None else ': ' + found.excess.how}.",
            excess_found=found.excess.found,
            excess_proven=found.excess.proven,
        )
    echo("\nThe domain, what each column can hold:")
    echo.table(found.domain.describe(), "domain")
