"""UCI Adult (census income).

48,842 people from the US census of 1994, split by its donors into 32,561 for training and 16,281 for testing; the
target is whether a person's income is above 50,000 dollars a year. The five numeric columns are those of the
paper's experiments. fnlwgt, the number of people a row represents, belongs to the survey design and is included only
with columns="all". '?' is read as missing (workclass, occupation and native-country). Capital gains of 99,999 are
kept; the census truncated them, so they mean "at least".

Source: Becker, B. & Kohavi, R. (1996). Adult. UCI Machine Learning Repository. doi:10.24432/C5XW20.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pandas as pd
from sklearn.utils import Bunch

from likewise.datasets._base import Source, find, make_bunch, table
from likewise.exceptions import InvalidInputError

_ORIGIN = "the UCI Machine Learning Repository, data set 2, 'Adult'"
_URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
_SOURCES = {
    "train": Source(
        ("adult.data", "adult_train.csv.gz"),
        _ORIGIN,
        _URL + "adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ),
    "test": Source(
        ("adult.test", "adult_test.csv.gz"),
        _ORIGIN,
        _URL + "adult.test",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    ),
}
_UNITS = {
    "age": "years",
    "workclass": "category",
    "fnlwgt": "people represented",
    "education": "category",
    "education-num": "level of education, 1 to 16",
    "marital-status": "category",
    "occupation": "category",
    "relationship": "category",
    "race": "category",
    "sex": "category",
    "capital-gain": "US dollars per year",
    "capital-loss": "US dollars per year",
    "hours-per-week": "hours per week",
    "native-country": "category",
}
_NUMERIC = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]


def fetch_adult(
    *,
    subset: Literal["train", "test", "all"] = "train",
    columns: Literal["numeric", "all"] = "numeric",
    data_home: str | os.PathLike[str] | None = None,
) -> Bunch:
    """UCI Adult: 48,842 people of the 1994 census, income above 50,000 dollars or not.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The donors' split: 32,561 and 16,281 people.
    columns : {"numeric", "all"}, default="numeric"
        The paper's five numeric features (age, education-num, capital-gain, capital-loss, hours-per-week), or all
        14, text columns as pandas categories.
    data_home : path-like, optional
        Directory with ``adult.data`` and ``adult.test`` (or ``adult_train.csv.gz`` and ``adult_test.csv.gz``).
        None looks in the directory named by ``LIKEWISE_DATA``, then downloads the originals.

    Returns
    -------
    Bunch
        ``data`` (DataFrame), ``target`` (Series of 0 and 1), ``frame``, ``feature_names``, ``target_names``,
        ``units`` (dict from column to unit), ``licence``, ``DESCR``.

    Examples
    --------
    >>> adult = fetch_adult(subset="test")  # doctest: +SKIP
    >>> adult.data.shape  # doctest: +SKIP
    (16281, 5)
    """
    if subset not in ("train", "test", "all"):
        raise InvalidInputError(f"subset must be 'train', 'test' or 'all'; got {subset!r}.")
    if columns not in ("numeric", "all"):
        raise InvalidInputError(f"columns must be 'numeric' or 'all'; got {columns!r}.")
    parts = ["train", "test"] if subset == "all" else [subset]
    names = [*_UNITS, "income"]
    people = pd.concat([table(find(_SOURCES[part], data_home), names, _read) for part in parts], ignore_index=True)
    # The test file ends its labels with a dot.
    target = people["income"].str.rstrip(".").eq(">50K").astype(int)
    chosen = _NUMERIC if columns == "numeric" else list(_UNITS)
    data = people[chosen].copy()
    for name in data.columns:
        if _UNITS[name] == "category":
            data[name] = data[name].astype("category")
    return make_bunch(
        data,
        target,
        target_names=["<=50K", ">50K"],
        units=_UNITS,
        licence="CC BY 4.0",
        descr=__doc__,
    )


def _read(path: Path) -> pd.DataFrame:
    if ".csv" in path.suffixes:
        return pd.read_csv(path, na_values="?")
    # The original files have no header; the test file opens with a comment.
    return pd.read_csv(
        path,
        names=[*_UNITS, "income"],
        skipinitialspace=True,
        na_values="?",
        comment="|",
    )
