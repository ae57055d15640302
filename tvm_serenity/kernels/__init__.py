"""Schedules of kernels (TIR) that need no memory beside their tensors."""
