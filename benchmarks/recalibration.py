"""Calibration within the guarantee on real mortgages, compared with an unconstrained calibrator."""

from benchmarks.common import section
from benchmarks.compare import own_metric

N_TEST, FOLDS = 500, 4
TITLE = "Calibration within the guarantee (`RecalibratedClassifier`)"


def run() -> str:
    rows = [[name, *scores] for name, scores in measured()]
    return section(
        TITLE,
        ["model", "as it is", "isotonic, within", "sigmoid, within", "isotonic, free", "pairs it breaks"],
        rows,
        f"Brier scores on {FOLDS} times {N_TEST} mortgage applicants not seen by model or calibrator. The metric is "
        "that of a logistic model, with race set to 0. All pairs of the people of one fold were searched; calibration "
        "within the guarantee violated none. *Balanced* uses balanced class weights, so its scores are far too low. "
        "The constant and logistic regression are for comparison; the latter has no guarantee.",
    )


def measured():
    import numpy as np
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator
    from sklearn.metrics import brier_score_loss
    from sklearn.model_selection import StratifiedShuffleSplit

    from likewise import AdditiveClassifier, ProjectedClassifier, RecalibratedClassifier, SmoothedClassifier, audit
    from likewise.datasets import load_mortgages
    from likewise.dummy import ConstantClassifier
    from likewise.inspection.baselines import table_model

    bunch = load_mortgages()
    X, y = bunch.data, np.asarray(bunch.target)
    metric = own_metric(X, y)
    boosting = table_model(X, "boosting")
    models = {
        "constant": (ConstantClassifier(metric), None),
        "logistic, no guarantee": (table_model(X, "logistic"), None),
        "additive": (AdditiveClassifier(metric, penalty=0.01), None),
        "additive, balanced": (AdditiveClassifier(metric, penalty=0.01), "balanced"),
        "projected boosting": (ProjectedClassifier(boosting, metric=metric, random_state=0), None),
        "smoothed boosting": (SmoothedClassifier(boosting, metric=metric, n_draws=100, random_state=0), None),
    }
    found = {name: [] for name in models}
    for learn, test in StratifiedShuffleSplit(FOLDS, test_size=N_TEST, random_state=0).split(X, y):
        half = np.arange(len(learn)) % 2 == 0  # one half trains, the other calibrates
        train, calibrate = learn[half], learn[~half]

        def brier(model, test=test):
            return brier_score_loss(y[test], model.predict_proba(X.iloc[test])[:, 1])

        for name, (given, weighting) in models.items():
            share = y[train].mean()
            weights = None if weighting is None else np.where(y[train] == 1, 0.5 / share, 0.5 / (1 - share))
            options = {} if weights is None else {"sample_weight": weights}
            model = given.with_metric(metric) if hasattr(given, "with_metric") else given
            model = model.fit(X.iloc[train], y[train], **options)
            row = [brier(model)]
            for method in ("isotonic", "sigmoid"):
                scale = getattr(model, "guarantee_", None)
                if name in ("constant",) or scale is None or (method == "sigmoid" and not scale.curve.has_log_odds):
                    row.append(np.nan)
                    continue
                kept = RecalibratedClassifier(FrozenEstimator(model), method=method)
                kept.fit(X.iloc[calibrate], y[calibrate])
                row.append(brier(kept))
                assert audit(kept, X.iloc[test], metric, tolerance=kept.guarantee_.epsilon + 1e-9).n_violations == 0
            free = CalibratedClassifierCV(FrozenEstimator(model), method="isotonic").fit(
                X.iloc[calibrate], y[calibrate]
            )
            row += [brier(free), audit(free, X.iloc[test], metric).n_violations]
            found[name].append(row)
    for name, rows in found.items():
        *scores, broken = np.mean(rows, axis=0)
        yield name, ["" if np.isnan(score) else f"{score:.4f}" for score in scores] + [f"{broken:,.0f}"]


if __name__ == "__main__":
    print(run())
