"""Selects the kernel of each layer, from the library or TIR, with its workspace and overlap."""

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # before imports that fail without it
