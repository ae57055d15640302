"""The graph executor's JSON as a ``Graph``, and its storage ids.

A node with a function is an operator; ``__nop`` (a reshape) is a view of its input. Arguments
(inputs and parameters) have storage of their own, which the executor never shares. This module
imports no TVM.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph, Op, Role, Tensor
from tvm_serenity.memory import LiveRange, live_ranges
from tvm_serenity.plan.pools import Pools

NOP = "__nop"


@dataclass(frozen=True)
class GraphJson:
    """A parsed JSON of TVM's graph executor.

    ``content``: the JSON. ``nodes``: for each op of ``graph``, the index of its node in the JSON.
    Tensor e of ``graph`` is node entry e.
    """

    content: Mapping[str, Any]
    graph: Graph
    nodes: tuple[int, ...]

    @property
    def storage_ids(self) -> list[int]:
        """The storage id of each node entry."""
        return list(self.content["attrs"]["storage_id"][1])

    @property
    def calls(self) -> list[str]:
        """The called functions in execution order, without reshapes."""
        names = (self.content["nodes"][n]["attrs"]["func_name"] for n in self.nodes)
        return [name for name in names if name != NOP]

    @cached_property
    def pool_bytes(self) -> int:
        """Bytes that the executor allocates for computed tensors, without arguments."""
        mine, sizes = self.storage_ids, dict[int, int]()
        held = {mine[e] for e in self.arguments.values()}
        for entry, tensor in enumerate(self.graph.tensors):
            if mine[entry] not in held:
                sizes[mine[entry]] = max(sizes.get(mine[entry], 0), tensor.size_bytes)
        return sum(sizes.values())

    @property
    def heads(self) -> list[int]:
        """The entries that are results, in order."""
        rows = self.content["node_row_ptr"]
        return [rows[node] + index for node, index, *_ in self.content["heads"]]

    @property
    def types(self) -> list[tuple[list[int], str]]:
        """Shape and element type of each entry."""
        attrs = self.content["attrs"]
        return list(zip(attrs["shape"][1], attrs["dltype"][1], strict=True))

    @cached_property
    def arguments(self) -> dict[str, int]:
        """The entries of inputs and parameters by name."""
        rows = self.content["node_row_ptr"]
        return {self.content["nodes"][n]["name"]: rows[n] for n in self.content["arg_nodes"]}

    @cached_property
    def ranges(self) -> tuple[LiveRange, ...]:
        """The live ranges of computed tensors."""
        return live_ranges(self.graph)

    def with_pools(self, pools: Pools) -> str:
        """Return the JSON with range i of ``ranges`` in pool ``pools.pool_of[i]``."""
        arguments = sorted(self.arguments.values())
        fresh = {entry: number for number, entry in enumerate(arguments)}
        for found, pool in zip(self.ranges, pools.pool_of, strict=True):
            fresh.update(dict.fromkeys(found.tensors, len(arguments) + pool))
        storage = self.graph.storage
        ids = [fresh.get(e, fresh.get(storage[e])) for e in range(len(storage))]
        content = json.loads(json.dumps(self.content))
        content["attrs"]["storage_id"][1] = ids
        return json.dumps(content)


def read_graph_json(text: str, params: Collection[str] = ()) -> GraphJson:
    """Return the graph of an executor's JSON; ``params``: the names of its weights."""
    content = json.loads(text)
    try:
        rows, attrs = content["node_row_ptr"], content["attrs"]
        shapes, types = attrs["shape"][1], attrs["dltype"][1]
        heads = [rows[node] + index for node, index, *_ in content["heads"]]
    except (KeyError, TypeError) as error:
        raise InputError(
            f"not a graph of TVM's graph executor: the JSON has no key {error}; "
            "pass what relay.build returns as graph_json"
        ) from None
    tensors: list[Tensor] = []
    ops: list[Op] = []
    nodes: list[int] = []
    inputs: list[int] = []
    for number, node in enumerate(content["nodes"]):
        entries = range(rows[number], rows[number + 1])
        name = str(node["name"])
        role = Role.ACTIVATION
        if node["op"] == "null":
            role = Role.CONSTANT if name in params else Role.EXTERNAL
            inputs += [] if name in params else list(entries)
        for e in entries:
            label = name if len(entries) == 1 else f"{name}.{e - entries[0]}"
            tensors.append(Tensor(label, entry_bytes(shapes[e], types[e]), None, types[e], role))
        if node["op"] != "null":
            function = node["attrs"]["func_name"]
            read = tuple(rows[source] + index for source, index, *_ in node["inputs"])
            shown = read[0] if function == NOP else None
            ops.append(Op(f"{name}_{len(ops)}", function, read, tuple(entries), 0, shown))
            nodes.append(number)
    graph = Graph("main", tuple(tensors), tuple(ops), tuple(inputs), tuple(dict.fromkeys(heads)))
    return GraphJson(content, graph, tuple(nodes))


def entry_bytes(shape: Sequence[int], dtype: str) -> int:
    """Return the bytes of a compact tensor of TVM's type ``dtype``."""
    match = re.fullmatch(r"[a-z]+(\d*)(?:x(\d+))?", dtype)
    if match is None:
        raise InputError(f"unknown element type {dtype!r}")
    bits = 8 if dtype == "bool" else int(match[1] or 8) * int(match[2] or 1)
    count = 1
    for extent in shape:
        count *= extent
    return (count * bits + 7) // 8
