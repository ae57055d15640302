"""Computes the least peak of an exported program's nodes."""

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
    """The nodes of an exported program, with their best order and its peak."""

    nodes: BoundNodes
    schedule: Schedule

    @property
    def graph(self) -> Graph:
        """The nodes as a graph; ``graph.text.dump`` writes it for ``serenity check``."""
        return self.nodes.graph

    @cached_property
    def given_bytes(self) -> int:
        """The peak of the program's own order, in bytes."""
        return peak_bytes(self.graph)

    @property
    def peak_bytes(self) -> int:
        """The peak of the best order, in bytes."""
        return self.schedule.peak_bytes

    @property
    def lower_bound_bytes(self) -> int:
        """A lower bound on the peak of every order of the nodes, in bytes."""
        return self.schedule.lower_bound_bytes

    @property
    def order(self) -> Sequence[Any]:
        """The executed nodes (``torch.fx.Node``), in the best order."""
        return [node for op in self.schedule.order for node in self.nodes.nodes[op]]

    def certificate(self) -> dict[str, Any]:
        """Return order, bound and proof as ``serenity schedule --certificate`` writes them.

        ``tvm_serenity.schedule.certificate.check_certificate(graph, ...)`` verifies them.
        """
        return certificate(self.graph, self.schedule)

    def __str__(self) -> str:
        return (
            f"given order {self.given_bytes:,} bytes, best {self.peak_bytes:,} bytes "
            f"({self.schedule.outcome}: no order needs less than {self.lower_bound_bytes:,} bytes)"
        )


def peak(
    exported: Any,
    *,
    inputs: bool = True,
    method: str = "auto",
    options: Options | None = None,
) -> Peak:
    """Return the least peak of the nodes of a ``torch.export.ExportedProgram``.

    Each node counts as one operator; fusion by a compiler is not considered. Views share their
    source's storage. A node that writes to an argument runs after the argument's earlier readers.
    Parameters, buffers and constants do not count. User inputs count until their last reader; if
    ``inputs`` is False, they belong to the caller and do not count. ``method`` and ``options`` are
    those of ``schedule``. Raises :class:`UnsupportedError`, which names the node, if a size is
    unknown, and :class:`InputError` if ``exported`` is not an exported program.
    """
    if not hasattr(exported, "graph_signature"):
        kind = type(exported).__name__
        raise InputError(f"peak needs the result of torch.export.export, not a {kind}")
    role = Role.ACTIVATION if inputs else Role.EXTERNAL
    nodes_read = read_program(exported, role)
    # Number tensors as in the text form, so that a certificate is valid for the written file.
    nodes = replace(nodes_read, graph=text.parse(text.dump(nodes_read.graph)))
    return Peak(nodes, schedule(nodes.graph, method, options or Options()))
