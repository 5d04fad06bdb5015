"""Whom a model favours among people who are alike: a randomisation test that allows for what goes with the groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.special import expit

from likewise._parallel import threads_for
from likewise._subsample import fixed_sample
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.kernel.schema import People

_MOST_MATCHED = 3000  # people; the cost of matching grows with their cube
_FOLDS = 5
_MOST_CODES = 30  # categories of a column that are told apart
_CHANCE_WEIGHT = 5.0  # of a difference in log-odds, against one standard deviation of a column
_DRAWS_AT_ONCE = 500


class MatchedPairs(NamedTuple):
    """Of each value: matched pairs that exceed the metric, and what chance makes of them.

    Attributes
    ----------
    n_pairs : ndarray of shape (n_values,)
        Matched pairs that exceed the metric in which one of the two has the value.
    n_favoured : ndarray of shape (n_values,)
        In how many of these the one with the value has the higher score.
    p_values : ndarray of shape (n_values,)
    """

    n_pairs: IntArray
    n_favoured: IntArray
    p_values: FloatArray


def matched_pairs(
    where: Any,
    n_values: int,
    features: FloatArray,
    favoured: Callable[[IntArray, IntArray], IntArray],
    n_draws: int,
    rng: np.random.Generator,
) -> MatchedPairs:
    """Test whether a group is favoured more often in matched pairs than what goes with it explains.

    Everybody is matched with one person who has nearly the same features and, by these, nearly the same chances of each
    value; who has which value counts for nothing else. If scores depend on the features, and on what has nothing to do
    with the values given these, then in a pair of the values u and v it is by chance who has which, at the odds
    ``P(u | a) P(v | b) : P(v | a) P(u | b)`` that the features of a and b leave. Pairs are independent, so the count of
    those in which a value is favoured is compared with that of `n_draws` such exchanges.

    The chances are estimated twice, by a logistic regression with and without the answer of a small tree, and the
    larger p-value counts. The test is as good as the better estimate; near matches make up for a part of what is wrong
    with both.

    Parameters
    ----------
    where : ndarray of shape (n_samples,)
        The value that each person has, as positions below `n_values`.
    features : ndarray of shape (n_samples, n_features)
        What may explain the scores, in standard deviations.
    favoured : callable
        From positions a and b: 1 where a pair exceeds the metric and a has the higher score, -1 if b has, otherwise 0.
    """
    some = fixed_sample(len(where), _MOST_MATCHED)
    groups, where = np.unique(np.asarray(where)[some], return_inverse=True)
    found = MatchedPairs(np.zeros(n_values, np.int64), np.zeros(n_values, np.int64), np.ones(n_values))
    if len(groups) < 2:
        return found
    features, chances = features[some], []
    tree = _log_odds(_by_tree(features, where, rng))
    for used in (features, np.column_stack([features, tree / np.maximum(tree.std(axis=0), 1e-9)])):
        chances.append(_by_regression(used, where))
    odds = np.mean([_log_odds(each) for each in chances], axis=0)
    a, b = _matches(np.column_stack([features, odds * _CHANCE_WEIGHT / 2]), rng)
    apart = where[a] != where[b]
    sign = favoured(some[a], some[b])
    a, b, sign = (part[apart & (sign != 0)] for part in (a, b, sign))
    each = np.arange(len(groups))
    wins = sign[:, None] * ((where[a][:, None] == each) * 1 - (where[b][:, None] == each))
    found.n_pairs[groups] = np.abs(wins).sum(axis=0)
    found.n_favoured[groups] = (wins > 0).sum(axis=0)
    p_values = [_p_values(np.log(chance), where, a, b, wins, n_draws, rng) for chance in chances]
    found.p_values[groups] = np.max(p_values, axis=0)
    return found


def _p_values(
    log_chances: FloatArray, where: Any, a: Any, b: Any, wins: Any, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """How often chance makes at least as much of the wins of each value; the people as they are count as one draw."""
    u, v = where[a], where[b]
    kept = expit(log_chances[a, u] + log_chances[b, v] - log_chances[a, v] - log_chances[b, u])
    expected = (2 * kept - 1) @ wins
    seen = np.abs(wins.sum(axis=0) - expected) - 1e-9
    beyond = np.ones(wins.shape[1])
    for start in range(0, n_draws, _DRAWS_AT_ONCE):
        drawn = rng.random((min(_DRAWS_AT_ONCE, n_draws - start), len(kept))) < kept
        beyond += (np.abs((2.0 * drawn - 1) @ wins - expected) >= seen).sum(axis=0)
    return np.asarray(beyond / (1 + n_draws))


def _matches(points: FloatArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Two random halves, matched at the least sum of distances."""
    order, half = rng.permutation(len(points)), len(points) // 2
    a, b = order[:half], order[half : 2 * half]
    i, j = linear_sum_assignment(cdist(points[a], points[b], "cityblock"))
    return a[i], b[j]


def _by_regression(features: FloatArray, where: Any) -> FloatArray:
    """Chances of each value, given features."""
    from sklearn.linear_model import LogisticRegression

    with threads_for(features.size):
        model = LogisticRegression(max_iter=1000).fit(features, where)
    return np.asarray(np.clip(model.predict_proba(features), 1e-6, 1.0))


def _by_tree(features: FloatArray, where: Any, rng: np.random.Generator) -> FloatArray:
    """The same by a small tree that has not seen the person, drawn a little towards the shares of all."""
    from sklearn.tree import DecisionTreeClassifier

    shares = np.bincount(where) / len(where)
    chances, folds = np.tile(shares, (len(where), 1)), rng.permutation(len(where)) % _FOLDS
    for fold in range(_FOLDS):
        held = folds == fold
        if held.any() and not held.all():
            tree = DecisionTreeClassifier(max_leaf_nodes=16, min_samples_leaf=10, random_state=0)
            tree.fit(features[~held], where[~held])
            chances[held] = 0.0
            chances[np.ix_(held, tree.classes_)] = tree.predict_proba(features[held])
    return np.asarray(0.95 * chances + 0.05 * shares)


def _log_odds(chances: FloatArray) -> FloatArray:
    return np.asarray(np.log(chances) - np.log1p(-np.minimum(chances, 1 - 1e-6)))


def features_of(people: People, counted: BoolArray) -> FloatArray:
    """Columns of encoded people in standard deviations, categories and blanks as columns of 0 and 1."""
    parts = [np.zeros((len(people), 1))]
    for i in np.flatnonzero(counted):
        values = people.rows[:, i]
        blank = np.isnan(values)
        if people.encoder.is_number[i]:
            filled = np.where(blank, np.nanmean(values) if not blank.all() else 0.0, values)
            parts.append((np.clip((filled - filled.mean()) / (filled.std() or 1.0), -4, 4))[:, None])
            parts.append(blank[:, None] * 1.0)
        else:
            kinds, counts = np.unique(np.where(blank, -np.inf, values), return_counts=True)
            kinds = kinds[np.argsort(-counts, kind="stable")[:_MOST_CODES]]
            parts.append((np.where(blank, -np.inf, values)[:, None] == kinds) * 1.0)
    return np.column_stack(parts)


def holm(p_values: FloatArray) -> FloatArray:
    """P-values of several tests, adjusted so that the chance of any false alarm is that of one (Holm 1979).

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1))
    return np.asarray(np.minimum(adjusted, 1.0))
