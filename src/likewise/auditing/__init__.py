"""Pairs of people who are treated more differently than a metric allows: audit, attack, ceiling, coverage."""
