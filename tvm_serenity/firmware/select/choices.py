"""The kernel of each operator, the other candidates, and why they were not chosen.

A kernel of the library is preferred to a kernel from TIR, which has no price. Of the library's
candidates the cheapest one is chosen whose workspace does not enlarge the arena, unless the kernel
is not worth its code size.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tvm_serenity.firmware.kernels.prices import unit_of
from tvm_serenity.firmware.kernels.record import LibraryCall
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.select.lowered import LoweredLayer
from tvm_serenity.firmware.select.rows import RowKernels
from tvm_serenity.firmware.select.unsplit import UnsplitKernels
from tvm_serenity.kernels.opaque import opaque

LIBRARY, TIR, LLVM, USER, PORT = "library", "TIR", "LLVM", "user", "port"
BEHIND = "the library goes before it"
GROWS, NO_PLACE = "the arena would grow", "no place is free in all of its calls"
FULL = "the memory has no room"
DEARER, NOT_WORTH = "costs more", "is not worth its code"
UNPRICED = "comes after it"


@dataclass(frozen=True)
class KernelCandidate:
    """A kernel of the library for an operator; ``reason``: why it was not chosen, else "".

    ``cost``: in one run of the network, in ``unit``; None without prices.
    """

    form: str
    cost: int | None
    unit: str
    workspace_bytes: int
    reason: str

    @property
    def text(self) -> str:
        """Return the candidate as text."""
        cost = "" if self.cost is None else f", {self.cost:,} {self.unit}"
        size = f", {self.workspace_bytes:,} bytes of workspace" * (self.workspace_bytes > 0)
        return f"{self.form}{cost}{size}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, kw_only=True)
class KernelChoice:
    """The kernel of an operator and its source; ``others``: other kinds of kernels, with reasons.

    ``candidates``: the library's kernels, the cheapest first. Instructions and cycles are known
    after linking; the JSON has fields for them.
    """

    operator: str
    kernel: str
    made_by: str
    workspace_bytes: int
    candidates: tuple[KernelCandidate, ...] = ()
    others: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """Return the choice as JSON."""
        return {
            "operator": self.operator,
            "kernel": self.kernel,
            "made_by": self.made_by,
            "workspace_bytes": self.workspace_bytes,
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "others": list(self.others),
            "instructions": None,
            "cycles": None,
        }


def as_called(choices: Sequence[KernelChoice], program: Program) -> tuple[KernelChoice, ...]:
    """Return the choices with the kernel names of a program, one choice per step.

    A kernel whose result overlaps its input is a separate function.
    """
    pairs = zip(choices, program.steps, strict=True)
    return tuple(replace(one, kernel=step.kernels[0]) for one, step in pairs)


def of_unsplit(taken: UnsplitKernels, order: Sequence[int]) -> tuple[KernelChoice, ...]:
    """Return the choices of an unsplit network, in the ``order`` of its operators."""
    return tuple(_of_operator(taken, i) for i in order if i in taken.code)


def _of_operator(taken: UnsplitKernels, index: int) -> KernelChoice:
    op, code, layer = taken.region.graph.ops[index], taken.code[index], taken.layers[index]
    assert layer is not None
    name = code.kernels[0].name
    if code.call is not None:
        no_room = FULL if taken.settings.grows else GROWS
        room = taken.offered.get(index, code.workspace_bytes)
        unit = unit_of(taken.core)
        return _of_library(op.name, name, code, taken.least[index], unit, no_room, room)
    if opaque(layer.whole) is not None:
        return _choice(op.name, op.kind, USER, 0, [])
    in_c = taken.settings.codegen == "c"
    reason = (code.not_covered or "off") if in_c else "LLVM compiles all kernels"
    if op.view_of is not None:
        reason = "has no kernel that overwrites"
    by = TIR if in_c else LLVM
    return _choice(op.name, op.kind, by, code.workspace_bytes, [f"library: {reason}"])


def of_rows(least: RowKernels, taken: RowKernels, tuned: bool) -> tuple[KernelChoice, ...]:
    """Return the choices of a network that runs by rows, in the order of its layers.

    ``least``: the kernels with the least workspace; ``taken``: the kernels after upgrades.
    """
    found = []
    layers = zip(least.network.layers, least.code, taken.code, least.rows.kernels, strict=True)
    for layer, little, code, kernel in layers:
        if code is None or kernel is None:
            continue
        name = code.kernels[0].name
        if layer.copies:
            found.append(_choice(layer.name, name, PORT, 0, []))
            continue
        if code.call is not None and little is not None:
            rows = least.network.rows(layer.outputs[0]) if kernel.rows is not None else 1
            unit = unit_of(least.core)
            room = code.workspace_bytes
            found.append(_of_library(layer.name, name, code, little, unit, NO_PLACE, room, rows))
            continue
        if code.joined:
            how = f"in tiles of columns, with {', '.join(code.joined[:-1])}"
            found.append(_choice(layer.name, name, LIBRARY, code.workspace_bytes, [how]))
            continue
        reason = (code.not_covered or "no kernel of one call") if tuned else "off"
        found.append(_choice(layer.name, name, TIR, code.workspace_bytes, [f"library: {reason}"]))
    return tuple(found)


def _of_library(
    operator: str,
    kernel: str,
    taken: LoweredLayer,
    least: LoweredLayer,
    unit: str,
    no_room: str,
    room: int,
    calls: int = 1,
) -> KernelChoice:
    assert taken.call is not None
    options = [one.call for one in least.candidates if one.call is not None]
    candidates = _beside(options, taken.call, unit, no_room, room, calls)
    others = [f"library, {one.text}" for one in candidates if one.reason]
    if taken.not_covered:
        others.insert(0, f"library for this core: {taken.not_covered}")
    others.append(f"TIR: {BEHIND}")
    return _choice(operator, kernel, LIBRARY, taken.workspace_bytes, others, candidates)


def _beside(
    found: Sequence[LibraryCall],
    taken: LibraryCall,
    unit: str,
    no_room: str,
    room: int,
    calls: int = 1,
) -> tuple[KernelCandidate, ...]:
    """Return the candidates of an operator, each with the reason why it was not chosen.

    ``room``: the most bytes of workspace that were seen to fit.
    """
    at = [made.form for made in found].index(taken.form)
    candidates = []
    for i, made in enumerate(found):
        if i < at:
            reason = no_room if made.workspace_bytes > room else NOT_WORTH
        else:
            reason = "" if i == at else DEARER if made.cost is not None else UNPRICED
        cost = None if made.cost is None else made.cost * calls
        candidates.append(KernelCandidate(made.form.text, cost, unit, made.workspace_bytes, reason))
    return tuple(candidates)


def _choice(
    operator: str,
    kernel: str,
    by: str,
    workspace: int,
    others: Sequence[str],
    candidates: tuple[KernelCandidate, ...] = (),
) -> KernelChoice:
    return KernelChoice(
        operator=operator,
        kernel=kernel,
        made_by=by,
        workspace_bytes=workspace,
        candidates=candidates,
        others=tuple(others),
    )
