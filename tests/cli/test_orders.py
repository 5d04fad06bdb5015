"""What a batch of people gets in a file of scores, column by column."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from likewise import AdditiveClassifier, AdditiveRegressor, RecalibratedClassifier, SmoothedClassifier, TableMetric
from likewise.cli.batch_scoring import ScoringJob
from likewise.io import load_model, save_model

RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame({"age": RNG.uniform(20, 60, 90).round(), "race": RNG.choice(["x", "y"], 90), "id": range(90)})
METRIC = TableMetric({"age": 0.02}, {"race": 0.0})
KINDS = np.array(["no", "perhaps", "yes"])[np.digitize(PEOPLE["age"] + RNG.normal(0, 5, 90), [33, 46])]


INNER = make_pipeline(make_column_transformer(("passthrough", ["age"])), LogisticRegression())
SAMPLED = SmoothedClassifier(INNER, metric=METRIC, noise="gaussian", n_draws=200, random_state=0)
MODELS = {
    "sampled": (SAMPLED, KINDS),
    "recalibrated": (RecalibratedClassifier(SAMPLED, cv=2, random_state=0), KINDS == "yes"),
    "exact": (AdditiveClassifier(METRIC, penalty=0.01), KINDS),
    "regression": (AdditiveRegressor(METRIC, penalty=0.01), PEOPLE["age"].to_numpy() + RNG.normal(0, 5, 90)),
}


@pytest.fixture(params=MODELS)
def stored(request, tmp_path):
    """A model as it comes back from its file, and the bytes of it."""
    model, y = MODELS[request.param]
    save_model(clone(model).fit(PEOPLE[["age", "race"]], y), tmp_path / "model.skops")
    return load_model(tmp_path / "model.skops"), (tmp_path / "model.skops").read_bytes()


def test_a_file_of_scores_has_what_certify_says(stored):
    model, data = stored
    few = PEOPLE[:7]
    scores, certificate = ScoringJob(data, intervals=True)(few), model.certify(few[["age", "race"]])
    names = [f"p_{label}" for label in getattr(model, "classes_", ())] or ["prediction"]
    np.testing.assert_array_equal(scores[names], certificate.estimate)
    np.testing.assert_array_equal(scores[[f"{name}_lower" for name in names]], certificate.lower)
    np.testing.assert_array_equal(scores[[f"{name}_upper" for name in names]], certificate.upper)
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(scores["certified_distance"], certificate.distance)
    assert len(scores.columns) == 3 * len(names) + hasattr(model, "classes_")
    assert list(ScoringJob(data)(few).columns) == names


def test_outcomes_at_the_borders_go_to_the_next_class():
    """An outcome of probability 0 is never drawn."""
    model = AdditiveClassifier(METRIC, penalty=0.01).fit(PEOPLE[["age", "race"]], KINDS)
    p = np.array([[0.25, 0.0, 0.75]])
    for uniform, outcome in ((0.0, "no"), (0.2499, "no"), (0.25, "yes"), (0.999, "yes")):
        assert model.outcomes_at(p, np.array([uniform])).tolist() == [outcome]
    assert model.outcomes_at(np.array([[0.0, 1.0, 0.0]]), np.array([0.0])).tolist() == ["perhaps"]
