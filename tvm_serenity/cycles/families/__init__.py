"""Families of emulated cores, a file for each: how instructions are decoded, and how Unicorn runs.

    family_of("m4").name    # "arm"

The key ``model`` of a core's file names a model of a family.
"""

from importlib import import_module

from tvm_serenity.cycles.families.record import CpuFamily, InstructionShape

MODULES = ("arm", "riscv")
"""The files of this package that each declare ``FAMILY``, under their names."""

FAMILIES: dict[str, CpuFamily] = {
    name: import_module(f"{__name__}.{name}").FAMILY for name in MODULES
}
"""The families by name."""

MODELS = tuple(model for family in FAMILIES.values() for model in family.models)
"""The names of all models."""

__all__ = ["FAMILIES", "MODELS", "MODULES", "CpuFamily", "InstructionShape", "family_of"]


def family_of(model: str) -> CpuFamily:
    """Return the family of ``model``, one of ``MODELS``."""
    return next(family for family in FAMILIES.values() if model in family.models)
