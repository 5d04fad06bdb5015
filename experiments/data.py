"""The data of the experiments: two loaders of their own, splits, and the metric weights of a logistic regression.

Adult and COMPAS come from `likewise.datasets`; Seizure and the Strategic Subject List are used nowhere else.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from likewise._typing import FloatArray
from likewise._validation import check_count, check_random
from likewise.datasets import fetch_adult, fetch_compas
from likewise.datasets._base import Source, find, make_bunch, table
from likewise.exceptions import InvalidInputError

DATASETS = ("adult", "compas", "ssl", "seizure")


@dataclass(frozen=True, eq=False)
class Loaded:
    """Features and classes of a data set, with its official test set or groups if there are any."""

    name: str
    X: FloatArray
    y: npt.NDArray[Any]
    is_test: npt.NDArray[np.bool_] | None = None
    groups: npt.NDArray[Any] | None = None

    @property
    def splits(self) -> tuple[str, ...]:
        """How test people can be chosen."""
        return ("rows",) if self.groups is None else ("rows", "recordings")


@dataclass(frozen=True, eq=False)
class Problem:
    """One split, standardised, with the metric weights that its logistic regression gives.

    `X_test` holds the test people that every model is scored on, `X_all` the whole test set.
    """

    X_train: FloatArray
    y_train: npt.NDArray[Any]
    X_test: FloatArray
    y_test: npt.NDArray[Any]
    X_all: FloatArray
    y_all: npt.NDArray[Any]
    linear: LogisticRegression
    weights: FloatArray


def load(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Loaded:
    """Load a data set as an array, categories one-hot encoded; the name of synthetic data contains "synthetic"."""
    if name == "adult":
        train, test = (fetch_adult(subset=subset, data_home=data_home) for subset in ("train", "test"))
        X = np.vstack([train.data.to_numpy(float), test.data.to_numpy(float)])
        is_test = np.repeat([False, True], [len(train.data), len(test.data)])
        return Loaded(name, X, np.concatenate([train.target, test.target]), is_test=is_test)
    if name == "compas":
        compas = fetch_compas(data_home=data_home)
        return Loaded(name, pd.get_dummies(compas.data).to_numpy(float), compas.target.to_numpy())
    if name == "seizure":
        seizure = fetch_seizure(data_home=data_home)
        return Loaded(name, seizure.data.to_numpy(), seizure.target.to_numpy(), groups=seizure.groups.to_numpy())
    try:
        ssl = fetch_ssl(data_home=data_home)
    except FileNotFoundError:
        name, ssl = "ssl-synthetic", make_ssl_like(10_000, random_state=0)
    return Loaded(name, ssl.data.to_numpy(), ssl.target.to_numpy())


def prepare(data: Loaded, split: str, seed: int, *, n_train: int, n_test: int) -> Problem:
    """Split, standardise, and fit the logistic regression that the metric comes from."""
    everyone = np.arange(len(data.X))
    if data.is_test is not None:
        train, test = everyone[~data.is_test], everyone[data.is_test]
    elif split == "recordings":
        folds = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
        train, test = next(folds.split(data.X, data.y, data.groups))
    else:
        train, test = train_test_split(everyone, test_size=0.2, random_state=seed, stratify=data.y)
    rng = np.random.default_rng(seed)
    train, scored = _at_most(train, n_train, rng), _at_most(test, n_test, rng)
    scaler = StandardScaler().fit(data.X[train])
    X_train, X_scored, X_all = (scaler.transform(data.X[rows]) for rows in (train, scored, test))
    linear = LogisticRegression(max_iter=10_000).fit(X_train, data.y[train])
    weights = np.abs(linear.coef_[0])
    return Problem(
        X_train, data.y[train], X_scored, data.y[scored], X_all, data.y[test], linear, weights / weights.mean()
    )


def _at_most(rows: npt.NDArray[np.intp], n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    return rows if len(rows) <= n else np.sort(rng.choice(rows, n, replace=False))


_READINGS = [f"X{i}" for i in range(1, 179)]
_SEIZURE = Source(
    ("Epileptic Seizure Recognition.csv", "Epileptic_Seizure_Recognition.csv", "seizure_rebuilt.csv.gz", "data.csv"),
    "a copy of the UCI data set 'Epileptic Seizure Recognition' (withdrawn by UCI), or rebuild it from the EEG "
    "recordings of the University of Bonn (sets A to E, Andrzejak et al. 2001) as described in docs/datasets.md",
)
_SEIZURE_DESCR = """Epileptic Seizure Recognition

500 EEG recordings of 23.6 seconds, cut into 23 chunks of 178 readings each: 11,500 rows, of which 2,300 are from
recordings during a seizure; the target is seizure or not. Chunks of one recording are alike: a random split by rows,
the usual one and the paper's, puts chunks of the same recording on both sides and overstates accuracy; `groups`
names the recording of each row, for a split without leakage. UCI withdrew the original; a version rebuilt from the
Bonn recordings holds the same chunks in another order.

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
        in the directory named by ``LIKEWISE_DATA``. There is no download: UCI withdrew the file.

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
    chunks = table(find(_SEIZURE, data_home), ["recording", *_READINGS, "y"], _read_seizure)
    return make_bunch(
        chunks[_READINGS].astype(float),
        chunks["y"].eq(1).astype(int).rename("seizure"),
        target_names=["no seizure", "seizure"],
        units=dict.fromkeys(_READINGS, "amplitude as recorded"),
        licence="none stated; free for research, cite Andrzejak et al. (2001)",
        descr=_SEIZURE_DESCR,
        groups=chunks["recording"],
    )


def _read_seizure(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path)
    if "recording" in frame.columns or "y" not in frame.columns:
        return frame
    # The original numbers its rows "X21.V1.791": chunk 21 of recording V1.791, a number used once per class.
    name = frame.iloc[:, 0].astype(str).str.split(".", n=1).str[-1]
    recording = frame["y"].astype(str) + "." + name
    return pd.concat([recording.rename("recording"), frame], axis=1)


_PREFIX = "PREDICTOR RAT "
_AGE = "age_at_latest_arrest"
# Feature, unit, and the published mean and standard deviation where there are any.
_PREDICTORS = [
    (_AGE, "years, middle of the band", None, None),
    ("victim_shooting_incidents", "incidents", 0.0202, 0.153),
    ("victim_battery_or_assault", "incidents", 0.0359, 0.211),
    ("arrests_violent_offenses", "arrests", 0.1150, 0.406),
    ("gang_affiliation", "1 if affiliated", 0.1629, 0.369),
    ("narcotic_arrests", "arrests", 0.3358, 0.838),
    ("trend_in_criminal_activity", "slope of recent activity", -0.0495, 0.405),
    ("uuw_arrests", "arrests for unlawful use of weapons", 0.0333, 0.193),
]
_UNITS = {name: unit for name, unit, _, _ in _PREDICTORS}
_OFFICIAL = {_PREFIX + name.replace("_", " ").upper(): name for name in _UNITS}
_SCORE = "SSL SCORE"
_SSL = Source(
    (
        "Strategic_Subject_List_-_Historical.csv",
        "Strategic_Subject_List.csv",
        "Strategic_Subject_List_-_Historical.csv.gz",
        "Strategic_Subject_List.csv.gz",
    ),
    "the City of Chicago's data portal, data.cityofchicago.org, data set 4aki-r3np, 'Export', 'CSV'",
)
_TARGET_NAMES = ["low", "high"]
_SSL_DESCR = """Strategic Subject List (Chicago Police Department)

398,684 people arrested from August 2012 to July 2016, with the score from 0 to 500 by which the department ranked their
risk of being involved in a shooting, and the eight predictors it used. The target is whether the score is above its
median; `score` holds the score itself. Age at the latest arrest is published in bands ('20-30'); a band becomes its
midpoint in years, and 'less than 20' becomes 15. {n_left_out:,} rows with a missing value were left out.

Source: City of Chicago, data set 4aki-r3np. The programme ended in 2019.
"""
_SYNTHETIC = """SYNTHETIC data in the form of the Strategic Subject List

No row is about a real person. {n:,} rows drawn to match figures published about the list: mean and standard deviation
of seven predictors, and mean, standard deviation, quartiles and range of the score. Predictors are drawn
independently; the shares of the age bands and how the score depends on the predictors are assumptions. Use it to run
code, not to learn about the list.
"""


def fetch_ssl(*, data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """Strategic Subject List: 398,684 people arrested in Chicago, a high risk score or a low one.

    Parameters
    ----------
    data_home : path-like, optional
        Directory with the city's CSV export, ``Strategic_Subject_List_-_Historical.csv`` (also ``.gz``, and the 2017
        export, which writes underscores for spaces in its header). None looks in the directory named by
        ``LIKEWISE_DATA``. There is no download: the portal generates each export, so it has no fixed hash.

    Returns
    -------
    Bunch
        ``data`` (DataFrame of eight numeric predictors), ``target`` (Series: 1 if the score is above its median),
        ``score`` (Series of numbers), ``frame``, ``feature_names``, ``target_names``, ``units``, ``licence``,
        ``DESCR``.

    See Also
    --------
    make_ssl_like : Synthetic data of the same form.
    """
    official = table(find(_SSL, data_home), [_SCORE, *_OFFICIAL], _read_ssl)
    people = _numbers(official)
    complete = people.dropna().reset_index(drop=True)
    return _ssl_bunch(
        complete,
        licence="City of Chicago data portal terms of use",
        descr=_SSL_DESCR.format(n_left_out=len(people) - len(complete)),
    )


def make_ssl_like(n_samples: int = 10_000, *, random_state: Any = None) -> Bunch:
    """Make synthetic people in the form of the Strategic Subject List, from its published marginals.

    No row is about a real person, and how the score depends on the predictors is invented: lower with age, higher
    with everything else. The marginals of the score and of seven predictors match what was published.

    Parameters
    ----------
    n_samples : int, default=10_000
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    Bunch
        As `fetch_ssl` returns it, and ``official``, the table in the form of the city's CSV export.

    Examples
    --------
    >>> ssl = make_ssl_like(1000, random_state=0)
    >>> ssl.data.shape
    (1000, 8)
    >>> ssl.DESCR.splitlines()[0]
    'SYNTHETIC data in the form of the Strategic Subject List'
    """
    n = check_count("n_samples", n_samples, min_value=2)
    # A NumPy Generator from a scikit-learn random_state.
    rng = np.random.default_rng(check_random(random_state).randint(0, 2**32, size=4, dtype=np.uint32))
    official = _synthetic(n, rng)
    return _ssl_bunch(
        _numbers(official),
        licence="synthetic; no restrictions",
        descr=_SYNTHETIC.format(n=n),
        official=official,
    )


def _ssl_bunch(people: pd.DataFrame, **more: Any) -> Bunch:
    score = people.pop("score")
    high = score.gt(score.median()).astype(int).rename("high_risk")
    return make_bunch(people, high, target_names=_TARGET_NAMES, units=_UNITS, score=score, **more)


def _read_ssl(path: Path) -> pd.DataFrame:
    wanted = {_SCORE, *_OFFICIAL}
    frame = pd.read_csv(path, usecols=lambda name: _spaced(name) in wanted)
    return frame.rename(columns=_spaced)


def _spaced(name: str) -> str:
    return re.sub(r"[\s_]+", " ", name).strip().upper()


def _numbers(official: pd.DataFrame) -> pd.DataFrame:
    """Convert the official columns to numbers under our names, the score last; missing values stay missing."""
    people = official.rename(columns={**_OFFICIAL, _SCORE: "score"})
    people[_AGE] = people[_AGE].map(_middle_of_band, na_action="ignore")
    for name in people.columns:
        try:
            people[name] = pd.to_numeric(people[name]).astype(float)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"The column {name} of the Strategic Subject List must hold numbers: {error}."
            ) from None
    return people[[*_UNITS, "score"]]


def _middle_of_band(band: Any) -> float:
    text = str(band).strip().lower()
    if match := re.fullmatch(r"(\d+)\s*-\s*(\d+)", text):
        return (int(match[1]) + int(match[2])) / 2
    if match := re.fullmatch(r"less than (\d+)", text):
        return int(match[1]) - 5.0  # bands are ten years wide
    raise InvalidInputError(
        f"An age band of the Strategic Subject List must read like '20-30' or 'less than 20'; got {band!r}."
    )


_BANDS = ["less than 20", "20-30", "30-40", "40-50", "50-60", "60-70", "70-80"]
_BAND_SHARES = [0.13, 0.36, 0.22, 0.16, 0.1, 0.025, 0.005]  # an assumption


def _synthetic(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw people in the official format."""
    band = rng.choice(len(_BANDS), size=n, p=_BAND_SHARES)
    values: dict[str, npt.NDArray[Any]] = {}
    risk = -1.5 * band + 0.6 * rng.standard_normal(n)
    for name, _, mean, sd in _PREDICTORS:
        if mean is None or sd is None:
            values[name] = np.array(_BANDS)[band]
            continue
        if name == "gang_affiliation":
            values[name] = (rng.random(n) < mean).astype(int)
        elif mean < 0:  # the trend, the only one that is not a count
            values[name] = rng.normal(mean, sd, n).round(2)
        else:
            # Negative binomial with mean r (1 - q) / q and variance mean / q.
            q = mean / sd**2
            values[name] = rng.negative_binomial(mean * q / (1 - q), q, n)
        risk += values[name]
    # Scores in the order of risk, with the published distribution.
    level = (rankdata(risk, method="ordinal") - 0.5) / n
    columns = {official: values[name] for official, name in _OFFICIAL.items()}
    return pd.DataFrame({_SCORE: _score_quantile(level).round().astype(int), **columns})


def _score_quantile(u: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Quantiles of the score: linear between the published quartiles, a power in each tail.

    The exponents reproduce the published mean (279.84) and standard deviation (58.00).
    """
    low = 242 - (242 - 10) * np.clip(1 - u / 0.25, 0, 1) ** 6.3716
    high = 322 + (500 - 322) * np.clip((u - 0.75) / 0.25, 0, 1) ** 10.2431
    middle = np.interp(u, [0.25, 0.5, 0.75], [242, 289, 322])
    return np.where(u < 0.25, low, np.where(u > 0.75, high, middle))
