"""The command that explains a model to people who are not engineers: report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Destination, Dialect, Output, as_one, command
from likewise.cli.models import answers_of, direction_of, file_of, load_any_model
from likewise.cli.review import ReviewOptions, read_review, reviews
from likewise.cli.sources import PeopleSource, categories
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing.file_review import FileReview
    from likewise.report.data import ReportData


@dataclass(frozen=True)
class Page:
    """What a page is about, and what its title says."""

    paths: tuple[str, ...]
    target: str | None
    scores: str | None
    metric_file: Path | None
    output_range: tuple[float, float] | None
    outcome: str | None
    favourable: str | None
    categories: Path | None
    id_column: str | None
    date: str | None
    title: str
    folds: int
    dialect: Dialect

    @property
    def model_name(self) -> str | None:
        """The model, if there is one beside the table."""
        return self.paths[0] if len(self.paths) == 2 else None

    @property
    def source(self) -> PeopleSource:
        """The table."""
        table = Path(self.paths[-1])
        return PeopleSource(table, self.id_column, self.dialect, scores=self.scores, categories=self.categories)

    def words(self, model: Any) -> dict[str, Any]:
        """Texts of the page, and how it was made."""
        from likewise.cli.table_io import named

        files: dict[str, Path | None] = {"table": self.source.table}
        files |= {f"model {self.model_name}": file_of(self.model_name)} if self.model_name else {}
        files |= {"metric file": self.metric_file} if self.metric_file else {}
        files |= {"categories": self.categories} if self.categories else {}
        source, made = named(self.source.table), _how_made(files, model)
        return {"title": self.title, "source": source, "date": self.date or "", "made": made}

    def review_of(
        self, echo: Output, review: ReviewOptions, metric: Any, limits: tuple[float, float] | None
    ) -> FileReview | None:
        """The review of the table's files, if one was asked for."""
        if not review.is_given:
            return None
        ignore = [name for name in (self.target, self.scores) if name is not None]
        return read_review(echo, self.source, review, metric, limits, ignore=ignore)[0]

    def of_other_system(self, echo: Output, model: Any, review: ReviewOptions) -> ReportData:
        """Measure what scores show, and the model where it can be asked."""
        import numpy as np

        from likewise.cli.dataset import PeopleTable, resolve_range
        from likewise.metric_file import read_metric_file
        from likewise.report.build import build_scores_report, shown_outcome

        if self.metric_file is None or self.target is not None:
            raise InvalidInputError(
                "--target is for a model of likewise, which is trained again. Other models, and scores alone, need "
                "--metric and no --target."
            )
        file, source = read_metric_file(self.metric_file), self.source
        beside = [name for name in (self.scores, review.decisions) if name is not None]
        people = PeopleTable.read(source, file.metric, echo.note, others=beside)
        asked, classes = None, getattr(model, "classes_", None)
        if model is not None:
            asked, _ = source.load(echo, model)
            answers = np.asarray(answers_of(model, asked))
        else:
            answers = people.scores(str(self.scores)).to_numpy()
        limits = resolve_range(file, self.output_range, self.metric_file)
        favourable, shown = direction_of(self.favourable, model, file), self.outcome or self.scores or "the score"
        if classes is not None and answers.ndim == 2 and len(classes) == 2:
            known = favourable if str(favourable) in map(str, classes) else None
            column, shown = shown_outcome(model, classes, self.outcome or known)
            answers = answers[:, column]
        return build_scores_report(
            people.X.set_axis(people.named_rows),
            answers,
            file.metric,
            outcome=shown,
            model_name=self.model_name or "",
            output_range=limits,
            review=self.review_of(echo, review, file.metric, limits),
            model=model,
            asked=asked,
            domain=None if asked is None else file.domain_for(asked),
            favourable=favourable,
            **self.words(model),
        )

    def of_model(self, echo: Output, model: Any, review: ReviewOptions) -> ReportData:
        """Measure a model of likewise on people with known outcomes."""
        from likewise.cli.dataset import read_dataset
        from likewise.report.build import build_report

        if self.target is None:
            raise InvalidInputError("Give --target, the column with the outcome that the model predicts.")
        if self.favourable is not None:
            raise InvalidInputError("--favourable is for other systems; for a model of likewise give --outcome.")
        if self.scores is not None:
            self.source.load(echo, model)  # which compares the model's scores with these
        metric, limits = model.guarantee_.metric, model.guarantee_.output_range
        drop = tuple(name for name in (review.decisions, self.scores) if name is not None)
        data = read_dataset(
            replace(self.source, drop=drop),
            self.target,
            echo.note,
            task="classification" if hasattr(model, "classes_") else "regression",
            metric=metric,
            classes=getattr(model, "classes_", None),
            name_rows=True,
        )
        if not data.is_classification and self.outcome is not None:
            raise InvalidInputError(f"--outcome is for a classification; {self.model_name} is a regression.")
        made_by, seen = _origin_of(model, data.X)
        return build_report(
            model,
            data.X,
            data.y,
            seen=seen,
            made_by=made_by,
            outcome=self.outcome if data.is_classification else self.target,
            review=self.review_of(echo, review, metric, limits),
            cv=self.folds,
            verbose=not echo.as_json,
            model_name=Path(str(self.model_name)).name,
            **self.words(model),
        )


def _origin_of(model: Any, X: pd.DataFrame) -> tuple[Any, bool | None]:
    """What makes the model's metric again from some of these people, and whether it was made from them, if known."""
    from likewise.cli.seen_people import Unseen, digest_of
    from likewise.metric_file import parse_metric_file

    text = getattr(model, "metric_file_", None)
    if text is None:
        return None, None
    file = parse_metric_file(text, "the metric file of the model")
    found = Unseen.find(file, X, "The metric", "likewise design")
    made_by = found.again if model.guarantee_.metric == file.metric else None
    seen = True if file.rows and digest_of(X) == file.rows else None
    return made_by, seen if found.caveat or found.again else False


@options.new_command()
@reviews
@options.writes(default="report.html")
@command
@as_one(
    Page,
    "page",
    click.argument("paths", nargs=-1, required=True, metavar="[MODEL] TABLE"),
    click.option("--target", help="Column with the outcome to predict; for a model of likewise."),
    click.option(
        "--scores", help="Column with the scores of another system; beside a model, those that it must reproduce."
    ),
    click.option("--metric", "metric_file", type=options.FILE, help="Metric file; for any but a model of likewise."),
    click.option(
        "--range",
        "output_range",
        type=float,
        nargs=2,
        help="Lowest and highest score of another system, if not 0 and 1.",
    ),
    click.option("--outcome", help="Class whose probability is shown; by default a known word, or the last."),
    options.favourable,
    categories,
    click.option("--id", "id_column", help="Column that names people; by default the row, counted from 1."),
    click.option("--date", help="Date of the data, shown as given; by default none."),
    click.option("--title", default="How alike people are treated", show_default=True),
    click.option(
        "--folds", type=click.IntRange(2, 10), default=3, show_default=True, help="Folds of the cross-validation."
    ),
    options.reads_table,
)
def report(echo: Output, page: Page, review: ReviewOptions, to: Destination) -> None:
    """Write an offline page that explains a model, or scores alone, to people who are not engineers.

    Pairs are searched with the model itself. Scores of a model of likewise are cross-validated: models of its kind are
    trained on folds of the table, so it may be the table that the model was trained on. Of other models (see likewise
    effect --model), and of a column of scores (likewise report TABLE --scores COLUMN --metric FILE), the page shows the
    distance, pairs of people, and whether columns of weight 0 matter; it leaves out what cannot be said. With a model
    and --scores, it is first compared with them. With --decisions and what qualifies people (see likewise review), the
    page shows denied people beside approved ones who are no better qualified, and counts them by --groups.

    Example: likewise report model.skops loans.csv --target approved --out report.html
    """
    from likewise._optional import need
    from likewise._writing import write_text
    from likewise.base import ConstrainedEstimator

    need("jinja2", "A report")  # before the measuring, which takes longest
    from likewise.report import render

    name = page.model_name
    if len(page.paths) > 2 or (name is None and page.scores is None):
        raise InvalidInputError("Give a model and a table, or a table alone with --scores and --metric.")
    if name is None and page.categories is not None:
        raise InvalidInputError("--categories is for a model; got --scores. Leave --categories out.")
    to.check(page.source.table, page.metric_file, file_of(name))
    model: Any = None if name is None else load_any_model(name, page.categories)
    measure = page.of_model if isinstance(model, ConstrainedEstimator) else page.of_other_system
    write_text(to.path, render(measure(echo, model, review)))
    echo(f"Wrote {to.out}", report_file=str(to.out))
    echo.finish(f"open {to.out} in a browser")


def write_report(model: Any, X: Any, y: Any, path: Path, **parameters: Any) -> None:
    """Measure a model on people with known outcomes, and write the page; `parameters` are those of `build_report`."""
    from likewise._writing import write_text
    from likewise.report import render
    from likewise.report.build import build_report

    write_text(path, render(build_report(model, X, y, **parameters)))


def _how_made(files: dict[str, Path | None], model: Any) -> tuple[tuple[str, str], ...]:
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
    seeds = "0 for every search and test"
    parameters = model.get_params() if hasattr(model, "guarantee_") else {}
    if any(name.endswith("random_state") and value is None for name, value in parameters.items()):
        seeds += "; the model has no seed, so what is trained again for this page is drawn anew each time"
    return (*rows, ("Seeds", seeds))
