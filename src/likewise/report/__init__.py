"""One offline page for people who are not engineers: data first, then a pure rendering."""

from likewise.report.data import Cost, GroupFigures, GroupScores, PeopleCost, ReportData, ReviewedFiles
from likewise.report.render import render

__all__ = ["Cost", "GroupFigures", "GroupScores", "PeopleCost", "ReportData", "ReviewedFiles", "render"]
