"""A complete short run: train a network, smooth it, and see what is promised and what it costs."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

import likewise

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(StandardScaler().fit_transform(X), y, random_state=0)

# 1. A metric. Here the paper's recipe; in earnest, something that people have discussed.
metric = likewise.linear_metric(X_train, y_train, p=2)
print("Metric:", metric, end="\n\n")

# 2. A model with a guarantee. `augment` trains the network on noisy copies, which keeps more accuracy.
network = MLPClassifier((32,), max_iter=60)
model = likewise.SmoothedClassifier(network, metric=metric, augment=2, n_draws=10_000, random_state=0, verbose=True)
model.fit(X_train, y_train)
print(model.guarantee_.statement, end="\n\n")

# 3. What it does to the closest pair of people with different labels.
distance = metric.pairwise(X_test)
distance[y_test[:, None] == y_test] = np.inf
a, b = np.unravel_index(distance.argmin(), distance.shape)
scores = model.predict_proba(X_test)
print(f"Closest people with different labels: distance {distance[a, b]:.3f}")
print(f"  allowed difference {model.guarantee_.bound(distance[a, b]):.3f}, actual {abs(scores[a] - scores[b])[1]:.3f}")

# 4. What it costs.
print(
    f"Accuracy: inner network {model.estimator_.score(X_test, y_test):.3f}, smoothed {model.score(X_test, y_test):.3f}"
)
print(f"Mean confidence in the true class: {scores[np.arange(len(y_test)), y_test].mean():.3f}")
