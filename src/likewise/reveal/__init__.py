"""The metric that a model already has."""
