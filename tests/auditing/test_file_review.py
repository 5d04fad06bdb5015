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
        return False
    return a == b if direction == "same" else b <= a if direction == "higher" else b >= a


def by_definition(X, decided, better, metric, threshold):
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
    return ", ".join(f"{name}: {x} / {y}" for name, x, y in values if x != y and not (is_blank(x) and is_blank(y)))


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


def test_control_one_blank_that_compares_is_seen():
    X, decided = applications()
    found = by_definition(X, decided, {"region": "same"}, None, None)
    filled = by_definition(X.fillna({"region": "nowhere"}), decided, {"region": "same"}, None, None)
    assert sum(map(len, filled.values())) > sum(map(len, found.values()))


def test_the_favourable_decision_can_be_named():
    X, decided = applications()
    swapped = np.where(decided == "denied", "granted", "denied")
    given = {"better": {"debt": "lower"}, "metric": SUMS}
    found = review_files(X, decided, **given)
    other = review_files(X, swapped, approved="denied", **given)
    pd.testing.assert_frame_equal(found.pairs, other.pairs)


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
