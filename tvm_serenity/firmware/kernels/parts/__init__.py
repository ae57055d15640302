"""What records of kernels are made of: layers, calls, packed weights, orders of pixels, counts."""
