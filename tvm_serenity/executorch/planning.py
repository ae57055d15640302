"""A memory planning algorithm for ExecuTorch's ``MemoryPlanningPass``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tvm_serenity.errors import FitError, InputError, UnsupportedError
from tvm_serenity.plan import Buffer, Plan, PlanOptions, Region, check_regions, plan


@dataclass
class SerenityPlanning:
    """A planning algorithm that gives each tensor of a program an offset in one of its memories.

    1. ``capacities``: bytes of memories 1, 2, and so on; None means no limit. The default is one
       memory. In each memory, the bytes of submodules come first, and a backend's padding last.
    2. A tensor is placed in the memory that another pass chose (``spec.mem_id``). Other tensors
       are placed so that as few bytes as possible are in later memories.
    3. A tensor that shares the storage of another one (``storage_base``) is placed within it.
    4. Lifetimes and sizes are those of ExecuTorch, and offsets are multiples of its alignment. A
       checker that shares no code with the planner verifies the plan.

    ``plans``: the plans, one per graph, each with its outcome and bound. At export,
    :class:`FitError` is raised if there is no placement within the capacities, or the search found
    none. It names the tensors at the peak, and says whether it is proved that none exists.
    """

    capacities: Sequence[int | None] = (None,)
    options: PlanOptions | None = None
    method: str = "auto"
    plans: list[Plan] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Raise :class:`InputError` if ``capacities`` is empty or has an invalid size."""
        sizes = [size for size in self.capacities if size is not None]
        if not self.capacities or any(not isinstance(size, int) or size < 0 for size in sizes):
            have = tuple(self.capacities)
            raise InputError(
                f"capacities {have}: list the bytes of each memory, at least one; None is no limit"
            )

    def __call__(
        self,
        alignment: int,
        specs: Iterable[Any],
        graph_module: Any,
        graph_signature: Any,
        extra_padding: int = 0,
    ) -> list[int]:
        """Set ``mem_id`` and ``mem_offset`` of each spec; return the used bytes per memory."""
        listed = list(specs)
        for spec in listed:
            spec.realign(alignment)
        before = _sizes_before(graph_module, len(self.capacities))
        roots = [spec for spec in listed if spec.storage_base is None]
        names = _names(graph_module)
        buffers = [_buffer(i, spec, names, alignment) for i, spec in enumerate(roots)]
        planned = self._planned(buffers, before, extra_padding)
        self.plans.append(planned)
        sizes = [0, *before]
        where = planned.regions or ("1",) * len(roots)
        for index, (spec, offset) in enumerate(zip(roots, planned.offsets, strict=True)):
            memory = int(where[index])
            spec.mem_id, spec.mem_obj_id = memory, index
            spec.mem_offset = before[memory - 1] + offset
            sizes[memory] = max(sizes[memory], spec.mem_offset + spec.allocated_memory)
        for spec in listed:
            if spec.storage_base is not None:
                _place_within(spec, set())
        used = {spec.mem_id for spec in roots}
        return [size + (extra_padding if i in used else 0) for i, size in enumerate(sizes)]

    def _planned(self, buffers: Sequence[Buffer], before: Sequence[int], padding: int) -> Plan:
        """Return a plan of ``buffers`` in the bytes that ``before`` and ``padding`` leave free."""
        options = self.options or PlanOptions()
        left = [
            None if size is None else size - held - padding
            for size, held in zip(self.capacities, before, strict=True)
        ]
        if any(size is not None and size < 0 for size in left):
            raise FitError(
                f"the program does not fit: submodules hold {tuple(before)} bytes and padding "
                f"takes {padding} bytes, more than the capacities {tuple(self.capacities)}; raise "
                "the capacities",
                {},
            )
        regions = tuple(Region(str(i), size) for i, size in enumerate(left, start=1))
        placing = replace(options, regions=regions)
        planned = plan(buffers, self.method, placing)
        if buffers and not planned.offsets:
            raise FitError(_does_not_fit(buffers, planned, self.capacities), {})
        check_regions(planned.buffers, planned.offsets, planned.regions, regions)
        return planned


def _sizes_before(graph_module: Any, memories: int) -> list[int]:
    """Return the bytes that the submodules of a graph use at the start of each memory."""
    held = [int(size) for size in getattr(graph_module, "input_mem_buffer_sizes", None) or ()][1:]
    if len(held) > memories:
        raise UnsupportedError(
            f"submodules use {len(held)} memories, but {memories} capacities are given; "
            "give one capacity per memory"
        )
    return held + [0] * (memories - len(held))


def _names(graph_module: Any) -> dict[int, str]:
    """Return a map from the ``id`` of each spec to the name of the node that produces it."""
    names: dict[int, str] = {}
    for node in graph_module.graph.nodes:
        held = node.meta.get("spec")
        for spec in held if isinstance(held, list | tuple) else [held]:
            if spec is not None and not str(node.name).startswith("alloc"):
                names.setdefault(id(spec), str(node.name))
    return names


def _buffer(index: int, spec: Any, names: dict[int, str], alignment: int) -> Buffer:
    """Return the buffer of a spec, which is live from its first to its last node, inclusive."""
    first, last = spec.lifetime
    name = names.get(id(spec), f"tensor_{index}")
    regions = () if spec.mem_id is None else (str(spec.mem_id),)
    return Buffer(
        f"{name}:{index}", first, last + 1, spec.allocated_memory, alignment, regions=regions
    )


def _place_within(spec: Any, seen: set[int]) -> None:
    """Place a spec within the storage that it shares, whose own spec is placed first."""
    base = spec.storage_base
    if id(spec) in seen:
        raise UnsupportedError("the program's tensors refer to each other's storage in a cycle")
    if base.storage_base is not None:
        _place_within(base, {*seen, id(spec)})
    spec.mem_id, spec.mem_obj_id = base.mem_id, base.mem_obj_id
    spec.mem_offset = base.mem_offset + spec.storage_base_offset


def _does_not_fit(buffers: Sequence[Buffer], failed: Plan, capacities: Sequence[int | None]) -> str:
    """Return a message with the capacities and the tensors at the step of most live bytes."""
    steps = {buffer.lower for buffer in buffers}
    live = max(
        ([b for b in buffers if b.lower <= step < b.upper] for step in steps),
        key=lambda alive: sum(b.size_bytes for b in alive),
    )
    total = sum(b.size_bytes for b in live)
    largest = sorted(live, key=lambda b: (-b.size_bytes, b.name))
    named = ", ".join(f"{b.name.rpartition(':')[0]} {b.size_bytes:,}" for b in largest[:4])
    more = f" and {len(live) - 4} more" if len(live) > 4 else ""
    have = " + ".join(f"{size:,}" for size in capacities if size is not None)
    return (
        f"no placement in {have} bytes ({failed.outcome}): {total:,} bytes are live at once, in "
        f"{named}{more}"
    )
