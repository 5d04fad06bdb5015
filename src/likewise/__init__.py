"""Individual fairness with guarantees: similar people are treated similarly, under a metric people can discuss."""

from likewise.audit import Audit, audit
from likewise.ceiling import Ceiling, ceiling
from likewise.certificate import Certificate
from likewise.estimate import MetricEstimate, estimate_minimal_metric
from likewise.guarantee import Guarantee, draws_needed, error_margin, failure_probability
from likewise.metrics import WeightedLp
from likewise.minimal import linear_metric, minimal_metric
from likewise.noise import Gaussian, Laplace, Splitting, Uniform
from likewise.plotting import AuditDisplay, MetricDisplay
from likewise.smoothing import SmoothedClassifier, SmoothedRegressor
from likewise.tables import TableMetric

__version__ = "0.1.0.dev0"

__all__ = [
    "Audit",
    "AuditDisplay",
    "Ceiling",
    "Certificate",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "MetricDisplay",
    "MetricEstimate",
    "SmoothedClassifier",
    "SmoothedRegressor",
    "Splitting",
    "TableMetric",
    "Uniform",
    "WeightedLp",
    "audit",
    "ceiling",
    "draws_needed",
    "error_margin",
    "estimate_minimal_metric",
    "failure_probability",
    "linear_metric",
    "minimal_metric",
]
