"""What `compare` recommends on real tables, against logistic regression without the protected columns."""

from benchmarks.common import DataMissingError, section, skipped

BLIND = ("race", "sex")
MOST, ASKED, FOLDS, SEARCHED = 2_000, 1_000, 5, 300
METHODS = ["additive", "projection", "smoothing"]
ALLOWED = 1.01
TITLE = "Which method on real tables (`compare`)"


def run() -> str:
    try:
        found = list(tables())
    except (DataMissingError, OSError) as why:
        return skipped(TITLE, DataMissingError(str(why)))
    rows = []
    for name, metric, X, y in found:
        rows += compared(name, metric, X, y)
    return section(
        TITLE,
        ["data", "method", "Brier score", "AUC", "violations", "evaluations", "against logistic"],
        rows,
        f"{FOLDS} folds of at most {MOST:,} people; results on held-out people, with standard errors. The metric "
        f"is that of a logistic model of a third of the table, at most {ASKED:,} others, with race and sex set to 0: "
        "nobody who is scored was used for it. The method in bold is the one "
        f"that `best()` takes; its Brier score should be at most {ALLOWED:g} times that of logistic regression without "
        f"race and sex, with no violation among all pairs of {SEARCHED} people of each fold. Networks are left out "
        "to save time.",
    )


def tables():
    import numpy as np

    from likewise.datasets import fetch_adult, fetch_compas, load_mortgages

    bunches = {"mortgages": load_mortgages(), "COMPAS": fetch_compas(), "Adult": fetch_adult(columns="all")}
    for name, bunch in bunches.items():
        order = np.random.default_rng(0).permutation(len(bunch.data))
        X, y = bunch.data.iloc[order].reset_index(drop=True), np.asarray(bunch.target)[order]
        n = min(ASKED, len(X) // 3)
        yield name, own_metric(X[:n], y[:n]), X[n : n + MOST].reset_index(drop=True), y[n : n + MOST]


def own_metric(X, y):
    """The distance that a logistic model has, with what must not matter at 0."""
    from likewise import TableMetric, minimal_metric
    from likewise.inspection.baselines import table_model

    numbers = X.select_dtypes("number")
    whole = X.fillna(numbers.median())
    found = minimal_metric(table_model(whole, "logistic").fit(whole, y))
    mismatch = {name: 0.0 if name in BLIND else weight for name, weight in found.categorical.items()}
    return TableMetric(found.numeric, mismatch, missing="category" if numbers.isna().any(axis=None) else "refuse")


def compared(name, metric, X, y):
    from likewise import compare
    from likewise.inspection.baselines import table_model

    seen = [column for column in X if column not in BLIND]
    logistic = ("logistic", table_model(X, "logistic", columns=seen, categorical=list(metric.categorical)))
    result = compare(X, y, metric, [*METHODS, logistic], cv=FOLDS, n_people=SEARCHED)
    table, best = result.table, result.best().name
    base = table.loc["logistic", "brier"]
    rows = []
    for method, row in table[table["evaluations"].notna()].iterrows():
        mark = "**" if method == best else ""
        rows.append(
            [
                name,
                f"{mark}{row['title']}{mark}",
                f"{row['brier']:.4f} ± {row['brier_se']:.4f}",
                f"{row['auc']:.3f}",
                f"{row['violations']:,}",
                f"{row['evaluations']:,}",
                f"{mark}{row['brier'] / base:.3f}{mark}" + (f" (at most {ALLOWED:g})" if mark else ""),
            ]
        )
    assert table.loc[best, "violations"] == 0
    return rows


if __name__ == "__main__":
    print(run())
