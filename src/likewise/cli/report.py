"""The command that explains a model to people who are not engineers: report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Dialect, Output, command
from likewise.cli.models import PeopleSource, answers_of, file_of, load_any_model
from likewise.cli.review import ReviewOptions, read_review, reviews
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from likewise.auditing.file_review import FileReview
    from likewise.report.data import ReportData


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="[MODEL] TABLE")
@click.option("--target", help="Column with the outcome to predict; for a model of likewise.")
@click.option("--scores", help="Without a model: column with the scores of another system.")
@click.option("--metric", "metric_file", type=options.FILE, help="Metric file; for anything but a model of likewise.")
@click.option(
    "--range", "output_range", type=float, nargs=2, help="Lowest and highest score of another system, if not 0 and 1."
)
@click.option("--outcome", help="Class whose probability is shown; by default a known word, or the last.")
@click.option("--categories", type=options.FILE, help="JSON file with the categories that a model's file lacks.")
@click.option("--id", "id_column", help="Column that names people; by default the row, counted from 1.")
@click.option("--date", help="Date of the data, shown as given; by default none.")
@click.option("--title", default="How alike people are treated", show_default=True)
@reviews
@click.option(
    "--folds", type=click.IntRange(2, 10), default=3, show_default=True, help="Folds of the cross-validation."
)
@click.option("--out", type=options.FILE, default=Path("report.html"), show_default=True)
@options.force
@command
@options.reads_table
def report(
    echo: Output,
    paths: tuple[str, ...],
    target: str | None,
    scores: str | None,
    metric_file: Path | None,
    output_range: tuple[float, float] | None,
    outcome: str | None,
    categories: Path | None,
    id_column: str | None,
    date: str | None,
    title: str,
    review: ReviewOptions,
    folds: int,
    out: Path,
    force: bool,
    dialect: Dialect,
) -> None:
    """Write an offline page that explains a model, or scores alone, to people who are not engineers.

    Pairs are searched with the model itself. Scores of a model of likewise are cross-validated: models of its kind are
    trained on folds of the table, so it may be the table that the model was trained on. Of other models (see likewise
    effect --model), and of a column of scores (likewise report TABLE --scores COLUMN --metric FILE), the page shows the
    distance, pairs of people, and whether columns of weight 0 matter; it leaves out what cannot be said. With
    --decisions and what qualifies people (see likewise review), it shows denied people beside approved ones who are no
    better qualified.

    Example: likewise report model.skops loans.csv --target approved --out report.html
    """
    from likewise._optional import need
    from likewise.base import ConstrainedEstimator
    from likewise.cli.dataset import read_dataset
    from likewise.cli.table_io import named
    from likewise.io import check_output_path

    need("jinja2", "A report")  # before the measuring, which takes longest
    if len(paths) != (1 if scores is not None else 2):
        raise InvalidInputError("Give a model and a table, or a table alone with --scores and --metric.")
    if scores is not None and categories is not None:
        raise InvalidInputError("--categories is for a model; got --scores. Leave --categories out.")
    table = Path(paths[-1])
    check_output_path(out, table, metric_file, *([] if scores is not None else [file_of(paths[0])]), force=force)
    fitted: Any = None if scores is not None else load_any_model(paths[0], categories)
    words: dict[str, Any] = {"title": title, "source": named(table), "date": date or ""}
    if not isinstance(fitted, ConstrainedEstimator):
        if metric_file is None or target is not None:
            raise InvalidInputError(
                "--target is for a model of likewise, which is trained again. Other models, and scores alone, need "
                "--metric and no --target."
            )
        other = OtherSystem(table, fitted, scores, id_column, review, dialect)
        files = {} if scores is not None else {f"model {paths[0]}": file_of(paths[0])}
        files = {"table": table, **files, "metric file": metric_file}
        words["made"] = _how_made(files if categories is None else {**files, "categories": categories})
        write_page(other.report(echo, metric_file, output_range, outcome, words), out)
        echo(f"Wrote {out}", report_file=str(out))
        echo.finish(f"open {out} in a browser")
        return
    if target is None:
        raise InvalidInputError("Give --target, the column with the outcome that the model predicts.")
    model = Path(paths[0])
    model_metric: Any = fitted.guarantee_.metric
    data = read_dataset(
        table,
        target,
        [] if review.decisions is None else [review.decisions],
        dialect=dialect,
        task="classification" if hasattr(fitted, "classes_") else "regression",
        metric=model_metric,
        classes=getattr(fitted, "classes_", None),
        id_column=id_column,
        name_rows=True,
        note=echo.note,
    )
    if not data.is_classification and outcome is not None:
        raise InvalidInputError(f"--outcome is for a classification; {model} is a regression.")
    write_report(
        fitted,
        data.X,
        data.y,
        out,
        outcome=outcome if data.is_classification else target,
        review=_review_of(echo, table, review, model_metric, id_column, dialect, target),
        cv=folds,
        verbose=not echo.as_json,
        model_name=model.name,
        **words,
    )
    echo(f"Wrote {out}", report_file=str(out))
    echo.finish(f"open {out} in a browser")


def _review_of(
    echo: Output,
    table: Path,
    review: ReviewOptions,
    metric: Any,
    id_column: str | None,
    dialect: Dialect,
    ignore: str | None,
) -> FileReview | None:
    """The review of the table's files, if one was asked for; `ignore` is the target or the scores."""
    if not review.is_given:
        return None
    return read_review(echo, table, review, metric, id_column, dialect, [] if ignore is None else [ignore])[0]


def write_report(model: Any, X: Any, y: Any, path: Path, **parameters: Any) -> None:
    """Measure a model on people with known outcomes, and write the page; `parameters` are those of `build_report`."""
    from likewise.report.build import build_report

    write_page(build_report(model, X, y, **parameters), path)


def write_page(data: ReportData, path: Path) -> None:
    """Write a page."""
    from likewise._writing import atomic_write
    from likewise.report import render

    page = render(data)
    with atomic_write(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _how_made(files: dict[str, Path | None]) -> tuple[tuple[str, str], ...]:
    """The command, the digests of its files, versions and seeds."""
    import platform

    import numpy as np
    import sklearn

    from likewise import __version__
    from likewise.cli.decision_files import digest_of

    rows = [("Command, but for --out and --force", options.command_as_run())]
    for what, path in files.items():
        if path is None or str(path) == "-":
            rows.append((f"The {what}", "not a file, so it has no digest and may change"))
            continue
        parts = sorted(part for part in path.rglob("*") if part.is_file()) if path.is_dir() else [path]
        rows += [(f"SHA-256 of the {what.split()[0]}, {part.name}", digest_of(part)) for part in parts]
    versions = {"likewise": __version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__}
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    rows += [("Versions", f"{told}, Python {platform.python_version()}")]
    return (*rows, ("Seeds", "0 for every search and test"))


@dataclass(frozen=True, eq=False)
class OtherSystem:
    """Scores of another system: a model, or a column of a table."""

    table: Path
    model: Any
    scores: str | None
    id_column: str | None
    review: ReviewOptions
    dialect: Dialect

    def report(
        self, echo: Output, metric_file: Path, output_range: Any, outcome: str | None, words: dict[str, Any]
    ) -> ReportData:
        """Measure what scores show, and the model where it can be asked."""
        import numpy as np

        from likewise.cli.dataset import PeopleTable, named_rows, resolve_range
        from likewise.metric_file import read_metric_file
        from likewise.report.build import build_scores_report

        file = read_metric_file(metric_file)
        people = PeopleTable.read(
            self.table,
            file.metric,
            self.dialect,
            echo.note,
            id_column=self.id_column,
            others=[name for name in (self.scores, self.review.decisions) if name is not None],
        )
        asked = None
        if self.scores is None:
            asked, _ = PeopleSource(self.table, self.id_column, (), (), self.dialect).load(echo, self.model)
            found = np.asarray(answers_of(self.model, asked))
            answers = found[:, -1] if found.ndim == 2 and found.shape[1] == 2 else found
        else:
            answers = people.scores(self.scores).to_numpy()
        limits = resolve_range(file, output_range, metric_file)
        X = people.X
        X = X.set_axis(named_rows(self.id_column, range(1, len(X) + 1) if people.ids is None else people.ids))
        what = outcome or self.scores or "the score"
        review = _review_of(echo, self.table, self.review, file.metric, self.id_column, self.dialect, self.scores)
        return build_scores_report(
            X,
            answers,
            file.metric,
            outcome=what,
            output_range=limits,
            review=review,
            model=self.model,
            asked=asked,
            domain=None if asked is None else file.domain_for(asked),
            **words,
        )
