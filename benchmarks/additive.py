"""Additive models: time, memory, and Brier scores compared with models without a guarantee and with smoothing."""

import time
import tracemalloc
import warnings

from benchmarks.common import DataMissingError, seconds, section, skipped

TITLE = "Additive models (`AdditiveClassifier`)"
PROTECTED = ["race", "sex"]
SPLITS, SCORED = 5, 1_000


def run() -> str:
    try:
        return speed() + "\n" + quality()
    except DataMissingError as why:
        return skipped(TITLE, why)


def tables():
    from likewise.datasets import fetch_adult, fetch_compas, load_mortgages

    for name, load in (
        ("mortgages", load_mortgages),
        ("COMPAS", fetch_compas),
        ("Adult", lambda: fetch_adult(columns="all")),
    ):
        try:
            bunch = load()
        except (OSError, RuntimeError, ValueError) as error:
            raise DataMissingError(f"Not run: {error}") from None
        yield name, bunch.data, bunch.target.to_numpy()


def own_metric(X, y):
    """The logistic model's own metric with the protected columns at 0; missing numbers are a category of their own."""
    from likewise import TableMetric, minimal_metric
    from likewise.inspection.baselines import table_model

    numbers = X.select_dtypes("number").columns
    complete = X.fillna(X[numbers].median())
    found = minimal_metric(table_model(complete, "logistic").fit(complete, y))
    hidden = dict.fromkeys(PROTECTED, 0.0)
    missing = "category" if X[numbers].isna().any(axis=None) else "refuse"
    return TableMetric(found.numeric, {**found.categorical, **hidden}, missing=missing)


def additive(metric, **options):
    from likewise import AdditiveClassifier

    return AdditiveClassifier(metric, **options)


def boosted_scorecard(X):
    """EBM without interactions: additive as well, without a guarantee."""
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(interactions=0, random_state=0)


def large_table(n):
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"number {i}": rng.normal(size=n) for i in range(6)})
    for i in range(4):
        X[f"category {i}"] = pd.Categorical.from_codes(rng.integers(0, 5 + i, n), [f"kind {k}" for k in range(5 + i)])
    score = np.sin(2 * X["number 0"]) + X["number 1"] / 2 + (X["category 0"].cat.codes == 2)
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).to_numpy(int)


def speed() -> str:
    from likewise import TableMetric
    from likewise.datasets import fetch_adult

    rows = []
    adult = fetch_adult(columns="all")
    X, y = adult.data, adult.target.to_numpy()
    metric = own_metric(X, y)
    additive(metric, penalty=1e-3).fit(X[:2000], y[:2000])  # compiled, or read from the cache
    ours = min(seconds(lambda: additive(metric, penalty=1e-3).fit(X, y)) for _ in range(3))
    auto = seconds(lambda: additive(metric).fit(X, y))
    plain = X.drop(columns=PROTECTED)
    theirs = seconds(lambda: boosted_scorecard(X).fit(plain, y))
    rows.append(["fit, Adult, 32,561 x 14, penalty given", f"**{ours:.2f} s**", "3 s"])
    rows.append(
        [
            "the same with EBM (`interactions=0`, else its defaults: 14 bags, all cores but one)",
            f"{theirs:.1f} s, **{theirs / ours:.0f} times** ours",
            "10 times",
        ]
    )
    rows.append(["fit, Adult, `penalty='auto'`", f"{auto:.1f} s", ""])
    model = additive(metric, penalty=1e-3).fit(X, y)
    person = X[:1]
    model.predict_proba(person)
    alone = min(seconds(lambda: model.predict_proba(person)) for _ in range(200))
    array = additive(None, penalty=1e-2).fit(X.select_dtypes("number").to_numpy(float)[:2000], y[:2000])
    one_row = X.select_dtypes("number").to_numpy(float)[:1]
    alone_array = min(seconds(lambda: array.predict_proba(one_row)) for _ in range(200))
    X, y = large_table(1_000_000)
    weights = TableMetric(
        {name: 0.3 for name in X if "number" in name}, {name: 0.2 for name in X if "category" in name}
    )
    big = additive(weights, penalty=1e-4)
    took = seconds(lambda: big.fit(X, y))
    scoring = min(seconds(lambda: big.predict_proba(X)) for _ in range(2))
    tracemalloc.start()
    big.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1] / 2**30
    tracemalloc.stop()
    rows.append(["fit, 1,000,000 x 10 (6 numeric)", f"**{took:.1f} s**, {peak:.2f} GB above the data", "60 s, 1.5 GB"])
    rows.append(["scores of 1,000,000 people", f"**{scoring:.2f} s**", "2 s"])
    rows.append(["one person through `predict_proba`, a table of 14 columns", f"**{1000 * alone:.2f} ms**", "1 ms"])
    rows.append(["one person through `predict_proba`, an array", f"{1000 * alone_array:.2f} ms", "1 ms"])
    return section(TITLE, ["what", "measured", "allowed"], rows)


def contestants(X, metric):
    """Name, model, and whether it must not see the protected columns (those with a guarantee do not read them)."""
    from likewise import SmoothedClassifier
    from likewise.inspection.baselines import table_model

    plain = X.drop(columns=PROTECTED)

    def smoothed(kind, **options):
        return SmoothedClassifier(table_model(X, kind), metric=metric, n_draws=500, random_state=0, **options)

    return {
        "**additive**": (additive(metric), False),
        "logistic, no guarantee": (table_model(plain, "logistic"), True),
        "EBM, no guarantee": (boosted_scorecard(plain), True),
        "logistic, smoothed, soft votes": (smoothed("logistic", vote="soft"), False),
        "boosting, smoothed, soft votes": (smoothed("boosting", vote="soft"), False),
        "boosting, smoothed, hard votes": (smoothed("boosting"), False),
    }


def quality() -> str:
    import numpy as np
    from sklearn.model_selection import train_test_split

    found: dict[str, dict[str, list[float]]] = {}
    names = []
    for name, X, y in tables():
        names.append(name)
        for seed in range(SPLITS):
            X_a, X_b, y_a, y_b = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
            X_b, y_b = X_b[:SCORED], y_b[:SCORED]  # smoothing needs 500 evaluations for each of them
            metric = own_metric(X_a, y_a)
            scores = {"constant": np.full(len(y_b), y_a.mean())}
            for title, (model, hide) in contestants(X_a, metric).items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fitted = model.fit(X_a.drop(columns=PROTECTED) if hide else X_a, y_a)
                    scores[title] = fitted.predict_proba(X_b.drop(columns=PROTECTED) if hide else X_b)[:, 1]
            for title, h in scores.items():
                found.setdefault(title, {}).setdefault(name, []).append(float(np.mean((h - y_b) ** 2)))
            print(f"  {name}, split {seed}", flush=True)
    base = found["logistic, no guarantee"]

    def cell(values, against):
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        gap = np.subtract(values, against)
        share, sure = gap.mean() / np.mean(against), gap.std(ddof=1) / np.sqrt(len(gap)) / np.mean(against)
        return f"{np.mean(values):.4f} ± {error:.4f} ({share:+.1%} ± {sure:.1%})"

    rows = [[title, *(cell(lines[name], base[name]) for name in names)] for title, lines in found.items()]
    return section(
        "Additive models: Brier scores",
        ["model", *names],
        rows,
        f"Means over {SPLITS} random splits (70% training; up to {SCORED:,} held-out people scored) with standard "
        "errors; in brackets the difference from the logistic regression without the protected columns, with its "
        "standard error. The metric is the logistic model's own, read exactly, race and sex at 0; it is learned on "
        "each split's training people. Lower is better.",
    )


if __name__ == "__main__":
    start = time.perf_counter()
    print(run())
    print(f"{time.perf_counter() - start:.0f} s in all")
