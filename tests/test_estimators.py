from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from likewise import SmoothedClassifier, SmoothedRegressor


@parametrize_with_checks(
    [
        SmoothedClassifier(LogisticRegression(), n_draws=500),
        SmoothedClassifier(LogisticRegression(), vote="soft", noise="laplace", epsilon=0.2),
        SmoothedRegressor(Ridge(), n_draws=500),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
