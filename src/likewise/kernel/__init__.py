"""Guarantees: from the distance between two people to the difference of their outputs.

What guarantees rest on, and nothing else. Read in this order: `columns` and `schema` (tables as rows of numbers),
`metric` (a description bound to a schema) and `distance` (the one formula), `bounds` and `links` (from a distance to a
difference of outputs), `evidence` (the numbers of a model), `rules` (a theorem each, from evidence to a `guarantee`),
`proof` (what holds for everybody of a domain), `certificate` (one person) and `concentration` (draws).

It imports NumPy, SciPy, pandas and narwhals, and of ours only what imports nothing else of ours: exceptions, names of
types, checks of numbers, HTML (`tests/test_architecture.py`).
"""
