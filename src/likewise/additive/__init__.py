"""Additive models (scorecards) within a metric by construction."""
