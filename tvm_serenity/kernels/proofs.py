"""Proofs that a schedule must provide before a block moves into another block's loops.

TVM's ``reverse_compute_at`` computes only the elements of a consumer that read the producer: if a
tensor is padded after a sum, its border is never written. TVM's own checks do not notice.

TVM's simplifier takes a cast between integers to keep the value. Where a number wraps, such as a
32-bit unsigned one in 16 bits, it drops a bound that the wrapped number needs. A buffer between the
cast and the bound hides the cast from it.
"""

from typing import Any

import numpy as np
import tvm
from tvm import s_tir, sym, tirx
from tvm.ir.prim import expr as prim

from tvm_serenity.kernels.nodes import mapped, parts


def runs_each_once(schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> bool:
    """Return whether the enclosing loops provably run a block once per element of its domain."""
    realised = _realised(schedule, block)
    if realised is None:
        return False
    domain = [variable.dom for variable in realised.block.iter_vars]
    if not all(_constant(d.min) == 0 and _constant(d.extent) is not None for d in domain):
        return False
    ranges = _ranges(schedule, block)
    found = sym.detect_iter_map(
        list(realised.iter_values), ranges, realised.predicate, "bijective", True
    )
    if len(found.indices) != len(domain):
        return False
    return all(_covers(i, d.extent) for i, d in zip(found.indices, domain, strict=True))


def _covers(index: sym.IterSumExpr, extent: tirx.Expr) -> bool:
    """Return whether an index takes each value from 0 to ``extent``, with its own iterators."""
    if _constant(index.base) != 0:
        return False
    covered = 1
    for part in reversed(index.args):
        if _constant(part.scale) != covered:
            return False
        covered *= _constant(part.extent) or 0
    return covered == _constant(extent)


def reads_only_last_element(
    schedule: s_tir.Schedule, producer: s_tir.schedule.SBlockRV, consumer: s_tir.schedule.SBlockRV
) -> bool:
    """Return whether ``consumer`` provably reads only the element computed just before.

    Both are in common loops; ``producer`` computes one element in each step.
    """
    made, read = _realised(schedule, producer), _realised(schedule, consumer)
    if made is None or read is None:
        return False
    analyzer = sym.Analyzer()
    for block in (producer, consumer):
        for variable, extent in _ranges(schedule, block).items():
            analyzer.bind(variable, extent)
    for written in made.block.writes:
        places = [_inserted(r.min, made) for r in written.region]
        if not all(_constant(r.extent) == 1 for r in written.region):
            return False
        for load in _loads(read.block, written.source):
            for place, index in zip(places, load.indices, strict=True):
                if not analyzer.can_prove_equal(place, _inserted(index, read)):
                    return False
    return True


def reads_once(
    schedule: s_tir.Schedule, producer: s_tir.schedule.SBlockRV, consumer: s_tir.schedule.SBlockRV
) -> bool:
    """Return whether no two elements of ``consumer`` provably read the same of ``producer``."""
    block = schedule.get(consumer)
    domain = {v.var: v.dom for v in block.iter_vars if _constant(v.dom.extent) != 1}
    for written in schedule.get(producer).writes:
        for load in _loads(block, written.source):
            indices = list(load.indices)
            found = sym.detect_iter_map(indices, domain, True, "bijective", True)
            if len(found.indices) != len(indices) or (domain and not indices):
                return False
    return True


def _realised(schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> Any:
    wanted = schedule.get(block)
    body = schedule.mod["main"].body
    found = [r for r in parts(body, s_tir.SBlockRealize) if r.block.same_as(wanted)]
    return found[0] if len(found) == 1 else None


def _ranges(schedule: s_tir.Schedule, block: s_tir.schedule.SBlockRV) -> dict[Any, Any]:
    loops = [schedule.get(loop) for loop in schedule.get_loops(block)]
    return {s.loop_var: tvm.ir.Range.from_min_extent(s.min, s.extent) for s in loops}


def casts_keep_bounds(body: tirx.Stmt) -> bool:
    """Return whether TVM knows no bound of an integer cast that a wrapped number would break."""
    analyzer = sym.Analyzer()
    for cast in parts(body, prim.Cast):
        types = [str(cast.value.ty.dtype), str(cast.ty.dtype)]
        if not all(dtype.startswith(("int", "uint")) for dtype in types):
            continue
        holds, found = np.iinfo(types[1]), analyzer.const_int_bound(cast.value)
        inside = holds.min <= found.min_value and found.max_value <= holds.max
        around = found.min_value <= holds.min and holds.max <= found.max_value
        if not inside and not around:
            return False
    return True


def _loads(block: s_tir.SBlock, buffer: tirx.Var) -> list[Any]:
    loads = parts(block.body, tvm.ir.expr.TensorLoad)
    return [load for load in loads if load.source.same_as(buffer)]


def _inserted(index: tirx.Expr, realised: s_tir.SBlockRealize) -> Any:
    """Return a block's index in terms of the enclosing loops."""
    pairs = list(zip(realised.block.iter_vars, realised.iter_values, strict=True))

    def value(variable: tirx.Var) -> Any:
        return next((v for i, v in pairs if variable.same_as(i.var)), variable)

    return mapped(index, tvm.tirx.Var, value)


def _constant(expr: tirx.Expr) -> int | None:
    simple = sym.Analyzer().simplify(expr)
    return int(simple.value) if isinstance(simple, tvm.tirx.IntImm) else None
