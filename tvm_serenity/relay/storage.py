"""Our storage ids in the graph executor's build result."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from tvm.relay.backend.executor_factory import GraphExecutorFactoryModule
from tvm.runtime import Module

from tvm_serenity.errors import InputError
from tvm_serenity.plan.pools import share
from tvm_serenity.relay.graph_json import GraphJson, read_graph_json

Built: TypeAlias = GraphExecutorFactoryModule | Module
"""The result of ``relay.build`` for the graph executor, or its library, loaded."""


def graph_of(built: Built) -> GraphJson:
    """Return the graph of a build result for the graph executor.

    Raises :class:`InputError` for anything else.
    """
    if isinstance(built, GraphExecutorFactoryModule):
        return read_graph_json(built.get_graph_json(), built.get_params().keys())
    if isinstance(built, Module) and built.type_key == "GraphExecutorFactory":
        return read_graph_json(built["get_graph_json"](), params_of(built).keys())
    kind = getattr(built, "type_key", type(built).__name__)
    raise InputError(f"expected the result of relay.build for the graph executor, got {kind}")


def params_of(built: Built) -> Mapping[str, Any]:
    """Return all weights of a build result, as a mapping from name to array."""
    if isinstance(built, Module):
        return dict(built["get_graph_params"]().items())
    return dict(built.get_params())


def kernel_of(built: Built, name: str) -> Any:
    """Return the function ``name`` of a build result."""
    library = built if isinstance(built, Module) else built.get_lib()
    return library.get_function(name, query_imports=True)


def pool_bytes(built: Built) -> int:
    """Return the bytes that the graph executor allocates for computed tensors."""
    return graph_of(built).pool_bytes


def share_storage(factory: GraphExecutorFactoryModule) -> Any:
    """Return the build result with our planner's storage ids if they need fewer bytes.

    Library, parameters and order are the same; only the ids in the JSON differ, so that any TVM
    runtime loads the export. If nothing is gained, ``factory`` itself is returned.
    """
    graph = graph_of(factory)
    pools = share(graph.ranges)
    if pools.total_bytes >= graph.pool_bytes:
        return factory
    return GraphExecutorFactoryModule(
        factory.ir_mod,
        factory.target,
        factory.executor,
        graph.with_pools(pools),
        factory.get_lib(),
        factory.libmod_name,
        factory.get_params(),
        factory.function_metadata,
    )
