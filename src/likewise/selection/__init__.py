"""Methods compared by cross-validation, and the trade-off between strictness and score."""
