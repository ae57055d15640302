"""Forms of kernels measured on this machine: tiles, and TVM's own schedule, in alternation."""
