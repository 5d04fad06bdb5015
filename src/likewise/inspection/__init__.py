"""What other people's models are: linear, trees, networks, and how their answers depend on a batch."""
