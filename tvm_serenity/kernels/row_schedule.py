"""The schedule of row kernels: rows outermost, sums of a few channels in registers.

Elementwise stages are computed where they are read. The sums that feed the result are computed
right before it, ``CHANNELS`` neighbouring channels at a time. Reduction loops are outside of the
channels, so that an input is loaded once for all of them. In integer sums the taps of the window's
rows come last, side by side; float sums keep the order of their terms.
"""

import math
from typing import Any

import numpy as np
import tvm
from tvm import s_tir, tirx

from tvm_serenity import compat
from tvm_serenity.kernels.lean import inline_stages
from tvm_serenity.kernels.loops import REDUCE as _REDUCE
from tvm_serenity.kernels.loops import applied as _try
from tvm_serenity.kernels.loops import blocks_of as _blocks
from tvm_serenity.kernels.loops import is_reduction as _is_reduction
from tvm_serenity.kernels.loops import kinds_of_loops

ON_STACK = 256
"""The most bytes per pixel that a kernel keeps between its stages, on the stack."""
CHANNELS = 8
"""Neighbouring channels that are summed together, if they divide the channels."""


def scheduled(kernel: tirx.PrimFunc, channels: int = CHANNELS) -> Any:
    """Return ``kernel`` (blocks, one per stage) with the loops that row kernels need."""
    schedule = s_tir.Schedule(tvm.IRModule({"main": kernel}))
    inline_stages(schedule)
    *stages, result = _blocks(schedule)
    sums = [b for b in stages if _is_reduction(schedule, b)]
    trial = schedule.copy()
    if sums and len(sums) == len(stages) and _try(_sum_up_before, trial, sums, result, channels):
        return trial.mod["main"]
    if stages and _bytes_a_pixel(schedule, stages, result) <= ON_STACK:
        trial, steps = schedule.copy(), [_steps(schedule, b) for b in stages]
        made = _try(_make_before, trial, stages, result)
        if made and [_steps(trial, b) for b in stages] == steps:
            return trial.mod["main"]
    for block in _blocks(schedule):
        _split_reduction(schedule, block)
    return schedule.mod["main"]


def _sum_up_before(
    schedule: s_tir.Schedule, sums: list[Any], result: s_tir.schedule.SBlockRV, channels: int
) -> None:
    """Compute ``sums`` inside the loops of ``result``, a few channels at a time.

    TVM raises if that is impossible, for example if one sum reads another.
    """
    (*_, last) = schedule.get_loops(result)
    extent = int(schedule.get(last).extent)
    tile = channels if extent % channels == 0 else 1
    around, _ = schedule.split(last, [None, tile])
    for block in sums:
        schedule.compute_at(block, around, preserve_unit_loops=True)
        inside = _below(schedule, block, around)
        variables = schedule.get(block).iter_vars[-len(inside) :]
        reducing = [
            loop for loop, v in zip(inside, variables, strict=True) if int(v.iter_type) == _REDUCE
        ]
        spatial = [
            loop for loop, v in zip(inside, variables, strict=True) if int(v.iter_type) != _REDUCE
        ]
        if not reducing:
            continue
        *outer, side = spatial  # a sum without axes raises ValueError
        if _sums_integers(schedule, block):
            rows, *others = reducing
            schedule.reorder(*outer, *others, side, rows)
            first = others[0] if others else side
        else:
            schedule.reorder(*outer, *reducing, side)
            first = reducing[0]
        schedule.unroll(side)
        schedule.decompose_reduction(block, first)


def _make_before(
    schedule: s_tir.Schedule, stages: list[Any], result: s_tir.schedule.SBlockRV
) -> None:
    """Compute the inputs of ``result`` one pixel at a time.

    Raises :class:`ValueError` if the result has no pixels or is a sum; TVM raises if it is
    impossible.
    """
    spatial, reducing = kinds_of_loops(schedule, result)
    if reducing:
        raise ValueError("the result is a sum")
    *_, loop, _ = spatial
    for block in reversed(stages):
        schedule.compute_at(block, loop, preserve_unit_loops=True)
    for block in stages:
        _split_reduction(schedule, block)


def _bytes_a_pixel(
    schedule: s_tir.Schedule, stages: list[Any], result: s_tir.schedule.SBlockRV
) -> int:
    """Return the bytes that the stages compute per pixel of the result."""
    spatial, _ = kinds_of_loops(schedule, result)
    pixels = math.prod(int(schedule.get(loop).extent) for loop in spatial[:-1])
    buffers = [region.source for b in stages for region in schedule.get(b).writes]
    types = [np.dtype(compat.buffer_dtype(buffer)) for buffer in buffers]
    sizes = [math.prod(compat.buffer_shape(buffer)) for buffer in buffers]
    made = sum(n * t.itemsize for n, t in zip(sizes, types, strict=True))
    return -(-made // pixels)


def _steps(schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> int:
    """Return how often a block runs, its initialisation included."""
    return math.prod(int(schedule.get(loop).extent) for loop in schedule.get_loops(block))


def _below(
    schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV, around: s_tir.schedule.LoopRV
) -> list[Any]:
    names = [schedule.get(loop).loop_var for loop in schedule.get_loops(block)]
    wanted = schedule.get(around).loop_var
    at = next(i for i, v in enumerate(names) if v.same_as(wanted))
    return list(schedule.get_loops(block)[at + 1 :])


def _sums_integers(schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> bool:
    written = schedule.get(block).writes
    return len(written) == 1 and "int" in compat.buffer_dtype(written[0].source)


def _split_reduction(schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> None:
    """Initialise a reduction that is the result (a maximum) before its first step."""
    if not _is_reduction(schedule, block):
        return
    spatial, reducing = kinds_of_loops(schedule, block)
    if not reducing:
        return
    if not spatial or _try(schedule.reorder, *spatial, *reducing):
        _try(schedule.decompose_reduction, block, reducing[0])
