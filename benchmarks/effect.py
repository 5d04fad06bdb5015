"""How much sex can matter on Adult: found and proven, for the models that people use."""

import contextlib
import os
import warnings
from itertools import pairwise

from benchmarks.additive import boosted_scorecard, own_metric
from benchmarks.common import DataMissingError, read, section, skipped

SECONDS = float(os.environ.get("EFFECT_SECONDS", 120))
N_PAIRS = 1_000_000


def run() -> str:
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from likewise import AdditiveClassifier, TableMetric, attack, effect

    title = "How much a column can matter (`effect`)"
    try:
        table = read("adult_train.csv.gz")[:12_000]
    except DataMissingError as why:
        return skipped(title, why)
    X, y = table.drop(columns=["income", "fnlwgt", "education"]), table["income"]
    texts = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]

    def piped(last):
        encode = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts), remainder=StandardScaler()
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a network need not converge
            return make_pipeline(encode, last).fit(X, y)

    models = {
        "logistic regression": LogisticRegression(max_iter=1000),
        "boosting, 100 trees of depth 3": GradientBoostingClassifier(random_state=0),
        "boosting, 200 trees of depth 5": GradientBoostingClassifier(n_estimators=200, max_depth=5, random_state=0),
        "forest, 50 trees of depth 8": RandomForestClassifier(50, max_depth=8, random_state=0),
        "network, 2 x 64 ReLU": MLPClassifier(
            hidden_layer_sizes=(64, 64), max_iter=30, early_stopping=True, random_state=0
        ),
    }
    hidden = own_metric(X, y)
    metric = TableMetric(hidden.numeric, {**hidden.categorical, "sex": 0.05})
    fitted = {"scorecard (`AdditiveClassifier`)": AdditiveClassifier(metric, penalty=1e-3).fit(X, y)}
    with contextlib.suppress(ImportError):
        fitted["EBM without interactions"] = boosted_scorecard(X).set_params(outer_bags=2).fit(X, y)
    fitted |= {name: piped(last) for name, last in models.items()}
    people = X[:2000]
    effect(piped(GradientBoostingClassifier(n_estimators=3)), people, "sex")  # compiled, or read from the cache
    rows = []
    for name, model in fitted.items():
        found = effect(model, people, "sex", max_seconds=SECONDS)
        tried = attack(model, hidden, people, only="sex", n_pairs=N_PAIRS, random_state=0).difference
        on_people = f"{found.on_people['effect'].max():.4f}"
        figures = [on_people, f"{tried:.4f}", f"{found.found:.4f}", f"{found.proven:.4f}"]
        spent = f"{found.seconds:.2g} s" if found.seconds >= 1 else f"{1000 * found.seconds:.0f} ms"
        rows.append([name, *figures, "yes" if found.meets else "no", f"{found.proof.n_boxes:,}", spent])
        assert found.proven >= max(found.found, tried) - 1e-9
    first = section(
        title,
        ["model", "largest on people", "search", "found", "proven", "meet", "boxes", "time"],
        rows,
        "Sex on Adult, 12 columns, 12,000 people to train on; the domain is that of 2,000 of them. Differences of "
        "probabilities between two people who differ in sex alone: the largest among these people, the largest of "
        f"{N_PAIRS:,} pairs that `attack` tried, in the worst pair of the domain that `effect` found, and its proven "
        "upper bound. Processor time of `effect`, all of it: asking the model about everybody, reading it, searching "
        f"and proving (at most {SECONDS:.0f} s).",
    )
    return first + "\n" + rivals(X, y)


def rivals(X, y):
    """Ours, HiGHS and veritas on the same question: the largest change of the log-odds, categories as numbers."""
    import numpy as np
    from sklearn.ensemble import GradientBoostingClassifier

    coded = X.apply(lambda column: column if column.dtype.kind in "iuf" else column.astype("category").cat.codes)
    rows = []
    for n_trees, depth in ((100, 3), (200, 5)):
        model = GradientBoostingClassifier(n_estimators=n_trees, max_depth=depth, random_state=0).fit(coded, y)
        for name, method in (("likewise", ours), ("HiGHS, two copies", program), ("veritas", veritas)):
            found = method(model, coded)
            if found is not None:
                low, high, spent = found
                meet = "yes" if high - low <= 1e-3 * max(1.0, abs(high)) else "no"
                rows.append(
                    [
                        f"{n_trees} trees of depth {depth}",
                        name,
                        f"{low:.4f}" if np.isfinite(low) else "nothing",
                        f"{high:.4f}",
                        meet,
                        f"{spent:.2g} s",
                    ]
                )
    assert np.ptp([float(row[3]) for row in rows if row[4] == "yes" and row[0].startswith("100")]) < 1e-2
    return section(
        "The same question to others",
        ["boosting", "method", "found", "proven", "meet", "time"],
        rows,
        "The largest change of the log-odds if sex alone is exchanged, all categories coded as numbers, trees that do "
        "not read sex left out for all of them. A mixed-integer program of two copies, solved by HiGHS, and the search "
        f"of veritas over the trees of both copies. At most {SECONDS:.0f} s each, one thread; the limit "
        "of HiGHS is on elapsed time, which is longer than processor time on a busy machine.",
    )


def ours(model, X):
    import time
    from dataclasses import replace

    from likewise.verification.base import InputSpace
    from likewise.verification.search import Limits
    from likewise.verification.tree_bounds import bound_trees
    from likewise.verification.tree_model import TreeModel

    start = time.process_time()
    read = TreeModel.read(InputSpace.of(model, X))
    problem = replace(read.problem([list(X).index("sex")]), link="identity")
    searched = bound_trees(problem, Limits(SECONDS, None, 1e-4)).searched
    return searched.found, searched.bound, time.process_time() - start


def reading_trees(model, column):
    return [tree.tree_ for tree in model.estimators_.ravel() if (tree.tree_.feature == column).any()]


def program(model, X):
    """Leaves and thresholds of two copies, which share all thresholds but those of sex."""
    import time

    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    start, sex = time.process_time(), list(X).index("sex")
    cost, rows, columns, values, upper, lower, binary = [], [], [], [], [], [], []
    thresholds: dict = {}

    def variable(value, whole):
        cost.append(value)
        binary.append(whole)
        return len(cost) - 1

    def constrain(parts, low, high):
        for place, factor in parts:
            rows.append(len(upper))
            columns.append(place)
            values.append(factor)
        lower.append(low)
        upper.append(high)

    for tree in reading_trees(model, sex):
        for side, sign in ((0, 1.0), (1, -1.0)):
            ends = np.flatnonzero(tree.children_left < 0).tolist()
            leaves = {i: variable(sign * model.learning_rate * tree.value[i, 0, 0], 0) for i in ends}
            constrain([(place, 1.0) for place in leaves.values()], 1.0, 1.0)

            def below(node, tree=tree, leaves=leaves):
                if tree.children_left[node] < 0:
                    return [leaves[node]]
                return below(tree.children_left[node]) + below(tree.children_right[node])

            for node in range(tree.node_count):
                if tree.children_left[node] < 0:
                    continue
                column = int(tree.feature[node])
                key = (column, side if column == sex else 2, float(tree.threshold[node]))
                if key not in thresholds:
                    thresholds[key] = variable(0.0, 1)
                constrain([*((p, 1.0) for p in below(tree.children_left[node])), (thresholds[key], -1.0)], -np.inf, 0.0)
                constrain([*((p, 1.0) for p in below(tree.children_right[node])), (thresholds[key], 1.0)], -np.inf, 1.0)
    ordered = sorted(thresholds)
    for one, other in pairwise(ordered):
        if one[:2] == other[:2]:
            constrain([(thresholds[one], 1.0), (thresholds[other], -1.0)], -np.inf, 0.0)
    matrix = coo_array((values, (rows, columns)), shape=(len(upper), len(cost)))
    solved = milp(
        np.array(cost),
        integrality=binary,
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, lower, upper),
        options={"time_limit": SECONDS, "mip_rel_gap": 1e-4},
    )
    found = -solved.fun if solved.fun is not None else 0.0
    return found, -solved.mip_dual_bound, time.process_time() - start


def veritas(model, X):
    """The search of veritas over the trees of both copies, or None if it is not installed."""
    import time

    try:
        import veritas as library
    except ImportError:
        return None
    start, sex = time.process_time(), list(X).index("sex")
    ensemble = library.AddTree(1, library.AddTreeType.REGR)
    for tree in reading_trees(model, sex):
        for other, sign in ((0, -1.0), (1, 1.0)):
            made = ensemble.add_tree()
            stack = [(0, made.root())]
            while stack:
                node, here = stack.pop()
                if tree.children_left[node] < 0:
                    made.set_leaf_value(here, 0, sign * model.learning_rate * tree.value[node, 0, 0])
                    continue
                column = int(tree.feature[node])
                # veritas goes left below a value; all columns hold whole numbers.
                made.split(
                    here, len(list(X)) if column == sex and other else column, float(tree.threshold[node]) + 1e-3
                )
                stack += [(tree.children_left[node], made.left(here)), (tree.children_right[node], made.right(here))]
    config = library.Config(library.HeuristicType.MAX_OUTPUT)
    config.stop_when_optimal = True
    search = config.get_search(ensemble)
    while time.process_time() - start < SECONDS:
        reason = search.step_for(1.0, 100)
        if reason not in (library.StopReason.NONE, library.StopReason.OUT_OF_TIME):
            break
    bounds = search.current_bounds()
    low = float(bounds.atleast) if search.num_solutions() else -float("inf")
    return low, float(bounds.best), time.process_time() - start


if __name__ == "__main__":
    print(run())
