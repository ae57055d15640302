"""An ExecuTorch pass that puts the nodes of an edge program in the order of least peak."""

from collections.abc import Callable
from typing import Any

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Role
from tvm_serenity.schedule import Options, Schedule, schedule
from tvm_serenity.torch import read_nodes


def order_pass(
    edge: Any,
    name: str = "forward",
    *,
    method: str = "auto",
    options: Options | None = None,
    found: list[Schedule] | None = None,
) -> Callable[[Any], Any]:
    """Return the pass for method ``name`` of an ``EdgeProgramManager``.

    Use it in ``ExecutorchBackendConfig(passes=[...])``. The pass changes the order of the nodes
    only. User inputs count until their last reader, outputs until the end; parameters and buffers
    do not count. ``method`` and ``options`` are those of ``schedule``. The pass appends each
    schedule to the list ``found``. Raises :class:`UnsupportedError` if a size is unknown, and
    :class:`InputError` if ``edge`` is not the result of ``to_edge``.
    """
    if not hasattr(edge, "exported_program"):
        raise InputError(f"order_pass needs the result of to_edge, not a {type(edge).__name__}")
    signature = edge.exported_program(name).graph_signature
    given = dict.fromkeys(map(str, signature.user_inputs), Role.ACTIVATION)

    def run(graph_module: Any) -> Any:
        from torch.fx.passes.infra.pass_base import PassResult

        region = read_nodes(graph_module.graph, given)
        best = schedule(region.graph, method, options or Options())
        if found is not None:
            found.append(best)
        end = graph_module.graph.output_node()
        for op in best.order:
            for node in region.nodes[op]:
                end.prepend(node)
        graph_module.graph.lint()
        graph_module.recompile()
        return PassResult(graph_module, True)

    return run
