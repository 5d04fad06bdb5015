"""Guarantees: from the distance between two people to the difference of their outputs."""
