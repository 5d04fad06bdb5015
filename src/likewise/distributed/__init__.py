"""The jobs of likewise on Dask DataFrames: audit, minimal metric, additive fit and scoring, on one machine or many."""
