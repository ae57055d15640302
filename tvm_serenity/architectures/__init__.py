"""Architectures: what the cores of a family share, a file for each family.

    architecture("arm").compiler    # "arm-none-eabi-gcc"

A core's file (``tvm_serenity.cores``) names its architecture.
"""

from importlib import import_module

from tvm_serenity.architectures.record import Architecture, Emulator, Sections

MODULES = ("arm", "riscv")
"""The files of this package that each declare ``ARCHITECTURE``, under their names."""

ARCHITECTURES: dict[str, Architecture] = {
    name: import_module(f"{__name__}.{name}").ARCHITECTURE for name in MODULES
}
"""The architectures by name."""

__all__ = ["ARCHITECTURES", "MODULES", "Architecture", "Emulator", "Sections", "architecture"]


def architecture(name: str) -> Architecture:
    """Return the architecture ``name``, one of ``ARCHITECTURES``."""
    return ARCHITECTURES[name]
