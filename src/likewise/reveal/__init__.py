"""The smallest metric that a given model satisfies."""
