"""Which kernel makes each operator, what stood beside it, and why that was not taken.

The choice is a rule, nothing is costed: the kernel library before kernels from TIR, and of two
forms of the library the one with more workspace where the arena does not grow for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tvm_serenity.firmware.pack import centred
from tvm_serenity.firmware.tir import tuned as library
from tvm_serenity.firmware.tir.kernels import Kernels
from tvm_serenity.firmware.tir.rows import RowKernels
from tvm_serenity.kernels.convolution import Convolution, Dense
from tvm_serenity.kernels.opaque import opaque
from tvm_serenity.kernels.rows import RowKernel
from tvm_serenity.kernels.spec_read import spec_of

LIBRARY, TIR, LLVM, USER = "library", "TIR", "LLVM", "user"
BEHIND = "the library goes before it"


@dataclass(frozen=True, kw_only=True)
class KernelChoice:
    """The kernel of an operator and who made it; ``others``: what was not taken, with reasons."""

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
        }


def of_whole(least: Kernels, taken: Kernels) -> tuple[KernelChoice, ...]:
    """Return the choices of a network that runs whole, in the given order.

    ``least``: the kernels with the least workspace, from which ``taken`` were made.
    """
    return tuple(
        _whole(least, taken, i)
        for i, op in enumerate(taken.region.graph.ops)
        if taken.calls[i] is not None and op.view_of is None
    )


def _whole(least: Kernels, taken: Kernels, index: int) -> KernelChoice:
    op = taken.region.graph.ops[index]
    made = taken.tuned.get(index)
    if made is not None:
        little = least.tuned[index]
        others = [f"TIR: {BEHIND}"]
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
    reason = "LLVM compiles all kernels"
    if in_c:
        reason = not_covered(function, taken.constants_of(index)) if taken.settings.tuned else "off"
    workspace = taken.written[op.kind].workspace_bytes
    return _choice(op.name, op.kind, TIR if in_c else LLVM, workspace, [f"library: {reason}"])


def of_rows(kernels: RowKernels, tuned: bool) -> tuple[KernelChoice, ...]:
    """Return the choices of a network that runs by rows, in the order of its layers."""
    found = []
    for layer, code, kernel in zip(
        kernels.network.layers, kernels.code, kernels.rows.kernels, strict=True
    ):
        if code is None or kernel is None:
            continue
        if code.library:
            by, others = LIBRARY, [f"TIR: {BEHIND}"]
        else:
            arguments: list[Any] = list(kernel.constants)
            for position in kernel.data:
                arguments.insert(position, None)
            reason = "off" if not tuned else "no kernel of one call"
            if tuned and kernel.source is not None:
                reason = not_covered(kernel.source, arguments, kernel.rows)
            by, others = TIR, [f"library: {reason}"]
        name = code.kernels[0].name
        found.append(_choice(layer.name, name, by, code.workspace_bytes, others))
    return tuple(found)


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


def not_covered(
    function: tirx.PrimFunc, arguments: Sequence[Any], rows: RowKernel | None = None
) -> str:
    """Return which condition of the kernel library a kernel does not meet."""
    spec = spec_of(function, arguments)
    if isinstance(spec, Dense):
        if rows is not None:
            return "a dense layer has no rows"
        spec = library._as_convolution(spec)
    if not isinstance(spec, Convolution):
        return "has convolutions and dense layers only"
    if not {spec.dtype, spec.requantise.dtype} <= {"int8", "uint8"}:
        return f"has 8-bit integers only, not {spec.dtype} to {spec.requantise.dtype}"
    if not library._is_covered(spec, rows):
        return "reads whole rows with channels last, of one image"
    weights = next(a for a in arguments if a is not None)
    if centred(weights.reshape(spec.weight_shape), spec.weight_zero) is None:
        return "weights less their zero point do not fit into 8 bits"
    if spec.requantise.rounding not in ("tflite", "single"):
        return f"does not round as {spec.requantise.rounding}"
    if len(spec.pieces) * spec.weight_shape[0] > library.MOST_ROWS:
        return f"has windows of at most {library.MOST_ROWS} rows"
    if spec.groups != 1 and not spec.depthwise:
        return "has no grouped convolutions"
    if len(spec.pieces) > library.MOST_PIECES:
        return f"reads at most {library.MOST_PIECES} pieces"
    if spec.depthwise:
        return f"has depthwise ones of at most {library.MOST_TAPS} taps, one output an input"
    return "too little work in the whole network, or windows that rows cannot gather"
