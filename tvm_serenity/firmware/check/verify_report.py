"""Report of ``verify``: host and QEMU against the reference, RAM, flash, instructions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.board.execute import Execution
from tvm_serenity.firmware.board.sizes import sizes
from tvm_serenity.firmware.board.toolchain import make
from tvm_serenity.firmware.check.drawn_inputs import in_qemu
from tvm_serenity.firmware.check.reference_runtime import STEPS, note_of
from tvm_serenity.firmware.check.unknown import UNKNOWN
from tvm_serenity.firmware.check.verify import (
    Deviation,
    difference,
    reference_difference,
    run_host,
    run_qemu,
)
from tvm_serenity.firmware.result import Project


def report(
    project: Project, *, on_host: bool = True, on_qemu: bool = True, inputs: int | None = 1
) -> dict[str, Any]:
    """Return everything that ``serenity verify --json`` prints.

    ``inputs``: the number of inputs whose outputs are compared in QEMU; None: as ``more.in_qemu``
    chooses. The QEMU part is None for a board without a machine in QEMU, the host part for kernels
    that are compiled for the board. ``instructions`` counts emulated instructions of one run, not
    cycles; the stack is its measured high-water mark.
    """
    found: dict[str, Any] = {"board": project.metadata["board"], "host": None, "qemu": None}
    if on_host and not project.metadata["objects"]:
        found["host"] = _part(project, run_host)
    ram: dict[str, int | None] = {
        "arena_bytes": sum(project.metadata["arena_bytes"].values()),
        "stack_bytes": None,
        "data_bytes": None,
        "bss_bytes": None,
    }
    flash: dict[str, int | None] = {
        "code_bytes": None,
        "const_bytes": project.metadata["constant_bytes"],
    }
    instructions = None
    if on_qemu and project.metadata["qemu"] is not None:
        found["qemu"] = _with_more(project, _part(project, run_qemu), inputs)
        instructions, ram["stack_bytes"] = (
            found["qemu"]["instructions"],
            found["qemu"]["stack_bytes"],
        )
    if image.linkable(project.metadata["architecture"]):
        make(project.folder, "all")
        linked = sizes(project.folder / "build" / "firmware.elf")
        ram.update(data_bytes=linked.data_bytes, bss_bytes=linked.bss_bytes)
        flash.update(code_bytes=linked.code_bytes, const_bytes=linked.const_bytes)
    unknown = project.reference.get(UNKNOWN, np.zeros(0))
    parts = [p for p in (found["host"], found["qemu"]) if p is not None]
    return {
        "identical": all(p["identical"] for p in parts),
        "accepted": all(p["accepted"] for p in parts),
        "max_abs_error": max((p["max_abs_error"] for p in parts), default=0.0),
        "litert_tensors": int(project.reference[STEPS].size) if STEPS in project.reference else 0,
        "litert_absent": note_of(project.reference) or None,
        "unknown_tensors": int(unknown.size),
        "instructions": instructions,
        "ram": ram,
        "flash": flash,
        **found,
    }


def _with_more(project: Project, part: dict[str, Any], wanted: int | None) -> dict[str, Any]:
    """Return the result of QEMU with further inputs, if the first input is right."""
    if not part["accepted"]:
        return part
    count, wrong = in_qemu(project, wanted)
    return {
        **part,
        "inputs": count,
        "input_difference": wrong or None,
        "identical": part["identical"] and not wrong,
        "accepted": not wrong,
    }


def _part(project: Project, runner: Callable[..., Execution]) -> dict[str, Any]:
    inputs = project.reference_inputs()
    plain, traced = runner(project, inputs, traced=False), runner(project, inputs, traced=True)
    apart: Deviation = difference(project, traced.trace)
    same = plain.outputs == traced.outputs
    deviation = reference_difference(project, plain)
    planned = project.metadata["transferred_bytes"]
    counted = [one.transferred_bytes for one in (plain, traced)]
    copied = counted == [planned] * 2
    same = same and copied
    return {
        "identical": apart.identical and same,
        "accepted": apart.accepted and same and (deviation is None or not deviation[1]),
        "transferred_bytes": plain.transferred_bytes,
        "transfer_difference": None if copied else f"{counted[0]} bytes copied, {planned} planned",
        "tensors": apart.tensors,
        "max_abs_error": apart.max_abs_error,
        "max_ulp": apart.max_ulp,
        "first_difference": apart.first,
        "litert_max_abs_error": None if deviation is None else deviation[0],
        "litert_difference": None if deviation is None else deviation[1] or None,
        "inputs": 1,
        "input_difference": None,
        "instructions": plain.instructions,
        "stack_bytes": plain.stack_bytes or None,
    }
