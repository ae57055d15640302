"""Run a project's harness: compiled for the host, or under QEMU."""

import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tvm_serenity.architectures import Emulator
from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.firmware.board.toolchain import architecture_of, identity, make, require
from tvm_serenity.system import cache

ICOUNT_SHIFT = 6
"""One emulated instruction takes ``2**6`` ns of the emulated clock."""

TIMEOUT_S = 300
SAID, TRACE = "said.txt", "trace.bin"


@dataclass(frozen=True)
class Execution:
    """The results of a run of the harness: outputs, traced tensors in the order of writing, counts.

    ``instructions`` are emulated ones, not cycles; None on a host. ``transferred_bytes``: between
    its memories; None for a network without transfers.
    """

    outputs: tuple[bytes, ...]
    trace: tuple[tuple[int, bytes], ...]
    instructions: int | None
    stack_bytes: int
    transferred_bytes: int | None = None


def host(
    directory: Path, inputs: Sequence[bytes], output_count: int, *, traced: bool = False
) -> Execution:
    """Return one run of the sources compiled by the host's compiler."""
    make(directory, "host")
    name = "host_trace" if traced else "host"
    return run_here((directory / "build" / name).resolve(), inputs, output_count)


def run_here(binary: Path, inputs: Sequence[bytes], output_count: int) -> Execution:
    """Return one run of a harness that was compiled for this machine."""
    return _execution(_run([str(binary)], inputs, output_count), None)


def qemu(
    directory: Path,
    machine: str,
    inputs: Sequence[bytes],
    output_count: int,
    *,
    traced: bool = False,
    log: Sequence[str] = (),
) -> Execution:
    """Return one run of the firmware on QEMU's ``machine``; ``log``: QEMU options for a log."""
    (found,) = qemu_runs(directory, machine, [inputs], output_count, traced=traced, log=log)
    return found


def qemu_runs(
    directory: Path,
    machine: str,
    runs: Iterable[Sequence[bytes]],
    output_count: int,
    *,
    traced: bool = False,
    log: Sequence[str] = (),
) -> Iterator[Execution]:
    """Yield one run of the firmware in QEMU for each of several inputs."""
    emulator = architecture_of(directory).emulator
    require(emulator.program)
    make(directory, "harness")
    elf = (directory / "build" / ("trace.elf" if traced else "harness.elf")).resolve()
    if machine not in emulator.machines:
        raise InputError(
            f"QEMU machine {machine!r} is unknown; choose one of {', '.join(emulator.machines)}"
        )
    hertz = emulator.machines[machine]
    command = [*emulated(emulator, machine), "-icount", f"shift={ICOUNT_SHIFT}"]
    started = [*command, "-kernel", str(elf), *log]
    for inputs in runs:
        if log:  # the log is read by another thread, so the run must not come from the cache
            yield _execution(_run(started, inputs, output_count), hertz)
            continue
        entry = cache.key("qemu", identity(emulator.program), *command, elf.read_bytes(), *inputs)
        left = cache.remembered(entry, partial(_run, started, inputs, output_count))
        yield _execution(left, hertz)


def emulated(emulator: Emulator, machine: str) -> list[str]:
    """Return the command that emulates ``machine``, without a screen and without a program."""
    quiet = ("-display", "none", "-monitor", "none", "-serial", "null")
    return [emulator.program, "-M", machine, *quiet, *emulator.options]


def _run(command: Sequence[str], inputs: Sequence[bytes], output_count: int) -> bytes:
    """Return the results of a run, its text, outputs and trace, as one archive."""
    with tempfile.TemporaryDirectory(prefix="serenity.") as made:
        here = Path(made)
        for i, data in enumerate(inputs):
            (here / f"input{i}.bin").write_bytes(data)
        try:
            done = subprocess.run(
                command,
                cwd=here,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise CheckError(f"{command[0]}: the run did not end within {TIMEOUT_S} s") from None
        said = f"{done.stdout}\n{done.stderr}"
        report = _report(said)
        if done.returncode or report.get("status") != 0:
            raise CheckError(f"{Path(command[0]).name}: {_complaint(said, done.returncode)}")
        (here / SAID).write_text(said)
        names = [SAID, *(f"output{i}.bin" for i in range(output_count))]
        if (here / TRACE).exists():
            names.append(TRACE)
        return cache.pack({name: here / name for name in names})


def _execution(left: bytes, hertz: int | None) -> Execution:
    files = cache.contents(left)
    report = _report(files[SAID].decode())
    outputs = tuple(files[f"output{i}.bin"] for i in range(len(files) - 1 - (TRACE in files)))
    written = _records(files[TRACE]) if TRACE in files else ()
    count = None
    if hertz is not None:
        count = round(report["ticks"] * 1e9 / hertz / 2**ICOUNT_SHIFT)
    return Execution(outputs, written, count, report["stack"], report.get("transferred"))


def _report(text: str) -> dict[str, int]:
    found = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if value.isdigit():
            found[name] = int(value)
    return found


def _complaint(text: str, status: int) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return f"status {status}: {' '.join(lines)[:300] or 'nothing printed'}"


def _records(data: bytes) -> tuple[tuple[int, bytes], ...]:
    found, at = [], 0
    while at + 8 <= len(data):
        tensor, size = struct.unpack_from("<II", data, at)
        found.append((tensor, data[at + 8 : at + 8 + size]))
        at += 8 + size
    return tuple(found)
