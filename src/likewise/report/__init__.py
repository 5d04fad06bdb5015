"""One offline page for people who are not engineers: data first, then a pure rendering."""

from likewise.report.data import (
    NOT_PROMISED,
    Audit,
    Claim,
    Column,
    Group,
    Limit,
    Metric,
    Person,
    ReportData,
    Utility,
    UtilityPoint,
    Value,
    WorstPair,
)
from likewise.report.render import render

__all__ = [
    "NOT_PROMISED",
    "Audit",
    "Claim",
    "Column",
    "Group",
    "Limit",
    "Metric",
    "Person",
    "ReportData",
    "Utility",
    "UtilityPoint",
    "Value",
    "WorstPair",
    "render",
]
