import numpy as np
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from likewise.inspection.batch_invariance import is_rowwise
from likewise.inspection.preprocessing import affine_map, last_step, unwrap

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(50, 3)) * [1, 10, 100] + 5, RNG.normal(size=50)


def nested(*, first):
    inner = FrozenEstimator(make_pipeline("passthrough", RobustScaler(), MaxAbsScaler()).fit(X))
    return FrozenEstimator(
        make_pipeline(first, inner, None, make_pipeline(StandardScaler(), LinearRegression())).fit(X, Y)
    )


def test_frozen_and_nested_pipelines_are_laid_out_flat():
    steps, last = unwrap(nested(first=MinMaxScaler()))
    assert [type(step) for step in steps] == [MinMaxScaler, RobustScaler, MaxAbsScaler, StandardScaler]
    assert isinstance(last, LinearRegression)
    assert unwrap(make_pipeline("passthrough")) == ([], None)
    model = LinearRegression()
    assert unwrap(model) == ([], model)


def test_a_subclass_may_do_anything_and_stays_closed():
    class Own(Pipeline):
        pass

    model = Own([("scale", StandardScaler()), ("last", LinearRegression())])
    assert unwrap(model) == ([], model)
    assert last_step(model) is model
    assert not is_rowwise(model)


def test_scalers_are_one_affine_map_and_nothing_else_is():
    model = nested(first=MinMaxScaler())
    factor, shift = affine_map(model, 3)
    np.testing.assert_allclose(last_step(model).predict(factor * X + shift), model.predict(X))
    for first in (PCA(), MinMaxScaler(clip=True)):
        other = nested(first=first)
        assert last_step(other) is other
        factor, shift = affine_map(other, 3)
        assert (factor == 1).all()
        assert (shift == 0).all()
