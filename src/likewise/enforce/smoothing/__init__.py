"""Any model, averaged over noise that is calibrated to a metric: the paper's way."""
