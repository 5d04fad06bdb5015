"""Any model, moved as little as possible until it is within a metric (McShane-Whitney extension)."""
