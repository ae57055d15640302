"""Indices rewritten to forms that TVM and LLVM compile correctly; two forms are miscompiled.

**Decreasing numbers under a division (TVM 0.27).** ``FlattenBuffer`` simplifies the flat index of
each access by ``IterMapSimplify``. If the dividend of ``floordiv`` or ``floormod`` decreases with a
loop variable, the simplification loses its start: ``(63 - v) % 8`` becomes ``v % -8 * -1``, and
``(63 - v) // 16 * 16 + (63 - v) % 16`` becomes ``48 - v``. The same can happen to a dividend that
does not start at 0: ``(16 * a + b + 3) % 6 // 2``. Such divisions become ``truncdiv`` and
``truncmod`` of a non-negative dividend, which are equal and not simplified.

**Masks of a loop variable (LLVM 22, all processors).** An index ``row + (v & 3)`` is consecutive
only until ``v & 3`` wraps. LLVM's loop vectoriser records that as a condition to check at run time.
If the sum has 32 bits and its extension to 64 bits needs such a condition too, LLVM treats the
narrow condition as implied by the wide one and drops it: elements beyond the row are read.
Therefore no index keeps the remainder by a power of two of a loop-dependent number: a loop is split
if that removes the remainder, which is faster in C too; otherwise the quotient is computed exactly
in floating point, which LLVM's analysis does not follow. Other compilers, and other divisors, are
not affected. A kernel is made safe once, for the compiler that gets it: on a core without an FPU a
product of floats takes hundreds of instructions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import s_tir, sym, tirx
from tvm.ir.expr import TensorLoad

from tvm_serenity import compat
from tvm_serenity.kernels.loops import applied, blocks_of
from tvm_serenity.kernels.nodes import mapped, parts

SINGLE = 1 << 24
"""The limit of exact integers in 32-bit floats.

Indices are below 2**53, the limit of 64-bit floats.
"""
LARGEST = 1 << 31
"""The assumed magnitude of a number without a known minimum."""
BINARY = tirx.Add | tirx.Sub | tirx.Mul | tirx.FloorDiv | tirx.FloorMod | tirx.Min | tirx.Max


def safe_indices(kernel: tirx.PrimFunc, target: tvm.target.Target) -> Any:
    """Return ``kernel`` with indices that compile correctly for ``target``, or unchanged."""
    masks = str(target.kind.name) == "llvm"
    if not _divides(kernel.body):
        return kernel
    if compat.has_blocks(kernel):
        kernel = _split(kernel)
    found = _Ranges.of(kernel.body)

    def safe(access: Any) -> Any:
        indices = [found.safe(index, masks) for index in access.indices]
        if all(new.same_as(old) for new, old in zip(indices, access.indices, strict=True)):
            return access
        if isinstance(access, tirx.BufferStore):
            return tirx.BufferStore(access.buffer, access.value, indices)
        return tirx.BufferLoad(access.source, indices)

    body = mapped(kernel.body, TensorLoad, safe)
    body = mapped(body, tirx.BufferStore, safe)
    return kernel if body.same_as(kernel.body) else kernel.with_body(body)


def _divides(body: tirx.Stmt) -> bool:
    """Return whether an index has a division or remainder; few kernels have one."""
    if not _divisions(body):
        return False
    accesses = [*parts(body, TensorLoad), *parts(body, tirx.BufferStore)]
    return any(_divisions(index) for access in accesses for index in access.indices)


def _divisions(expr: Any) -> list[Any]:
    return [*parts(expr, tirx.FloorDiv), *parts(expr, tirx.FloorMod)]


def _split(kernel: tirx.PrimFunc) -> Any:
    """Split loops whose remainder by a power of two is an index, if they are multiples."""
    if not any(realize.iter_values for realize in parts(kernel.body, s_tir.SBlockRealize)):
        return kernel  # loops without stages
    try:
        schedule = s_tir.Schedule(kernel)
        blocks = blocks_of(schedule)
    except (s_tir.ScheduleError, RuntimeError, ValueError):
        return kernel  # TVM's schedules refuse these stages: only rewrite the index
    changed = False
    for block in blocks:
        for loop, factor in _splits(schedule, block):
            changed |= applied(schedule.split, loop, [None, factor])
    return schedule.mod["main"].with_attrs(kernel.attrs) if changed else kernel


def _splits(schedule: s_tir.Schedule, block: Any) -> Iterator[tuple[Any, int]]:
    """Return loops of a block, with their split factors."""
    realize, loops = _realized(schedule, block), list(schedule.get_loops(block))
    variables = dict(
        zip([v.var for v in realize.block.iter_vars], realize.iter_values, strict=True)
    )
    body = realize.block.body
    factors: dict[int, int] = {}
    indices = [index for load in parts(body, TensorLoad) for index in load.indices]
    for mod in [mod for index in indices for mod in parts(index, tirx.FloorMod)]:
        factor = _power(mod.b)
        value = _substituted(mod.a, variables)
        for at, loop in enumerate(loops):
            node = schedule.get(loop)
            extent = getattr(node.extent, "value", None)
            if factor is None or extent is None or int(extent) % factor or int(extent) == factor:
                continue
            rest = sym.Analyzer().simplify(value - node.loop_var)
            if isinstance(rest, tirx.IntImm) and int(rest) % factor == 0:
                factors[at] = max(factor, factors.get(at, 0))
    for at, factor in factors.items():
        yield loops[at], factor


def _realized(schedule: s_tir.Schedule, block: Any) -> Any:
    name = schedule.get(block)
    found = parts(schedule.mod["main"].body, s_tir.SBlockRealize)
    return next(r for r in found if r.block.same_as(name))


def _substituted(expr: Any, values: Mapping[Any, Any]) -> Any:
    return mapped(expr, tirx.Var, lambda variable: values.get(variable, variable))


def _power(divisor: Any) -> int | None:
    """Return a power of two above 1, None for any other divisor."""
    value = int(divisor) if isinstance(divisor, tirx.IntImm) else 0
    return value if value > 1 and value & (value - 1) == 0 else None


@dataclass
class _Ranges:
    """The known ranges of a kernel's variables, and the values of names."""

    analyzer: Any = field(default_factory=sym.Analyzer)
    values: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, body: tirx.Stmt) -> "_Ranges":
        made = cls()
        ends: dict[Any, list[tuple[Any, Any]]] = {}
        for loop in parts(body, tirx.For):
            ends.setdefault(loop.loop_var, []).append((loop.min, loop.min + loop.extent))
        for variable, found in ends.items():
            least, most = found[0]
            for low, high in found[1:]:
                least, most = tirx.min(least, low), tirx.max(most, high)
            made.analyzer.bind(variable, tvm.ir.Range(least, most))
        for realize in parts(body, s_tir.SBlockRealize):
            variables = [v.var for v in realize.block.iter_vars]
            made.values.update(zip(variables, realize.iter_values, strict=True))
        for let in parts(body, tirx.Let):
            made.values[let.var] = let.value
        return made

    def plain(self, expr: Any) -> Any:
        """Return ``expr`` in loop variables, simplified."""
        while True:
            made = _substituted(expr, self.values)
            if made.same_as(expr):
                return self.analyzer.simplify(made)
            expr = made

    def safe(self, index: Any, masks: bool) -> Any:
        """Return an index that compiles correctly, or the index itself.

        Bounds are those of the original parts: numbers computed in floating point have no known
        bounds.
        """
        if not isinstance(index, BINARY) or not _divisions(index):
            return index
        number = self.safe(index.a, masks)
        if not isinstance(index, tirx.FloorDiv | tirx.FloorMod):
            other = self.safe(index.b, masks)
            same = number.same_as(index.a) and other.same_as(index.b)
            return index if same else type(index)(number, other)
        if masks and isinstance(index, tirx.FloorMod) and self._is_mask(index):
            return self._unmasked(index, number)
        if isinstance(index.b, tirx.IntImm) and _starts_or_falls(self.plain(index.a)):
            return self._truncated(index, number)
        return index if number.same_as(index.a) else type(index)(number, index.b)

    def _is_mask(self, part: Any) -> bool:
        """Return whether LLVM recognises a mask in a remainder."""
        if _power(part.b) is None:
            return False
        return any(_power(mod.b) for mod in parts(self.plain(part), tirx.FloorMod))

    def _unmasked(self, part: Any, number: Any) -> Any:
        """Return a remainder whose quotient is computed in floating point."""
        raised, most = self._raised(part)
        if raised is None:
            return type(part)(number, part.b)
        kind, real = str(part.ty.dtype), "float32" if most < SINGLE else "float64"
        number = number + tirx.const(raised, kind) if raised else number
        share = tirx.const(1 / int(part.b), real)
        quotient = tirx.Cast(kind, tirx.Cast(real, number) * share)
        return number - quotient * part.b

    def _truncated(self, part: Any, number: Any) -> Any:
        """Return a division of a non-negative number that rounds towards 0."""
        raised, _ = self._raised(part)
        if raised is None:
            return type(part)(number, part.b)
        kind = str(part.ty.dtype)
        number = number + tirx.const(raised, kind) if raised else number
        if isinstance(part, tirx.FloorMod):
            return tirx.truncmod(number, part.b)
        quotient = tirx.truncdiv(number, part.b)
        return quotient - tirx.const(raised // int(part.b), kind) if raised else quotient

    def _raised(self, part: Any) -> tuple[int | None, int]:
        """Return the multiple of the divisor that makes a number non-negative, and its maximum.

        Return None if the number has no minimum.
        """
        bound, divisor = self.analyzer.const_int_bound(self.plain(part.a)), int(part.b)
        least, most = int(bound.min_value), int(bound.max_value)
        if least <= -LARGEST:
            return None, most
        raised = -(least // divisor) * divisor if least < 0 else 0
        return raised, most + raised


def _starts_or_falls(number: Any) -> bool:
    """Return whether a simplified number falls with a variable, or does not start at 0."""
    if isinstance(number, tirx.Sub):
        return True
    if isinstance(number, tirx.Add):
        return any(isinstance(p, tirx.IntImm) or _starts_or_falls(p) for p in (number.a, number.b))
    if isinstance(number, tirx.Mul):
        return any(isinstance(p, tirx.IntImm) and int(p) < 0 for p in (number.a, number.b))
    return False
