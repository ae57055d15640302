"""Measures variants of kernels on this machine: tiles and TVM's own schedule, in alternation."""
