"""Any model, projected onto the models within a metric (McShane-Whitney extension)."""
