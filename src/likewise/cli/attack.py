"""The command that searches for the worst pair of people, in a table or not: attack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Output, command, next_command
from likewise.cli.models import check_taken, file_of, load_any_model, read_people, reads_model
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from likewise.cli.table_io import Dialect


@click.command()
@click.argument("table", type=options.TABLE)
@reads_model(required=True)
@click.option("--metric", "metric_file", type=options.FILE, help="Metric file; by default the model's metric.")
@click.option("--only", multiple=True, help="Compare people who differ in this column alone; repeat it for several.")
@click.option("--range", "output_range", type=float, nargs=2, help="Lowest and highest score, if not probabilities.")
@click.option("--pairs", type=click.IntRange(1000), default=1_000_000, show_default=True, help="Pairs to try, about.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="The same seed tries the same pairs."
)
@click.option("--out", type=options.FILE, help="Write the worst pair as CSV.")
@options.force
@command
@options.reads_table
def attack(
    echo: Output,
    table: Path,
    model_name: str,
    id_column: str | None,
    categorical: tuple[str, ...],
    drop: tuple[str, ...],
    metric_file: Path | None,
    only: tuple[str, ...],
    output_range: tuple[float, float] | None,
    pairs: int,
    seed: int,
    out: Path | None,
    force: bool,
    dialect: Dialect,
) -> None:
    """Search for the pair of people, in the table or not, whose scores most exceed their distance.

    The search stays within the domain in the metric file (likewise metric --domain), if there is one. With --only it is
    otherwise learned from the table.

    Example: likewise attack loans.csv --model model.json --metric metric.toml --only sex --out pair.csv
    """
    from likewise import attack as search
    from likewise._writing import atomic_write, write_csv
    from likewise.cli.dataset import resolve_range
    from likewise.io import check_output_path
    from likewise.metric_file import read_metric_file

    if out is not None:
        check_output_path(out, table, metric_file, file_of(model_name), force=force)
    model = load_any_model(model_name)
    own: Any = getattr(model, "guarantee_", None)
    if metric_file is None and own is None:
        raise InvalidInputError("Give --metric as well: only models of likewise have one.")
    file = None if metric_file is None else read_metric_file(metric_file)
    if metric_file is not None and file is not None and own is None:
        output_range = resolve_range(file, output_range, metric_file)
    X, _ = read_people(echo, table, dialect, model, categorical=categorical, id_column=id_column, drop=drop)
    check_taken("--only", only, X)
    with echo.busy("Searching"):
        found = search(
            model,
            own.metric if file is None else file.metric,
            X,
            only=list(only) or None,
            domain=None if file is None else file.domain_for(X),
            n_pairs=pairs,
            output_range=output_range,
            random_state=seed,
        )
    what = f"the model's guarantee at distance D, {found.bound:.4g}" if found.guarantee is not None else "D"
    text = (
        f"The worst of {found.n_pairs:,} pairs: scores differ by {100 * found.difference:.4g} points at a "
        f"distance D of {100 * found.distance:.4g}; {100 * max(0.0, found.excess_over_bound):.4g} more than {what}."
    )
    if found.pair is None:
        text = f"No pair was found: all {found.n_pairs:,} pairs tried have equal scores."
    echo(
        text,
        n_pairs=found.n_pairs,
        n_violations=found.n_violations,
        difference=found.difference,
        distance=found.distance,
        excess=found.excess,
        bound=found.bound,
        excess_over_bound=found.excess_over_bound,
    )
    echo.pair(found.pair)
    echo(f"\n{found.coverage}", coverage=found.coverage)
    if out is not None and found.pair is None:
        echo.note(f"{out} was not written, as there is no pair.")
    elif out is not None:
        with atomic_write(out) as temporary:
            write_csv(found.pair, temporary, index=False)
        echo(f"\nWrote {out}", pair_file=str(out))
    proof = [word for name in only for word in ("--column", name)] if found.pair is None else []
    echo.finish(*([next_command("effect", table, "--model", model_name, *proof)] if proof else []))
