"""Black-box models in shared calls: the cost of smoothing against one call with all the rows, and a call each."""

import importlib
import warnings

from benchmarks.common import seconds, section

PEOPLE, DRAWS, TURNS, ALLOWED = 400, 250, 3, 2.0


def run() -> str:
    X, y, metric = people()
    rows = []
    for name, make in models(X):
        try:
            model = make()
        except ImportError as why:
            rows.append([name, f"not run: {why.name} is not installed", "", "", "", ""])
            continue
        rows.append(measured(name, model, X, y, metric))
    return section(
        "Black-box models (`SmoothedClassifier`)",
        ["model", "found in `fit`", "one call with all rows", "smoothed", "ratio", "one call per person"],
        rows,
        f"{PEOPLE} people of a table with 6 numbers and 4 categories (the first three models: numbers), Splitting "
        f"with {DRAWS} draws: {PEOPLE * DRAWS:,} rows, hard votes, all cores; the best of {TURNS} in turns. One call: "
        "the model's own `predict` of all perturbed rows at once, precomputed; smoothed: `predict_proba`, with "
        "perturbing, making tables and counting. Found: whether a row's prediction depends on the rest of the batch.",
    )


def people():
    import numpy as np

    from benchmarks.additive import large_table
    from likewise import TableMetric

    X, y = large_table(3_000)
    numbers = [name for name in X if "number" in name]
    metric = TableMetric(dict.fromkeys(numbers, 0.3), {name: 0.2 for name in X if name not in numbers})
    return X, np.asarray(y), metric


def models(X):
    from likewise.inspection.baselines import table_model

    def imported(package, name, **options):
        return lambda: getattr(importlib.import_module(package), name)(random_state=0, **options)

    yield "XGBoost, 100 trees", imported("xgboost", "XGBClassifier", n_estimators=100)
    yield "LightGBM, 100 trees", imported("lightgbm", "LGBMClassifier", verbose=-1)
    yield (
        "CatBoost, 100 trees",
        imported("catboost", "CatBoostClassifier", iterations=100, verbose=0, allow_writing_files=False),
    )
    for kind in ("logistic", "network", "boosting"):
        yield f"pipeline of the table, {kind}", lambda kind=kind: table_model(X, kind)


def measured(name, model, X, y, metric):
    import numpy as np

    from likewise import SmoothedClassifier, TableMetric
    from likewise._parallel import single_threaded_blas

    if "pipeline" not in name:
        X, metric = X[list(metric.numeric)], TableMetric(metric.numeric)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        smoothed = SmoothedClassifier(model, metric=metric, noise="splitting", n_draws=DRAWS, random_state=0).fit(X, y)
        some, scorer = X[:PEOPLE], smoothed.scorer_
        seen, _, _ = scorer.perturbation.corners(scorer.perturbation.prepare(smoothed._people(some).rows))
        parts = [draws for _, draws in scorer.perturbation.iter_draws([DRAWS])]
        rows = [np.concatenate([draws.apply(person) for draws in parts]) for person in seen]
        assert sum(map(len, rows)) == PEOPLE * DRAWS

        def ready(block):
            return block if scorer.votes.encoder is None else scorer.votes.encoder.decode(block)

        def ask(tables):
            with single_threaded_blas():  # as in the smoothing
                for table in tables:
                    scorer.model.predict(table)

        whole, apart = ready(np.concatenate(rows)), [ready(block) for block in rows[: PEOPLE // 10]]
        smoothed.predict_proba(some[:10])
        one, ours, each = [], [], []
        for _ in range(TURNS):
            one.append(seconds(lambda: ask([whole])))
            ours.append(seconds(lambda: smoothed.predict_proba(some)))
        each.append(10 * seconds(lambda: ask(apart)))
    found = {"any": "known", "tiles": "same bits", "person": "rounding"}[scorer.batch_plan.kind]
    one, ours, each = min(one), min(ours), min(each)
    return [
        name,
        found,
        f"{one:.2f} s",
        f"{ours:.2f} s",
        f"**{ours / one:.2f}** (at most {ALLOWED:g})",
        f"{each:.2f} s, {each / one:.1f} times",
    ]


if __name__ == "__main__":
    print(run())
