"""Calibration that keeps a guarantee."""
