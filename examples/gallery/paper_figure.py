# %% [markdown]
# # The paper's figure in five minutes
#
# Yeom & Fredrikson (IJCAI 2020) read a metric off a logistic regression, smooth a
# network under it, and plot accuracy and mean confidence for L1, L2 and L∞. This does
# the same on the tumours that come with scikit-learn, with few draws and one seed, in
# seconds.
# [The paper's experiments](../../reproduce.md) are reproduced on its own data, with
# three seeds, by `make reproduce`.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from likewise import SmoothedClassifier, linear_metric

warnings.simplefilter("ignore")  # few draws make a wide margin, and the library says so
X, y = load_breast_cancer(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=250, random_state=0, stratify=y)
scaler = StandardScaler().fit(X)
X, X_new = scaler.transform(X), scaler.transform(X_new)

logistic = LogisticRegression().fit(X, y)
network = MLPClassifier((32,), max_iter=200, alpha=0.1, random_state=0).fit(X, y)

# %% [markdown]
# ## Smooth the network, for every metric and noise
#
# For each p the metric has the weights of the logistic regression, by the paper's
# recipe. The network, averaged over noise, is within it: for each pair, except with a
# stated probability, up to the margin of the draws.


# %%
def quality(name, model):
    """Accuracy, mean confidence and Brier score on the people held out."""
    scores = model.predict_proba(X_new)
    right = scores[np.arange(len(y_new)), y_new]
    return {
        "model": name,
        "accuracy": (scores.argmax(axis=1) == y_new).mean(),
        "mean confidence": right.mean(),
        "Brier score": ((1 - right) ** 2).mean(),
    }


plain = [
    quality("logistic regression", logistic),
    quality("network, no guarantee", network),
]
rows = []
for p in (1, 2, np.inf):
    metric = linear_metric(X, y, p)
    for noise in ("laplace", "gaussian"):
        smoothed = SmoothedClassifier(
            network,
            metric=metric,
            noise=noise,
            vote="soft",
            n_draws=400,
            random_state=0,
        )
        rows.append(
            {
                "p": p,
                "noise": noise,
                **quality(f"smoothed, {noise}", smoothed.fit(X, y)),
            }
        )
table = pd.DataFrame(rows)
table.round(4)

# %%
figure, axes = plt.subplots(1, 3, figsize=(9.5, 3.4), layout="constrained")
marks = {"laplace": ("s", "#d98a2b"), "gaussian": ("o", "#2f6fa7")}
for ax, measure in zip(
    axes, ("accuracy", "mean confidence", "Brier score"), strict=True
):
    for i, (noise, (marker, colour)) in enumerate(marks.items()):
        own = table[table["noise"] == noise]
        ax.plot(
            np.arange(3) + 0.16 * i - 0.08,
            own[measure],
            marker,
            color=colour,
            label=f"smoothed, {noise}",
        )
    for (name, style), values in zip(
        {"logistic regression": "--", "network, no guarantee": "-"}.items(),
        plain,
        strict=True,
    ):
        ax.axhline(values[measure], color="#8a8f98", ls=style, label=name)
    ax.set_xticks(range(3), ["$L_1$", "$L_2$", r"$L_\infty$"])
    ax.set_title(measure, loc="left", fontsize=10)
figure.legend(
    *ax.get_legend_handles_labels(),
    loc="outside lower center",
    ncols=4,
    frameon=False,
    fontsize=9,
)
