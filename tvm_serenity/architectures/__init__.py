"""Architectures: what the cores of a family share, a file for each family.

    architecture("arm").toolchain.compiler    # "arm-none-eabi-gcc"

A core's file (``tvm_serenity.cores``) names its architecture.
"""

from importlib import import_module

from tvm_serenity.architectures.record import Architecture, Emulator, Sections, Toolchain

MODULES = ("arm", "riscv", "generic")
"""The files of this package that each declare ``ARCHITECTURE``, under their names."""

ARCHITECTURES: dict[str, Architecture] = {
    name: import_module(f"{__name__}.{name}").ARCHITECTURE for name in MODULES
}
"""The architectures by name."""

TOOLCHAINS: dict[str, Toolchain] = {
    name: one.known_toolchain
    for name, one in ARCHITECTURES.items()
    if one.known_toolchain is not None
}
"""The known toolchains, by the name of their architecture."""

__all__ = [
    "ARCHITECTURES",
    "MODULES",
    "TOOLCHAINS",
    "Architecture",
    "Emulator",
    "Sections",
    "Toolchain",
    "architecture",
]


def architecture(name: str) -> Architecture:
    """Return the architecture ``name``, one of ``ARCHITECTURES``."""
    return ARCHITECTURES[name]
