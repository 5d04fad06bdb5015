"""Individual fairness with guarantees: similar people are treated similarly, under a metric people can discuss."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise._guarantee_warnings import IneffectiveWeightWarning as IneffectiveWeightWarning
    from likewise._guarantee_warnings import VacuousGuaranteeWarning as VacuousGuaranteeWarning
    from likewise.additive.estimators import AdditiveClassifier as AdditiveClassifier
    from likewise.additive.estimators import AdditiveRegressor as AdditiveRegressor
    from likewise.auditing.attack import Attack as Attack
    from likewise.auditing.attack import attack as attack
    from likewise.auditing.audit import Audit as Audit
    from likewise.auditing.audit import audit as audit
    from likewise.auditing.ceiling import Ceiling as Ceiling
    from likewise.auditing.ceiling import ceiling as ceiling
    from likewise.auditing.effect import Effect as Effect
    from likewise.auditing.effect import effect as effect
    from likewise.auditing.excess import Excess as Excess
    from likewise.auditing.file_review import FileReview as FileReview
    from likewise.auditing.file_review import review_files as review_files
    from likewise.auditing.group_audit import GroupAudit as GroupAudit
    from likewise.auditing.group_audit import audit_groups as audit_groups
    from likewise.auditing.group_gaps import GroupGaps as GroupGaps
    from likewise.auditing.group_gaps import group_gaps as group_gaps
    from likewise.calibration.estimators import RecalibratedClassifier as RecalibratedClassifier
    from likewise.decisions.costs import DecisionCosts as DecisionCosts
    from likewise.decisions.costs import decision_costs as decision_costs
    from likewise.decisions.threshold import ThresholdDecision as ThresholdDecision
    from likewise.design.frontier import FrontierPoint as FrontierPoint
    from likewise.design.frontier import MetricFrontier as MetricFrontier
    from likewise.design.frontier import design_metric as design_metric
    from likewise.design.judgements import JudgedMetric as JudgedMetric
    from likewise.design.judgements import learn_metric as learn_metric
    from likewise.design.questions import Question as Question
    from likewise.design.questions import next_question as next_question
    from likewise.display.audit import AuditDisplay as AuditDisplay
    from likewise.display.effect import EffectDisplay as EffectDisplay
    from likewise.display.metric import MetricDisplay as MetricDisplay
    from likewise.display.metric import RangesDisplay as RangesDisplay
    from likewise.display.tradeoffs import ComparisonDisplay as ComparisonDisplay
    from likewise.display.tradeoffs import DecisionDisplay as DecisionDisplay
    from likewise.display.tradeoffs import FrontierDisplay as FrontierDisplay
    from likewise.display.tradeoffs import TradeoffDisplay as TradeoffDisplay
    from likewise.exceptions import DownloadError as DownloadError
    from likewise.exceptions import FileError as FileError
    from likewise.exceptions import InvalidInputError as InvalidInputError
    from likewise.exceptions import InvalidTypeError as InvalidTypeError
    from likewise.exceptions import LikewiseError as LikewiseError
    from likewise.exceptions import MissingDataError as MissingDataError
    from likewise.exceptions import MissingExtraError as MissingExtraError
    from likewise.exceptions import UnprovableError as UnprovableError
    from likewise.exceptions import UnsolvedError as UnsolvedError
    from likewise.io import load_model as load_model
    from likewise.io import save_model as save_model
    from likewise.kernel.certificate import Certificate as Certificate
    from likewise.kernel.concentration import draws_needed as draws_needed
    from likewise.kernel.concentration import error_margin as error_margin
    from likewise.kernel.concentration import failure_probability as failure_probability
    from likewise.kernel.guarantee import Guarantee as Guarantee
    from likewise.lipschitz.estimators import LipschitzClassifier as LipschitzClassifier
    from likewise.lipschitz.estimators import LipschitzRegressor as LipschitzRegressor
    from likewise.metric_file import read_metric as read_metric
    from likewise.metric_file import write_metric as write_metric
    from likewise.metrics.base import Metric as Metric
    from likewise.metrics.function import FunctionMetric as FunctionMetric
    from likewise.metrics.mahalanobis import MahalanobisMetric as MahalanobisMetric
    from likewise.metrics.table import TableMetric as TableMetric
    from likewise.metrics.weighted_lp import WeightedLp as WeightedLp
    from likewise.projection.estimators import ProjectedClassifier as ProjectedClassifier
    from likewise.projection.estimators import ProjectedRegressor as ProjectedRegressor
    from likewise.reveal.empirical import MetricEstimate as MetricEstimate
    from likewise.reveal.empirical import estimate_minimal_metric as estimate_minimal_metric
    from likewise.reveal.linear import find_jumps as find_jumps
    from likewise.reveal.linear import minimal_metric as minimal_metric
    from likewise.reveal.regression import linear_metric as linear_metric
    from likewise.scorecard.display import ScorecardDisplay as ScorecardDisplay
    from likewise.selection.compare import Comparison as Comparison
    from likewise.selection.compare import compare as compare
    from likewise.selection.tradeoff import Tradeoff as Tradeoff
    from likewise.selection.tradeoff import tradeoff as tradeoff
    from likewise.smoothing.estimators import SmoothedClassifier as SmoothedClassifier
    from likewise.smoothing.estimators import SmoothedRegressor as SmoothedRegressor
    from likewise.smoothing.noise import Gaussian as Gaussian
    from likewise.smoothing.noise import Laplace as Laplace
    from likewise.smoothing.noise import Splitting as Splitting
    from likewise.smoothing.noise import Uniform as Uniform
    from likewise.verification.domain import Domain as Domain

__version__ = "0.2.0"

# Names are imported when they are first used: `import likewise` and `likewise --help` answer at once.
_MODULES = {
    "likewise.auditing.attack": ("Attack", "attack"),
    "likewise.auditing.ceiling": ("Ceiling", "ceiling"),
    "likewise.verification.domain": ("Domain",),
    "likewise.auditing.effect": ("Effect", "effect"),
    "likewise.auditing.excess": ("Excess",),
    "likewise.auditing.file_review": ("FileReview", "review_files"),
    "likewise.auditing.group_audit": ("GroupAudit", "audit_groups"),
    "likewise.auditing.group_gaps": ("GroupGaps", "group_gaps"),
    "likewise.selection.compare": ("Comparison", "compare"),
    "likewise.selection.tradeoff": ("Tradeoff", "tradeoff"),
    "likewise.auditing.audit": ("Audit", "audit"),
    "likewise.additive.estimators": ("AdditiveClassifier", "AdditiveRegressor"),
    "likewise.scorecard.display": ("ScorecardDisplay",),
    "likewise.design.frontier": ("FrontierPoint", "MetricFrontier", "design_metric"),
    "likewise.projection.estimators": ("ProjectedClassifier", "ProjectedRegressor"),
    "likewise.lipschitz.estimators": ("LipschitzClassifier", "LipschitzRegressor"),
    "likewise.calibration.estimators": ("RecalibratedClassifier",),
    "likewise.smoothing.estimators": ("SmoothedClassifier", "SmoothedRegressor"),
    "likewise.smoothing.noise": ("Gaussian", "Laplace", "Splitting", "Uniform"),
    "likewise.decisions.costs": ("DecisionCosts", "decision_costs"),
    "likewise.decisions.threshold": ("ThresholdDecision",),
    "likewise.exceptions": (
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
    "likewise.kernel.certificate": ("Certificate",),
    "likewise.kernel.concentration": ("draws_needed", "error_margin", "failure_probability"),
    "likewise._guarantee_warnings": ("IneffectiveWeightWarning", "VacuousGuaranteeWarning"),
    "likewise.kernel.guarantee": ("Guarantee",),
    "likewise.io": ("load_model", "save_model"),
    "likewise.metric_file": ("read_metric", "write_metric"),
    "likewise.metrics.base": ("Metric",),
    "likewise.metrics.function": ("FunctionMetric",),
    "likewise.metrics.mahalanobis": ("MahalanobisMetric",),
    "likewise.metrics.weighted_lp": ("WeightedLp",),
    "likewise.metrics.table": ("TableMetric",),
    "likewise.design.judgements": ("JudgedMetric", "learn_metric"),
    "likewise.design.questions": ("Question", "next_question"),
    "likewise.display.audit": ("AuditDisplay",),
    "likewise.display.effect": ("EffectDisplay",),
    "likewise.display.tradeoffs": ("ComparisonDisplay", "DecisionDisplay", "FrontierDisplay", "TradeoffDisplay"),
    "likewise.display.metric": ("MetricDisplay", "RangesDisplay"),
    "likewise.reveal.empirical": ("MetricEstimate", "estimate_minimal_metric"),
    "likewise.reveal.linear": ("find_jumps", "minimal_metric"),
    "likewise.reveal.regression": ("linear_metric",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'likewise' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
