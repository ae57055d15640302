"""Which kernel makes each operator, what stood beside it, and why that was not taken.

The choice is a rule, nothing is costed: the kernel library before kernels from TIR, and of its
forms the first in the order of ``candidates`` for whose workspace the arena does not grow.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm_serenity.firmware.tir.candidates import Tuned
from tvm_serenity.firmware.tir.kernels import Kernels
from tvm_serenity.firmware.tir.rows import LayerCode, RowKernels
from tvm_serenity.kernels.opaque import opaque

LIBRARY, TIR, LLVM, USER = "library", "TIR", "LLVM", "user"
BEHIND = "the library goes before it"
GROWS, NO_PLACE = "the arena would grow", "no place is free in all of its calls"


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


def of_whole(taken: Kernels, order: Sequence[int]) -> tuple[KernelChoice, ...]:
    """Return the choices of a network that runs whole, in the ``order`` in which it does."""
    return tuple(_whole(taken, i) for i in order if taken.calls[i] is not None)


def _whole(taken: Kernels, index: int) -> KernelChoice:
    op = taken.region.graph.ops[index]
    made = taken.tuned.get(index)
    if made is not None:
        others = _beside(taken.candidates[index], made)
        if made.refused:
            others.insert(0, f"library for this core: {made.refused}")
        by, name, workspace = LIBRARY, made.kernel.name, made.workspace_bytes
        return _choice(op.name, name, by, workspace, [*others, f"TIR: {BEHIND}"])
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
            by, others = LIBRARY, [*_beside_rows(little, code), f"TIR: {BEHIND}"]
            if code.not_covered:
                others.insert(0, f"library for this core: {code.not_covered}")
        else:
            reason = (code.not_covered or "no kernel of one call") if tuned else "off"
            by, others = TIR, [f"library: {reason}"]
        name = code.kernels[0].name
        found.append(_choice(layer.name, name, by, code.workspace_bytes, others))
    return tuple(found)


def _beside(found: Sequence[Tuned], taken: Tuned) -> list[str]:
    """The library's other forms, and why none of them was taken."""
    at = [made.form for made in found].index(taken.form)
    before = [(made.form, made.workspace_bytes) for made in found[:at]]
    return [_no_room(*one, GROWS) for one in before] + [_slower(m.form) for m in found[at + 1 :]]


def _beside_rows(little: LayerCode | None, taken: LayerCode) -> list[str]:
    """The same of a layer in rows."""
    if little is None:
        return []
    forms = [one.form for one in (*little.faster, little)]
    at = forms.index(taken.form)
    before = [(one.form, one.workspace_bytes) for one in little.faster[:at]]
    after = [*forms[at + 1 :], *little.slower]
    return [_no_room(*one, NO_PLACE) for one in before] + [_slower(form) for form in after]


def _no_room(form: str, workspace_bytes: int, why: str) -> str:
    return f"library, {form}, with {workspace_bytes:,} bytes of workspace: {why}"


def _slower(form: str) -> str:
    return f"library, {form}: comes after it"


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
