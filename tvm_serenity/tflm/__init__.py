"""TensorFlow Lite Micro: its offline memory plan, and the arena margin for kernel scratch."""
