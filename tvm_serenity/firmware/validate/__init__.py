"""Translation validation: kernels and networks of a program against TVM's own."""

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # before anything that fails without
