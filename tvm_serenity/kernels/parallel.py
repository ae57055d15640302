"""Parallel outermost loops of kernels, where no two threads race.

``in_parallel`` searches loops from the outside in: the first with enough work and independent steps
becomes parallel. Steps are independent if each written tensor, unless it is allocated in each step,
has an axis along which no two steps touch the same elements (:func:`independent`): step ``p``
touches only ``c * p + least`` to ``c * p + most``, and ``most - least < c``. Tensors that are only
read do not matter.

TVM's runtime distributes the steps over ``TVM_NUM_THREADS`` threads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tvm
from tvm import s_tir, sym, tirx

from tvm_serenity.kernels.nodes import mapped, parts
from tvm_serenity.kernels.workspace import workspace_of

Views = Sequence[tuple[Any, Any]]
LEAST_WORK = 500_000
"""The least elements a loop must store to start threads: about 10 to 20 us.

Starting threads takes 2 to 5 us.
"""


def in_parallel(kernel: tirx.PrimFunc, least_work: int = LEAST_WORK) -> Any:
    """Return a lean ``kernel`` with parallel loops; itself if it has none or needs scratch."""
    if workspace_of(kernel):
        return kernel  # threads would share the scratch
    body = _changed(kernel.body, least_work, _Around(views_of(kernel.body)))
    if body is None:
        return kernel
    return tirx.PrimFunc(kernel.params, body, kernel.ret_type, kernel.attrs)


@dataclass(frozen=True)
class _Around:
    """The context of a loop: views, and the enclosing loops with their ranges."""

    views: Views
    ranges: tuple[tuple[Any, Any], ...] = ()


def _changed(stmt: tirx.Stmt, least: int, around: _Around) -> Any:
    """Return a statement with parallel loops, None if it has none."""
    if isinstance(stmt, s_tir.SBlockRealize) and not stmt.iter_values:
        body = _changed(stmt.block.body, least, around)
        return None if body is None else _with_body(stmt, body)
    if isinstance(stmt, tirx.SeqStmt):
        made = [_changed(part, least, around) for part in stmt.seq]
        if all(part is None for part in made):
            return None
        return tirx.SeqStmt(
            [old if new is None else new for old, new in zip(stmt.seq, made, strict=True)]
        )
    if not isinstance(stmt, tirx.For) or work(stmt) < least:
        return None
    if int(stmt.extent) > 1 and independent(stmt, around.views, around.ranges):
        return _loop(stmt, stmt.body, tirx.ForKind.PARALLEL)
    body = _changed(stmt.body, least, replace(around, ranges=(*around.ranges, _range(stmt))))
    return None if body is None else _loop(stmt, body, stmt.kind)


def _range(stmt: tirx.For) -> tuple[Any, Any]:
    return stmt.loop_var, tvm.ir.Range.from_min_extent(stmt.min, stmt.extent)


def _loop(stmt: tirx.For, body: tirx.Stmt, kind: Any) -> Any:
    return tirx.For(stmt.loop_var, stmt.min, stmt.extent, kind, body)


def _with_body(realize: s_tir.SBlockRealize, body: tirx.Stmt) -> Any:
    block = realize.block
    made = s_tir.SBlock(
        block.iter_vars,
        block.reads,
        block.writes,
        block.name_hint,
        body,
        block.init,
        block.alloc_buffers,
        block.match_buffers,
        block.annotations,
    )
    return s_tir.SBlockRealize(realize.iter_values, realize.predicate, made)


def work(stmt: tirx.Stmt) -> int:
    """Return the number of elements that a statement stores, on the longer branch of conditions."""
    if isinstance(stmt, tirx.For):
        return int(getattr(stmt.extent, "value", 1)) * work(stmt.body)
    if isinstance(stmt, tirx.SeqStmt):
        return sum(work(part) for part in stmt.seq)
    if isinstance(stmt, s_tir.SBlockRealize):
        return work(stmt.block.body)
    if isinstance(stmt, tirx.IfThenElse):
        other = 0 if stmt.else_case is None else work(stmt.else_case)
        return max(work(stmt.then_case), other)
    if isinstance(stmt, tirx.BufferStore):
        last = stmt.indices[-1] if len(stmt.indices) else None
        return int(last.lanes) if isinstance(last, tirx.Ramp) else 1
    return 0


def independent(loop: tirx.For, views: Views = (), around: Sequence[tuple[Any, Any]] = ()) -> bool:
    """Return whether the steps of a loop provably touch nothing that another step writes.

    Parameters of a kernel do not alias; ``views``: the buffers that may. ``around``: the variables
    of enclosing loops, with their ranges.
    """
    found = _Accesses(ranges=dict(around))
    if not found.read(loop.body, lambda expr: expr):
        return False
    written = [buffer for buffer, _, stored in found.touched if stored]
    for buffer in written:
        if any(buffer.same_as(own) for own in found.own):
            continue
        root = _root(buffer, views)
        shared = [(o, i) for o, i, _ in found.touched if _root(o, views).same_as(root)]
        if not all(other.same_as(buffer) for other, _ in shared):
            return False  # accesses by views of other shapes
        indices = [i for _, i in shared]
        axes = range(len(indices[0]))
        if not any(
            _disjoint_steps([i[axis] for i in indices], loop, found.ranges) for axis in axes
        ):
            return False
    return True


def views_of(body: tirx.Stmt) -> Views:
    """Return the buffers that a kernel declares on other buffers, with those buffers."""
    found = []
    for declared in parts(body, tirx.DeclBuffer):
        below = [] if declared.data is None else parts(declared.data, tirx.Var)
        found += [(declared.buffer, other) for other in below]
    return found


def _root(buffer: tirx.Var, views: Views) -> Any:
    """Return the buffer that a buffer is a view of, or itself."""
    below = next((other for view, other in views if view.same_as(buffer)), None)
    return buffer if below is None else _root(below, views)


@dataclass
class _Accesses:
    """The accesses of a loop's steps: buffer, indices, whether it writes."""

    touched: list[tuple[Any, list[Any], bool]] = field(default_factory=list)
    own: list[Any] = field(default_factory=list)
    ranges: dict[Any, Any] = field(default_factory=dict)

    def read(self, stmt: tirx.Stmt, place: Callable[[Any], Any]) -> bool:
        """Collect the accesses of a statement; return False for an unknown statement."""
        if isinstance(stmt, tirx.For):
            self.ranges |= [_range(stmt)]
            return self.read(stmt.body, place)
        if isinstance(stmt, tirx.SeqStmt):
            return self._all(stmt.seq, place)
        if isinstance(stmt, s_tir.SBlockRealize):
            return self._block(stmt, place)
        if isinstance(stmt, tirx.IfThenElse):
            self._loads(stmt.condition, place)
            ways = [stmt.then_case, *([] if stmt.else_case is None else [stmt.else_case])]
            return self._all(ways, place)
        if isinstance(stmt, tirx.BufferStore):
            self.touched.append((stmt.buffer, [place(i) for i in stmt.indices], True))
            for expr in (stmt.value, *stmt.indices):
                self._loads(expr, place)
            return True
        if isinstance(stmt, tirx.AllocBuffer):
            self.own.append(stmt.buffer)
            return True
        return False

    def _all(self, stmts: Sequence[tirx.Stmt], place: Callable[[Any], Any]) -> bool:
        known = [self.read(part, place) for part in stmts]
        return all(known)

    def _block(self, realize: s_tir.SBlockRealize, place: Callable[[Any], Any]) -> bool:
        block = realize.block
        if len(block.match_buffers):
            return False
        pairs = list(zip(block.iter_vars, map(place, realize.iter_values), strict=True))

        def inside(expr: Any) -> Any:
            def value(var: tirx.Var) -> Any:
                return next((v for i, v in pairs if var.same_as(i.var)), var)

            return mapped(expr, tirx.Var, value)

        self.own += list(block.alloc_buffers)
        init = [] if block.init is None else [block.init]
        return self._all([*init, block.body], inside)

    def _loads(self, expr: Any, place: Callable[[Any], Any]) -> None:
        for load in parts(expr, tvm.ir.expr.TensorLoad):
            self.touched.append((load.source, [place(i) for i in load.indices], False))


def _disjoint_steps(indices: list[Any], loop: tirx.For, ranges: dict[Any, Any]) -> bool:
    """Return whether the steps of a loop access disjoint elements along an axis."""
    analyzer = sym.Analyzer()
    for var, extent in ranges.items():
        analyzer.bind(var, extent)
    step, least, most = None, [], []
    for index in indices:
        ends = [index]
        if isinstance(index, tirx.Ramp):
            ends = [index.base, index.base + index.stride * (int(index.lanes) - 1)]
        for end in ends:
            stride = _stride(end, loop.loop_var, analyzer)
            if stride is None or stride <= 0 or stride != (step or stride):
                return False
            step = stride
            rest = mapped(end, tirx.Var, _zero_for(loop.loop_var))
            bound = analyzer.const_int_bound(analyzer.simplify(rest))
            least.append(bound.min_value)
            most.append(bound.max_value)
    return step is not None and max(most) - min(least) < step


def _stride(index: Any, var: tirx.Var, analyzer: sym.Analyzer) -> int | None:
    """Return the growth of an index per step; None if it is not constant."""

    def following(other: tirx.Var) -> Any:
        return other + tirx.const(1, _dtype(other)) if other.same_as(var) else other

    grown = analyzer.simplify(mapped(index, tirx.Var, following) - index)
    return int(grown.value) if isinstance(grown, tirx.IntImm) else None


def _zero_for(var: tirx.Var) -> Callable[[tirx.Var], Any]:
    return lambda other: tirx.const(0, _dtype(other)) if other.same_as(var) else other


def _dtype(var: tirx.Var) -> str:
    return str(var.ty.dtype)
