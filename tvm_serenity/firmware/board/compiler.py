"""Checks that the installed C compiler supports the core of a board."""

import functools
import subprocess

from tvm_serenity.boards import Board
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.board.toolchain import cross_compiler, environment, have, identity


def check_compiler(board: Board) -> None:
    """Raise :class:`UnsupportedError` if the installed C compiler does not support the core.

    The error quotes the compiler. A missing or unknown compiler is no error.
    """
    if not board.compiler:
        return
    command = cross_compiler(board.compiler)
    if not have(command[0]):
        return
    said = _said(command, tuple(board.gcc.split()), identity(command[0]))
    if said:
        raise UnsupportedError(
            f"{command[0]} does not compile for {board.core.name}, the core of "
            f"{board.name}: {said}; install a version that knows this core, or set "
            "[toolchain] gcc to flags that it knows in a board file of your own"
        )


@functools.cache
def _said(command: tuple[str, ...], flags: tuple[str, ...], _version: str) -> str:
    """Return the first message of a compiler about ``flags``, "" if it accepts them."""
    done = subprocess.run(
        [*command, *flags, "-x", "c", "-fsyntax-only", "-"],
        input="typedef int nothing;\n",
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if "error" in line] or ["failed"]
    return lines[0].partition("error: ")[2] or lines[0]
