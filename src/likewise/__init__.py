"""Individual fairness with guarantees: similar people are treated similarly, under a metric people can discuss."""

from likewise.certificate import Certificate
from likewise.guarantee import Guarantee, draws_needed, error_margin, failure_probability
from likewise.metrics import WeightedLp
from likewise.minimal import linear_metric
from likewise.noise import Gaussian, Laplace, Splitting, Uniform
from likewise.smoothing import SmoothedClassifier, SmoothedRegressor
from likewise.tables import TableMetric

__version__ = "0.1.0.dev0"

__all__ = [
    "Certificate",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "SmoothedClassifier",
    "SmoothedRegressor",
    "Splitting",
    "TableMetric",
    "Uniform",
    "WeightedLp",
    "draws_needed",
    "error_margin",
    "failure_probability",
    "linear_metric",
]
