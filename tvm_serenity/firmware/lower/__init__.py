"""Lower TIR kernels to C, or compile them with LLVM to an object file for a board."""

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # before imports that fail without it
