"""Projection of gradient boosting: what it keeps of the model, beside other ways, and how fast it scores people."""

import warnings

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.common import DataMissingError, seconds, section, skipped
from likewise import AdditiveClassifier, ProjectedClassifier, SmoothedClassifier
from likewise.app.commands import edit, reveal
from likewise.app.pipelines import table_model
from likewise.datasets import fetch_adult, load_mortgages

PROTECTED = ["race", "sex"]
JUDGED = 4_000  # held-out people
SCORED = 100_000
N_DRAWS = 400  # for smoothing: more move its Brier score by less than 0.0005


def run() -> str:
    parts = [_section("mortgages", *_people(load_mortgages()))]
    try:
        parts.append(_section("Adult", *_people(fetch_adult(subset="all", columns="all"))))
    except (DataMissingError, OSError) as error:
        parts.append(skipped("Projection: Adult", DataMissingError(f"Not run: {error}")))
    return "\n".join(parts)


def _people(data):
    return data.data.drop(columns="fnlwgt", errors="ignore"), np.asarray(data.target)


def _section(name, X, y) -> str:
    X, others, y, outcomes = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    held, known = others[:JUDGED], outcomes[:JUDGED]
    metric = edit(reveal(X, y, "logistic", 0).metric, PROTECTED)
    boosting = table_model(X, "boosting").set_params(histgradientboostingclassifier__random_state=0)
    fitted = FrozenEstimator(boosting.fit(X, y))
    kept = [column for column in X.columns if column not in PROTECTED]
    logistic = table_model(X[kept], "logistic").fit(X[kept], y)

    projected = ProjectedClassifier(boosting, metric=metric, random_state=0)
    spent = seconds(lambda: projected.fit(X, y))
    crowd = pd.concat([others] * (SCORED // len(others) + 1))[:SCORED]
    projected.predict_proba(crowd[:1000])  # compiled, or read from the cache
    scoring = seconds(lambda: projected.predict_proba(crowd))
    people, n = projected._people(held), len(held)
    found = projected.scorer_.envelope.narrow(people, projected.scorer_.values, np.zeros(n), np.ones(n))

    ways = {
        "a constant": np.full(n, y.mean()),
        "boosting, smoothed": _best_smoothed(boosting, fitted, metric, X, y, held, known),
        "**boosting, projected**": projected.predict_proba(held)[:, 1],
        "additive": AdditiveClassifier(metric).fit(X, y).predict_proba(held)[:, 1],
        "logistic without protected columns (no promise)": logistic.predict_proba(held[kept])[:, 1],
        "boosting (no promise)": fitted.predict_proba(held)[:, 1],
    }
    rows = [[way, f"{np.mean((h - known) ** 2):.4f}", f"{roc_auc_score(known, h):.3f}"] for way, h in ways.items()]
    return section(
        f"Projection: {name}",
        ["way", "Brier score", "AUC"],
        rows,
        f"{n:,} held-out people; metric of a logistic model with the weights of {' and '.join(PROTECTED)} at "
        f"0. Smoothing is the best of hard votes, soft votes, and soft votes of a model trained on 5 noisy copies. "
        f"Projection: fitted in {spent:.1f} s ({projected.n_anchors_:,} anchors, out-of-fold scores included); "
        f"{len(crowd):,} people scored in {scoring:.1f} s, {found.n_looks / n / projected.n_anchors_:.0%} of the "
        "anchors looked at. Allowed: a Brier score below that of smoothing, and 10 s.",
    )


def _best_smoothed(boosting, fitted, metric, X, y, held, known):
    ways = [
        SmoothedClassifier(fitted, metric=metric, vote="hard", n_draws=N_DRAWS, random_state=0),
        SmoothedClassifier(fitted, metric=metric, vote="soft", n_draws=N_DRAWS, random_state=0),
        SmoothedClassifier(boosting, metric=metric, vote="soft", augment=5, n_draws=N_DRAWS, random_state=0),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the promise is weak with so few draws, and not what is measured
        scores = [way.fit(X, y).predict_proba(held)[:, 1] for way in ways]
    return min(scores, key=lambda h: np.mean((h - known) ** 2))


if __name__ == "__main__":
    print(run())
