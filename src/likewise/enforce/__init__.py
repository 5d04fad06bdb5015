"""Models that are within a metric, for all pairs."""
