"""Compiles a Relax module to an unsplit program: quantise, rewrite, order, place, write."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tvm
from tvm import tirx

from tvm_serenity import compat
from tvm_serenity.boards import Board
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.streamed import streamed
from tvm_serenity.firmware.compile.unsplit_program import assembled
from tvm_serenity.firmware.place.memory_map import largest, place, rooms, with_unread
from tvm_serenity.firmware.place.overlap import Permissions, least_need, ordered
from tvm_serenity.firmware.select.choices import as_called, of_unsplit
from tvm_serenity.firmware.select.unsplit import UnsplitKernels
from tvm_serenity.firmware.select.workspace import Ordered, upgraded
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.graph import Graph
from tvm_serenity.kernels.lean import lean
from tvm_serenity.kernels.tile import MCU, SCALAR
from tvm_serenity.memory import LiveRange, peak_bytes
from tvm_serenity.plan import PlanOptions, plan
from tvm_serenity.plan.joint import Joint, place_order, schedule_for_arena
from tvm_serenity.relax.attributes import first_values
from tvm_serenity.relax.copied_results import with_copied_constants, with_states_apart
from tvm_serenity.relax.pipeline import Prepared, Steps, prepared
from tvm_serenity.relax.read import BoundGraph, read_function
from tvm_serenity.relax.states_in_place import states_in_place

PLACE_STEPS, TRIAL_STEPS = 5_000_000, 50_000
"""Maximum steps of a placement with overlap, and of a placement that tries faster kernels."""


def kernels_of(module: tvm.IRModule, settings: Settings) -> Prepared:
    """Return ``module`` quantised, rewritten and lowered, with lean kernels for a board.

    The layout is channels last, which the kernel library and bands of rows need. Constants that are
    returned are copied: every output is an input or the result of a kernel. States of incremental
    inference are updated in place where that is possible.
    """
    steps = Steps(
        quantized=settings.quantized,
        layout="last",
        channels=settings.channels,
        rewrite=settings.rewrite,
        time_limit_s=settings.time_limit_s,
        tuned=in_registers,
    )
    ready = prepared(module, steps, "llvm")
    plain = with_copied_constants(ready.plain)
    if settings.sliding is not None:  # the states stay in the arena
        plain = with_states_apart(states_in_place(plain))
    return replace(ready, plain=plain)


def in_registers(kernel: tirx.PrimFunc) -> Any:
    """Return a lean kernel that sums floats for several channels at once, integers for one.

    Most integer layers have kernels of the library; for the others small code matters more.
    """
    floats = str(compat.buffer_dtype(kernel.params[-1])).startswith("float")
    return lean(kernel, MCU if floats else SCALAR)


def written(ready: Prepared, name: str, board: Board, settings: Settings) -> UnsplitKernels:
    """Return the kernels in C of what :func:`kernels_of` made."""
    kernels = ready.for_any_compiler
    region = read_function(kernels, workspace=False, external_inputs=False, external_outputs=False)
    _check_weights(region)
    if settings.sliding is not None:
        region = _keeping(region, len(first_values(kernels["main"])))
    settings.notify("writing kernels")
    return UnsplitKernels(kernels, region, settings, board, identifier(name))


def _keeping(region: BoundGraph, states: int) -> BoundGraph:
    """Return a region whose last inputs, its states, are live to the end."""
    graph = region.graph
    kept = graph.inputs[len(graph.inputs) - states :]
    outputs = tuple(dict.fromkeys((*graph.outputs, *kept)))
    return replace(region, graph=graph.replace(outputs=outputs))


def compiled(
    module: tvm.IRModule, ready: Prepared, writer: UnsplitKernels, name: str, board: Board
) -> Compiled:
    """Return the program of ``module`` (Relax, fresh) for ``board``, with constants in flash.

    ``ready`` and ``writer``: what :func:`kernels_of` and :func:`written` made of it, the latter
    with the settings.
    """
    settings, region = writer.settings, writer.region
    if settings.fast_memory_bytes is not None:
        return streamed(module, ready, name, board, settings, writer)
    room = rooms(board, settings.stack_bytes)
    settings.notify(f"ordering {len(region.graph.ops)} operators")
    alignment = board.core.alignment_bytes
    writer, (order, ranges, whole, bound, peak) = upgraded(
        writer,
        lambda tried, wanted: _ordered(tried, settings, alignment, wanted),
        settings.most_bytes(largest(room)) if settings.grows else 0,
    )
    graph = writer.graph()
    placed = place(ranges, whole, room, alignment)
    placed = with_unread(placed, _unread(graph, ranges), set(graph.inputs), room[0], alignment)
    made = assembled(identifier(name), module, region, graph, order, placed, writer)
    allowed = settings.allows(sum(placed.arena_bytes.values()))
    placed = replace(placed, fits=placed.fits and allowed)
    return Compiled(
        program=made.program,
        lowered=ready.reference,
        region=region,
        sources=made.sources,
        tensors=made.tensors,
        placed=placed,
        peak_bytes=peak,
        lower_bound_bytes=bound,
        kept_float=ready.kept_float,
        folded=ready.folded,
        choices=as_called(of_unsplit(writer, order), made.program),
        compiled_here={} if settings.codegen == "c" else writer.plain,
    )


def with_copies(made: Compiled, board: Board, settings: Settings) -> Compiled:
    """Return a program of :func:`compiled` whose constants are copied to the main memory."""
    program, placed = replace(made.program, copied=True), made.placed
    main = rooms(board, settings.stack_bytes)[0]
    copied, arena = program.copied_bytes, placed.arena_bytes.get(main.region.name, 0)
    fits = arena + copied <= main.arena_bytes or not copied
    fits = fits and settings.allows(sum(placed.arena_bytes.values()), copied)
    return replace(made, program=program, placed=replace(placed, fits=placed.fits and fits))


def _unread(graph: Graph, ranges: Sequence[LiveRange]) -> list[LiveRange]:
    """Return empty live ranges of the inputs that no operator reads, such as folded shapes."""
    live = {t for found in ranges for t in found.tensors}
    tensors = [(t, graph.tensors[t]) for t in graph.inputs if t not in live]
    return [LiveRange(found.name, found.size_bytes, 0, 0, (t,)) for t, found in tensors]


def _check_weights(region: BoundGraph) -> None:
    for op in region.graph.ops:
        if op.view_of is None and op.kind.startswith("relax."):
            raise UnsupportedError(f"op {op.name!r}: firmware has no kernel for {op.kind}")


def _ordered(
    kernels: UnsplitKernels, settings: Settings, alignment: int, wanted: int | None
) -> Ordered:
    graph = kernels.graph()
    found = _without_overlap(graph, settings, alignment)
    permissions = kernels.permissions()
    if not permissions:
        return found
    how = PlanOptions(steps=PLACE_STEPS, time_limit_s=None)
    if wanted is not None:
        how = PlanOptions(capacity_bytes=wanted, enough_bytes=wanted, steps=TRIAL_STEPS)
    return _overlapping(graph, found, permissions, replace(how, alignment=alignment))


def _overlapping(
    graph: Graph, found: Ordered, permissions: Permissions, how: PlanOptions
) -> Ordered:
    """Return the same order placed with overlap, or ``found`` if that is not smaller."""
    order, ranges, whole, _, peak = found
    bound = least_need(graph, permissions)
    beside = ordered(graph, order, ranges, permissions)
    placed = plan(beside.buffers(how.alignment), options=how)
    if not placed.offsets or placed.arena_bytes >= whole.arena_bytes:
        return order, ranges, whole, min(bound, whole.arena_bytes), peak
    return order, ranges, placed, bound, placed.lower_bound_bytes


def _without_overlap(graph: Graph, settings: Settings, alignment: int) -> Ordered:
    """Return an order and its placement without overlap."""
    if settings.order == "given":
        ranges, whole = place_order(graph, None, alignment)
        return tuple(range(len(graph.ops))), ranges, whole, 0, peak_bytes(graph)
    found: Joint = schedule_for_arena(graph, "auto", settings.options, align=alignment)
    s = found.schedule
    return tuple(s.order), found.ranges, found.plan, s.lower_bound_bytes, s.peak_bytes
