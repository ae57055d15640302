"""Compile a Relax module to a :class:`~tvm_serenity.firmware.program.Program` for a board."""

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # before imports that fail without it
