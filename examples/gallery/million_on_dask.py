# %% [markdown]
# # A million people on Dask
#
# Tables larger than memory are Dask DataFrames or a directory of Parquet files.
# Fitting, scoring and the search of *all* pairs work on them, with the same bits as
# in memory. Here the table is scaled down, so that this page is quick to make: 20,000
# people, 200 million pairs.
# `N_PEOPLE = 1_000_000` is the same code; [how long that
# took](../../performance.md#dask-dataframes-on-a-cluster).

# %%
import dask.dataframe as dd
import numpy as np
import pandas as pd

from likewise import (
    AdditiveClassifier,
    AuditDisplay,
    ScorecardDisplay,
    TableMetric,
    audit,
)

N_PEOPLE = 20_000
rng = np.random.default_rng(0)
people = pd.DataFrame(
    {
        "income": rng.lognormal(3.9, 0.4, N_PEOPLE).round(1),
        "debts": rng.gamma(2, 8, N_PEOPLE).round(1),
        "region": rng.choice(["north", "south", "west"], N_PEOPLE),
        "origin": rng.choice(["here", "elsewhere"], N_PEOPLE),
    }
)
people["repaid"] = rng.random(N_PEOPLE) < 1 / (
    1 + np.exp(people["debts"] / 8 - people["income"] / 25)
)
table = dd.from_pandas(people, npartitions=4)  # or dd.read_parquet("people/")
X, y = table.drop(columns="repaid"), table["repaid"]

# %% [markdown]
# ## Fit, partition by partition

# %%
metric = TableMetric({"income": 0.004, "debts": 0.01}, {"region": 0.05, "origin": 0})
model = AdditiveClassifier(metric, penalty=1e-3).fit(X, y)
print(model.guarantee_.level, model.guarantee_.epsilon)
ScorecardDisplay.from_estimator(model)

# %% [markdown]
# ## Search all pairs
#
# Boxes of people whose scores cannot exceed their distances are left out as wholes,
# so few pairs are looked at one by one.

# %%
found = audit(model, X, metric)
print(found.headline)
assert found.n_violations == 0

# %% [markdown]
# The same search of scores that exceed their distances:

# %%
noisy = model.predict_proba(X).iloc[:, 1].compute().to_numpy()
noisy = np.clip(noisy + rng.normal(0, 0.02, N_PEOPLE), 0, 1)
with_noise = X.assign(
    score=dd.from_pandas(pd.Series(noisy, index=people.index), npartitions=4)
)
AuditDisplay.from_audit(audit(None, with_noise, metric, predictions="score"))
