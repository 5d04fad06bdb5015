"""Bounds of what a model can answer over a domain: proofs, not samples."""
