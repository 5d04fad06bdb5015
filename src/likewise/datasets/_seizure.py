"""Epileptic seizure recognition: one second of EEG per row."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
from sklearn.utils import Bunch

from likewise.datasets._bunch import make_bunch
from likewise.datasets._sources import Source, find, table

_READINGS = [f"X{i}" for i in range(1, 179)]
_SOURCE = Source(
    ("Epileptic Seizure Recognition.csv", "Epileptic_Seizure_Recognition.csv", "seizure_rebuilt.csv.gz", "data.csv"),
    "a copy of the UCI data set 'Epileptic Seizure Recognition' (withdrawn by UCI), or rebuild it from the EEG "
    "recordings of the University of Bonn (sets A to E, Andrzejak et al. 2001) as described in docs/datasets.md",
)
_DESCR = """Epileptic Seizure Recognition

500 EEG recordings of 23.6 seconds, cut into 23 chunks of 178 readings each: 11,500 rows, of which 2,300 are from
recordings during a seizure; the target is seizure or not. Chunks of one recording are alike: a random split by rows,
the usual one and the paper's, puts chunks of the same recording on both sides and flatters a model; `groups` names
the recording of each row for an honest split. The original is no longer at UCI; a version rebuilt from the Bonn
recordings holds the same chunks in another order.

Source: Andrzejak, R. G., Lehnertz, K., Mormann, F., Rieke, C., David, P. & Elger, C. E. (2001). Indications of
nonlinear deterministic and finite-dimensional structures in time series of brain electrical activity. Physical
Review E 64, 061907.
"""


def fetch_seizure(*, data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """Epileptic Seizure Recognition: 11,500 seconds of EEG, seizure or not.

    Parameters
    ----------
    data_home : path-like, optional
        Directory with the original ``Epileptic Seizure Recognition.csv`` or with ``seizure_rebuilt.csv.gz``. None looks
        into the directory named by ``LIKEWISE_DATA``. There is no download: UCI withdrew the file.

    Returns
    -------
    Bunch
        ``data`` (DataFrame of 178 readings), ``target`` (Series of 0 and 1), ``groups`` (Series, the recording of
        each row), ``frame``, ``feature_names``, ``target_names``, ``units``, ``licence``, ``DESCR``.

    Examples
    --------
    >>> seizure = fetch_seizure()  # doctest: +SKIP
    >>> seizure.data.shape, seizure.groups.nunique()  # doctest: +SKIP
    ((11500, 178), 500)
    """
    chunks = table(find(_SOURCE, data_home), ["recording", *_READINGS, "y"], _read)
    return make_bunch(
        chunks[_READINGS].astype(float),
        chunks["y"].eq(1).astype(int).rename("seizure"),
        target_names=["no seizure", "seizure"],
        units=dict.fromkeys(_READINGS, "amplitude as recorded"),
        licence="none stated; free for research, cite Andrzejak et al. (2001)",
        descr=_DESCR,
        groups=chunks["recording"],
    )


def _read(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path)
    if "recording" in frame.columns or "y" not in frame.columns:
        return frame
    # The original numbers its rows "X21.V1.791": chunk 21 of recording V1.791, a number used once per class.
    name = frame.iloc[:, 0].astype(str).str.split(".", n=1).str[-1]
    recording = frame["y"].astype(str) + "." + name
    return pd.concat([recording.rename("recording"), frame], axis=1)
