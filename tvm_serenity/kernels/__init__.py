"""Kernels in TIR, and schedules that need no memory beside a kernel's tensors."""
