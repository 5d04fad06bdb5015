"""Reading fitted models of other libraries (linear, trees, networks), and how their outputs depend on the batch."""
