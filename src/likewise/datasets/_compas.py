"""COMPAS (ProPublica, two years).

7,214 people who were scored by COMPAS in Broward County, Florida, in 2013 and 2014; the target is whether they were
charged with a new crime within two years. Eight features: age, three counts of juvenile offenses, prior offenses, the
degree of the charge (F felony, M misdemeanor), race and sex; 15 columns when one-hot coded, as in the paper
(``pandas.get_dummies(data)``).

All rows are included. ProPublica's own analysis dropped those whose charge was more than 30 days from the screening
or whose score was missing (6,172 remain); they are kept here because the features and the target do not depend on
the COMPAS score. Neither the score nor any other column known only afterwards is a feature. "Recidivism" here is
a new charge, which measures policing as well as behaviour.

Source: Larson, J., Mattu, S., Kirchner, L. & Angwin, J. (2016). How we analyzed the COMPAS recidivism algorithm.
ProPublica. github.com/propublica/compas-analysis.
"""

from __future__ import annotations

import os

import pandas as pd
from sklearn.utils import Bunch

from likewise.datasets._base import Source, find, make_bunch, table

_SOURCE = Source(
    ("compas-scores-two-years.csv", "compas_two_years.csv.gz"),
    "github.com/propublica/compas-analysis",
    "https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv",
    "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
)
_UNITS = {
    "age": "years",
    "juv_fel_count": "juvenile felonies",
    "juv_misd_count": "juvenile misdemeanors",
    "juv_other_count": "other juvenile offenses",
    "priors_count": "prior offenses",
    "c_charge_degree": "category",
    "race": "category",
    "sex": "category",
}


def fetch_compas(*, data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """COMPAS: 7,214 people of Broward County, a new charge within two years or not.

    Parameters
    ----------
    data_home : path-like, optional
        Directory with ``compas-scores-two-years.csv`` (or ``compas_two_years.csv.gz``). None looks in the directory
        named by ``LIKEWISE_DATA``, then downloads the original.

    Returns
    -------
    Bunch
        ``data`` (DataFrame of 8 features, text columns as pandas categories), ``target`` (Series of 0 and 1),
        ``frame``, ``feature_names``, ``target_names``, ``units``, ``licence``, ``DESCR``.

    Examples
    --------
    >>> compas = fetch_compas()  # doctest: +SKIP
    >>> pd.get_dummies(compas.data).shape  # doctest: +SKIP
    (7214, 15)
    """
    people = table(find(_SOURCE, data_home), [*_UNITS, "two_year_recid"], pd.read_csv)
    data = people[list(_UNITS)].astype({name: "category" for name, unit in _UNITS.items() if unit == "category"})
    return make_bunch(
        data,
        people["two_year_recid"],
        target_names=["no new charge", "new charge"],
        units=_UNITS,
        licence="none stated by ProPublica; public records",
        descr=__doc__,
    )
