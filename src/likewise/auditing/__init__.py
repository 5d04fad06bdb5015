"""Models checked against a metric, on given people."""
