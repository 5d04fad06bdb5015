# %% [markdown]
# # Several classes
#
# Which of three outcomes: repaid, late or written off? Differences of outputs are
# then total variation: half the sum of the differences of the chances. The borrowers
# are made up.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from likewise import (
    AdditiveClassifier,
    AuditDisplay,
    ScorecardDisplay,
    TableMetric,
    audit,
)

rng = np.random.default_rng(0)
n = 900
people = pd.DataFrame(
    {
        "income": rng.lognormal(3.9, 0.4, n).round(1),
        "debts": rng.gamma(2, 8, n).round(1),
        "job": rng.choice(["permanent", "temporary", "self-employed"], n),
        "origin": rng.choice(["here", "elsewhere"], n),
    }
)
strain = (
    people["debts"] / 15
    - people["income"] / 40
    + 0.8 * (people["job"] == "temporary")
    + rng.logistic(0, 0.6, n)
)
outcome = np.select([strain < 0.2, strain < 1.2], ["repaid", "late"], "written off")
print(pd.Series(outcome).value_counts().to_string())

# %% [markdown]
# ## One metric, three chances

# %%
metric = TableMetric({"income": 0.005, "debts": 0.01}, {"job": 0.2, "origin": 0})
model = AdditiveClassifier(metric).fit(people, outcome)
print(model.guarantee_.statement)
ScorecardDisplay.from_estimator(model, outcome="repaid")

# %% [markdown]
# ## Two neighbours
#
# One person, and the same person with 10 more of debts: a distance of 10 points.
# Their chances differ by no more than that in total variation.

# %%
pair = pd.concat([people.head(1)] * 2, ignore_index=True)
pair.loc[1, "debts"] += 10
chances = pd.DataFrame(
    model.predict_proba(pair),
    columns=model.classes_,
    index=["as is", "10 more of debts"],
)
print(chances.round(3).to_string())
print(f"total variation: {0.5 * abs(chances.iloc[0] - chances.iloc[1]).sum():.3f}")
chances.plot.barh(
    stacked=True, color=["#d98a2b", "#2f6fa7", "#8a8f98"], figsize=(7, 2.2)
)
plt.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1), frameon=False)
plt.tight_layout()

# %% [markdown]
# ## All pairs

# %%
found = audit(model, people, metric)
print(found.headline)
AuditDisplay.from_audit(found)
