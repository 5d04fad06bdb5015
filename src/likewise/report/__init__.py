"""One offline page for people who are not engineers: data first, then a pure rendering."""

from likewise.report.data import GroupScores, ReportData, Utility, UtilityPoint
from likewise.report.render import render

__all__ = ["GroupScores", "ReportData", "Utility", "UtilityPoint", "render"]
