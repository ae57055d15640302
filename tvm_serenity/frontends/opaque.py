"""Operators that the user implements: planned, given a workspace, called as C functions.

    load("npu.tflite", opaque={"ethos-u": 4096})

The computation of such an operator is unknown, so that results that depend on it are not compared.
The operator must be a function of its inputs, because it is reordered like any other.

Some compilers pass scratch to their operators as uninitialised inputs. That memory belongs to the
operator and is part of its workspace; scratch tensors keep their relative places in a plan of the
file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._tflite_schema import BUILTIN_OPERATORS
from tvm_serenity.frontends.model_file import ModelFile, refused
from tvm_serenity.graph import Graph, Role

ALIGNMENT = 16
"""Alignment in bytes of each part of a workspace."""


def advised(kind: str) -> str:
    """Return why an unknown operator is refused, with a remedy."""
    return f"it is a custom operator without a kernel (--opaque {kind}=SIZE plans around it)"


@runtime_checkable
class TakesOpaque(Protocol):
    """A model file whose operators the user may implement."""

    @property
    def opaque(self) -> Mapping[str, int]:
        """The kinds that the user implements, with the workspace of each."""

    def assuming(self, opaque: Mapping[str, int]) -> ModelFile:
        """Return the file with user-implemented operators, and the workspace bytes of each."""


def assumed(model: ModelFile, opaque: Mapping[str, int]) -> ModelFile:
    """Return ``model`` with user-implemented operators, and the workspace bytes of each.

    Raises :class:`InputError` for an unknown name or a format without such operators, and
    :class:`UnsupportedError` for an unnamed operator that reads uninitialised tensors.
    """
    if isinstance(model, TakesOpaque):
        return model.assuming(opaque)
    if opaque:
        raise InputError(
            f"--opaque {next(iter(opaque))}: only operators of .tflite files can be opaque; omit it"
        )
    return model


def with_workspaces(
    graph: Graph, lent: Sequence[Mapping[int, int]], opaque: Mapping[str, int]
) -> Graph:
    """Return ``graph`` with the workspaces of the operators in ``opaque``.

    ``lent``: for each operator, its uninitialised inputs.
    """
    kinds = list(dict.fromkeys(op.kind for op in graph.ops))
    for name in opaque:
        if name not in kinds:
            custom = [kind for kind in kinds if kind not in BUILTIN_OPERATORS]
            listed = (
                f"custom operators are: {', '.join(custom)}"
                if custom
                else f"operators are: {', '.join(kinds)}"
            )
            raise InputError(f"--opaque {name}: the model has no such operator; its {listed}")
    unknown = [
        op for op, found in zip(graph.ops, lent, strict=True) if found and op.kind not in opaque
    ]
    if unknown:
        raise refused([(op.kind, f" ({op.name})", advised(op.kind)) for op in unknown])
    for op in graph.ops:
        if op.kind in opaque:
            _check(graph, op.inputs, op.outputs, f"--opaque {op.kind}: operator {op.name!r}")
    return graph.replace(
        ops=tuple(
            replace(op, workspace_bytes=op.workspace_bytes + opaque.get(op.kind, 0))
            for op in graph.ops
        )
    )


def _check(graph: Graph, inputs: Sequence[int], outputs: Sequence[int], who: str) -> None:
    if not outputs or any(graph.tensors[t].size_bytes == 0 for t in outputs):
        raise UnsupportedError(
            f"{who} has no output with a known size, so no memory can be planned for it"
        )
    if all(graph.tensors[t].role is Role.CONSTANT for t in inputs):
        raise UnsupportedError(f"{who} has no computed input, only constants")
    if any(graph.tensors[t].role is Role.STATE for t in inputs):
        raise UnsupportedError(f"{who} has states, which is not supported")


def laid(sizes: Sequence[int], planned: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Return the offsets of scratch tensors in a workspace, and the bytes of the workspace.

    ``planned``: their offsets in the file's plan, -1 for none.
    """
    first = min((at for at in planned if at >= 0), default=0)
    end = max((at - first + n for at, n in zip(planned, sizes, strict=True) if at >= 0), default=0)
    end = aligned(end)
    found = []
    for at, size in zip(planned, sizes, strict=True):
        found.append(at - first if at >= 0 else end)
        end += 0 if at >= 0 else aligned(size)
    return tuple(found), end


def aligned(size: int) -> int:
    """Return ``size`` rounded up to a multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT
