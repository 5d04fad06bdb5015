"""Tables that do not fit one machine: Parquet in partitions, and the machines that read them."""
