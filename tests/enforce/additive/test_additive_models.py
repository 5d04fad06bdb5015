import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from likewise import AdditiveClassifier, AdditiveRegressor


@pytest.mark.filterwarnings("ignore::likewise.guarantees.promise.VacuousGuaranteeWarning")
@parametrize_with_checks([AdditiveClassifier(), AdditiveRegressor()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)
