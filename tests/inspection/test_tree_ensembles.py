"""Trees that were read off a model give the model's own outputs, for people with blanks and rare categories too."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from likewise.exceptions import FileError, UnprovableError
from likewise.inspection.external_models import load_booster
from likewise.inspection.tree_ensembles import Test, read_tree_ensemble

RNG = np.random.default_rng(0)
N = 500
NUMBERS = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.integers(0, 9, N) / 1, "c": RNG.normal(size=N).round(1)})
BLANKS = NUMBERS.assign(a=NUMBERS["a"].where(np.arange(N) % 7 > 0))
MIXED = BLANKS.assign(s=pd.Categorical(RNG.choice(list("xyzuv"), N)), t=pd.Categorical(RNG.choice([3, 1, 7], N)))
MIXED.loc[::11, "s"] = np.nan
NUMBER = BLANKS["a"].fillna(1) + 2 * (MIXED["s"] == "x") - BLANKS["b"] / 3
TWO, THREE = (NUMBER > 0).astype(int), np.digitize(NUMBER, [-1, 0.5])


def boosting(package, name, **options):
    return getattr(pytest.importorskip(package), name)(**options)


SMALL = {"n_estimators": 8, "max_depth": 4, "n_jobs": 1}
XGB = {**SMALL, "enable_categorical": True}
LGBM = {**SMALL, "verbose": -1, "min_child_samples": 3, "min_data_per_group": 2, "cat_smooth": 0}
CAT = {"iterations": 8, "depth": 3, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
CASES = {
    "tree": (lambda: DecisionTreeClassifier(max_depth=5), BLANKS, (TWO, THREE)),
    "regression tree": (lambda: DecisionTreeRegressor(max_depth=5), BLANKS, (NUMBER,)),
    "forest": (lambda: RandomForestClassifier(8), BLANKS, (TWO, THREE)),
    "regression forest": (lambda: RandomForestRegressor(8), BLANKS, (NUMBER,)),
    "extra trees": (lambda: ExtraTreesClassifier(8), NUMBERS, (TWO, THREE)),
    "boosting": (lambda: GradientBoostingClassifier(n_estimators=8), NUMBERS, (TWO, THREE)),
    "exponential": (lambda: GradientBoostingClassifier(loss="exponential", n_estimators=8), NUMBERS, (TWO,)),
    "regression boosting": (lambda: GradientBoostingRegressor(n_estimators=8), NUMBERS, (NUMBER,)),
    "histograms": (lambda: HistGradientBoostingClassifier(max_iter=8), MIXED, (TWO, THREE)),
    "regression histograms": (lambda: HistGradientBoostingRegressor(max_iter=8), MIXED, (NUMBER,)),
    "XGBoost": (lambda: boosting("xgboost", "XGBClassifier", **XGB), MIXED, (TWO, THREE)),
    "XGBoost regression": (lambda: boosting("xgboost", "XGBRegressor", **XGB), MIXED, (NUMBER,)),
    "LightGBM": (lambda: boosting("lightgbm", "LGBMClassifier", **LGBM), MIXED, (TWO, THREE)),
    "LightGBM regression": (lambda: boosting("lightgbm", "LGBMRegressor", **LGBM), MIXED, (NUMBER,)),
    "CatBoost": (lambda: boosting("catboost", "CatBoostClassifier", **CAT), BLANKS, (TWO, THREE)),
    "CatBoost regression": (lambda: boosting("catboost", "CatBoostRegressor", **CAT), BLANKS, (NUMBER,)),
}


def answers(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)[:, None]


def largest_error(model, X, ensemble):
    expected, found = answers(model, X), ensemble.outputs(ensemble.features(X))
    if found.shape[1] == 1 and expected.shape[1] == 2:
        expected = expected[:, 1:]
    return float(np.abs(expected - found).max())


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_the_models_own(name):
    make, X, targets = CASES[name]
    for y in targets:
        model = make().fit(X, y)
        ensemble = read_tree_ensemble(model)
        assert largest_error(model, X, ensemble) <= 2 * ensemble.rounding() + 8 * ensemble.unit


def test_control_another_number_in_a_leaf_is_seen():
    model = GradientBoostingClassifier(n_estimators=8).fit(NUMBERS, TWO)
    ensemble = read_tree_ensemble(model)
    ensemble.trees[0].values[ensemble.trees[0].left < 0] += 0.1
    assert largest_error(model, NUMBERS, ensemble) > 0.001


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "catboost"])
def test_models_in_their_own_files(kind, tmp_path):
    make, X, _ = CASES[{"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}[kind]]
    model = make().fit(X, TWO)
    path = tmp_path / {"xgboost": "model.json", "lightgbm": "model.txt", "catboost": "model.cbm"}[kind]
    (model.booster_ if kind == "lightgbm" else model).save_model(str(path))
    loaded = load_booster(path)
    np.testing.assert_allclose(answers(loaded, X), answers(model, X), atol=1e-7)
    ensemble = read_tree_ensemble(loaded)
    assert largest_error(loaded, X, ensemble) <= 2 * ensemble.rounding() + 8 * ensemble.unit


@pytest.mark.parametrize(
    ("name", "package"), [("model.json", ""), ("model.txt", "lightgbm"), ("model.cbm", "catboost"), ("model.pkl", "")]
)
def test_files_that_hold_no_model(name, package, tmp_path):
    if package:
        pytest.importorskip(package)
    path = tmp_path / name
    path.write_text("nothing")
    with pytest.raises(FileError, match=name):
        load_booster(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="no model file"):
        load_booster(tmp_path / "none.json")


def test_other_models_are_refused_with_the_reason():
    class Forest(RandomForestClassifier):
        pass

    for model in (SVC(), Forest(2).fit(NUMBERS, TWO)):
        with pytest.raises(UnprovableError, match="not among the sums of trees"):
            read_tree_ensemble(model)
    log_link = HistGradientBoostingRegressor(loss="poisson", max_iter=2).fit(NUMBERS, NUMBER - NUMBER.min())
    with pytest.raises(UnprovableError, match="log link"):
        read_tree_ensemble(log_link)
    with pytest.raises(UnprovableError, match="starts from another model"):
        read_tree_ensemble(GradientBoostingClassifier(init=DecisionTreeClassifier(max_depth=1)).fit(NUMBERS, TWO))


def test_single_precision_decides_at_a_threshold():
    threshold = float(np.float32(0.1))
    assert Test(0, threshold, single=True).goes_left(np.array([0.1, 0.100000003, 0.10000001])).tolist() == [
        True,
        True,
        False,
    ]
    assert Test(0, threshold, strict=True, single=True).goes_left(np.array([0.1])).tolist() == [False]
    assert Test(0, 0.1).goes_left(np.array([0.1, 0.10000001, np.nan])).tolist() == [True, False, False]
