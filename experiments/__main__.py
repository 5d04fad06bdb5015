"""``python -m experiments``: run the paper's experiments, or fill the pages of the docs with finished results."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from experiments.data import DATASETS
from experiments.pages import write_pages
from experiments.run import reproduce
from likewise._optional import need
from likewise.exceptions import LikewiseError


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and run; bad input is one line and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Run the experiments of the paper.")
    parser.add_argument("datasets", nargs="*", metavar="dataset", help=f"{', '.join(DATASETS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer people and one seed: minutes instead of an hour")
    parser.add_argument("--rows", type=int, help="maximum number of test people per data set")
    parser.add_argument("--out", type=Path, default=Path("reproduced"), help="directory for the results")
    parser.add_argument("--pages", type=Path, metavar="DIRECTORY", help="run nothing; fill docs/ from these results")
    given = parser.parse_args(arguments)
    try:
        need("matplotlib", "The figure")  # before the experiments, which take an hour
        if given.pages is not None:
            write_pages(given.pages, Path("docs"))
        else:
            reproduce(given.datasets or DATASETS, quick=given.quick, rows=given.rows, out=given.out, verbose=True)
    except LikewiseError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
