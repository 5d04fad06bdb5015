"""Data sets as the experiments use them: numbers, a split, and the metric weights of a logistic regression."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from likewise._typing import FloatArray
from likewise.datasets import fetch_adult, fetch_compas, fetch_seizure, fetch_ssl, make_ssl_like

DATASETS = ("adult", "compas", "ssl", "seizure")


@dataclass(frozen=True, eq=False)
class Loaded:
    """Numbers and classes of a data set, with its own test people or its groups if it has any."""

    name: str
    X: FloatArray
    y: npt.NDArray[Any]
    is_test: npt.NDArray[np.bool_] | None = None
    groups: npt.NDArray[Any] | None = None

    @property
    def splits(self) -> tuple[str, ...]:
        """Methods to choose the test people."""
        return ("rows",) if self.groups is None else ("rows", "recordings")


@dataclass(frozen=True, eq=False)
class Problem:
    """One split, standardised, with the metric weights that its logistic regression gives.

    `X_test` holds the test people whom every model is scored on, `X_all` the whole test set.
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
    """Load a data set as numbers, categories one-hot coded; synthetic data have "synthetic" in their name."""
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
