"""1-Lipschitz networks within a metric by their weights."""
