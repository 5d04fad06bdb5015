"""All pairs of people, compiled: people as points, full scans, boxes, pruned search, linear programs with cuts."""
