"""Individual fairness with guarantees: similar people are treated similarly, under a metric people can discuss."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.auditing.ceilings import Ceiling, ceiling
    from likewise.auditing.violations import Audit, audit
    from likewise.enforce.smoothing.estimators import SmoothedClassifier, SmoothedRegressor
    from likewise.enforce.smoothing.noises import Gaussian, Laplace, Splitting, Uniform
    from likewise.guarantees.certificate import Certificate
    from likewise.guarantees.draw_counts import draws_needed, error_margin, failure_probability
    from likewise.guarantees.promise import Guarantee, VacuousGuaranteeWarning
    from likewise.metrics.abstract import Metric
    from likewise.metrics.lp import WeightedLp
    from likewise.metrics.tabular import TableMetric
    from likewise.plotting import AuditDisplay, MetricDisplay
    from likewise.reveal.estimated import MetricEstimate, estimate_minimal_metric
    from likewise.reveal.exact import minimal_metric
    from likewise.reveal.recipe import linear_metric

__version__ = "0.1.0.dev0"

# Names are imported when they are first used: `import likewise` and `likewise --help` answer at once.
_HOMES = {
    "Audit": "likewise.auditing.violations",
    "AuditDisplay": "likewise.plotting",
    "Ceiling": "likewise.auditing.ceilings",
    "Certificate": "likewise.guarantees.certificate",
    "Gaussian": "likewise.enforce.smoothing.noises",
    "Guarantee": "likewise.guarantees.promise",
    "Laplace": "likewise.enforce.smoothing.noises",
    "Metric": "likewise.metrics.abstract",
    "MetricDisplay": "likewise.plotting",
    "MetricEstimate": "likewise.reveal.estimated",
    "SmoothedClassifier": "likewise.enforce.smoothing.estimators",
    "SmoothedRegressor": "likewise.enforce.smoothing.estimators",
    "Splitting": "likewise.enforce.smoothing.noises",
    "TableMetric": "likewise.metrics.tabular",
    "Uniform": "likewise.enforce.smoothing.noises",
    "VacuousGuaranteeWarning": "likewise.guarantees.promise",
    "WeightedLp": "likewise.metrics.lp",
    "audit": "likewise.auditing.violations",
    "ceiling": "likewise.auditing.ceilings",
    "draws_needed": "likewise.guarantees.draw_counts",
    "error_margin": "likewise.guarantees.draw_counts",
    "estimate_minimal_metric": "likewise.reveal.estimated",
    "failure_probability": "likewise.guarantees.draw_counts",
    "linear_metric": "likewise.reveal.recipe",
    "minimal_metric": "likewise.reveal.exact",
}

__all__ = [
    "Audit",
    "AuditDisplay",
    "Ceiling",
    "Certificate",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Metric",
    "MetricDisplay",
    "MetricEstimate",
    "SmoothedClassifier",
    "SmoothedRegressor",
    "Splitting",
    "TableMetric",
    "Uniform",
    "VacuousGuaranteeWarning",
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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
