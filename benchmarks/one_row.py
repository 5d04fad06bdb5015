"""One person at a time: the overhead of `predict_proba`."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from benchmarks.common import network, section
from likewise import SmoothedClassifier, TableMetric, WeightedLp
from likewise._parallel import single_threaded_blas
from likewise.datasets import load_mortgages
from likewise.inspection.baselines import table_model

N_CALLS = 60


def run() -> str:
    X, y = make_classification(2000, 10, random_state=0)
    metric = WeightedLp(np.full(10, 0.1))
    mortgages = load_mortgages()
    table = mortgages.data.drop(columns=[name for name in mortgages.data if mortgages.data[name].isna().any()])
    numeric = [name for name in table if mortgages.units[name] != "category"]
    weights = {name: 0.1 / table[name].std() for name in numeric}
    of_tables = TableMetric(weights, {name: 0.1 for name in table if name not in numeric})
    cases = [
        (
            "forest, formula",
            SmoothedClassifier(RandomForestClassifier(100, max_depth=8), metric=metric, vote="soft"),
            X,
            y,
        ),
        (
            "network 2x128, splitting, K = 1,000",
            SmoothedClassifier(FrozenEstimator(network(X, y, n_epochs=3)), metric=metric, noise="splitting"),
            X,
            y,
        ),
        (
            f"boosting of a table of {table.shape[1]} columns, splitting, K = 200",
            SmoothedClassifier(table_model(table, "boosting"), metric=of_tables, n_draws=200),
            table,
            mortgages.target,
        ),
    ]
    rows = [measured(name, model.fit(people, outcomes), people) for name, model, people, outcomes in cases]
    return section(
        "One person through predict_proba",
        ["model", "in all", "the work itself", "above it"],
        rows,
        f"Milliseconds, the lowest tenth of {N_CALLS} calls. The work itself: the formula, or the draws and the "
        "model's predictions for them, without validation, encoding and counting.",
    )


def measured(name, model, people):
    one = people[:1]
    coded, scorer = model._people(one), model.scorer_
    work = the_work(scorer, coded)
    model.predict_proba(one)
    work()
    whole, inner = [], []
    for _ in range(N_CALLS):  # in turns, so that both see the same machine
        whole.append(milliseconds(lambda: model.predict_proba(one)))
        inner.append(milliseconds(work))
    total, core = np.quantile(whole, 0.1), np.quantile(inner, 0.1)
    return [name, f"{total:.2f} ms", f"{core:.2f} ms", f"**{total - core:.2f} ms** (at most 1)"]


def the_work(scorer, people):
    if hasattr(scorer, "formula"):
        return lambda: scorer.formula.mean_votes(people.rows, scorer.n_jobs)
    perturbation = scorer.perturbation
    (person,), _, _ = perturbation.corners(perturbation.prepare(people.rows))

    def work():
        with single_threaded_blas():
            for _, draws in perturbation.iter_draws([scorer.guarantee.n_draws]):
                scorer.sums.sums(draws, person[None])

    return work


def milliseconds(work):
    import time

    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


if __name__ == "__main__":
    print(run())
