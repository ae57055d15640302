"""Which kernel makes each operator, what stood beside it, and why that was not taken.

The choice is a rule, nothing is costed: the kernel library before kernels from TIR, and of two
forms of the library the one with more workspace where the arena does not grow for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm_serenity.firmware.tir.kernels import Kernels
from tvm_serenity.firmware.tir.rows import LayerCode, RowKernels
from tvm_serenity.kernels.opaque import opaque

LIBRARY, TIR, LLVM, USER = "library", "TIR", "LLVM", "user"
BEHIND = "the library goes before it"


@dataclass(frozen=True, kw_only=True)
class KernelChoice:
    """The kernel of an operator and who made it; ``others``: what was not taken, with reasons.

    What it takes is known once it is linked: JSON has places for that.
    """

    operator: str
    kernel: str
    made_by: str
    workspace_bytes: int
    others: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """Return the choice as JSON has it."""
        return {
            "operator": self.operator,
            "kernel": self.kernel,
            "made_by": self.made_by,
            "workspace_bytes": self.workspace_bytes,
            "others": list(self.others),
            "instructions": None,
            "cycles": None,
        }


def of_whole(least: Kernels, taken: Kernels, order: Sequence[int]) -> tuple[KernelChoice, ...]:
    """Return the choices of a network that runs whole, in the ``order`` in which it does.

    ``least``: the kernels with the least workspace, from which ``taken`` were made.
    """
    return tuple(_whole(least, taken, i) for i in order if taken.calls[i] is not None)


def _whole(least: Kernels, taken: Kernels, index: int) -> KernelChoice:
    op = taken.region.graph.ops[index]
    made = taken.tuned.get(index)
    if made is not None:
        little = least.tuned[index]
        others = [f"TIR: {BEHIND}"]
        if made.refused:
            others.insert(0, f"library for this core: {made.refused}")
        if little.roomy is not None and made is little:
            more = little.roomy.workspace_bytes
            others.insert(0, f"library with {more:,} bytes of workspace: the arena would grow")
        elif made is not little:
            few = little.workspace_bytes
            others.insert(0, f"library with {few:,} bytes of workspace: this arena holds more")
        by, name, workspace = LIBRARY, made.kernel.name, made.workspace_bytes
        return _choice(op.name, name, by, workspace, others)
    function = taken.functions[op.kind]
    if opaque(function) is not None:
        return _choice(op.name, op.kind, USER, 0, [])
    in_c = taken.settings.codegen == "c"
    reason = taken.not_covered.get(index, "off") if in_c else "LLVM compiles all kernels"
    if op.view_of is not None:
        reason = "has no kernel that overwrites"
    workspace = taken.written[op.kind].workspace_bytes
    return _choice(op.name, op.kind, TIR if in_c else LLVM, workspace, [f"library: {reason}"])


def of_rows(least: RowKernels, taken: RowKernels, tuned: bool) -> tuple[KernelChoice, ...]:
    """Return the choices of a network that runs by rows, in the order of its layers.

    ``least``: the kernels with the least workspace, from which ``taken`` were made.
    """
    found = []
    layers = zip(least.network.layers, least.code, taken.code, least.rows.kernels, strict=True)
    for layer, little, code, kernel in layers:
        if code is None or kernel is None:
            continue
        if code.library:
            by, others = LIBRARY, [*_beside(little, code), f"TIR: {BEHIND}"]
            if code.not_covered:
                others.insert(0, f"library for this core: {code.not_covered}")
        else:
            reason = (code.not_covered or "no kernel of one call") if tuned else "off"
            by, others = TIR, [f"library: {reason}"]
        name = code.kernels[0].name
        found.append(_choice(layer.name, name, by, code.workspace_bytes, others))
    return tuple(found)


def _beside(little: LayerCode | None, taken: LayerCode) -> list[str]:
    """The library's other form of a layer, and why it was not taken."""
    if little is None or little.roomy is None:
        return []
    if taken is little:
        more = little.roomy.workspace_bytes
        return [f"library with {more:,} bytes of workspace: no place is free in all of its calls"]
    return [f"library with {little.workspace_bytes:,} bytes of workspace: this arena holds more"]


def _choice(
    operator: str, kernel: str, by: str, workspace: int, others: Sequence[str]
) -> KernelChoice:
    return KernelChoice(
        operator=operator,
        kernel=kernel,
        made_by=by,
        workspace_bytes=workspace,
        others=tuple(others),
    )
