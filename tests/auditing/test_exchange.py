"""What exchanging columns does to people: against asking the model about each of them, with each value."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from likewise.auditing.effect import effect
from oracle import category


def people(n=40):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.choice([20.0, 30.0, 40.0, np.nan], n),
            "sex": rng.choice(np.array(["f", "m", None], dtype=object), n),
            "pay": rng.integers(0, 5, n),
        }
    )


def score(X):
    """Women are favoured a little, but for some men who are favoured much; a blank lowers everything."""
    sex = X["sex"].map({"f": 0.18, "m": 0.1}).fillna(0.0)
    return 0.1 + sex + 0.33 * ((X["pay"] == 4) & (X["sex"] == "m")) + 0.004 * X["age"].fillna(5.0)


def amounts(X):
    return 5000 * score(X)


def three(X):
    first = score(X)
    return np.column_stack([first, 0.3 * (1 - first), 0.7 * (1 - first)])


def interval(values):
    """Of the mean, at 95%, by Student."""
    width = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return values.mean() - width, values.mean() + width


MODELS = {"chances": lambda X: np.column_stack([1 - score(X), score(X)]), "amounts": amounts, "classes": three}


@pytest.mark.parametrize("columns", [["sex"], ["age"], ["age", "sex"]], ids=" and ".join)
@pytest.mark.parametrize("kind", MODELS)
def test_everybody_is_asked_about_with_every_value(kind, columns):
    X, model = people(), MODELS[kind]
    found = effect(model, X, columns, n_queries=20, max_boxes=1)
    values = [dict(zip(columns, each, strict=True)) for each in {(*map(plain, row),) for row in X[columns].to_numpy()}]
    outputs = {}  # by what everybody is given; the last is what they have
    for k, given in enumerate([*values, {}]):
        outputs[k] = np.asarray(model(with_values(X, given))).reshape(len(X), -1)
    share = 0.5 if kind != "amounts" else 1.0
    gaps = {(a, b): share * np.abs(outputs[a] - outputs[b]).sum(axis=1) for a, b in itertools.combinations(outputs, 2)}
    effects = np.max([*gaps.values()], axis=0)
    np.testing.assert_allclose(found.on_people["effect"], effects, atol=1e-12)
    assert found.on_people["row"].tolist() == list(range(len(X)))
    assert found.mean == pytest.approx(effects.mean())
    assert found.mean_interval == pytest.approx(interval(effects))
    assert found.found >= effects.max() - 1e-12
    spread = np.ptp([*outputs.values()]) if kind == "amounts" else 1.0
    assert (found.tolerance, found.rounding) == pytest.approx((1e-4 * spread, 1e-9 * spread))
    single = {k: each[:, -1] for k, each in outputs.items()} if kind != "classes" else {}
    if single:
        np.testing.assert_allclose(found.on_people["score"], single[len(values)])
        np.testing.assert_allclose(found.on_people["lowest"], np.min([*single.values()], axis=0))
        np.testing.assert_allclose(found.on_people["highest"], np.max([*single.values()], axis=0))
    else:  # of the class in which the two differ most
        assert found.on_people["score"].isna().all()
        assert (found.on_people["lowest"] < found.on_people["highest"]).all()
    for end, i in itertools.product(("lowest", "highest"), range(len(X) if len(columns) == 1 else 0)):
        value = plain(found.on_people[f"{end} if"][i])  # what is said to give a score gives it
        row = with_values(X.iloc[[i]], {columns[0]: value})
        shown = found.on_people["outcome"][i] if kind == "classes" else -1
        assert np.ravel(model(row))[shown] == pytest.approx(found.on_people[end][i])
    if len(columns) == 1 and single:
        check_directions(found.directions, values, columns[0], single)
    check_groups(found.groups, X, columns, effects)


def plain(value):
    return None if category(value) == "(blank)" else value


def with_values(X, given):
    """People who have been given values; None is a blank."""
    blanks = {"sex": None, "age": np.nan}
    return X.assign(**{n: pd.Series(blanks[n] if v is None else v, X.index, X[n].dtype) for n, v in given.items()})


def check_directions(table, values, column, scores):
    """Every two values: who is favoured on average, by how much, for how many, and by how much at most."""
    n = len(scores[0])
    rows = {(category(row["higher"]), category(row["lower"])): row for row in table.to_dict("records")}
    assert len(rows) == len(values) * (len(values) - 1) // 2
    assert table["mean"].is_monotonic_decreasing
    for a, b in itertools.permutations(range(len(values)), 2):
        row = rows.get((category(values[a][column]), category(values[b][column])))
        if row is None:
            continue
        gap = scores[a] - scores[b]
        k = int((gap > 0).sum())
        assert row["mean"] == pytest.approx(gap.mean(), abs=1e-12)
        assert gap.mean() >= 0
        assert (row["mean_low"], row["mean_high"]) == pytest.approx(interval(gap))
        # Clopper and Pearson by the beta distribution.
        low, high = stats.beta.ppf([0.025, 0.975], [k, k + 1], [n - k + 1, n - k])
        assert (row["share"], row["share_low"], row["share_high"]) == pytest.approx(
            (k / n, 0.0 if k == 0 else low, 1.0 if k == n else high)
        )
        assert row["largest"] == pytest.approx(gap.max(), abs=1e-12)


def check_groups(table, X, columns, effects):
    if len(columns) > 1:
        assert table.empty
        return
    own = X[columns[0]].map(lambda value: "blank" if category(value) == "(blank)" else str(value)).to_numpy()
    assert sorted(table["group"]) == sorted(set(own))
    for row in table.to_dict("records"):
        members = effects[own == row["group"]]
        assert (row["n"], row["mean"], row["largest"]) == pytest.approx((len(members), members.mean(), members.max()))
        assert (row["mean_low"], row["mean_high"]) == pytest.approx(interval(members))
