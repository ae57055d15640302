"""TensorFlow Lite Micro: its offline memory plan, and what its kernels' scratch adds to it."""
