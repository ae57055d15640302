"""Run a project's harness: compiled for the host, or under QEMU."""

import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tvm_serenity.architectures import Emulator
from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.firmware.board.toolchain import architecture_of, identity, make, require
from tvm_serenity.firmware.emit.programs import OUTPUT_TAG
from tvm_serenity.system import cache

ICOUNT_SHIFT = 6
"""One emulated instruction takes ``2**6`` ns of the emulated clock."""

TIMEOUT_S = 300
SAID, RESULTS = "said.txt", "results.bin"


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
    (found,) = _executions(_run([str(binary)], [inputs]), output_count, None)
    return found


def qemu(
    directory: Path,
    machine: str,
    inputs: Sequence[bytes],
    output_count: int,
    *,
    traced: bool = False,
    options: Sequence[str] = (),
) -> Execution:
    """Return one run of the firmware on QEMU's ``machine``; ``options``: further ones of QEMU, for
    files that it reads or writes.
    """
    (found,) = qemu_runs(directory, machine, [inputs], output_count, traced=traced, options=options)
    return found


def qemu_runs(
    directory: Path,
    machine: str,
    runs: Sequence[Sequence[bytes]],
    output_count: int,
    *,
    traced: bool = False,
    options: Sequence[str] = (),
) -> list[Execution]:
    """Return the runs of the firmware on each of several inputs, in one start of QEMU."""
    emulator = architecture_of(directory).toolchain.emulator
    require(emulator.program)
    make(directory, "harness")
    elf = (directory / "build" / ("trace.elf" if traced else "harness.elf")).resolve()
    if machine not in emulator.machines:
        raise InputError(
            f"QEMU machine {machine!r} is unknown; choose one of {', '.join(emulator.machines)}"
        )
    hertz = emulator.machines[machine]
    command = [*emulated(emulator, machine), "-icount", f"shift={ICOUNT_SHIFT}"]
    started = [*command, "-kernel", str(elf), *options]
    if options:  # these files are not part of what the cache knows
        left = _run(started, runs)
    else:
        given = [len(runs).to_bytes(4, "little"), *(data for inputs in runs for data in inputs)]
        entry = cache.key("qemu", identity(emulator.program), *command, elf.read_bytes(), *given)
        left = cache.remembered(entry, partial(_run, started, runs))
    found = _executions(left, output_count, hertz)
    if len(found) != len(runs):
        raise CheckError(
            f"{emulator.program}: the harness ran on {len(found)} of {len(runs)} inputs"
        )
    return found


def emulated(emulator: Emulator, machine: str) -> list[str]:
    """Return the command that emulates ``machine``, without a screen and without a program."""
    quiet = ("-display", "none", "-monitor", "none", "-serial", "null")
    return [emulator.program, "-M", machine, *quiet, *emulator.options]


def _run(command: Sequence[str], runs: Sequence[Sequence[bytes]]) -> bytes:
    """Return the results of a program on all inputs, its text and its records, as one archive."""
    with tempfile.TemporaryDirectory(prefix="serenity.") as made:
        here = Path(made)
        for i, data in enumerate(zip(*runs, strict=True)):
            (here / f"input{i}.bin").write_bytes(b"".join(data))
        limit = TIMEOUT_S * len(runs)
        try:
            done = subprocess.run(
                command,
                cwd=here,
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise CheckError(f"{command[0]}: the run did not end within {limit} s") from None
        said = f"{done.stdout}\n{done.stderr}"
        if done.returncode or not all(one.get("status") == 0 for one in _reports(said) or [{}]):
            raise CheckError(f"{Path(command[0]).name}: {_complaint(said, done.returncode)}")
        (here / SAID).write_text(said)
        return cache.pack({name: here / name for name in (SAID, RESULTS)})


def _executions(left: bytes, output_count: int, hertz: int | None) -> list[Execution]:
    """Return the runs of a program that are in an archive of :func:`_run`."""
    files = cache.contents(left)
    records = _records(files[RESULTS])
    found = []
    for report in _reports(files[SAID].decode()):
        trace: list[tuple[int, bytes]] = []
        outputs: list[bytes] = []
        while len(outputs) < output_count:
            tag, data = next(records, (0, None))
            if data is None:
                raise CheckError(f"{RESULTS} of the harness ends before the outputs of a run")
            if tag < OUTPUT_TAG:
                trace.append((tag, data))
            else:
                outputs.append(data)
        count = None
        if hertz is not None:
            count = round(report["ticks"] * 1e9 / hertz / 2**ICOUNT_SHIFT)
        stack, moved = report["stack"], report.get("transferred")
        found.append(Execution(tuple(outputs), tuple(trace), count, stack, moved))
    return found


def _reports(text: str) -> list[dict[str, int]]:
    """Return the numbers that each run reports; its ``status`` is the last."""
    found: list[dict[str, int]] = [{}]
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if value.isdigit():
            found[-1][name] = int(value)
            if name == "status":
                found.append({})
    return found[:-1]


def _complaint(text: str, status: int) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return f"status {status}: {' '.join(lines)[:300] or 'nothing printed'}"


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 8 <= len(data):
        tag, size = struct.unpack_from("<II", data, at)
        yield tag, data[at + 8 : at + 8 + size]
        at += 8 + size
