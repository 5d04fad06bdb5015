"""Calibration that keeps the promise."""
