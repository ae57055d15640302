"""The programs that build and run firmware, and how to get the ones that are missing."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tvm_serenity.errors import CheckError, InputError, MissingPartError

PACKAGES = {
    "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "arm-none-eabi-size": "binutils-arm-none-eabi",
    "qemu-system-arm": "qemu-system-arm",
    "make": "make",
    "cc": "gcc",
    "clang": "clang",
}
"""Debian's package of each tool."""


def have(*tools: str) -> bool:
    """Whether all ``tools`` are installed."""
    return all(shutil.which(tool) for tool in tools)


def require(*tools: str) -> None:
    """Raise :class:`MissingPartError` naming the first missing tool and its package."""
    for tool in tools:
        if shutil.which(tool) is None:
            package = PACKAGES.get(tool, tool)
            raise MissingPartError(f"{tool} is not installed: apt-get install {package}")


def make(directory: Path, *goals: str, variables: Sequence[str] = ()) -> None:
    """Build ``goals`` of a project; :class:`CheckError` with the compiler's first complaint.

    Boards need the cross compiler, ``host`` the machine's own.
    """
    require("make", *(["cc"] if set(goals) <= {"host"} else ["arm-none-eabi-gcc"]))
    if not (directory / "Makefile").is_file():
        raise InputError(f"{directory}: no firmware project; make one with serenity build")
    command = ["make", "-s", "-C", str(directory), *goals, *variables]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        said = ("undefined reference", "error", "overflow")
        lines = [line for line in done.stderr.splitlines() if any(word in line for word in said)]
        raise CheckError(f"{directory}: {(lines or done.stderr.splitlines() or ['failed'])[0]}")
