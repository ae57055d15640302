"""The library of kernels in C: each folder has the record, the C and the prices of a kernel.

``all_kernels`` finds the folders; ``candidates`` returns the kernels for a layer on a core.
"""

from functools import cache
from importlib import import_module, resources

from tvm_serenity.firmware.kernels.record import LibraryKernel

RECORD = "kernel.py"
"""The file in each folder that defines the record ``KERNEL``."""


@cache
def all_kernels() -> tuple[LibraryKernel, ...]:
    """Return the records of all kernels, by name."""
    folders = (f for f in resources.files(__name__).iterdir() if (f / RECORD).is_file())
    names = sorted(folder.name for folder in folders)
    found = (import_module(f"{__name__}.{name}.kernel").KERNEL for name in names)
    return tuple(found)
