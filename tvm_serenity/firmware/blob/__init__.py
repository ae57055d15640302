"""A model as data: a checksummed blob that a kernel set, compiled once, loads and runs."""
