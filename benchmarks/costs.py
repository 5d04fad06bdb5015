"""What designed metrics cost people whom neither metric nor choice of method has seen, and what is printed of it."""

import warnings

from benchmarks.additive import PROTECTED, boosted_scorecard, tables
from benchmarks.common import DataMissingError, section, skipped

QUALITY, PRINTED = "Designed metrics: what they keep and bind", "Designed metrics: printed costs"
MOST, SPLITS, COST_SPLITS = 6000, 3, 10
DESIGN = {"n_points": 6, "cv": 3, "references": False}


def run() -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return quality() + "\n" + printed()
    except DataMissingError as why:
        return skipped(QUALITY, why)


def made_up(n, seed, truth):
    """People of whom four columns of seven matter, as much as is said: outcomes are of two or three classes."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": np.round(rng.gamma(4, 12, n)),
            "tenure": np.where(rng.random(n) < 0.1, np.nan, rng.poisson(5, n)),
            "age": rng.integers(18, 75, n),
            "noise": rng.normal(size=n),
            "region": rng.choice(list("abcd"), n),
            "race": rng.choice(["x", "y"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    score = 0.05 * (X["income"] - 48) + 0.2 * (X["tenure"].fillna(7) - 5) - 0.02 * (X["age"] - 45)
    score = (truth * (score + (X["region"] == "a"))).to_numpy() + rng.logistic(size=n)
    return X, np.digitize(score, [-0.7, 1]) if truth == 1 else (score > 0).astype(int)


def samples():
    """Tables, shuffled, at most so many people of each."""
    import numpy as np

    for name, X, y in tables():
        chosen = np.random.default_rng(0).permutation(len(y))[:MOST]
        yield name, X.iloc[chosen].reset_index(drop=True), y[chosen]
    yield "three classes, 600 made up", *made_up(600, 2, 1)
    yield "400 made up", *made_up(400, 1, 2)


def losses(model, X, y):
    """Brier score of each person."""
    return ((model.predict_proba(X) - (y[:, None] == model.classes_)) ** 2).sum(axis=1) / 2


def quality() -> str:
    import numpy as np
    from sklearn.dummy import DummyClassifier
    from sklearn.model_selection import train_test_split

    from likewise import design_metric
    from likewise.auditing.coverage import measure_coverage
    from likewise.inspection.baselines import table_model

    rows = []
    for name, X, y in samples():
        found: dict[str, list[float]] = {}
        for seed in range(SPLITS):
            X_a, X_b, y_a, y_b = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
            plain_a, plain_b = X_a.drop(columns=PROTECTED), X_b.drop(columns=PROTECTED)
            frontier = design_metric(X_a, y_a, protected=PROTECTED, references=False)
            all_of_it, most, half = frontier.at(keep=1), frontier.at(keep=0.95), frontier.at(bind=0.5)
            seen = {
                "loosest": losses(frontier.points[-1].card, X_b, y_b),
                "keep=1": losses(all_of_it.card, X_b, y_b),
                "keep=0.95": losses(most.card, X_b, y_b),
                "bind=0.5": losses(half.card, X_b, y_b),
                "logistic": losses(table_model(plain_a, "logistic").fit(plain_a, y_a), plain_b, y_b),
                "EBM": losses(boosted_scorecard(plain_a).fit(plain_a, y_a), plain_b, y_b),
                "constant": losses(DummyClassifier().fit(plain_a, y_a), plain_b, y_b),
                "bound": [measure_coverage(most.metric, X_b).bound_share],
            }
            for title, values in seen.items():
                found.setdefault(title, []).append(float(np.mean(values)))
        mean = {title: float(np.mean(values)) for title, values in found.items()}
        skill = {title: 1 - mean[title] / mean["constant"] for title in ("keep=1", "keep=0.95", "bind=0.5")}
        rows.append(
            [
                name,
                *(f"{mean[title]:.4f}" for title in ("constant", "logistic", "EBM", "loosest")),
                f"{mean['keep=1']:.4f} ({mean['keep=1'] / mean['EBM'] - 1:+.1%})",
                f"{mean['keep=0.95']:.4f} ({skill['keep=0.95'] / skill['keep=1']:.0%})",
                f"{mean['bound']:.0%}",
                f"{mean['bind=0.5']:.4f} ({skill['bind=0.5'] / skill['keep=1']:.0%})",
            ]
        )
        print(f"  {rows[-1]}", flush=True)
    columns = ["Brier score of people held out", "constant", "logistic", "EBM without interactions", "loosest metric"]
    columns += ["`keep=1` (against EBM)", "`keep=0.95` (of that skill)", "pairs it binds", "`bind=0.5` (of that skill)"]
    return section(
        QUALITY,
        columns,
        rows,
        f"Means over {SPLITS} random splits (70% training) of at most {MOST:,} people. Race and sex have the weight 0, "
        "or are left out. Nobody who is measured was used for a metric, its card, or the choice of a point. Allowed is "
        "1% above EBM, and half of the pairs bound at 0.95 of the skill.",
    )


def printed() -> str:
    """The cost that `compare` prints of half of a table, beside that of the whole procedure on the other half."""
    import numpy as np

    from likewise import compare, design_metric
    from likewise.selection.compare import difference
    from likewise.selection.methods import UNCONSTRAINED

    def designed(X, y):
        frontier = design_metric(X, y, protected=PROTECTED, **DESIGN)
        return (frontier.best() if frontier.gain[0] > 0 else frontier.points[0]).metric

    mortgages = next(tables())
    kinds = {
        "1,000 made up, nearly noise": lambda seed: made_up(1000, seed, 0.4),
        "1,000 made up": lambda seed: made_up(1000, seed, 1.5),
        "mortgages": lambda seed: mortgages[1:],
    }
    rows = []
    for name, make in kinds.items():
        told, true, distances = [], [], []
        for seed in range(COST_SPLITS):
            X, y = make(seed)
            order = np.random.default_rng(seed).permutation(len(y))
            a, b = order[: len(y) // 2], order[len(y) // 2 :]
            X_a, y_a = X.iloc[a].reset_index(drop=True), y[a]
            metric = designed(X_a, y_a)
            result = compare(X_a, y_a, metric, methods=["additive"], made_by=designed, n_people=100)
            gap, error = difference(result.results["additive"], result.results[UNCONSTRAINED], result.folds)
            card, free = (result.estimators[key].fit(X_a, y_a) for key in ("additive", UNCONSTRAINED))
            nested = losses(card, X.iloc[b], y[b]) - losses(free, X.iloc[b], y[b])
            own = float(nested.std() / np.sqrt(len(b)))
            told, true = [*told, gap], [*true, float(nested.mean())]
            distances.append(abs(gap - true[-1]) / np.hypot(error, own))
        within = sum(each <= 2 for each in distances)
        rows.append([name, f"{np.mean(told):+.4f}", f"{np.mean(true):+.4f}", f"{within} of {COST_SPLITS}"])
        print(f"  {rows[-1]}", flush=True)
    return section(
        PRINTED,
        ["people", "cost that `compare` prints", "cost on the other half", "within two standard errors"],
        rows,
        f"Means over {COST_SPLITS} halves: the difference of Brier scores of the card within the designed metric and "
        "the unconstrained model. `compare` has one half, and makes the metric again in each fold; on the other half, "
        "the metric, its card and the unconstrained model are those of the first, and learn from a quarter more people "
        "than in a fold.",
    )


if __name__ == "__main__":
    print(run())
