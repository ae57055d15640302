"""A memory planning algorithm for ExecuTorch's ``MemoryPlanningPass``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tvm_serenity.errors import FitError, InputError, UnsupportedError
from tvm_serenity.plan import Buffer, Plan, PlanOptions, Region, check_regions, plan


@dataclass
class SerenityPlanning:
    """Place every tensor of a program at an offset in its memories.

    1. ``capacities`` are bytes of the memories 1, 2, ...; None is one without a limit. Without any,
       there is one memory. What a memory already holds for submodules comes first, and padding that
       a backend asks for last.
    2. A tensor goes into the memory that a pass chose for it (``spec.mem_id``), else into the
       first one that the plan finds room in: what is least first is what lies in later ones.
    3. A tensor that shares the storage of another (``storage_base``) lies within that one.
    4. Lives and sizes are ExecuTorch's; offsets are multiples of its alignment; the plan goes
       through a checker that shares no code with the planner.

    ``plans`` are the plans made, one a graph, with their outcome and bound. Raises
    :class:`FitError` at export where no placement in the capacities was found: it names the tensors
    alive where most are, and whether it is proved.
    """

    capacities: Sequence[int | None] = (None,)
    options: PlanOptions | None = None
    method: str = "auto"
    plans: list[Plan] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Raise :class:`InputError` where ``capacities`` are no memories."""
        sizes = [size for size in self.capacities if size is not None]
        if not self.capacities or any(not isinstance(size, int) or size < 0 for size in sizes):
            have = tuple(self.capacities)
            raise InputError(f"capacities {have}: bytes of one memory or more, None: no limit")

    def __call__(
        self,
        alignment: int,
        specs: Iterable[Any],
        graph_module: Any,
        graph_signature: Any,
        extra_padding: int = 0,
    ) -> list[int]:
        """Set ``mem_id`` and ``mem_offset`` of each spec; return the bytes of each memory."""
        listed = list(specs)
        for spec in listed:
            spec.realign(alignment)
        before = _sizes_before(graph_module, len(self.capacities))
        roots = [spec for spec in listed if spec.storage_base is None]
        names = _names(graph_module)
        buffers = [_buffer(i, spec, names, alignment) for i, spec in enumerate(roots)]
        found = self._planned(buffers, before, extra_padding)
        self.plans.append(found)
        sizes = [0, *before]
        where = found.regions or ("1",) * len(roots)
        for index, (spec, offset) in enumerate(zip(roots, found.offsets, strict=True)):
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
        """The plan of ``buffers`` in what is left of the memories."""
        options = self.options or PlanOptions()
        left = [
            None if size is None else size - held - padding
            for size, held in zip(self.capacities, before, strict=True)
        ]
        if any(size is not None and size < 0 for size in left):
            raise FitError("submodules and padding alone are more than a memory holds", {})
        regions = tuple(Region(str(i), size) for i, size in enumerate(left, start=1))
        made = replace(options, regions=regions)
        found = plan(buffers, self.method, made)
        if buffers and not found.offsets:
            raise FitError(_does_not_fit(buffers, found, self.capacities), {})
        check_regions(found.buffers, found.offsets, found.regions, regions)
        return found


def _sizes_before(graph_module: Any, memories: int) -> list[int]:
    """The bytes that submodules of a graph hold at the start of each memory."""
    held = [int(size) for size in getattr(graph_module, "input_mem_buffer_sizes", None) or ()][1:]
    if len(held) > memories:
        raise UnsupportedError(f"submodules use {len(held)} memories; there are {memories}")
    return held + [0] * (memories - len(held))


def _names(graph_module: Any) -> dict[int, str]:
    """What makes each spec, by its identity."""
    found: dict[int, str] = {}
    for node in graph_module.graph.nodes:
        held = node.meta.get("spec")
        for spec in held if isinstance(held, list | tuple) else [held]:
            if spec is not None and not str(node.name).startswith("alloc"):
                found.setdefault(id(spec), str(node.name))
    return found


def _buffer(index: int, spec: Any, names: dict[int, str], alignment: int) -> Buffer:
    """The block of memory of a spec; it is alive from its first to its last node, inclusive."""
    first, last = spec.lifetime
    name = names.get(id(spec), f"tensor_{index}")
    regions = () if spec.mem_id is None else (str(spec.mem_id),)
    return Buffer(
        f"{name}:{index}", first, last + 1, spec.allocated_memory, alignment, regions=regions
    )


def _place_within(spec: Any, seen: set[int]) -> None:
    """Place a spec within the one whose storage it shares, which is placed first."""
    base = spec.storage_base
    if id(spec) in seen:
        raise UnsupportedError("tensors share each other's storage in a circle")
    if base.storage_base is not None:
        _place_within(base, {*seen, id(spec)})
    spec.mem_id, spec.mem_obj_id = base.mem_id, base.mem_obj_id
    spec.mem_offset = base.mem_offset + spec.storage_base_offset


def _does_not_fit(buffers: Sequence[Buffer], found: Plan, capacities: Sequence[int | None]) -> str:
    """That there is no room, and what is alive at the step with most bytes."""
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
        f"no placement in {have} bytes ({found.outcome}): {total:,} are alive at once, "
        f"in {named}{more}"
    )
