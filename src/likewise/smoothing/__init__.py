"""Randomized smoothing: any model, averaged over noise until it is within a metric."""
