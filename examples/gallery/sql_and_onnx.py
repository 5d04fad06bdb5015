# %% [markdown]
# # Deploy to SQL and ONNX
#
# A scorecard is a sum of points, so it can be evaluated where the data are: as one
# SQL expression in a database, or as an ONNX graph from C++, Java or JavaScript. Both
# are compared with the model here, person by person.

# %%
import json
import sqlite3
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pandas as pd

from likewise import AdditiveClassifier, TableMetric
from likewise.datasets import load_mortgages
from likewise.verify_card import prove

mortgages = load_mortgages()
people = mortgages.data[["income", "obligations", "consumer_credit", "race"]].dropna()
metric = TableMetric(
    {"income": 0.001, "obligations": 0.01}, {"consumer_credit": 0.2, "race": 0}
)
model = AdditiveClassifier(metric, max_knots=8).fit(
    people, mortgages.target[people.index]
)
scores = model.predict_proba(people)[:, 1]

# %% [markdown]
# ## In a database

# %%
expression = model.to_sql()
print(expression[:160], "...")
with sqlite3.connect(":memory:") as database:
    people.astype({"consumer_credit": str, "race": str}).to_sql(
        "applications", database
    )
    in_sql = pd.read_sql(f"SELECT {expression} AS score FROM applications", database)[
        "score"
    ].to_numpy()
print(f"largest difference from the model: {abs(in_sql - scores).max():.1e}")

# %% [markdown]
# ## As an ONNX graph
#
# One input per column that matters; race is not among them. The file states how far
# it can be from the model.

# %%
place = Path(tempfile.mkdtemp())
model.to_onnx(place / "card.onnx")
session = onnxruntime.InferenceSession(place / "card.onnx")
inputs = {
    each.name: people[[each.name]].to_numpy(
        dtype=np.float64 if "double" in each.type else object
    )
    for each in session.get_inputs()
}
(in_onnx,) = session.run(["probabilities"], inputs)
print("inputs:", ", ".join(inputs))
print(f"largest difference from the model: {abs(in_onnx[:, 1] - scores).max():.1e}")

# %%
plt.figure(figsize=(6.4, 3.2), layout="constrained")
for values, name, marker in ((in_sql, "SQL", "o"), (in_onnx[:, 1], "ONNX", "x")):
    plt.plot(scores, 1e16 * (values - scores), marker, ms=3, alpha=0.5, label=name)
plt.xlabel("Score by the model")
plt.ylabel("Difference, in units of 1e-16")
plt.legend(frameon=False)

# %% [markdown]
# ## The guarantee travels with the card
#
# The card as JSON has its points and its metric. The checker of `likewise
# verify-card` reads nothing else. It raises an error unless it can prove the
# guarantee from that file.

# %%
model.to_json(place / "card.json")
card = json.loads((place / "card.json").read_text(encoding="utf-8"))
prove(card)
print(card["guarantee"])
