"""Finished cells on disk, one small file each, so that an interrupted run continues where it stopped."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from likewise.exceptions import InvalidInputError
from likewise.experiments.trials import Settings, Trial

_COLUMNS = [
    *("dataset", "split", "seed", "model", "p", "noise", "accuracy", "confidence", "brier", "n_people"),
    *("accuracy_all", "confidence_all", "brier_all", "n_people_all"),
    *("level", "epsilon", "n_pairs", "n_violations", "largest_excess", "evaluations", "microseconds"),
    *("train_seconds", "train_cpu_seconds", "seconds", "cpu_seconds"),
]


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
                f"{path} is not a finished cell of an experiment. Remove it to compute it anew."
            ) from None
        if settings != self._settings:
            raise InvalidInputError(
                f"out must hold results of the same settings, {self._settings}; {path} has {settings}. "
                "Choose another directory, or remove that one."
            )
        self._rows[cell] = asdict(cell) | result
