"""What is known of models made of others follows from their parts."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from likewise import InvalidInputError, InvalidTypeError, SmoothedClassifier, SmoothedRegressor, WeightedLp
from likewise.inspection.batch_invariance import is_rowwise

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 2))
Y = (X[:, 0] > 0).astype(int)


class Centred(ClassifierMixin, BaseEstimator):
    """A classifier that compares each row with the mean of its call."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        upper = 1 / (1 + np.exp(-9 * (X[:, 0] - X[:, 0].mean())))
        return np.column_stack([1 - upper, upper])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class CentredNumbers(RegressorMixin, BaseEstimator):
    def fit(self, X, y, sample_weight=None):
        self.fitted_ = True
        return self

    def predict(self, X):
        return X[:, 0] - X[:, 0].mean()


class CentredTree(DecisionTreeClassifier):
    def predict(self, X, check_input=True):
        return super().predict(X - np.asarray(X).mean(axis=0), check_input)

    def predict_proba(self, X, check_input=True):
        return super().predict_proba(X - np.asarray(X).mean(axis=0), check_input)


BOOSTED = [
    (GradientBoostingClassifier(n_estimators=2, init=Centred()), SmoothedClassifier, Y),
    (GradientBoostingRegressor(n_estimators=2, init=CentredNumbers()), SmoothedRegressor, X[:, 0]),
]


@pytest.mark.parametrize(("boosted", "method", "y"), BOOSTED, ids=["classification", "regression"])
@pytest.mark.parametrize("fitted", [False, True])
def test_boosting_upon_a_model_of_ones_own_is_as_rowwise_as_that(boosted, method, y, fitted):
    model = boosted.fit(X, y) if fitted else boosted
    assert is_rowwise(model) is None
    assert is_rowwise(make_pipeline(StandardScaler(), model)) is None


@pytest.mark.parametrize(("boosted", "method", "y"), BOOSTED, ids=["classification", "regression"])
@pytest.mark.parametrize("noise", ["splitting", "laplace"])
def test_boosting_upon_a_model_that_looks_at_other_rows_is_refused(boosted, method, y, noise):
    with pytest.raises(InvalidInputError, match="must predict each row independently"):
        method(boosted, metric=WeightedLp([0.3, 0.1]), noise=noise, n_draws=50).fit(X, y)


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        (None, True),
        ("zero", True),
        (DecisionTreeClassifier(max_depth=1), True),
        (RandomForestClassifier(3, n_jobs=2), False),
        (LogisticRegression(), None),
        (DummyClassifier(strategy="stratified"), None),  # answers at random
        (make_pipeline(StandardScaler(), DecisionTreeClassifier()), True),
        (make_pipeline(FunctionTransformer(lambda rows: rows - rows.mean(axis=0)), DecisionTreeClassifier()), None),
    ],
)
def test_what_boosting_starts_from_counts(init, expected):
    assert is_rowwise(GradientBoostingClassifier(init=init)) is expected


@pytest.mark.parametrize(
    "model",
    [
        StackingClassifier([("tree", DecisionTreeClassifier())]),
        VotingClassifier([("tree", DecisionTreeClassifier())]),
        BaggingClassifier(DecisionTreeClassifier()),
        BaggingRegressor(DecisionTreeRegressor()),
        AdaBoostClassifier(DecisionTreeClassifier()),
        CalibratedClassifierCV(DecisionTreeClassifier()),
        MultiOutputClassifier(DecisionTreeClassifier()),
        OneVsRestClassifier(DecisionTreeClassifier()),
        GridSearchCV(DecisionTreeClassifier(), {}),
        TransformedTargetRegressor(DecisionTreeRegressor()),
        make_union(StandardScaler()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_nothing_is_known_of_models_that_hold_others_so_they_are_tried_out(model):
    assert is_rowwise(model) is None
    assert is_rowwise(make_pipeline(StandardScaler(), model, DecisionTreeClassifier())) is None
    assert is_rowwise(make_column_transformer((model, [0]))) is None


@pytest.mark.parametrize(
    "model",
    [
        StackingClassifier([("centred", Centred())], LogisticRegression(), cv=2),
        VotingClassifier([("centred", Centred()), ("tree", DecisionTreeClassifier())], voting="soft"),
        BaggingClassifier(Centred(), 2),
        CalibratedClassifierCV(Centred(), cv=2),
        OneVsRestClassifier(Centred()),
        GridSearchCV(Centred(), {}, cv=2),
        make_pipeline(make_union(FunctionTransformer(lambda rows: rows - rows.mean(axis=0))), DecisionTreeClassifier()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_that_hold_one_that_looks_at_other_rows_are_refused(model):
    with pytest.raises(InvalidInputError, match="must predict each row independently"):
        SmoothedClassifier(model, metric=WeightedLp([0.3, 0.1]), noise="splitting", n_draws=50).fit(X, Y)


@pytest.mark.parametrize(
    "forest",
    [
        BaggingClassifier(CentredTree(), 3),
        BaggingClassifier(DecisionTreeClassifier(), 3, bootstrap_features=True),  # trees with columns in another order
    ],
    ids=["trees that look at other rows", "trees of some columns"],
)
def test_votes_of_trees_are_those_of_plain_trees_of_all_columns(forest):
    with pytest.raises(InvalidTypeError, match="must be a forest of classification trees"):
        SmoothedClassifier(forest, metric=WeightedLp([0.3, 0.1]), vote="trees", noise="splitting", n_draws=50).fit(X, Y)
