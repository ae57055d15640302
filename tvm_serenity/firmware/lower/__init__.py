"""Kernels from TIR as C, or as objects that LLVM compiles for a board."""

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # before anything that fails without
