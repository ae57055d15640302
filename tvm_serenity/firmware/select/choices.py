"""The kernel chosen for each operator, its alternatives, and why each was not chosen.

Library kernels have priority over kernels from TIR, which have no cost estimate. Among the
library's candidates the cheapest (in the core's cost units) is chosen whose workspace does not
enlarge the arena, unless its code size is not worth the time it saves.
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

LIBRARY, TIR, LLVM, USER = "library", "TIR", "LLVM", "user"
BEHIND = "the library goes before it"
GROWS, NO_PLACE = "the arena would grow", "no place is free in all of its calls"
FULL = "the memory has no room"
DEARER, NOT_WORTH = "costs more", "is not worth its code"
UNPRICED = "comes after it"


@dataclass(frozen=True)
class KernelCandidate:
    """A library kernel that can compute an operator; ``reason`` is "" for the chosen one.

    ``cost`` is the estimate for one run of the network in ``unit``, None if it has no estimate.
    """

    form: str
    cost: int | None
    unit: str
    workspace_bytes: int
    reason: str

    @property
    def text(self) -> str:
        """The candidate in words: form, cost, workspace and reason."""
        cost = "" if self.cost is None else f", {self.cost:,} {self.unit}"
        size = f", {self.workspace_bytes:,} bytes of workspace" * (self.workspace_bytes > 0)
        return f"{self.form}{cost}{size}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, kw_only=True)
class KernelChoice:
    """The kernel chosen for an operator, and the source of the kernel (``made_by``).

    ``candidates`` are the library's kernels, the cheapest first; ``others`` are the rejected
    kernels with reasons. Instructions and cycles are known only after linking; JSON has keys for
    them.
    """

    operator: str
    kernel: str
    made_by: str
    workspace_bytes: int
    candidates: tuple[KernelCandidate, ...] = ()
    others: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """Return the choice as a JSON object."""
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
    """Return the choices, one per step, with the kernel names that ``program`` uses.

    A kernel whose result overlaps its input is a separate function with its own name.
    """
    pairs = zip(choices, program.steps, strict=True)
    return tuple(replace(one, kernel=step.kernels[0]) for one, step in pairs)


def of_unsplit(taken: UnsplitKernels, order: Sequence[int]) -> tuple[KernelChoice, ...]:
    """Return the choices of an unsplit network in execution ``order``."""
    return tuple(_of_operator(taken, i) for i in order if i in taken.code)


def _of_operator(taken: UnsplitKernels, index: int) -> KernelChoice:
    op, code, layer = taken.region.graph.ops[index], taken.code[index], taken.layers[index]
    assert layer is not None
    name = code.kernels[0].name
    if code.call is not None:
        no_room = FULL if taken.settings.grows else GROWS
        return _of_library(op.name, name, code, taken.least[index], unit_of(taken.core), no_room)
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

    ``least`` are the kernels with the least workspace, from which ``taken`` was derived.
    """
    found = []
    layers = zip(least.network.layers, least.code, taken.code, least.rows.kernels, strict=True)
    for layer, little, code, kernel in layers:
        if code is None or kernel is None:
            continue
        name = code.kernels[0].name
        if code.call is not None and little is not None:
            rows = least.network.rows(layer.outputs[0]) if kernel.rows is not None else 1
            unit = unit_of(least.core)
            found.append(_of_library(layer.name, name, code, little, unit, NO_PLACE, rows))
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
    calls: int = 1,
) -> KernelChoice:
    assert taken.call is not None
    options = [one.call for one in least.candidates if one.call is not None]
    candidates = _beside(options, taken.call, unit, no_room, calls)
    others = [f"library, {one.text}" for one in candidates if one.reason]
    if taken.not_covered:
        others.insert(0, f"library for this core: {taken.not_covered}")
    others.append(f"TIR: {BEHIND}")
    return _choice(operator, kernel, LIBRARY, taken.workspace_bytes, others, candidates)


def _beside(
    found: Sequence[LibraryCall], taken: LibraryCall, unit: str, no_room: str, calls: int = 1
) -> tuple[KernelCandidate, ...]:
    """Return the candidates of an operator, each with the reason why it was not chosen."""
    at = [made.form for made in found].index(taken.form)
    candidates = []
    for i, made in enumerate(found):
        if i < at:
            reason = no_room if made.workspace_bytes > taken.workspace_bytes else NOT_WORTH
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
