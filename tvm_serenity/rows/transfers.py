"""The transfer plan of a network by rows in two memories: what each call copies and accesses.

The plan is of a graph with an operator for each call, in order, copies included: its tensors
are bands in fast memory, and in slow memory single rows, which calls read and write apart.
``offchip.transfers.check_transfers`` replays it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import gcd

from tvm_serenity.graph import Graph, Op, Tensor
from tvm_serenity.offchip.transfers import Compute, Discard, SlowAccess, TransferPlan
from tvm_serenity.rows.memories import Divided, viewed
from tvm_serenity.rows.split import Banded
from tvm_serenity.rows.stream import Streaming

BY_ROWS = "rows"
"""The policy of these plans: features have one memory each, and copies are layers."""


def plan_of_rows(
    made: Divided,
    streaming: Streaming,
    homes: Mapping[int, int],
    capacity_bytes: int,
    sizes: tuple[int, int],
    forced_bytes: int = 0,
) -> TransferPlan:
    """Return the plan of ``made``, ordered and placed by ``streaming``, in ``capacity_bytes``.

    ``homes``: the offset in slow memory of each feature there that is no view; ``sizes``: of both
    arenas, the fast one with the workspace of faster kernels; ``forced_bytes``: what every program
    moves beyond inputs and outputs. Plans of rows have no alignment.
    """
    found = _Plan(made, streaming, homes).plan(capacity_bytes, *sizes)
    return replace(found, lower_bound_bytes=found.compulsory_bytes + forced_bytes)


@dataclass
class _Plan:
    made: Divided
    streaming: Streaming
    homes: Mapping[int, int]
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    steps: list[Compute | Discard] = field(default_factory=list)
    address: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.banded: Banded = self.streaming.banded
        self.network = self.banded.network
        self.root = viewed(self.network)
        self.units = self._units()
        self.slow = {f: self._slow_rows(f) for f in sorted(self.homes)}
        self.fast: dict[int, int] = {}

    def plan(self, capacity_bytes: int, fast_bytes: int, slow_bytes: int) -> TransferPlan:
        """Return the plan."""
        graph, order = self.banded.graph, self.streaming.schedule.order
        scratch, ends = dict[int, int](), dict[int, list[int]]()
        places = zip(self.streaming.ranges, self.streaming.plan.offsets, strict=True)
        for one, offset in places:
            if one.workspace_of is not None:
                scratch[one.workspace_of] = offset
            elif one.tensors:
                ends.setdefault(one.stop, []).append(graph.storage[one.tensors[0]])
        for step, op in enumerate(order):
            self.call(op, scratch.get(op))
            self.steps += [Discard(self.fast[t]) for t in ends.get(step + 1, ()) if t in self.fast]
        given = [t for f in self.network.inputs for t in self.rows(f, range(self.network.rows(f)))]
        kept = [t for f in self.network.outputs for t in self.rows(f, range(self.network.rows(f)))]
        inputs, outputs = tuple(dict.fromkeys(given)), tuple(dict.fromkeys(kept))
        found = Graph(self.network.name, tuple(self.tensors), tuple(self.ops), inputs, outputs)
        read = {t for op in self.ops for t in op.inputs}
        written = {t for op in self.ops for t in op.outputs}
        moved = [*(read & {*inputs}), *(written & {*outputs})]
        compulsory = sum(self.tensors[t].size_bytes for t in moved)
        return TransferPlan(
            graph=found,
            order=tuple(range(len(self.ops))),
            policy=BY_ROWS,
            capacity_bytes=capacity_bytes,
            alignment_bytes=1,
            homes=self.address,
            steps=tuple(self.steps),
            fast_bytes=fast_bytes,
            slow_bytes=slow_bytes,
            compulsory_bytes=compulsory,
            lower_bound_bytes=compulsory,
        )

    def call(self, op: int, workspace: int | None) -> None:
        """Add a call of the banded network; views in slow memory are none."""
        known, call = self.banded.graph.ops[op], self.banded.calls[op]
        layer = self.network.layers[call.layer]
        if layer.view and self.is_slow(layer.outputs[0]):
            return
        accesses: dict[int, tuple[int, int]] = {}
        for f in dict.fromkeys(filter(self.is_slow, layer.inputs)):
            for row, count in self.made.needed(call.layer, f, call.first, call.end).items():
                for tensor in self.rows(f, range(row, row + 1)):
                    reads = accesses.get(tensor, (0, 0))[0] + (1 if layer.copies else count)
                    accesses[tensor] = reads, 0
        read = list(accesses)
        outputs = []
        for f in filter(self.is_slow, layer.outputs):
            for tensor in self.rows(f, range(call.first, call.end)):
                accesses[tensor] = 0, 1 if layer.copies else self.made.writes(call.layer, f)
                outputs.append(tensor)
        graph = self.banded.graph
        near = [t for t in known.inputs if graph.in_profile[t]]
        made = [self.band(t) for t in known.outputs if graph.in_profile[t]]
        view = known.view_of
        view = view if view is not None and graph.in_profile[view] else None
        self.ops.append(
            Op(
                known.name,
                known.kind,
                (*(self.band(t) for t in near), *read),
                (*made, *outputs),
                known.workspace_bytes,
                None if view is None else self.band(view),
            )
        )
        touched = {graph.storage[t] for t in (*near, *known.outputs) if graph.in_profile[t]}
        self.steps.append(
            Compute(
                len(self.ops) - 1,
                {self.fast[t]: self.streaming.offsets[t] for t in sorted(touched)},
                workspace,
                tuple(SlowAccess(t, *counts) for t, counts in accesses.items()),
                copies=layer.copies,
            )
        )

    def is_slow(self, feature: int) -> bool:
        """Return whether a feature is in slow memory."""
        return self.network.features[feature].slow

    def band(self, tensor: int) -> int:
        """Return the tensor of the plan's graph for a band in fast memory."""
        if tensor not in self.fast:
            known = self.banded.graph.tensors[tensor]
            self.fast[tensor] = self._add(f"{tensor}.{known.name}", known.size_bytes)
        return self.fast[tensor]

    def rows(self, feature: int, rows: range) -> list[int]:
        """Return the tensors of rows in slow memory."""
        unit, size = self.units[self.root[feature]], self.network.features[feature].row_bytes
        return self.slow[self.root[feature]][rows.start * size // unit : rows.stop * size // unit]

    def _units(self) -> dict[int, int]:
        """Return the bytes that rows of a feature and of its views consist of."""
        found: dict[int, int] = {}
        for f, root in enumerate(self.root):
            found[root] = gcd(found.get(root, 0), self.network.features[f].row_bytes)
        return found

    def _slow_rows(self, feature: int) -> list[int]:
        known, unit = self.network.features[feature], self.units[feature]
        begins = range(0, known.size_bytes, unit)
        tensors = [self._add(f"{feature}.{known.name}.row{i}", unit) for i in range(len(begins))]
        for tensor, begin in zip(tensors, begins, strict=True):
            self.address[tensor] = self.homes[feature] + begin
        return tensors

    def _add(self, name: str, size_bytes: int) -> int:
        self.tensors.append(Tensor(name, size_bytes, dtype="uint8"))
        return len(self.tensors) - 1
