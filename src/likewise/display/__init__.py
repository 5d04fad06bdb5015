"""Plots of metrics, audits, comparisons, trade-offs and decisions."""
