"""Plots of metrics, audits, comparisons and trade-offs."""
