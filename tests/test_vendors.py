"""Six vendors whose truth is known, examined from the command line: every printed finding is compared with the truth.

Everybody there can be is one of 396 people, so that whatever the commands say of all people of the domain, of the
population that the table was drawn from, or of the table, is computed here by asking the known function.
"""

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from click.testing import CliRunner
from scipy import sparse
from scipy.optimize import linprog
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from likewise import TableMetric, write_metric
from likewise.cli.main import main
from likewise.metric_file import MetricFile

EVERYBODY = pd.MultiIndex.from_product(
    [range(11), range(6), ("north", "south", "west"), ("f", "m")], names=["income", "debt", "region", "sex"]
).to_frame(index=False)
METRIC = TableMetric({"income": 0.03, "debt": 0.02}, {"region": 0.05, "sex": 0})
OTHERS = ["income", "debt", "region"]
COMPARE = ["--higher", "income", "--lower", "debt", "--same", "region"]


def deserved(X):
    """A score that never sees sex; within `METRIC`."""
    return 0.25 + 0.03 * X["income"] - 0.02 * X["debt"] + 0.05 * (X["region"] == "north")


def planted(X):
    """Men have more, and most of it in the west."""
    return deserved(X) + (X["sex"] == "m") * np.where(X["region"] == "west", 0.15, 0.04)


def in_corner(X):
    """Men of the highest incomes in the west have 8 points more: 4% of the domain, where nobody of the table is."""
    return deserved(X) + 0.08 * ((X["sex"] == "m") & corner(X))


def salary(X):
    """Thousands of dollars."""
    return 30 + 4 * X["income"] - X["debt"] + (X["sex"] == "m") * (5.5 + 0.3 * X["income"])


def corner(X):
    return (X["region"] == "west") & (X["income"] >= 8) & (X["debt"] <= 3)


def chances(*, empty=False):
    """How likely each of `EVERYBODY` is drawn: men earn more, so that income goes with sex."""
    middle = np.where(EVERYBODY["sex"] == "m", 6.5, 4.5)
    weights = np.exp(-((EVERYBODY["income"] - middle) ** 2) / 12) * (EVERYBODY["debt"].to_numpy() + 2)
    weights = np.where(empty & corner(EVERYBODY), 0, weights)
    return weights / weights.sum()


def drawn(*, empty=False, seed=0, n=300):
    rng = np.random.default_rng(seed)
    return EVERYBODY.iloc[rng.choice(len(EVERYBODY), n, p=chances(empty=empty))].reset_index(drop=True)


def as_tree(truth, *, number=False):
    """A tree that answers as the function does for everybody."""
    texts = ["region", "sex"]
    encode = make_column_transformer((OneHotEncoder(sparse_output=False), texts), remainder="passthrough")
    if number:
        return make_pipeline(encode, DecisionTreeRegressor(random_state=0)).fit(EVERYBODY, truth(EVERYBODY))
    model = make_pipeline(encode, DecisionTreeClassifier(random_state=0))
    twice, yes = pd.concat([EVERYBODY] * 2), truth(EVERYBODY)
    labels = np.repeat(["approved", "denied"], len(EVERYBODY))
    model.fit(twice, labels, decisiontreeclassifier__sample_weight=np.concatenate([yes, 1 - yes]))
    return model


def run(*words, code=0):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def as_read(result):
    """What a person reads, on one line; and nothing that nobody should read."""
    text = result.stdout
    for wrong in ("np.", "dtype", "Traceback", " 1 pairs", " 1 boxes", "e+0", "e-1"):
        assert wrong not in text, text
    assert "nan" not in re.split(r"\W+", text)
    return " ".join(text.split())


def numbers(pattern, text):
    found = re.search(pattern, text)
    assert found, (pattern, text)
    return [float(part.replace(",", "")) for part in found.groups()]


def effects(truth, X):
    """What exchanging sex does to each person, in the unit of the function."""
    return np.abs(truth(X.assign(sex="m")) - truth(X.assign(sex="f")))


def written(tmp_path, monkeypatch, truth, *, empty=False, number=False):
    """The vendor's files; the table, with what the vendor decided."""
    monkeypatch.chdir(tmp_path)
    X = drawn(empty=empty)
    scores = truth(X)
    loans = X.assign(id=[f"A{i}" for i in range(len(X))], score=scores)
    loans["decision"] = np.where(scores > scores.median(), "approved", "denied")
    loans.to_csv("loans.csv", index=False)
    skops.io.dump(as_tree(truth, number=number), "vendor.skops")
    write_metric(MetricFile(METRIC, (0, 100) if number else None), "metric.toml")
    return loans


def check_effect(truth, loans, text, unit, suffix, *, empty=False):
    """All that `effect` prints about sex in `text`; `unit` turns the function into what is shown."""
    on_people = unit * effects(truth, loans)
    nothing = f"For these {len(loans)} people: exchanging sex alone changes nothing" in text
    assert nothing == (on_people.max() < 1e-6)
    interval = re.search(rf"on average \(?(\S+?)(?:{suffix})? to (\S+?)(?:{suffix})? in the population", text)
    assert bool(interval) == ("in the population" in text.split("By the people's")[0])
    if interval:
        low, high = (float(end) for end in interval.groups())
        everybody = unit * effects(truth, EVERYBODY)
        assert low - 1e-3 * unit <= everybody @ chances(empty=empty) <= high + 1e-3 * unit
        assert low <= on_people.mean() + 1e-3 * unit
        assert on_people.mean() <= high
        assert high > low
    if not nothing:
        mean, largest = numbers(rf"by (\S+){suffix} on average.*?, and by up to (\S+?){suffix}\.(?: |$)", text)
        assert mean == pytest.approx(on_people.mean(), rel=1e-3, abs=1e-6)
        assert largest == pytest.approx(on_people.max(), rel=1e-3, abs=1e-6)
        by_sex = {sex: on_people[loans["sex"] == sex] for sex in "fm"}
        row = rf"(\d+) (\S+){suffix} (\S+){suffix}"
        told = numbers(rf"By the people's own value: group n on average at most f {row} m {row} ", text)
        expected = [figure for each in by_sex.values() for figure in (len(each), each.mean(), each.max())]
        assert told == pytest.approx(expected, rel=1e-3, abs=1e-6)
        assert "0.01 is" not in text  # the tables are in points, or in the unit of the scores
    worst = unit * effects(truth, EVERYBODY).max()
    if worst == 0:
        assert "No pair was found" in text
        assert "get different outputs, but for rounding" in text
        assert not re.search("Who gains|favour(?!able)", text)
        return
    (found,) = numbers(rf"The worst pair found in the domain differs by (\S+?){suffix}:", text)
    assert found == pytest.approx(worst, rel=1e-3)
    if "No upper bound is proven" not in text:
        assert "Proven: no two people of the domain who differ in sex" in text
        limit = re.search(rf"differ by more than (\S+?){suffix}\.(?: |$)", text)
        assert limit is None or worst * (1 - 1e-9) <= float(limit[1]) <= worst * 1.01


def check_audit(loans, told, text, unit, *, empty, truth):
    """What `audit --groups` says of pairs: all counts, the favoured, the interval for the population."""
    scores, sexes = unit * loans["score"].to_numpy(), loans["sex"].to_numpy()
    a, b = np.triu_indices(len(loans), 1)
    excess = np.abs(scores[a] - scores[b]) - distances(loans, a, b)
    above = excess > 1e-9
    assert told["n_violations"] == above.sum()
    assert max(told["max_excess"], 0) == pytest.approx(max(excess.max(), 0), abs=1e-6)
    assert told["rate"] == pytest.approx(above.mean())
    low, high = told["rate_interval"]
    p = chances(empty=empty)
    values = unit * truth(EVERYBODY).to_numpy()
    i, j = np.meshgrid(np.arange(len(EVERYBODY)), np.arange(len(EVERYBODY)))
    exceeds = np.abs(values[i] - values[j]) > distances(EVERYBODY, i.ravel(), j.ravel()).reshape(i.shape) + 1e-9
    assert low <= p @ exceeds @ p <= high
    if not above.any():
        assert "no pair was found" in text
        assert all(row["p_value"] == 1 and row["n_pairs"] == 0 for row in told["groups"])
        return
    mixed = above & (sexes[a] != sexes[b])
    lead = np.where(sexes[a] == "m", scores[a] - scores[b], scores[b] - scores[a])
    (men,) = (row for row in told["groups"] if row["value"] == "m")
    assert men["n_pairs"] == mixed.sum()
    assert men["n_favoured"] == (mixed & (lead > 0)).sum()
    assert men["share"] == pytest.approx((lead[mixed] > 0).mean())


def distances(X, a, b):
    """By hand: the metric's distance of pairs."""
    total = sum(
        weight * np.abs(X[name].to_numpy()[a] - X[name].to_numpy()[b])
        for name, weight in {"income": 0.03, "debt": 0.02}.items()
    )
    region = X["region"].to_numpy()
    return total + 0.05 * (region[a] != region[b])


def check_review(loans, text, told):
    """Who is found by hand: every denied person with an approved one who is no better qualified."""
    denied, approved = (loans[loans["decision"] == word] for word in ("denied", "approved"))
    beside = approved[["income", "debt", "region", "sex"]].to_numpy()
    hits = np.array(
        [[c <= a and d >= b and r == region for c, d, r, _ in beside] for a, b, region in denied[OTHERS].to_numpy()]
    )
    n_files, n_denied, n_pairs = numbers(
        r"^([\d,]+) of ([\d,]+) people with the decision 'denied' .*?; ([\d,]+) pairs? in all", text
    )
    assert (n_files, n_denied, n_pairs) == (hits.any(axis=1).sum(), len(denied), hits.sum())
    assert told["favourable"] == "approved"
    for row in told["groups"]:
        rows = denied["sex"].eq(row["denied"]).to_numpy()
        others = approved["sex"].eq(row["approved"]).to_numpy()
        mine = hits[rows][:, others]
        assert row["n_files"] == mine.any(axis=1).sum()
        assert row["n_pairs"] == mine.sum()


def check_within(loans, told, within, weight):
    """The same with comparators within a distance, in the unit of the scores: pairs by hand."""
    denied, approved = (np.flatnonzero(loans["decision"] == word) for word in ("denied", "approved"))
    i, j = np.meshgrid(denied, approved, indexing="ij")
    near = weight * distances(loans, i.ravel(), j.ravel()).reshape(i.shape) <= within + 1e-9
    assert told["n_pairs"] == near.sum() > 0
    assert told["n_files"] == near.any(axis=1).sum()


def transport(loans):
    """Largest difference of the means of women and men that any function within the metric has: a linear program."""
    women, men = (np.flatnonzero(loans["sex"] == sex) for sex in "fm")
    i, j = np.meshgrid(women, men, indexing="ij")
    cost = np.minimum(1, distances(loans, i.ravel(), j.ravel()))
    n, m = len(women), len(men)
    shares = sparse.vstack([sparse.kron(sparse.eye(n), np.ones(m)), sparse.kron(np.ones(n), sparse.eye(m))])
    found = linprog(cost, A_eq=shares, b_eq=np.concatenate([np.full(n, 1 / n), np.full(m, 1 / m)]), method="highs")
    return found.fun


def section(page, name):
    """The text of a section of a page."""
    found = re.search(rf'<section id="{name}".*?</section>', page, re.DOTALL)
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", found[0])).split())


def check_page(truth, loans, page, unit, suffix):
    """What the page says of sex: gaps of means beside what the metric allows, the worst pair, and files by group."""
    text = section(page, "hidden")
    scores = unit * truth(loans)
    gap = abs(scores[loans["sex"] == "f"].mean() - scores[loans["sex"] == "m"].mean())
    limit = 100 * transport(loans)  # of a range from 0 to 100, or in points
    told = numbers(
        rf"Mean outputs of f and of all others differ by (\S+?){suffix}, .*?(?:than the|up to) ([\d.]+){suffix} ", text
    )
    assert told == pytest.approx([gap, limit], rel=5e-3)
    assert ("more than the" in text) == (gap > limit)
    assert ("neither that the model exceeds the metric nor that it keeps to it" in text) == (gap <= limit)
    assert ("points" in text) == bool(suffix)
    worst = unit * effects(truth, EVERYBODY).max()
    if worst == 0:
        assert "get different outputs (proven)" in text
    else:
        assert numbers(rf"by (\S+?){suffix} for the worst pair found", text) == pytest.approx([worst], rel=1e-3)
    denied, approved = (loans[loans["decision"] == word] for word in ("denied", "approved"))
    women, men = denied[denied["sex"] == "f"], approved[approved["sex"] == "m"].to_dict("records")
    hits = [
        sum(x["income"] <= w["income"] and x["debt"] >= w["debt"] and x["region"] == w["region"] for x in men)
        for w in women.to_dict("records")
    ]
    row = numbers(r" f m ([\d,]+) ([\d,]+) [\d.]+% ([\d,]+) ", section(page, "review"))
    assert row == [len(women), np.count_nonzero(hits), sum(hits)]


def as_told(*words):
    """What is read, and the same in JSON."""
    return as_read(run(*words)), json.loads(run(*words, "--json").stdout)


def check_forced(loans, text):
    """A weight is forced if two people differ in the column alone and have other scores; and only then.

    All other pairs can be satisfied by weights of other columns, if these are large enough.
    """
    listed = re.search(r"Forced, since every metric that fits these people has it above 0: ([^.]*)\.", text)
    columns = [*OTHERS, "sex"]
    alone = {
        name
        for name in columns
        if loans.groupby([each for each in columns if each != name])["score"].agg(np.ptp).max() > 1e-9
    }
    assert (set(listed[1].split(", ")) if listed else set()) == alone


def check_attack(truth, text, unit, suffix):
    """The worst pair there is, or none."""
    worst = unit * effects(truth, EVERYBODY).max()
    if worst == 0:
        assert "No pair was found" in text
        assert "does not prove there is none" in text
        return
    (found,) = numbers(rf"scores differ by (\S+?){suffix} at a distance D of 0", text)
    assert found == pytest.approx(worst, rel=1e-3)


def check_excess(truth, text, unit, suffix):
    """The smallest e with a difference of at most D + e, over all pairs that there can be."""
    values, n = truth(EVERYBODY).to_numpy(), len(EVERYBODY)
    a, b = np.triu_indices(n, 1)
    excess = unit * np.abs(values[a] - values[b]) - 100 * distances(EVERYBODY, a, b)
    if excess.max() < 1e-6:
        assert "no pair was found whose outputs exceed the metric" in text
        assert "proven: none does" in text
        return
    found, proven = numbers(
        rf"exceed the metric by (\S+?){suffix} in the worst .*? at most (\S+?){suffix}\.(?: |$)", text
    )
    assert found == pytest.approx(excess.max(), rel=1e-3)
    assert excess.max() <= proven <= excess.max() * 1.01


MODEL = ["--model", "vendor.skops", "--metric", "metric.toml", "--id", "id"]
SCORES = ["--scores", "score", "--metric", "metric.toml", "--id", "id"]
VENDORS = {
    "planted": (planted, {}),
    "innocent": (deserved, {}),
    "in a corner that nobody occupies": (in_corner, {"empty": True}),
    "of numbers": (salary, {"number": True}),
}


@pytest.mark.parametrize("name", VENDORS)
def test_all_that_is_printed_about_a_vendor_is_true(tmp_path, monkeypatch, name):
    truth, options = VENDORS[name]
    empty, number = options.get("empty", False), options.get("number", False)
    unit, suffix, better = (1, "", "high") if number else (100, " points", "approved")
    loans = written(tmp_path, monkeypatch, truth, **options)
    assert corner(loans).any() != empty
    text = as_read(run("effect", "loans.csv", *MODEL, "--column", "sex", "--favourable", better, "--scores", "score"))
    assert "The model reproduces the scores of all 300 people" in text  # of the first of two classes
    assert number or "Scores are probabilities of 'denied'." in text
    check_effect(truth, loans, text, unit, suffix, empty=empty)
    check_excess(truth, text, unit, suffix)
    search = ["--only", "sex", "--pairs", "20000", "--favourable", better]
    check_attack(truth, as_read(run("attack", "loans.csv", *MODEL, *search)), unit, suffix)
    text, told = as_told("audit", "loans.csv", *SCORES, "--groups", "--favourable", "high")
    check_audit(loans, told, text, 0.01 if number else 1, empty=empty, truth=truth)
    text, told = as_told("review", "loans.csv", "--decisions", "decision", *COMPARE, "--groups", "sex", "--id", "id")
    check_review(loans, text, told)
    for within in (3, 6):
        near = ["--metric", "metric.toml", "--within", within]
        read, told = as_told("review", "loans.csv", "--decisions", "decision", *near, "--id", "id")
        check_within(loans, told, within, 100)
        assert f"who is within a distance of {within}{suffix};" in read
    sides = ["--decisions", "decision", *COMPARE]
    page = ["--scores", "score", "--metric", "metric.toml", "--id", "id", *sides, "--groups", "sex"]
    assert "reproduces the scores of all 300" in as_read(run("report", "vendor.skops", "loans.csv", *page))
    check_page(truth, loans, Path("report.html").read_text(encoding="utf-8"), unit, suffix)
    reveal = ["--range", 0, 100] if number else []
    words = [
        "metric",
        "loans.csv",
        "--scores",
        "score",
        *reveal,
        "--drop",
        "decision",
        "--id",
        "id",
        "--out",
        "all.toml",
    ]
    check_forced(loans, as_read(run(*words)))


@pytest.mark.parametrize("column", ["sex", "sex_f", "sex_m"])
def test_a_vendor_with_a_column_for_each_sex(tmp_path, monkeypatch, column):
    written(tmp_path, monkeypatch, planted)
    loans = pd.read_csv("loans.csv")
    everybody = EVERYBODY.assign(**{f"sex_{one}": (EVERYBODY["sex"] == one).astype(int) for one in "fm"})
    coded = loans.assign(**{f"sex_{one}": (loans["sex"] == one).astype(int) for one in "fm"})
    coded.drop(columns="sex").to_csv("coded.csv", index=False)
    columns = ["income", "debt", "sex_f", "sex_m"]
    tree = DecisionTreeRegressor(random_state=0)  # of `sex_f` alone, whichever is named
    tree.fit(everybody[columns].assign(sex_m=0), planted(everybody.assign(region="west")))
    skops.io.dump(tree, "coded.skops")
    text = as_read(run("effect", "coded.csv", "--model", "coded.skops", "--id", "id", "--column", column))
    assert "exactly one 1 in them: sex_f, sex_m" in text
    (found,) = numbers(r"The worst pair found in the domain differs by (\S+):", text)
    assert found == pytest.approx(0.15, rel=1e-3)
    assert "differ by more. Proof" in text


def noisy(X):
    return deserved(X) + np.random.default_rng().normal(scale=0.01, size=len(X))


@pytest.mark.parametrize(("truth", "refused"), [(noisy, True), (in_corner, False)])
def test_vendors_that_can_only_be_asked(tmp_path, monkeypatch, truth, refused):
    written(tmp_path, monkeypatch, in_corner, empty=True)
    asked = ["--model", f"test_vendors:{truth.__name__}", "--id", "id", "--drop", "score", "--drop", "decision"]
    effect = run("effect", "loans.csv", *asked, "--column", "sex", code=2 if refused else 0)
    search = ["--metric", "metric.toml", "--only", "sex", "--pairs", "20000"]
    attack = run("attack", "loans.csv", *asked, *search, code=2 if refused else 0)
    if refused:
        for result in (effect, attack):
            assert result.stdout == ""
            assert 0.008 < numbers(r"noise of standard deviation (\S+),", result.stderr)[0] < 0.012
        return
    assert "No upper bound is proven" in as_read(effect)
    check_effect(truth, drawn(empty=True), as_read(effect), 100, " points", empty=True)
    check_attack(truth, as_read(attack), 100, " points")


def test_the_examination_can_fail(tmp_path, monkeypatch):
    """The sentences about one vendor are false of another."""
    loans = written(tmp_path, monkeypatch, planted)
    text = as_read(run("effect", "loans.csv", *MODEL, "--column", "sex"))
    check_effect(planted, loans, text, 100, " points")
    for other in (deserved, in_corner):
        with pytest.raises(AssertionError):
            check_effect(other, loans, text, 100, " points")
        with pytest.raises(AssertionError):
            check_excess(other, text, 100, " points")
    page = ["--metric", "metric.toml", "--id", "id", "--decisions", "decision", *COMPARE, "--groups", "sex"]
    run("report", "vendor.skops", "loans.csv", "--scores", "score", *page)
    page_text = Path("report.html").read_text(encoding="utf-8")
    check_page(planted, loans, page_text, 100, " points")
    for other in (deserved, in_corner):
        with pytest.raises(AssertionError):
            check_page(other, loans, page_text, 100, " points")
    refused = run("report", "vendor.skops", "loans.csv", "--scores", "income", "--force", *page, code=2)
    assert "does not reproduce --scores income" in refused.stderr
    refused = run("effect", "loans.csv", *MODEL, "--column", "sex", "--scores", "income", code=2)
    assert "does not reproduce --scores income" in refused.stderr
