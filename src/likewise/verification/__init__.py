"""Proven bounds on a model's outputs over a domain."""
