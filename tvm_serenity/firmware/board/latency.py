"""Estimate the latency of a project on its board, by operator (``tvm_serenity.cycles``)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tvm_serenity.boards import Board, board
from tvm_serenity.cycles import CycleEstimate, MeasuredCall, Spent, cycles_of
from tvm_serenity.cycles.elf import LinkedProgram, program
from tvm_serenity.cycles.emulate import Machine
from tvm_serenity.firmware.board.toolchain import make
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.transfer import DONE, START
from tvm_serenity.system import cache, sources

IMAGE = "build/firmware.elf"
FLAGS = ("MACHINE := ", "CFLAGS += ")
TRANSFERS = "transfers"
"""The row of what copies tensors between two memories."""
PRICED = ("name", "rows", "operators", "steps")
"""What an estimate takes of ``metadata.json``."""


def latency(
    project: Project, target: Board | None = None, clock_mhz: int | None = None
) -> CycleEstimate:
    """Return the estimate of one run on ``target``, by default the project's board.

    The image is built if it is missing. The inputs are those of the reference, if the network reads
    its inputs in its arena. Of a moving window, one step is measured: the call that takes the last
    row of a step and computes all new rows. Raises the errors of ``cycles_of``.
    """
    target = board(project.metadata["board"]) if target is None else target
    image = project.folder / IMAGE
    if not image.is_file():
        make(project.folder, IMAGE)
    held = cache.opened()
    name = "" if held is None else _name(project, image.read_bytes(), target, clock_mhz)
    entry = None if held is None else held.get(name)
    if entry is not None:
        return _restored(entry)
    found = _estimated(project, image, target, clock_mhz)
    if held is not None:
        held.put(name, json.dumps(asdict(found)).encode())
    return found


def _name(project: Project, image: bytes, target: Board, clock_mhz: int | None) -> str:
    """Return the cache name of an estimate, from everything that it depends on."""
    made_by = sources.own_digest(), sources.versions("unicorn", "capstone")
    on = repr(target), json.dumps(target.timing, default=str), str(clock_mhz)
    inputs = [array.tobytes() for array in project.reference_inputs()]
    known = {name: project.metadata.get(name) for name in PRICED}
    about = json.dumps(known, sort_keys=True), flags(project)
    return cache.key("cycles", *made_by, *on, *about, image, *inputs)


def _restored(entry: bytes) -> CycleEstimate:
    """Return the estimate of a cache entry, with tuples instead of JSON's lists."""
    held = json.loads(entry)
    for name in ("cycles", "microjoules", "sources"):
        held[name] = None if held[name] is None else tuple(held[name])
    for name in ("operators", "functions"):
        spent = held[name]
        held[name] = tuple(Spent(**{**part, "cycles": tuple(part["cycles"])}) for part in spent)
    held["caches"] = {name: tuple(counts) for name, counts in held["caches"].items()}
    return CycleEstimate(**held)


def _estimated(
    project: Project, image: Path, target: Board, clock_mhz: int | None
) -> CycleEstimate:
    loaded = program(image)
    name, moving = project.metadata["name"], project.metadata.get("moving")
    function = f"{name}_run" if loaded.find(f"{name}_run") is not None else "main"
    if moving is not None:
        function = f"{name}_feed_row"
    run = MeasuredCall(
        function=function,
        operators=_entries(project, loaded),
        setup=lambda machine: (
            _fill(project, machine) if moving is None else _feed(project, machine)
        ),
    )
    found = cycles_of(image, target, run, clock_mhz=clock_mhz)
    return replace(found, operators=_named(project, found.operators), flags=flags(project))


def spent_on(project: Project, found: CycleEstimate) -> tuple[Spent | None, ...]:
    """Return the time of each operator of ``metadata.json``, in that order.

    None for an operator that the estimate does not distinguish from another.
    """
    names = [str(o["name"]) for o in project.metadata["operators"]]
    parts = {part.name: part for part in found.operators}
    return tuple(parts.get(n) if names.count(n) == 1 else None for n in names)


def flags(project: Project) -> str:
    """Return the compiler flags in the project's Makefile."""
    lines = (project.folder / "Makefile").read_text(encoding="utf-8").splitlines()
    return " ".join(
        line.removeprefix(start) for start in FLAGS for line in lines if line.startswith(start)
    )


def _entries(project: Project, loaded: LinkedProgram) -> tuple[str, ...]:
    """Return the functions that each compute one operator: those of layers, or the kernels."""
    if project.metadata.get("rows") is not None:
        return tuple(f"run_{i}" for i in range(len(project.metadata.get("operators", ()))))
    name = project.metadata["name"]
    kernels = {f"{name}_{step['kernel']}" for step in project.metadata["steps"]}
    return tuple(sorted({*kernels, *_port(project)}))


def _port(project: Project) -> list[str]:
    """The functions that copy between two memories, those that begin a copy first.

    Of a network in bands they are the functions of layers that copy.
    """
    name = project.metadata["name"]
    if project.metadata["transferred_bytes"] is None:
        return []
    if project.metadata.get("rows") is None:
        return [f"{name}_{START}", f"{name}_{DONE}"]
    operators = project.metadata["operators"]
    return [f"run_{i}" for i, known in enumerate(operators) if known["copies"]]


def _fill(project: Project, machine: Machine) -> None:
    """Write the reference's input where the network reads it, if it has one input accessor."""
    name = project.metadata["name"]
    prefix = f"{name}_input_"
    accessors = [s for s in machine.program.symbols if s.code and s.name.startswith(prefix)]
    arrays = project.reference_inputs()
    if len(accessors) != 1 or len(arrays) != 1:
        return
    machine.write(machine.call(accessors[0].address), arrays[0].tobytes())


def _feed(project: Project, machine: Machine) -> None:
    """Take all rows of a step but the last, which the measured call takes from the same memory.

    Every step runs the same calls, so that the first one costs what all others do.
    """
    found = machine.program.find(f"{project.metadata['name']}_feed_row")
    assert found is not None
    for _ in range(project.metadata["moving"]["step"] - 1):
        machine.call(found.address)


def _named(project: Project, parts: Sequence[Spent]) -> tuple[Spent, ...]:
    """The calls of each operator together, in order of the first ones, by what they make.

    Transfers are the last row.
    """
    port = _port(project)
    if port:
        copies = [part for part in parts if part.name in port]
        named = _of_operators(project, [part for part in parts if part.name not in port])
        cycles = sum(p.cycles[0] for p in copies), sum(p.cycles[1] for p in copies)
        calls = sum(part.name != f"{project.metadata['name']}_{DONE}" for part in copies)
        spent = Spent(TRANSFERS, calls, sum(p.instructions for p in copies), cycles)
        return (*named, spent)
    return _of_operators(project, parts)


def _of_operators(project: Project, parts: Sequence[Spent]) -> tuple[Spent, ...]:
    """The calls of operators, by what they make."""
    names: Sequence[str] = [o["name"] for o in project.metadata.get("operators", ())]
    rows = project.metadata.get("rows") is not None
    if not rows and len(names) == len(parts):
        return tuple(replace(p, name=n) for p, n in zip(parts, names, strict=True))
    found: dict[str, list[Any]] = {}
    for part in parts:
        label = part.name
        if rows and names:
            label = names[int(part.name.removeprefix("run_"))]
        into = found.setdefault(label, [0, 0, 0, 0])
        into[0] += 1
        into[1] += part.instructions
        into[2] += part.cycles[0]
        into[3] += part.cycles[1]
    return tuple(
        Spent(n, calls, count, (low, high)) for n, (calls, count, low, high) in found.items()
    )
