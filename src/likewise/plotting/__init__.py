"""Plots of metrics, audits, comparisons and prices."""
