"""The command line, and what it reads, writes and runs."""
