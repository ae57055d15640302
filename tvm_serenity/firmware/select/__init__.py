"""Which kernel makes each layer: of the library or from TIR, with how much workspace, over what."""

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # before anything that fails without
