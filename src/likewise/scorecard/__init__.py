"""Outputs of a scorecard: tables, plots, prices, whole points, notices and files."""
