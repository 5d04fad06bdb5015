"""Individual fairness with guarantees: similar people are treated similarly, under a metric people can discuss."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.auditing.attacks import Attack as Attack
    from likewise.auditing.attacks import attack as attack
    from likewise.auditing.ceilings import Ceiling as Ceiling
    from likewise.auditing.ceilings import ceiling as ceiling
    from likewise.auditing.comparison import Comparison as Comparison
    from likewise.auditing.comparison import compare as compare
    from likewise.auditing.pricing import Price as Price
    from likewise.auditing.pricing import price as price
    from likewise.auditing.violations import Audit as Audit
    from likewise.auditing.violations import audit as audit
    from likewise.enforce.additive.additive_models import AdditiveClassifier as AdditiveClassifier
    from likewise.enforce.additive.additive_models import AdditiveRegressor as AdditiveRegressor
    from likewise.enforce.additive.fans import ScorecardDisplay as ScorecardDisplay
    from likewise.enforce.lipschitz.lipschitz_models import LipschitzClassifier as LipschitzClassifier
    from likewise.enforce.lipschitz.lipschitz_models import LipschitzRegressor as LipschitzRegressor
    from likewise.enforce.projection.projected_models import ProjectedClassifier as ProjectedClassifier
    from likewise.enforce.projection.projected_models import ProjectedRegressor as ProjectedRegressor
    from likewise.enforce.recalibration.recalibrated_models import RecalibratedClassifier as RecalibratedClassifier
    from likewise.enforce.smoothing.estimators import SmoothedClassifier as SmoothedClassifier
    from likewise.enforce.smoothing.estimators import SmoothedRegressor as SmoothedRegressor
    from likewise.enforce.smoothing.noises import Gaussian as Gaussian
    from likewise.enforce.smoothing.noises import Laplace as Laplace
    from likewise.enforce.smoothing.noises import Splitting as Splitting
    from likewise.enforce.smoothing.noises import Uniform as Uniform
    from likewise.errors import DownloadError as DownloadError
    from likewise.errors import FileError as FileError
    from likewise.errors import InvalidInputError as InvalidInputError
    from likewise.errors import InvalidTypeError as InvalidTypeError
    from likewise.errors import LikewiseError as LikewiseError
    from likewise.errors import MissingDataError as MissingDataError
    from likewise.errors import MissingExtraError as MissingExtraError
    from likewise.errors import UnprovableError as UnprovableError
    from likewise.errors import UnsolvedError as UnsolvedError
    from likewise.guarantees.certificate import Certificate as Certificate
    from likewise.guarantees.draw_counts import draws_needed as draws_needed
    from likewise.guarantees.draw_counts import error_margin as error_margin
    from likewise.guarantees.draw_counts import failure_probability as failure_probability
    from likewise.guarantees.promise import Guarantee as Guarantee
    from likewise.guarantees.promise import IneffectiveWeightWarning as IneffectiveWeightWarning
    from likewise.guarantees.promise import VacuousGuaranteeWarning as VacuousGuaranteeWarning
    from likewise.metrics.abstract import Metric as Metric
    from likewise.metrics.function import FunctionMetric as FunctionMetric
    from likewise.metrics.lp import WeightedLp as WeightedLp
    from likewise.metrics.tabular import TableMetric as TableMetric
    from likewise.plotting.contest import ComparisonDisplay as ComparisonDisplay
    from likewise.plotting.excess import AuditDisplay as AuditDisplay
    from likewise.plotting.strictness import PriceDisplay as PriceDisplay
    from likewise.plotting.weights import MetricDisplay as MetricDisplay
    from likewise.reveal.estimated import MetricEstimate as MetricEstimate
    from likewise.reveal.estimated import estimate_minimal_metric as estimate_minimal_metric
    from likewise.reveal.exact import minimal_metric as minimal_metric
    from likewise.reveal.recipe import linear_metric as linear_metric

__version__ = "0.2.0"

# Names are imported when they are first used: `import likewise` and `likewise --help` answer at once.
_ROOMS = {
    "likewise.auditing.attacks": ("Attack", "attack"),
    "likewise.auditing.ceilings": ("Ceiling", "ceiling"),
    "likewise.auditing.comparison": ("Comparison", "compare"),
    "likewise.auditing.pricing": ("Price", "price"),
    "likewise.auditing.violations": ("Audit", "audit"),
    "likewise.enforce.additive.additive_models": ("AdditiveClassifier", "AdditiveRegressor"),
    "likewise.enforce.additive.fans": ("ScorecardDisplay",),
    "likewise.enforce.projection.projected_models": ("ProjectedClassifier", "ProjectedRegressor"),
    "likewise.enforce.lipschitz.lipschitz_models": ("LipschitzClassifier", "LipschitzRegressor"),
    "likewise.enforce.recalibration.recalibrated_models": ("RecalibratedClassifier",),
    "likewise.enforce.smoothing.estimators": ("SmoothedClassifier", "SmoothedRegressor"),
    "likewise.enforce.smoothing.noises": ("Gaussian", "Laplace", "Splitting", "Uniform"),
    "likewise.errors": (
        "DownloadError",
        "FileError",
        "InvalidInputError",
        "InvalidTypeError",
        "LikewiseError",
        "MissingDataError",
        "MissingExtraError",
        "UnprovableError",
        "UnsolvedError",
    ),
    "likewise.guarantees.certificate": ("Certificate",),
    "likewise.guarantees.draw_counts": ("draws_needed", "error_margin", "failure_probability"),
    "likewise.guarantees.promise": ("Guarantee", "IneffectiveWeightWarning", "VacuousGuaranteeWarning"),
    "likewise.metrics.abstract": ("Metric",),
    "likewise.metrics.function": ("FunctionMetric",),
    "likewise.metrics.lp": ("WeightedLp",),
    "likewise.metrics.tabular": ("TableMetric",),
    "likewise.plotting.excess": ("AuditDisplay",),
    "likewise.plotting.contest": ("ComparisonDisplay",),
    "likewise.plotting.strictness": ("PriceDisplay",),
    "likewise.plotting.weights": ("MetricDisplay",),
    "likewise.reveal.estimated": ("MetricEstimate", "estimate_minimal_metric"),
    "likewise.reveal.exact": ("minimal_metric",),
    "likewise.reveal.recipe": ("linear_metric",),
}
_HOMES = {name: module for module, names in _ROOMS.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
