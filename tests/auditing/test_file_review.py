"""Comparative file review against its definition: every pair, in fractions."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, review_files
from likewise.auditing import file_review
from likewise.exceptions import InvalidInputError
from oracle import Described, is_blank

# Weights are powers of two, and values few bits long: sums are exact, and equal distances are equal.
NUMBERS = {"income": 2.0**-6, "debt": 2.0**-5}
SUMS = TableMetric(NUMBERS, {"region": 2.0**-3, "sex": 0}, missing={"income": 0.25})
# Two regions of one side are twice as far as two of different sides: no sum of mismatches, so that all are compared.
SIDES = {"north": {"south": 2, "west": 1, "east": 1, "far": 1}, "south": {"west": 1, "east": 1, "far": 1}}
SIDES |= {"west": {"east": 2, "far": 2}, "east": {"far": 2}}
MATRIX = SUMS.with_params(distances={"region": SIDES})
ASKED = {
    "dominance": ({"income": "higher", "debt": "lower"}, None, None),
    "dominance, ranked": ({"income": "higher", "debt": "lower"}, SUMS, None),
    "the same": ({"region": "same", "debt": "higher"}, None, None),
    "the same number": ({"income": "same", "sex": "same"}, MATRIX, None),
    "distance": (None, SUMS, 0.375),
    "distance of a matrix": (None, MATRIX, 0.375),
    "both": ({"income": "lower", "region": "same"}, SUMS, 0.5),
}


def applications(seed=0, n=200):
    """Few values, so that many are equal; blanks of all kinds."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": rng.choice([10.0, 12.0, 20.0, 21.0, np.nan], n),
            "debt": rng.integers(0, 6, n),
            "region": rng.choice(np.array(["north", "south", "west", "east", "far", None], dtype=object), n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    return X, rng.choice(["denied", "granted"], n)


def no_better(a, b, direction):
    if is_blank(a) or is_blank(b):
        return is_blank(a) and is_blank(b)
    return a == b if direction == "same" else b <= a if direction == "higher" else b >= a


def by_definition(X, decided, better, metric, threshold, no_better=no_better):
    """Per denied person, the comparators and their distances, the closest first."""
    people, found, described = X.to_dict("records"), {}, Described(metric, list(X))
    for i, j in itertools.product(np.flatnonzero(decided == "denied"), np.flatnonzero(decided == "granted")):
        a, b = people[i], people[j]
        if all(no_better(a[name], b[name], direction) for name, direction in (better or {}).items()):
            away = Fraction(0) if metric is None else described.distance(a, b)
            if threshold is None or away <= threshold:
                found.setdefault(int(i), []).append((away, int(j)))
    for others in found.values():
        others.sort()
    return found


def differing(X, a, b, first):
    """All columns in which two rows differ, those of weight 0 first; two blanks are alike."""
    names = [*first, *(name for name in X if name not in first)]
    values = [(name, X[name].to_list()[a], X[name].to_list()[b]) for name in names]
    apart = [(name, x, y) for name, x, y in values if x != y and not (is_blank(x) and is_blank(y))]
    return ", ".join(f"{name}: {written(x)} / {written(y)}" for name, x, y in apart)


def written(value):
    """A value as people write it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize("at_once", [2**20, 1000, 0], ids=["every pair", "in parts", "boxes"])
@pytest.mark.parametrize("asked", ASKED)
def test_comparators_are_those_of_the_definition(asked, at_once, monkeypatch):
    monkeypatch.setattr(file_review, "_AT_ONCE", at_once)
    X, decided = applications()
    better, metric, threshold = ASKED[asked]
    truth = by_definition(X, decided, better, metric, threshold)
    found = review_files(X, decided, better=better, metric=metric, threshold=threshold, n_comparators=3)
    order = sorted(truth, key=lambda i: (-len(truth[i]), truth[i][0][0], i))
    assert found.files[["row", "n_comparators", "comparator"]].to_numpy().tolist() == [
        [i, len(truth[i]), truth[i][0][1]] for i in order
    ]
    listed = [(i, j, float(away)) for i in order for away, j in truth[i][:3]]
    assert found.pairs[["row", "comparator"]].to_numpy().tolist() == [[i, j] for i, j, _ in listed]
    if metric is None:
        assert found.pairs["distance"].isna().all()
        assert found.files["distance"].isna().all()
    else:
        assert found.pairs["distance"].tolist() == [away for *_, away in listed]
        assert found.files["distance"].tolist() == [float(truth[i][0][0]) for i in order]
    hidden = [] if metric is None else ["sex"]
    assert found.pairs["differs"].tolist() == [differing(X, i, j, hidden) for i, j, _ in listed]
    assert found.n_pairs == sum(map(len, truth.values())) > len(order)
    assert (found.n_denied, found.n_approved) == ((decided == "denied").sum(), (decided == "granted").sum())
    assert found.decisions == ("denied", "granted")


def test_control_blanks_that_compare_with_nobody_are_seen():
    X, decided = applications()
    found = by_definition(X, decided, {"income": "higher"}, None, None)
    dropped = by_definition(
        X, decided, {"income": "higher"}, None, None, lambda a, b, way: not is_blank(a) and no_better(a, b, way)
    )
    assert len(found) > len(dropped)


def test_people_with_blanks_are_counted_and_named():
    X, decided = applications(n=40)
    better = {"income": "higher", "region": "same"}
    truth = by_definition(X, decided, better, None, None)
    found = review_files(X, decided, better=better)
    wanted = [
        (i, decided[i], [name for name in better if is_blank(X[name][i])], len(truth.get(i, [])))
        for i in range(len(X))
        if is_blank(X["income"][i]) or is_blank(X["region"][i])
    ]
    assert [tuple(row) for row in found.blanks.to_numpy().tolist()] == wanted
    alone = sum(decision == "denied" and not n for _, decision, _, n in wanted)
    assert f"{len(wanted)} people have a blank in income or region" in found.coverage
    assert f"{alone} have no comparator" in found.coverage
    assert 0 < alone < len(wanted)
    assert "blank" not in review_files(X, decided, better={"debt": "lower"}).coverage


@pytest.mark.parametrize("at_once", [2**20, 1000, 0], ids=["every pair", "in parts", "boxes"])
@pytest.mark.parametrize("asked", ASKED)
def test_all_comparators_are_listed_if_asked(asked, at_once, monkeypatch):
    monkeypatch.setattr(file_review, "_AT_ONCE", at_once)
    X, decided = applications()
    better, metric, threshold = ASKED[asked]
    truth = by_definition(X, decided, better, metric, threshold)
    found = review_files(X, decided, better=better, metric=metric, threshold=threshold, n_comparators=None)
    order = sorted(truth, key=lambda i: (-len(truth[i]), truth[i][0][0], i))
    assert found.pairs[["row", "comparator"]].to_numpy().tolist() == [[i, j] for i in order for _, j in truth[i]]
    assert len(found.pairs) == found.n_pairs


def test_too_many_pairs_to_list_are_refused(monkeypatch):
    monkeypatch.setattr(file_review, "_MOST_LISTED", 10)
    X, decided = applications()
    with pytest.raises(InvalidInputError, match="n_comparators must be a number, such as 5: there are"):
        review_files(X, decided, better={"debt": "lower"}, n_comparators=None)


@pytest.mark.parametrize("at_once", [2**20, 0], ids=["every pair", "boxes"])
def test_denied_people_of_one_group_beside_approved_ones_of_another(at_once, monkeypatch):
    monkeypatch.setattr(file_review, "_AT_ONCE", at_once)
    X, decided = applications()
    better = {"income": "higher", "debt": "lower"}
    truth = by_definition(X, decided, better, None, None)
    found = review_files(X, decided, better=better, groups=X["sex"], n_comparators=None)
    sex, wanted = X["sex"].tolist(), []
    for own, other in itertools.product("fm", repeat=2):
        denied = [i for i in range(len(X)) if decided[i] == "denied" and sex[i] == own]
        approved = sum(decided[j] == "granted" and sex[j] == other for j in range(len(X)))
        counts = [sum(sex[j] == other for _, j in truth.get(i, [])) for i in denied]
        files = sum(map(bool, counts))
        wanted.append([own, other, len(denied), approved, files, files / len(denied), sum(counts)])
    assert found.groups.to_numpy().tolist() == wanted
    assert len({tuple(row[4:]) for row in wanted}) == 4  # control: no two cells could be exchanged unseen
    assert found.pairs["comparator_group"].tolist() == [sex[j] for j in found.pairs["comparator"]]
    assert found.pairs["group"].tolist() == [sex[i] for i in found.pairs["row"]]
    with pytest.raises(InvalidInputError, match="groups must hold one of 2 to 20 values"):
        review_files(X, decided, better=better, groups=["x"] * len(X))
    with pytest.raises(InvalidInputError, match="groups must hold one value per person"):
        review_files(X, decided, better=better, groups=X.iloc[:, :2])


def test_the_favourable_decision_can_be_named():
    X, decided = applications()
    swapped = np.where(decided == "denied", "granted", "denied")
    given = {"better": {"debt": "lower"}, "metric": SUMS}
    found = review_files(X, decided, **given)
    other = review_files(X, swapped, approved="denied", **given)
    pd.testing.assert_frame_equal(found.pairs, other.pairs)


@pytest.mark.parametrize(
    ("no", "yes"),
    [("denied", "approved"), ("reject", "ACCEPT"), ("not hired", "Hired"), ("default", "paid"), (0, 1), (False, True)],
)
def test_a_known_word_is_the_favourable_decision_whatever_its_place_in_the_alphabet(no, yes):
    X, decided = applications()
    better = {"income": "higher", "debt": "lower"}
    truth = by_definition(X, decided, better, None, None)
    words = pd.Series([yes if each == "granted" else no for each in decided])
    found = review_files(X, words, better=better)
    assert sorted(found.files["row"]) == sorted(truth)
    assert found.decisions == (no, yes)
    assert f"with the decision '{no}' have a comparator, a person with the decision '{yes}'" in found.headline
    assert f"Favourable decision: '{yes}' (recognised by the word)" in found.coverage
    # Control: the other one finds other people.
    other = review_files(X, words, better=better, approved=no)
    assert sorted(other.files["row"]) != sorted(truth)
    assert f"Favourable decision: '{no}' (as named)" in other.coverage


@pytest.mark.parametrize("words", [("red", "green"), ("approved", "granted"), ("A", "D"), ("high", "low")])
def test_other_words_must_be_named(words):
    X, decided = applications()
    decided = np.where(decided == "granted", *words)
    with pytest.raises(InvalidInputError, match="approved must be given, the favourable one of the decisions"):
        review_files(X, decided, better={"debt": "lower"})
    assert review_files(X, decided, better={"debt": "lower"}, approved=words[0]).decisions == words[::-1]
    with pytest.raises(InvalidInputError, match="approved must be one of"):
        review_files(X, decided, better={"debt": "lower"}, approved="maybe")


@pytest.mark.parametrize(
    ("name", "is_known"),
    [(each, True) for each in ("loan_approved", "decision", "Final decision")]
    + [(each, False) for each in ("denied", "chargeoff", "adverse_decision", "loan_not_approved", "paid late")],
)
def test_yes_answers_the_name_of_the_column_if_it_is_plain(name, is_known):
    X, decided = applications()
    answers = pd.Series(np.where(decided == "granted", "yes", "no"), name=name)
    if is_known:
        assert review_files(X, answers, better={"debt": "lower"}).decisions == ("no", "yes")
        return
    with pytest.raises(InvalidInputError, match="approved must be given"):
        review_files(X, answers, better={"debt": "lower"})


def test_what_cannot_be_compared_is_refused():
    X, decided = applications()
    with pytest.raises(InvalidInputError, match="Give better"):
        review_files(X, decided)
    with pytest.raises(InvalidInputError, match="one of"):
        review_files(X, decided, better={"income": "more"})
    with pytest.raises(InvalidInputError, match="two values"):
        review_files(X, np.arange(len(X)), better={"income": "higher"})
    with pytest.raises(InvalidInputError, match="come with a metric"):
        review_files(X, decided, threshold=0.1)
    with pytest.raises(InvalidInputError, match="hold numbers"):
        review_files(X, decided, better={"sex": "higher"})
