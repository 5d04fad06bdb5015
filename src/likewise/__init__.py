"""Individual fairness with guarantees: similar people are treated similarly, under a metric people can discuss."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.audits import Audit, audit
    from likewise.ceilings import Ceiling, ceiling
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

# Names are imported when they are first used: `import likewise` and `likewise --help` answer at once.
_HOMES = {
    "Audit": "likewise.audits",
    "AuditDisplay": "likewise.plotting",
    "Ceiling": "likewise.ceilings",
    "Certificate": "likewise.certificate",
    "Gaussian": "likewise.noise",
    "Guarantee": "likewise.guarantee",
    "Laplace": "likewise.noise",
    "MetricDisplay": "likewise.plotting",
    "MetricEstimate": "likewise.estimate",
    "SmoothedClassifier": "likewise.smoothing",
    "SmoothedRegressor": "likewise.smoothing",
    "Splitting": "likewise.noise",
    "TableMetric": "likewise.tables",
    "Uniform": "likewise.noise",
    "WeightedLp": "likewise.metrics",
    "audit": "likewise.audits",
    "ceiling": "likewise.ceilings",
    "draws_needed": "likewise.guarantee",
    "error_margin": "likewise.guarantee",
    "estimate_minimal_metric": "likewise.estimate",
    "failure_probability": "likewise.guarantee",
    "linear_metric": "likewise.minimal",
    "minimal_metric": "likewise.minimal",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
