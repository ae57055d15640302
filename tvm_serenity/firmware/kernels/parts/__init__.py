"""Parts of kernel records: layers, calls, packed weights, orders of pixels, counts."""
