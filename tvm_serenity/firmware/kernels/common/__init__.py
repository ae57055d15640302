"""What kernels of the library share: layers, calls, packed weights, orders, counts, and C."""
