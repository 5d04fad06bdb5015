import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from likewise import SmoothedClassifier, SmoothedRegressor, TableMetric, WeightedLp, audit
from likewise.exceptions import InvalidInputError
from likewise.inspection.baselines import table_model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
METRIC = WeightedLp([0.5, 0.5, 0.5])


def smoothed(model, metric=METRIC, *, n_draws=40, **options):
    return SmoothedClassifier(model, metric=metric, n_draws=n_draws, random_state=0, **options)


def table():
    return pd.DataFrame(X, columns=["age", "income", "debt"]).assign(
        region=np.where(RNG.random(300) < 0.4, "north", "south"), owner=RNG.random(300) < 0.5
    )


TABLE = table()
OF_TABLES = TableMetric({"age": 0.5, "income": 0.5, "debt": 0.5}, {"region": 0.2, "owner": 0.2})


def xgboost(**options):
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=10, n_jobs=1, **options)


def lightgbm():
    return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1)


def catboost():
    return pytest.importorskip("catboost").CatBoostClassifier(
        iterations=10, thread_count=1, verbose=0, allow_writing_files=False
    )


def logistic_of_tables():
    return table_model(TABLE, "logistic")


def network_of_tables():
    return table_model(TABLE, "network")


OTHERS_MODELS = {
    "XGBoost": (xgboost, X, METRIC),
    "LightGBM": (lightgbm, X, METRIC),
    "CatBoost": (catboost, X, METRIC),
    "logistic pipeline": (logistic_of_tables, TABLE, OF_TABLES),
    "network pipeline": (network_of_tables, TABLE, OF_TABLES),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # lightgbm knows names that it made up
@pytest.mark.parametrize("vote", ["hard", "soft"])
@pytest.mark.parametrize(("make", "people", "metric"), OTHERS_MODELS.values(), ids=OTHERS_MODELS)
def test_models_that_no_list_knows_share_calls_and_answer_alike_in_any_batch(make, people, metric, vote):
    model = smoothed(make(), metric, vote=vote).fit(people, Y)
    assert model.scorer_.batch_plan.kind == "fixed"
    assert "the same predictions to the last bit" in model.guarantee_.statement
    assert "tested, not proven" in model.guarantee_.statement
    every = model.predict_proba(people)
    chosen = RNG.permutation(len(people))[:37]
    np.testing.assert_array_equal(
        model.predict_proba(people.iloc[chosen] if people is TABLE else people[chosen]), every[chosen]
    )
    for i in (0, 17):
        np.testing.assert_array_equal(model.predict_proba(people[i : i + 1]), every[i : i + 1])


def test_sharing_calls_changes_no_bit_of_what_rows_get_alone():
    boosted = xgboost().fit(X, Y)
    scores = [
        smoothed(FrozenEstimator(boosted), vote="soft", batch=batch).fit(X, Y).predict_proba(X[:20])
        for batch in (True, False, "auto")
    ]
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def above(rows):
    """A scorer that looks at the row alone."""
    return (rows[:, 0] > 0).astype(int)


def above_the_mean_of_the_call(rows):
    return (rows[:, 0] > rows[:, 0].mean()).astype(int)


def mean_of_the_call(rows):
    """All rows of a call get the same label: noise averages out, so smoothing does nothing."""
    return np.full(len(rows), int(rows[:, 0].mean() > 0))


@pytest.mark.parametrize("scorer", [above_the_mean_of_the_call, mean_of_the_call])
def test_a_scorer_that_looks_at_other_rows_is_refused(scorer):
    with pytest.raises(InvalidInputError, match=r"must predict each row independently.*batch=False"):
        smoothed(scorer).fit(X, Y)


def test_one_row_at_a_time_keeps_the_promise_for_a_scorer_that_looks_at_other_rows():
    people, metric = np.linspace(-0.5, 0.5, 9)[:, None] * [[1, 0, 0]], WeightedLp([0.5, 0, 0])
    alone = smoothed(mean_of_the_call, metric, n_draws=200, batch=False).fit(X, Y)
    kept = audit(alone, people, metric)
    assert kept.max_excess <= alone.guarantee_.epsilon
    np.testing.assert_array_equal(
        alone.predict_proba(people), smoothed(above, metric, n_draws=200).fit(X, Y).predict_proba(people)
    )
    # Why it is refused otherwise: taken at one's word, it breaks the promise.
    trusted = smoothed(mean_of_the_call, metric, n_draws=200, batch=True).fit(X, Y)
    one_by_one = np.concatenate([trusted.predict_proba(people[i : i + 1]) for i in range(len(people))])
    broken = audit(None, people, metric, predictions=one_by_one[:, 1])
    assert broken.max_excess > 0.5


def test_a_scorer_that_answers_at_random_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match=r"the same predictions for the same rows.*random_state"):
        smoothed(lambda rows: rng.integers(2, size=len(rows))).fit(X, Y)


class Remote:
    """A scorer behind a wire: rows go out as text and labels come back."""

    def __init__(self):
        self.sizes = []

    def __call__(self, rows):
        self.sizes.append(len(rows))
        sent = [
            [float(text) for text in line.split(",")] for line in (",".join(map(repr, row)) for row in rows.tolist())
        ]
        return ["yes" if age > 0 else "no" for age, *_ in sent]


LABELS = np.where(Y, "yes", "no")


def test_a_remote_scorer_is_tried_out_and_then_asked_in_batches():
    remote = Remote()
    model = smoothed(remote, n_draws=50).fit(X, LABELS)
    assert 1 in remote.sizes
    remote.sizes.clear()
    model.predict_proba(X)
    assert len(remote.sizes) < 30  # 300 people


def test_a_remote_scorer_can_be_taken_at_its_owners_word():
    remote = Remote()
    model = smoothed(remote, batch=True).fit(X, LABELS)
    assert remote.sizes == []
    assert "was not tested: batch=True says so" in model.guarantee_.statement
    assert model.predict_proba(X[:30]).shape == (30, 2)
    assert len(remote.sizes) < 30


def test_a_remote_scorer_can_be_asked_for_one_row_at_a_time():
    remote = Remote()
    model = smoothed(remote, batch=False).fit(X, LABELS)
    model.predict_proba(X[:3])
    model.decide(X[:5], random_state=0)
    assert set(remote.sizes) == {1}
    assert "one row at a time" in model.guarantee_.statement


def test_decisions_share_calls_in_the_tried_sizes_only():
    remote = Remote()
    model = smoothed(remote).fit(X, LABELS)
    remote.sizes.clear()
    assert set(model.decide(X, random_state=0)) == {"yes", "no"}
    assert remote.sizes == [512]  # 300 people, filled up


def rounded_by_place(rows):
    sure = 1 / (1 + np.exp(-rows[:, 0]))
    sure[1::2] = np.nextafter(sure[1::2], 1)
    return np.stack([1 - sure, sure], axis=1)


def test_rounding_by_place_keeps_people_apart():
    model = smoothed(rounded_by_place, vote="soft").fit(X, Y)
    assert model.scorer_.batch_plan.kind == "person"
    assert "a call holds the draws of one person" in model.guarantee_.statement
    np.testing.assert_array_equal(model.predict_proba(X)[7:8], model.predict_proba(X[7:8]))


class Rounds(ClassifierMixin, BaseEstimator):
    """Labels that never change, from scores that are rounded by place."""

    def fit(self, rows, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, rows):
        return rounded_by_place(rows)

    def predict(self, rows):
        return (rows[:, 0] > 0).astype(int)


def test_labels_do_not_hide_that_scores_are_rounded_by_place():
    assert smoothed(Rounds()).fit(X, Y).scorer_.batch_plan.kind == "person"


def test_a_forest_with_threads_is_not_tried_out_since_trials_may_miss_a_race():
    forest = RandomForestClassifier(5, n_jobs=2, random_state=0)
    model = smoothed(forest, vote="soft").fit(X, Y)
    assert model.scorer_.batch_plan.kind == "person"
    assert "in an unspecified order" in model.guarantee_.statement
    assert smoothed(forest, vote="trees").fit(X, Y).scorer_.batch_plan.kind == "any"  # whole numbers add up exactly


def test_a_listed_model_says_so():
    model = smoothed(RandomForestClassifier(5, random_state=0)).fit(X, Y)
    assert "Models of this type predict each row independently" in model.guarantee_.statement


def test_a_regressor_is_tried_out_as_well():
    model = SmoothedRegressor(LinearRegression(), metric=METRIC, n_draws=40, random_state=0).fit(X, X[:, 0])
    assert model.scorer_.batch_plan.kind in ("fixed", "person")
    assert model.scorer_.batch_plan.basis in model.guarantee_.statement
    with pytest.raises(InvalidInputError, match="must predict each row independently"):
        SmoothedRegressor(lambda rows: rows[:, 0] - rows[:, 0].mean(), metric=METRIC, n_draws=40).fit(X, X[:, 0])


def test_a_word_that_batch_does_not_know_is_refused():
    with pytest.raises(InvalidInputError, match="batch must be 'auto' or True or False; got 'sometimes'"):
        smoothed(above, batch="sometimes").fit(X, Y)
