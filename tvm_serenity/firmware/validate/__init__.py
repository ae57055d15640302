"""Translation validation: compare a program's kernels and network with TVM's own."""

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # before imports that fail without it
