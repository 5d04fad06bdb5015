"""The workbench: a page on this machine where a committee makes a metric."""
