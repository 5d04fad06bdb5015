"""Networks whose weights keep them within a metric."""
