"""Decisions from probabilities: one draw shared by everybody in a round, and soft thresholds."""
