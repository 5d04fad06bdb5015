"""Mortgage applications from start to end: reveal a model's metric, edit it, enforce it, audit it."""

import warnings

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import likewise
from likewise.datasets import load_mortgages

N_DRAWS = 500
MUST_NOT_MATTER = ["race", "sex"]


def main() -> None:
    bunch = load_mortgages()
    complete = bunch.data.notna().all(axis=1)  # the few missing values do not matter here
    X, y = bunch.data[complete], bunch.target[complete]
    numbers = list(X.select_dtypes("number").columns)
    categories = [name for name in X.columns if name not in numbers]
    units = {name: bunch.units[name].replace("$1000", "thousand dollars") for name in numbers}
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=600, random_state=0, stratify=y)
    print(f"{len(X):,} mortgage applications in Boston, {y.mean():.0%} approved; {X.shape[1]} columns.\n")

    print("1. REVEAL: which metric does a logistic regression respect?\n")
    encode = make_column_transformer(
        (OneHotEncoder(drop="if_binary", handle_unknown="ignore"), categories), remainder=StandardScaler()
    )
    logistic = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X_train, y_train)
    metric = likewise.minimal_metric(logistic)
    metric = likewise.TableMetric(metric.numeric, metric.categorical, units=units)
    print("Its exact metric, which no pair of applicants can exceed: what is worth one percentage point of")
    print("the chance of approval, and what a different category is worth:\n")
    print(exchange_rates(metric))
    print(f"\nSo two applicants who differ only in race may differ by {100 * metric.categorical['race']:.1f} points.\n")

    print("2. REVEAL: the same for gradient boosting, where the metric must be estimated.\n")
    to_codes = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), categories), remainder="passthrough"
    )
    boosted = make_pipeline(to_codes, HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8, random_state=0))
    boosted.fit(X_train, y_train)
    estimate = likewise.estimate_minimal_metric(boosted, X_test)
    print(f"Estimated on {len(X_test)} applicants ({estimate.n_pairs:,} pairs); for others it may be too small:\n")
    estimated = likewise.TableMetric(estimate.metric.numeric, estimate.metric.categorical, units=units)
    print(exchange_rates(estimated).replace("must not matter", "not forced by these applicants"))

    print("\n3. EDIT: a committee takes the metric of the logistic regression, and sets to 0:", end=" ")
    print(" and ".join(MUST_NOT_MATTER) + ".\n")
    agreed = likewise.TableMetric(
        metric.numeric, {**metric.categorical, **dict.fromkeys(MUST_NOT_MATTER, 0)}, units=units
    )

    print("4. AUDIT, before: does the boosted model stay within it?\n")
    report(likewise.audit(boosted, X_test, agreed))

    print("\n5. ENFORCE: the same model, trained on perturbed applications and smoothed under the metric.\n")
    smoothed = likewise.SmoothedClassifier(
        boosted, metric=agreed, n_draws=N_DRAWS, augment=5, vote="soft", random_state=0
    )
    smoothed.fit(X_train, y_train)
    guarantee = smoothed.guarantee_
    print("For any two applicants, in this table or not, the chances of approval differ by at most their")
    print(f"distance under the agreed metric plus {guarantee.epsilon:.3f}. Level: {guarantee.level}.\n")

    print("6. AUDIT, after:\n")
    report(likewise.audit(smoothed, X_test, agreed, tolerance=guarantee.epsilon))
    some = X_test[:20]
    for name in MUST_NOT_MATTER:
        for value in X[name].unique():
            changed = some.assign(**{name: pd.Categorical([value] * len(some), dtype=X[name].dtype)})
            assert (smoothed.predict_proba(changed) == smoothed.predict_proba(some)).all()
    print(f"{len(some)} applicants got bitwise identical scores with every value of race and sex.")

    print("\n7. COST, on held-out applicants:\n")
    scores = {
        "boosting, unchanged": boosted.predict_proba(X_test),
        "smoothed under the agreed metric": smoothed.predict_proba(X_test),
    }
    print(f"{'':34}accuracy   ranking (AUC)   mean probability of the decision")
    for name, each in scores.items():
        accuracy, ranking = (each.argmax(axis=1) == y_test).mean(), roc_auc_score(y_test, each[:, 1])
        print(f"{name:34}{accuracy:8.1%}{ranking:16.3f}{each[range(len(y_test)), y_test].mean():35.3f}")
    print(f"{'approving everyone':34}{y_test.mean():8.1%}{0.5:16.3f}{y_test.mean():35.3f}")
    best = likewise.ceiling(X_test, y_test, agreed)
    print(f"{'ceiling of this metric':34}{best.value:59.3f}")


def exchange_rates(metric: likewise.TableMetric) -> str:
    rows = metric.describe().sort_values("weight", key=lambda weight: weight.eq(0), kind="stable")
    return "\n".join(f"  {row['column']:30}{row['one point']}" for _, row in rows.iterrows())


def report(result: likewise.Audit) -> None:
    if not result.n_violations:
        print(f"None of {result.n_pairs:,} pairs exceeds the metric (by more than {result.tolerance:g}).")
        return
    print(f"{result.n_violations:,} of {result.n_pairs:,} pairs violate the metric.")
    worst = result.violations.iloc[0]
    print(f"In the worst pair the scores differ by {100 * worst['difference']:.0f} points. The metric allows", end=" ")
    print(f"{100 * worst['distance']:.0f}, by\n{worst['differs']}.")


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
