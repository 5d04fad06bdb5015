"""Run all cells of the experiments in order, keep finished ones on disk, and write the results."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments import trials
from experiments.data import DATASETS, load, prepare
from experiments.summary import draw, print_table, summarise
from experiments.trials import LIPSCHITZ, SMOOTHED, Settings, Trial, plan
from likewise._parallel import single_threaded_blas
from likewise._progress import progress_bar
from likewise._validation import check_count
from likewise.exceptions import InvalidInputError

SEEDS = (2, 3, 4)  # 0 and 1 were used while settings were chosen (docs/reproduce.md)
_COLUMNS = [
    *("dataset", "split", "seed", "model", "p", "noise", "accuracy", "confidence", "brier", "n_people"),
    *("accuracy_all", "confidence_all", "brier_all", "n_people_all"),
    *("level", "epsilon", "n_pairs", "n_violations", "largest_excess", "evaluations", "microseconds"),
    *("train_seconds", "train_cpu_seconds", "seconds", "cpu_seconds"),
]


def reproduce(
    datasets: Iterable[str] = DATASETS,
    *,
    quick: bool = False,
    rows: int | None = None,
    out: str | os.PathLike[str] = "reproduced",
    seeds: Sequence[int] | None = None,
    n_draws: int | None = None,
    data_home: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> pd.DataFrame:
    """Run the paper's experiments; write the table and the figure; return one row per cell.

    For each data set and seed: a constant; a logistic regression; a network with two hidden layers of 128 units; and,
    under weighted L1, L2 and L-infinity metrics whose weights are those of the logistic regression on standardised
    features, scaled to mean 1, the network trained with noise and smoothed, 1-Lipschitz networks, and (L1) an additive
    model. Finished cells are kept in ``out/cells``; a run that was interrupted, or that is repeated with more seeds or
    data sets, continues from them. Without PyTorch, 1-Lipschitz networks are left out.

    Parameters
    ----------
    datasets : iterable of {"adult", "compas", "ssl", "seizure"}
        "ssl" is synthetic (and called "ssl-synthetic") where the city's file is not found. "seizure" is split by
        rows, as in the paper, and by recordings.
    quick : bool, default=False
        A first look in minutes: one seed, 200 test people, 2,000 people to train on, 20 epochs, and epsilon 0.1.
    rows : int, optional
        Test people to score, instead of 1,000 (200 if quick).
    out : path-like, default="reproduced"
        Directory for ``results.csv``, ``summary.csv``, ``figure.svg`` and ``figure.png``.
    seeds : sequence of int, optional
        None takes 2, 3 and 4, or 2 if quick.
    n_draws : int, optional
        Evaluations of a smoothed network per person, such as the paper's 100,000. None takes as many as each person
        needs for the paper's guarantee (epsilon 0.01 and delta 1.8e-4).
    data_home : path-like, optional
        As in `likewise.datasets`.
    verbose : bool, default=False
        Show progress, and print the table.

    Returns
    -------
    DataFrame
        The cell (dataset, split, seed, model, p, noise) and what `experiments.trials.run` measured.
    """
    settings = _settings(quick, rows, n_draws)
    names = _checked_names(datasets)
    seeds = _checked_seeds((SEEDS[:1] if quick else SEEDS) if seeds is None else seeds)
    checkpoint = Checkpoint(Path(out), settings)
    loaded = [load(name, data_home=data_home) for name in names]
    parts = [(data, split, seed) for seed in seeds for data in loaded for split in data.splits]
    has_torch = find_spec("torch") is not None
    plans = [
        [cell for cell in plan(data.name, split, seed) if has_torch or cell.model not in LIPSCHITZ]
        for data, split, seed in parts
    ]
    if verbose and not has_torch:
        print("1-Lipschitz networks are left out: training them needs PyTorch (pip install 'likewise[torch]').")
    # One BLAS thread: as fast for batches this small, and the results do not depend on the number of cores.
    work = sum(_cost(cell) for part in plans for cell in part if cell not in checkpoint)
    with single_threaded_blas(), progress_bar("Experiments", work, show=verbose) as advance:
        for (data, split, seed), part in zip(parts, plans, strict=True):
            if all(cell in checkpoint for cell in part):
                continue
            problem = prepare(data, split, seed, n_train=settings.n_train, n_test=settings.n_test)
            for cell in part:
                if cell not in checkpoint:
                    checkpoint.add(cell, trials.run(cell, problem, settings))
                    advance(_cost(cell))
    results = checkpoint.table([cell for part in plans for cell in part])
    _write(results, Path(out), verbose=verbose)
    return results


def _write(results: pd.DataFrame, out: Path, *, verbose: bool) -> None:
    summary = summarise(results)
    results.to_csv(out / "results.csv", index=False)
    summary.to_csv(out / "summary.csv", index=False)
    draw(summary, out / "figure.svg", out / "figure.png")
    if verbose:
        print_table(summary)
        print(f"Wrote results.csv, summary.csv, figure.svg and figure.png to {out}.")


def _settings(quick: bool, rows: int | None, n_draws: int | None) -> Settings:
    settings = trials.QUICK if quick else trials.FULL
    if rows is not None:
        settings = replace(
            settings, n_test=check_count("rows", rows, min_value=2, hint="Pairs of people are compared.")
        )
    if n_draws is not None:
        settings = replace(settings, n_draws=check_count("n_draws", n_draws))
    return settings


def _checked_names(datasets: Iterable[str]) -> list[str]:
    names = [datasets] if isinstance(datasets, str) else list(datasets)
    for name in names:
        if name not in DATASETS:
            raise InvalidInputError(f"datasets must be among {', '.join(DATASETS)}; got {name!r}.")
    if not names:
        raise InvalidInputError(f"datasets must name at least one of {', '.join(DATASETS)}; got none.")
    return list(dict.fromkeys(names))


def _checked_seeds(seeds: Sequence[int]) -> list[int]:
    checked = [check_count("seeds", seed, min_value=0) for seed in np.atleast_1d(np.asarray(seeds, dtype=object))]
    if not checked:
        raise InvalidInputError("seeds must hold at least one whole number; got none.")
    return list(dict.fromkeys(checked))


def _cost(cell: Trial) -> int:
    """Rough time of a cell, for the estimate of the time left."""
    return 10 if cell.model == SMOOTHED else 5 if cell.model in LIPSCHITZ else 1


class Checkpoint:
    """The finished cells of one setting, in ``cells/`` of a directory.

    A file is complete when it appears, so a run may be stopped at any time, and several runs (of other seeds or data
    sets) may share a directory.
    """

    def __init__(self, out: Path, settings: Settings) -> None:
        self.directory = out / "cells"
        self._settings = asdict(settings)
        self._make()
        self._rows: dict[Trial, dict[str, Any]] = {}
        for path in sorted(self.directory.glob("*.json")):
            self._read(path)

    def __contains__(self, cell: Trial) -> bool:
        path = self._path(cell)
        if cell not in self._rows and path.exists():  # finished by another run in the meantime
            self._read(path)
        return cell in self._rows

    def add(self, cell: Trial, result: dict[str, Any]) -> None:
        """Record a cell."""
        self._rows[cell] = asdict(cell) | result
        path = self._path(cell)
        unfinished = path.with_suffix(f".{os.getpid()}.part")
        text = json.dumps({"settings": self._settings, "cell": asdict(cell), "result": result}, indent=1)
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, path)

    def table(self, cells: list[Trial]) -> pd.DataFrame:
        """The finished ones among `cells`, one row each, in their order."""
        return pd.DataFrame([self._rows[cell] for cell in cells if cell in self._rows], columns=_COLUMNS)

    def _path(self, cell: Trial) -> Path:
        return self.directory / f"{cell.name}.json"

    def _make(self) -> None:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            probe = self.directory / f".{os.getpid()}.part"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise InvalidInputError(
                f"out must be a directory that can be written; got {str(self.directory.parent)!r} ({error.strerror})."
            ) from None

    def _read(self, path: Path) -> None:
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            settings, cell, result = stored["settings"], Trial(**stored["cell"]), dict(stored["result"])
        except (ValueError, KeyError, TypeError):
            raise InvalidInputError(
                f"{path} is not a finished cell of an experiment. Remove it to compute it again."
            ) from None
        if settings != self._settings:
            raise InvalidInputError(
                f"out must hold results of the same settings, {self._settings}; {path} has {settings}. "
                "Choose another directory, or remove that one."
            )
        self._rows[cell] = asdict(cell) | result
