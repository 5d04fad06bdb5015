"""Votes of networks and their squares, added up over draws, are those of the model asked about every draw."""

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor

from likewise import SmoothedClassifier, SmoothedRegressor, WeightedLp
from likewise.kernel.links import from_unit_range

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
METRIC = WeightedLp([0.3, 0.2, 0.0])
LABELS = np.digitize(X[:, 0], [-0.4, 0.4])


def votes_of(model, kind, rows):
    """One row per draw, one column per output."""
    if kind == "value":
        return np.clip((model.predict(rows)[:, None] + 2) / 5, 0, 1)
    return np.eye(len(model.classes_))[model.predict(rows)] if kind == "hard" else model.predict_proba(rows)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("layers", [(5,), (5, 4)])
@pytest.mark.parametrize(("kind", "n_classes"), [("soft", 2), ("soft", 3), ("hard", 2), ("hard", 3), ("value", 0)])
def test_sums_of_votes_and_of_their_squares(kind, n_classes, layers):
    options = {"metric": METRIC, "noise": "gaussian", "n_draws": 200, "random_state": 0}
    if kind == "value":
        inner = MLPRegressor(hidden_layer_sizes=layers, max_iter=30, random_state=0)
        model = SmoothedRegressor(inner, output_range=(-2, 3), **options).fit(X, X[:, 0])
    else:
        inner = MLPClassifier(hidden_layer_sizes=layers, max_iter=30, random_state=0)
        model = SmoothedClassifier(inner, vote=kind, **options).fit(X, np.minimum(LABELS, n_classes - 1))
    scorer = model.scorer_
    people = scorer.perturbation.prepare(X[:3])
    _, draws = next(iter(scorer.perturbation.iter_draws([200])))
    total, squares = scorer.sums.sums(draws, people)
    for k, person in enumerate(people):
        votes = votes_of(model.estimator_, kind, draws.apply(person))
        np.testing.assert_allclose(total[k], votes.sum(axis=0), rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(squares[k], (votes**2).sum(axis=0), rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(
            scorer.estimate(model._people(X[:3])).mean[k], from_unit_range(total[k] / 200, scorer.votes.limits)
        )
