# %% [markdown]
# # A vendor's boosting examined
#
# Somebody hands over a gradient boosting model and a table. Does sex matter, how much
# at worst, and for whom? This needs nothing but the model and the people.

# %%
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from likewise import AuditDisplay, Domain, EffectDisplay, TableMetric, audit, effect
from likewise.datasets import load_mortgages

mortgages = load_mortgages()
columns = [
    "income",
    "obligations",
    "loan_to_price",
    "consumer_credit",
    "married",
    "sex",
]
people = mortgages.data[columns].dropna().round({"loan_to_price": 2})
encode = make_column_transformer(
    (OneHotEncoder(), columns[3:]), remainder="passthrough"
)
vendor = make_pipeline(encode, GradientBoostingClassifier(max_depth=4, random_state=0))
vendor = vendor.fit(people, mortgages.target[people.index])

# %% [markdown]
# ## One number, with its proof
#
# *Everybody* is said first: which values people could have. Then the model's trees
# are read. Two people who differ in sex alone are found, and a bound on all such
# pairs is proven.

# %%
domain = (
    Domain.learn(people)
    .with_column("income", low=20, high=200)
    .with_column("obligations", low=10, high=60)
)
found = effect(vendor, people, "sex", domain=domain)
print(found.headline)
print(found.pair.T.to_string())
EffectDisplay.from_effect(found)

# %% [markdown]
# ## Similar people
#
# Under a metric that both sides can read, which pairs of people differ by more than
# their distance?

# %%
metric = TableMetric(
    {"income": 0.001, "obligations": 0.01, "loan_to_price": 0.25},
    {"consumer_credit": 0.2, "married": 0.05, "sex": 0},
)
audited = audit(vendor, people, metric)
print(audited.headline)
AuditDisplay.from_audit(audited)

# %%
audited.violations[["score_a", "score_b", "difference", "distance", "differs"]].head(3)

# %% [markdown]
# An audit is about these people. Only the bound above is about everybody in the
# domain, and only about an exchange of sex alone: what other columns reveal of it is
# another question (`group_gaps`).
