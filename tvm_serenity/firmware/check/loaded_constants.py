"""Checks the constants of a linked image at the addresses from which kernels read them.

The image is read as a debugger loads it. Data is copied to RAM as ``startup.c`` does, from
``data_load`` to ``data_start`` .. ``data_end``, and ``bss_start`` .. ``bss_end`` is zeroed, because
compilers put constants of zeros there. Each constant must then equal that of the network.
"""

from pathlib import Path

import numpy as np

from tvm_serenity.architectures import architecture
from tvm_serenity.cycles.elf import LinkedProgram, Symbol
from tvm_serenity.cycles.elf import program as read_image
from tvm_serenity.errors import WrongResultError
from tvm_serenity.firmware.board.toolchain import have
from tvm_serenity.firmware.check.verify import difference, run_qemu
from tvm_serenity.firmware.emit.c import symbol
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.result import load

FIRMWARE = "build/firmware.elf"
BOUNDS = ("data_load", "data_start", "data_end")
ZEROED = ("bss_start", "bss_end")


def check(directory: Path, program: Program) -> None:
    """Check the constants of the linked project in ``directory``.

    Constants that are copied to RAM are also checked by a run in QEMU, if QEMU has the board.
    Raises :class:`WrongResultError`.
    """
    if not program.users:  # without the user's functions no image can be linked
        check_constants(directory / FIRMWARE, program)
    project = load(directory)
    if not program.copied or program.users or not project.metadata["qemu"]:
        return
    emulator = architecture(project.metadata["architecture"]).toolchain.emulator
    if not have(emulator.program):
        return
    ran = run_qemu(project, project.reference_inputs(), traced=True)
    off = difference(project, ran.trace)
    if not off.accepted:
        raise WrongResultError(
            f"{program.name}: tensor {off.first!r} is wrong in QEMU by "
            f"{off.max_abs_error:g} compared with TVM's when its constants are copied to "
            "RAM"
        )


def check_constants(image: Path, program: Program) -> int:
    """Return the number of constants of ``program`` in an image; raise at the first wrong one.

    Constants that the linker omitted because no kernel reads them are not counted.
    """
    linked = read_image(image)
    found = 0
    for index, constant in enumerate(program.constants):
        at = linked.find(symbol(program, constant.name))
        if at is None:
            continue
        want = np.ascontiguousarray(constant.array).tobytes()
        held = _held(linked, at, len(want))
        where = f"{image.name}: constant {at.name!r} ({_where(program)})"
        if held is None:
            raise WrongResultError(
                f"{where} is not loaded: {len(want)} bytes at {at.address:#x} are outside "
                "of the sections that the start-up code copies"
            )
        if held != want:
            first = next(i for i, (a, b) in enumerate(zip(held, want, strict=True)) if a != b)
            raise WrongResultError(
                f"{where}: byte {first} of {len(want)} is {held[first]} after the start, "
                f"expected {want[first]}"
            )
        if at.address % program.alignment(index):
            raise WrongResultError(
                f"{where} is at {at.address:#x}; its kernels need an alignment of "
                f"{program.alignment(index)}"
            )
        found += 1
    return found


def _where(program: Program) -> str:
    return "copied to RAM" if program.copied else "in flash"


def _held(linked: LinkedProgram, at: Symbol, size: int) -> bytes | None:
    """Return the bytes of a symbol when ``main`` begins, None if they are not loaded."""
    if not size:
        return b""
    for segment in linked.segments:
        begin = at.address - segment.address
        if not 0 <= begin <= len(segment.data) - size:
            continue
        if segment.address == segment.load_address:
            return segment.data[begin : begin + size]
        break
    return _copied(linked, at.address, size)


def _copied(linked: LinkedProgram, address: int, size: int) -> bytes | None:
    """Return the bytes that the start-up code copies to ``address``, or the zeros it writes."""
    zeroed = [linked.find(name) for name in ZEROED]
    if all(found is not None for found in zeroed):
        start, end = (found.address for found in zeroed if found is not None)
        if start <= address and address + size <= end:
            return bytes(size)
    symbols = [linked.find(name) for name in BOUNDS]
    if any(found is None for found in symbols):
        return None
    load, start, end = (found.address for found in symbols if found is not None)
    if not (start <= address and address + size <= end + -(end - start) % 4):
        return None
    begin = load + address - start
    for segment in linked.segments:
        at = begin - segment.load_address
        if 0 <= at <= len(segment.data) - size:
            return segment.data[at : at + size]
    return None
