"""Additive models (scorecards) whose slopes stay within a metric."""
