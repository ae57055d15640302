"""The least peak of an exported program's nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tvm_serenity.errors import InputError
from tvm_serenity.frontends.torch_nodes import BoundNodes, read_program
from tvm_serenity.graph import Graph, Role, text
from tvm_serenity.memory import peak_bytes
from tvm_serenity.schedule import Options, Schedule, schedule
from tvm_serenity.schedule.certificate import certificate


@dataclass(frozen=True)
class Peak:
    """An exported program's nodes with their best order; bytes of tensors alive at once."""

    nodes: BoundNodes
    schedule: Schedule

    @property
    def graph(self) -> Graph:
        """The nodes as a graph; ``graph.text.dump`` writes it for ``serenity check``."""
        return self.nodes.graph

    @cached_property
    def given_bytes(self) -> int:
        """The peak of the order that the program has."""
        return peak_bytes(self.graph)

    @property
    def peak_bytes(self) -> int:
        """The peak of the best order found."""
        return self.schedule.peak_bytes

    @property
    def lower_bound_bytes(self) -> int:
        """No order of the nodes needs less."""
        return self.schedule.lower_bound_bytes

    @property
    def order(self) -> Sequence[Any]:
        """The nodes that run (``torch.fx.Node``), in the best order."""
        return [node for op in self.schedule.order for node in self.nodes.nodes[op]]

    def certificate(self) -> dict[str, Any]:
        """Return order, bound and proof as ``serenity schedule --certificate`` writes them.

        ``tvm_serenity.schedule.certificate.check_certificate(graph, ...)`` verifies them.
        """
        return certificate(self.graph, self.schedule)

    def __str__(self) -> str:
        return (
            f"given order {self.given_bytes:,} bytes, best {self.peak_bytes:,} "
            f"({self.schedule.outcome}: no order needs less than {self.lower_bound_bytes:,})"
        )


def peak(
    exported: Any,
    *,
    inputs: bool = True,
    method: str = "auto",
    options: Options | None = None,
) -> Peak:
    """Return the least peak of the nodes of a ``torch.export.ExportedProgram``.

    Each node makes tensors of its own; views show what they view, and what writes to an argument
    waits for those that read it before. Parameters, buffers and constants do not count; inputs of
    the user do until they are last read, unless ``inputs`` is false: then they are the caller's.
    Kernels that a compiler fuses are not known here. ``method`` and ``options`` are the
    scheduler's. Raises :class:`UnsupportedError` on sizes that are not known, naming the node, and
    :class:`InputError` on what is no exported program.
    """
    if not hasattr(exported, "graph_signature"):
        what = type(exported).__name__
        raise InputError(f"peak takes what torch.export.export returns, not {what}")
    role = Role.ACTIVATION if inputs else Role.EXTERNAL
    found = read_program(exported, role)
    # Tensors numbered as in the text form: a certificate then holds for the file that it is in.
    nodes = replace(found, graph=text.parse(text.dump(found.graph)))
    return Peak(nodes, schedule(nodes.graph, method, options or Options()))
