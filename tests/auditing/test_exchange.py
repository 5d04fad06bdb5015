"""What exchanging columns does to people: against asking the model about each of them, with each value."""

import itertools

import numpy as np
import pandas as pd
import pytest

from chance import too_few
from likewise import Domain
from likewise.auditing import exchange
from likewise.auditing.effect import effect
from likewise.auditing.intervals import mean_interval, share_interval
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


MODELS = {
    "chances": lambda X: np.column_stack([1 - score(X), score(X)]),
    "amounts": amounts,
    "classes": three,
    "classes, of which the second moves most": lambda X: three(X)[:, [1, 0, 2]],
}


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
    limited = kind != "amounts"  # a mean of numbers without limits has no interval
    assert found.mean_interval == (pytest.approx(mean_interval(effects)) if limited else None)
    assert found.all_tried
    assert found.found >= effects.max() - 1e-12
    spread = np.ptp([*outputs.values()]) if kind == "amounts" else 1.0
    assert (found.tolerance, found.rounding) == pytest.approx((1e-4 * spread, 1e-9 * spread))
    several = kind.startswith("classes")
    single = {} if several else {k: each[:, -1] for k, each in outputs.items()}
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
        shown = found.on_people["outcome"][i] if several else -1
        assert np.ravel(model(row))[shown] == pytest.approx(found.on_people[end][i])
    if len(columns) == 1 and single:
        check_directions(found.directions, values, columns[0], single, limited)
    check_groups(found.groups, X, columns, effects, limited)


def plain(value):
    return None if category(value) == "(blank)" else value


def with_values(X, given):
    """People who have been given values; None is a blank."""
    blanks = {"sex": None, "age": np.nan}
    return X.assign(**{n: pd.Series(blanks[n] if v is None else v, X.index, X[n].dtype) for n, v in given.items()})


def check_directions(table, values, column, scores, limited):
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
        ends = mean_interval(gap, -1, 1) if limited else (np.nan, np.nan)
        assert (row["mean_low"], row["mean_high"]) == pytest.approx(ends, nan_ok=True)
        assert (row["share"], row["share_low"], row["share_high"]) == pytest.approx((k / n, *share_interval(k, n)))
        assert row["largest"] == pytest.approx(gap.max(), abs=1e-12)


def written(value):
    """A value as people write it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def check_groups(table, X, columns, effects, limited):
    if len(columns) > 1:
        assert table.empty
        return
    own = X[columns[0]].map(lambda value: "blank" if category(value) == "(blank)" else written(value)).to_numpy()
    assert sorted(table["group"]) == sorted(set(own))
    for row in table.to_dict("records"):
        members = effects[own == row["group"]]
        assert (row["n"], row["mean"], row["largest"]) == pytest.approx((len(members), members.mean(), members.max()))
        ends = mean_interval(members) if limited else (np.nan, np.nan)
        assert (row["mean_low"], row["mean_high"]) == pytest.approx(ends, nan_ok=True)


class Three:
    """A classifier of three classes."""

    classes_ = np.array(["a", "b", "c"])
    predict_proba = staticmethod(three)


def test_of_several_classes_the_favourable_one_says_who_gains():
    X = people()
    found = effect(Three(), X, "sex", favourable="b", n_queries=20, max_boxes=1)
    values = [{"sex": each} for each in ("f", "m", None)]
    scores = {k: three(with_values(X, given))[:, 1] for k, given in enumerate(values)}
    table = found.directions.rename(columns={"favoured": "higher", "over": "lower"})
    check_directions(table, values, "sex", scores, limited=True)


def wavy(X):
    """Scores that turn between whole years."""
    return 0.5 + 0.4 * np.sin(2.7 * X["age"])


def test_all_values_of_the_domain_are_tried(monkeypatch):
    """The truth by asking about every age; 16 quantiles of them, as the control, are below it."""
    X = pd.DataFrame({"age": np.random.default_rng(0).integers(20, 70, 400), "pay": 1.0})
    words = {"output_range": (0, 1), "n_queries": 20}
    found = effect(wavy, X, "age", **words)
    truth = np.ptp(wavy(pd.DataFrame({"age": np.arange(20, 70)})))
    assert found.on_people["effect"].to_numpy() == pytest.approx(truth)
    assert found.mean_interval[0] <= truth <= found.mean_interval[1]
    assert (found.all_tried, found.tried) == (True, "all 50 values of the domain")
    few = effect(wavy, X, "age", domain=Domain.learn(X).with_column("age", step=4), **words)
    assert few.tried == "all 13 values of the domain"
    monkeypatch.setattr(exchange, "_MOST", 16)
    some = effect(wavy, X, "age", **words)
    assert some.on_people["effect"].mean() < truth - 1e-3
    assert (some.mean_interval, some.tried) == (None, "16 of the 50 values that these people have")


def test_the_ends_of_the_domain_are_tried_where_nobody_is():
    """Between people's ages, and beyond all of them."""
    X = pd.DataFrame({"age": [31.25, 40.5, 52.75] * 5, "pay": 1.0})
    domain = Domain.learn(X).with_column("age", low=20.0, high=70.0, step=None)
    found = effect(
        lambda people: people["age"].to_numpy() / 100, X, "age", domain=domain, output_range=(0, 1), n_queries=20
    )
    np.testing.assert_allclose(found.on_people["effect"], 0.5)
    np.testing.assert_allclose(found.on_people["lowest if"], 20)
    np.testing.assert_allclose(found.on_people["highest if"], 70)


def test_a_maximum_over_some_values_has_no_interval(monkeypatch):
    monkeypatch.setattr(exchange, "_MOST", 20)
    ages = 20 + 50 * np.random.default_rng(0).random(60)
    X = pd.DataFrame({"age": ages, "pay": np.arange(60) % 3})
    some = effect(wavy, X, "age", output_range=(0, 1), n_queries=20)
    assert (some.mean_interval, some.all_tried) == (None, False)
    assert some.tried == "20 of the 60 values that these people have"
    assert "or more" in some.headline
    both = effect(wavy, X, ["age", "pay"], output_range=(0, 1), n_queries=20)
    assert both.tried == "20 of the 60 combinations that these people have"
    monkeypatch.undo()
    every = effect(wavy, X, "age", output_range=(0, 1), n_queries=20)
    assert every.tried == "all 60 values that these people have"
    scores = wavy(X)
    assert every.mean == pytest.approx(np.ptp(scores))
    assert some.mean < every.mean_interval[1]


def test_nobody_affected_of_a_sample_leaves_room_for_some():
    """1% of the population are affected; how often the interval holds is counted. Student's holds if one was seen."""
    truth, held, seen = 0.01 * 0.3, 0, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"sex": rng.choice(["f", "m"], 100), "rare": (rng.random(100) < 0.01).astype(int)})
        X.loc[0, "sex"], X.loc[1, "sex"] = "f", "m"
        found = effect(lambda X: 0.3 * (X["sex"] == "m") * X["rare"], X, "sex", output_range=(0, 1), n_queries=4)
        low, high = found.mean_interval
        held += 0 <= low <= truth <= high
        seen += found.mean > 0
    assert not too_few(held, 100, 0.95)
    assert too_few(seen, 100, 0.95)  # the control: an interval from 0 to 0 for the others would not hold
