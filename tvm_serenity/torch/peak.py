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
    """An exported program's nodes with their best order, and its live bytes."""

    nodes: BoundNodes
    schedule: Schedule

    @property
    def graph(self) -> Graph:
        """The nodes as a graph; ``graph.text.dump`` writes it for ``serenity check``."""
        return self.nodes.graph

    @cached_property
    def given_bytes(self) -> int:
        """The peak of the program's own order."""
        return peak_bytes(self.graph)

    @property
    def peak_bytes(self) -> int:
        """The peak of the best order found."""
        return self.schedule.peak_bytes

    @property
    def lower_bound_bytes(self) -> int:
        """A lower bound on the peak of every order of the nodes."""
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

    Each node produces tensors of its own. Views share their source's storage, and a node that
    writes to an argument waits for its earlier readers. Parameters, buffers and constants do not
    count. User inputs count until their last reader, unless ``inputs`` is false: then they belong
    to the caller. Kernels that a compiler fuses are unknown here. ``method`` and ``options`` are
    the scheduler's. Raises :class:`UnsupportedError` if a size is unknown (it names the node), and
    :class:`InputError` if ``exported`` is not an exported program.
    """
    if not hasattr(exported, "graph_signature"):
        kind = type(exported).__name__
        raise InputError(f"peak needs the result of torch.export.export, not a {kind}")
    role = Role.ACTIVATION if inputs else Role.EXTERNAL
    nodes_read = read_program(exported, role)
    # Tensors are numbered as in the text form, so that a certificate holds for the written file.
    nodes = replace(nodes_read, graph=text.parse(text.dump(nodes_read.graph)))
    return Peak(nodes, schedule(nodes.graph, method, options or Options()))
