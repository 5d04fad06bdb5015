"""A domain of 120 people, all of whom can be asked about: models on it, and the largest effect by brute force."""

from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

AGES, SEXES, REGIONS, INCOMES = range(20, 25), ("f", "m"), ("north", "south", "west"), (0.0, 0.5, 1.0, 1.5)
EVERYBODY = pd.MultiIndex.from_product([AGES, SEXES, REGIONS, INCOMES], names=["age", "sex", "region", "income"])
EVERYBODY = EVERYBODY.to_frame(index=False)


def people(seed, n=250, kind="two"):
    """People who are drawn from all there are, and outcomes in which sex counts in one corner."""
    rng = np.random.default_rng(seed)
    X = EVERYBODY.iloc[rng.integers(len(EVERYBODY), size=n)].reset_index(drop=True)
    X = pd.concat([X, EVERYBODY.iloc[[0, -1, 7, 60]]], ignore_index=True)
    score = X["income"] - 0.2 * (X["age"] - 22) + 1.5 * ((X["sex"] == "m") & (X["region"] == "west"))
    score = score + rng.normal(scale=0.7, size=len(X))
    if kind == "number":
        return X, score
    return X, np.digitize(score, [0.3, 1.4]) if kind == "three" else np.where(score > 0.8, "yes", "no")


def one_hot(**options):
    return make_column_transformer(
        (OneHotEncoder(sparse_output=False, **options), ["sex", "region"]), (StandardScaler(), ["age", "income"])
    )


def outputs(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)[:, None]


def brute_force(model, columns, everybody=EVERYBODY):
    """Largest total variation between any two people who differ in these columns alone."""
    scores = outputs(model, everybody)
    others = [name for name in everybody if name not in columns]
    share = 0.5 if scores.shape[1] > 1 else 1.0
    worst = 0.0
    for members in everybody.groupby(others, observed=True, dropna=False).indices.values():
        for i, j in combinations(members, 2):
            worst = max(worst, share * float(np.abs(scores[i] - scores[j]).sum()))
    return worst
