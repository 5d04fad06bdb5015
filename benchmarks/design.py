"""Designed metrics: Brier scores beside the logistic model's own metric and models without a guarantee, and times."""

import time
import warnings

from benchmarks.additive import PROTECTED, SPLITS, additive, boosted_scorecard, own_metric, tables
from benchmarks.common import DataMissingError, section, skipped

TITLE = "Designed metrics (`design_metric`)"
SHARE = 0.7


def run() -> str:
    try:
        return quality() + "\n" + speed()
    except DataMissingError as why:
        return skipped(TITLE, why)


def mean_distance(metric, X):
    """Of two people drawn at random."""
    import numpy as np

    from likewise.design.joint import Costs

    people = metric.encode_rows(X)
    weights = metric.weights_of(people.encoder)
    costs = Costs.of(people.rows, np.full(len(X), 1 / len(X)), weights.is_number)
    return float(weights.scales @ costs.weights + np.nan_to_num(weights.missing) @ costs.missing)


def split_scores(X_a, y_a, X_b):
    """Probabilities of held-out people by each model, fitted to the others; and mean distances."""
    import numpy as np

    from likewise import design_metric
    from likewise.inspection.baselines import table_model

    plain_a, plain_b = X_a.drop(columns=PROTECTED), X_b.drop(columns=PROTECTED)
    own = own_metric(X_a, y_a)
    distance = mean_distance(own, X_a)
    frontier = design_metric(X_a, y_a, protected=PROTECTED, references=False)
    loosest = frontier.points[-1]
    cards = {
        "card within the logistic metric": additive(own).fit(X_a, y_a),
        f"**designed card, {SHARE:g} of that mean distance**": frontier.at(mean_distance=SHARE * distance).card,
        "card, 4 times the logistic metric": additive(own.scaled(4)).fit(X_a, y_a),
        "**designed card, loosest point**": loosest.card,
    }
    scores = {"constant": np.full(len(X_b), y_a.mean())}
    scores |= {title: card.predict_proba(X_b)[:, 1] for title, card in cards.items()}
    for title, model in (
        ("logistic, no guarantee", table_model(plain_a, "logistic")),
        ("EBM without interactions, no guarantee", boosted_scorecard(plain_a)),
        ("boosting, no guarantee", table_model(plain_a, "boosting")),
    ):
        scores[title] = model.fit(plain_a, y_a).predict_proba(plain_b)[:, 1]
    return scores, distance, loosest.mean_distance


def quality() -> str:
    import numpy as np
    from sklearn.model_selection import train_test_split

    found: dict[str, dict[str, list[float]]] = {}
    names, distances = [], []
    for name, X, y in tables():
        names.append(name)
        seen = []
        for seed in range(SPLITS):
            X_a, X_b, y_a, y_b = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scores, *spent = split_scores(X_a, y_a, X_b)
            seen.append(spent)
            for title, h in scores.items():
                found.setdefault(title, {}).setdefault(name, []).append(float(np.mean((h - y_b) ** 2)))
            print(f"  {name}, split {seed}", flush=True)
        own, loosest = np.mean(seen, axis=0)
        distances.append(f"{name} {own:.2f} and {loosest:.3g}")

    def cell(values):
        return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.4f}"

    rows = [[title, *(cell(lines[name]) for name in names)] for title, lines in found.items()]
    return section(
        TITLE,
        ["Brier score of people held out", *names],
        rows,
        f"Means over {SPLITS} random splits (70% training) with standard errors; race and sex have the weight 0 or are "
        f"left out. Mean distances of the logistic metric and the loosest designed one: {'; '.join(distances)}. Where "
        "a metric forbids what a model without a guarantee does (on Adult, jumps between neighbouring amounts of "
        "capital gain), no card within it can be as good.",
    )


def speed() -> str:
    import numpy as np
    import pandas as pd

    from likewise import TableMetric, design_metric
    from likewise.datasets import fetch_adult

    adult = fetch_adult(columns="all")
    X, y = adult.data, adult.target.to_numpy()
    start, work = time.perf_counter(), time.process_time()
    design_metric(X, y, protected=PROTECTED, references=False)
    took, spent = time.perf_counter() - start, time.process_time() - work
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(6000, 8)) @ rng.normal(0, 0.6, (8, 85)) + rng.normal(size=(6000, 85))
    counts = np.minimum(rng.poisson(np.exp(-1.5 + 0.9 * latent)), 9)
    wide = pd.DataFrame(counts.astype(float), columns=[f"count {i}" for i in range(85)])
    bought = (rng.random(6000) < 1 / (1 + np.exp(3 - 0.5 * np.sqrt(counts[:, 3]) - 0.8 * (counts[:, 40] > 0)))).astype(
        int
    )
    metric = TableMetric(dict.fromkeys(wide, 0.1), missing="refuse")
    work = time.process_time()
    additive(metric).fit(wide, bought)
    one_fit = time.process_time() - work
    rows = [
        ["frontier of 10 points, 5 folds, Adult, 32,561 x 14", f"**{took:.0f} s**, {spent:.0f} s of CPU time", "60 s"],
        ["one fit, 6,000 x 85 small counts, `penalty='auto'`", f"**{one_fit:.1f} s** of CPU time", "5 s"],
    ]
    return section("Designed metrics: times", ["what", "measured", "allowed"], rows)


if __name__ == "__main__":
    print(run())
