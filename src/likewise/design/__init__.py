"""Metrics designed together with a model."""
