"""Metrics designed together with a model, and learned from judgements."""
