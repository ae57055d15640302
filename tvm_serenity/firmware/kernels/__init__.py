"""The library of kernels in C: a folder each, with its record, its C and its prices.

``all_kernels`` finds the folders; ``candidates`` are the kernels that make a layer on a core.
"""

from functools import cache
from importlib import import_module, resources

from tvm_serenity.firmware.kernels.record import LibraryKernel

RECORD = "kernel.py"
"""The file of a folder that has its record, ``KERNEL``."""


@cache
def all_kernels() -> tuple[LibraryKernel, ...]:
    """Return the records of all kernels, by name."""
    folders = (f for f in resources.files(__name__).iterdir() if (f / RECORD).is_file())
    names = sorted(folder.name for folder in folders)
    found = (import_module(f"{__name__}.{name}.kernel").KERNEL for name in names)
    return tuple(found)
