# %% [markdown]
# # A first model: a scorecard within a metric
#
# The first model to train, on mortgage applications from Boston. You say what a
# difference between two people is worth, and get points per column whose sum never
# exceeds it.

# %%
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split

from likewise import (
    AdditiveClassifier,
    MetricDisplay,
    ScorecardDisplay,
    TableMetric,
    audit,
)
from likewise.datasets import load_mortgages

mortgages = load_mortgages()
columns = [
    "income",
    "obligations",
    "loan_to_price",
    "consumer_credit",
    "bankruptcy",
    "race",
    "sex",
]
people = mortgages.data[columns].dropna()
approved = mortgages.target[people.index]
X, X_new, y, y_new = train_test_split(
    people, approved, test_size=0.3, random_state=0, stratify=approved
)
print(f"{len(X):,} people to train on, {len(X_new)} held out, {y.mean():.0%} approved")

# %% [markdown]
# ## What is a difference worth?
#
# One percentage point of the chance of approval for $10,000 of income a year, for 1%
# of income owed each month, or for 4% of the price of the house. Race and sex must
# not matter: their weight is 0.

# %%
metric = TableMetric(
    {"income": 0.001, "obligations": 0.01, "loan_to_price": 0.25},
    {"consumer_credit": 0.2, "bankruptcy": 0.3, "race": 0, "sex": 0},
    units={name: mortgages.units[name] for name in columns[:3]},
)
print(metric.describe()[["column", "one point"]].to_string(index=False))
MetricDisplay.from_metric(metric, X)

# %% [markdown]
# ## The model
#
# A band around each shape shows how steep the metric allows it to be.

# %%
model = AdditiveClassifier(metric, monotone={"obligations": -1}).fit(X, y)
print(model.guarantee_.statement)
ScorecardDisplay.from_estimator(model)

# %% [markdown]
# ## What it costs, and what it keeps
#
# Lower Brier scores are better. All pairs of the people held out are searched,
# although the guarantee is for everybody.

# %%
print(f"this model  {brier_score_loss(y_new, model.predict_proba(X_new)[:, 1]):.4f}")
print(f"a constant  {brier_score_loss(y_new, [y.mean()] * len(y_new)):.4f}")
found = audit(model, X_new, metric)
print(found.headline)
assert found.n_violations == 0

# %% [markdown]
# ## Why did this person get this score?

# %%
model.reasons(X_new.head(3), n=2, outcome=0)

# %% [markdown]
# Not covered: a threshold on the score, what the columns leave out, differences
# between groups, and whether the metric is the right one.
