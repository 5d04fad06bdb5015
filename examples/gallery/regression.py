# %% [markdown]
# # Regression: premiums within a metric
#
# A premium in dollars instead of a chance. Distances are shares of the output range,
# so the guarantee is in dollars, too. The drivers are made up.

# %%
import numpy as np
import pandas as pd

from likewise import (
    AdditiveRegressor,
    AuditDisplay,
    ScorecardDisplay,
    TableMetric,
    TradeoffDisplay,
    audit,
    tradeoff,
)

rng = np.random.default_rng(0)
n = 800
drivers = pd.DataFrame(
    {
        "age": rng.integers(18, 80, n),
        "mileage": rng.gamma(4, 4, n).round(1),
        "district": rng.choice(["centre", "suburb", "country"], n),
        "origin": rng.choice(["here", "elsewhere"], n),
    }
)
premium = (
    300
    + 12 * drivers["mileage"]
    + 4 * (60 - drivers["age"]).clip(0)
    + 60 * (drivers["district"] == "centre")
)
premium = (premium + rng.normal(0, 40, n)).round(2)

# %% [markdown]
# ## A metric in dollars
#
# The range is 800 wide, from 200 to 1,000. So 0.01 is 8 dollars: for one year of age,
# or for 500 km a year. Origin must not matter.

# %%
metric = TableMetric(
    {"age": 0.01, "mileage": 0.02},
    {"district": 0.1, "origin": 0},
    units={"age": "years", "mileage": "1,000 km"},
)
model = AdditiveRegressor(metric, output_range=(200, 1000)).fit(drivers, premium)
print(model.guarantee_.statement)
ScorecardDisplay.from_estimator(model)

# %% [markdown]
# ## All pairs of drivers

# %%
found = audit(model, drivers, metric)
print(found.headline)
AuditDisplay.from_audit(found)

# %% [markdown]
# ## What would a stricter metric cost?
#
# The same metric, scaled: half of it allows half the difference.

# %%
curve = tradeoff(
    drivers,
    premium,
    metric,
    [0.25, 0.5, 1],
    method="additive",
    output_range=(200, 1000),
    cv=3,
    n_people=200,
)
TradeoffDisplay.from_tradeoff(curve)
