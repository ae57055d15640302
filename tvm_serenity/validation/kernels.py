"""Translation validation: each compiled kernel against TVM's own kernel for the same operators.

Both are compiled code: ours as the written executable has it (lean, tiled, tuned, placed), and
TVM's default. Each distinct kernel runs on fresh inputs in a child process.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm
from tvm import relax, tirx

from tvm_serenity import compat
from tvm_serenity.kernels.lean import LEAN
from tvm_serenity.kernels.workspace import placeable, workspace_of
from tvm_serenity.relax.extents import at_bounds, extents, upper_bounds
from tvm_serenity.relax.read import read_function
from tvm_serenity.system.isolated import Death, isolated
from tvm_serenity.validation.execute import POISONS, Signature, plainly, poisoned
from tvm_serenity.validation.inputs import FILLS, Array, Parameter, input_sets
from tvm_serenity.validation.ranges import parameter_ranges
from tvm_serenity.validation.report import (
    EXACT,
    Difference,
    Tolerance,
    Wrong,
    fail,
    first_difference,
    write_reproducer,
)
from tvm_serenity.validation.steps import steps_of, zero_of

LIMIT_S = 600.0
"""Time limit of the checks of one kernel in seconds."""
FEW_STEPS, MANY_STEPS = 2_000_000, 50_000_000
"""Innermost loop steps up to which a kernel gets all sets of inputs, and half of them."""

Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A distinct kernel: both forms in TIR, its signature, and the constants of its first call."""

    operator: str
    kernel: str
    reference: tirx.PrimFunc
    made: tirx.PrimFunc
    signature: Signature
    constants: Mapping[int, Array]
    drawn: tuple[int, ...]

    def parameters(self) -> list[Parameter]:
        """Return shape, type, allowed range and zero point of each drawn input."""
        allowed, zero = parameter_ranges(self.reference), zero_of(self.reference)
        return [Parameter(*self.signature.tensors[i], allowed.get(i), zero) for i in self.drawn]

    def fills(self) -> tuple[str, ...]:
        """Return how each set of inputs is filled; kernels with many loop steps get fewer sets."""
        steps = steps_of(self.reference)
        return FILLS if steps <= FEW_STEPS else FILLS[:3] if steps <= MANY_STEPS else FILLS[:1]


@dataclass(frozen=True)
class Checked:
    """The number of distinct kernels compared, and of input sets over all of them."""

    kernels: int
    sets: int


def cases(plain: tvm.IRModule, made: tvm.IRModule) -> list[Case]:
    """Return the distinct kernels that ``main`` calls.

    ``plain``: the lowered module with TVM's kernels; ``made``: with ours, not yet placed. A kernel
    that has ``LEAN`` in ``plain`` already (a kernel by rows) has no other form and is skipped.
    """
    region = read_function(plain, workspace=False)
    called, bounds = _called(made), upper_bounds(plain["main"])
    found: dict[Any, Case] = {}
    for op, index in enumerate(region.run):
        call = region.bindings[index].value
        name = compat.called_kernel(call)
        if name is None or LEAN in (plain[name].attrs or {}):
            continue
        if name.name_hint not in called:
            continue  # a lean kernel that moves no byte has become a view
        pair = plain[name], _named(made, name.name_hint)
        key = tuple(compat.structural_key(compat.anonymous(f)) for f in pair)
        if key not in found:
            names = region.graph.ops[op].name, name.name_hint
            found[key] = _case(*names, *pair, call, bounds)
    return list(found.values())


def _called(module: tvm.IRModule) -> set[str]:
    region = read_function(module, workspace=False)
    calls = [compat.called_kernel(region.bindings[i].value) for i in region.run]
    return {call.name_hint for call in calls if call is not None}


def _named(module: tvm.IRModule, name: str) -> Any:
    return module[next(g for g in module.get_global_vars() if g.name_hint == name)]


def _case(
    operator: str,
    name: str,
    reference: tirx.PrimFunc,
    made: tirx.PrimFunc,
    call: relax.Call,
    bounds: Mapping[str, int],
) -> Case:
    arguments = compat.kernel_arguments(call)
    constants = {
        i: compat.constant_array(a) for i, a in enumerate(arguments) if compat.is_constant(a)
    }
    taken = compat.overwritten(call)
    written = tuple(range(len(arguments), len(reference.params)))
    if taken is not None:
        written = (next(i for i, a in enumerate(arguments) if a.same_as(taken)),)
    sizes = {i: at_bounds(a, bounds) for i, a in enumerate(arguments) if not compat.is_tensor(a.ty)}
    types = [argument.ty for argument in arguments]
    types += compat.result_types(call) if taken is None else []
    tensors = tuple(
        ((), "int64") if i in sizes else (_shape(t, bounds), compat.dtype_name(t))
        for i, t in enumerate(types)
    )
    signature = Signature(tensors, written, workspace_of(made), sizes)
    drawn = tuple(i for i in range(len(arguments)) if i not in constants and i not in sizes)
    return Case(operator, name, reference, made, signature, constants, drawn)


def _shape(ty: relax.Type, bounds: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(at_bounds(extent, bounds) for extent in extents(ty) or ())


@dataclass(frozen=True)
class KernelComparison:
    """What our kernels are compiled for, as text, and how they are compared with TVM's.

    ``seed``: of the inputs; ``folder``: where reproducers go.
    """

    target: str
    tolerance: Tolerance = EXACT
    seed: int = 0
    folder: Path = Path()


def validate_kernels(
    found: Sequence[Case],
    reference: Callable[[str], Function],
    made: Callable[[str], Function],
    how: KernelComparison,
    said: Callable[[int], None] = lambda _count: None,
) -> list[int]:
    """Compare all kernels; return the number of input sets for each.

    ``reference`` and ``made`` return compiled kernels by name. ``said`` is told the number of equal
    kernels after each. The first difference is written to a reproducer and raised as
    :class:`WrongResultError`.
    """
    sets: list[int] = []
    # the first look-up links the library: do it before the fork
    functions = [(reference(case.kernel), made(case.kernel)) for case in found]

    def work() -> Iterator[tuple[int, Wrong | None, Any]]:
        for case, pair in zip(found, functions, strict=True):
            yield check(case, *pair, how.seed, how.tolerance)

    try:
        for count, wrong, inputs in isolated(work, LIMIT_S):
            if wrong is not None:
                _refuse(found[len(sets)], wrong, inputs, how)
            sets.append(count)
            said(len(sets))
    except Death as death:
        case = found[len(sets)]
        _refuse(case, _wrong(case, str(death)), next(_sets(case, how.seed)), how)
    return sets


def check(
    case: Case, reference: Function, made: Function, seed: int, tolerance: Tolerance = EXACT
) -> tuple[int, Wrong | None, list[Array]]:
    """Return the number of compared input sets, the first error, and the inputs that show it.

    A result that depends on the previous content of memory is an error.
    """
    count = 0
    for count, inputs in enumerate(_sets(case, seed), 1):
        given = {**case.constants, **dict(zip(case.drawn, inputs, strict=True))}
        expected = plainly(reference, case.signature, given, 0).outputs
        for poison in POISONS if count == 1 else POISONS[count % 2 :][:1]:
            found = poisoned(made, case.signature, given, poison)
            apart: Difference | str | None = found.damage
            apart = apart or first_difference(expected, found.outputs, tolerance)
            if apart is not None:
                return count, _wrong(case, apart), inputs
    return count, None, []


def _sets(case: Case, seed: int) -> Iterator[list[Array]]:
    return input_sets(case.parameters(), seed, case.fills())


def _wrong(case: Case, what: Difference | str) -> Wrong:
    return Wrong(case.operator, case.kernel, "TVM's own kernel", what)


def _refuse(case: Case, wrong: Wrong, inputs: Sequence[Array], how: KernelComparison) -> None:
    described = {
        "kind": "tir",
        "operator": case.operator,
        "kernel": case.kernel,
        "target": how.target,
        "tensors": [[list(shape), dtype] for shape, dtype in case.signature.tensors],
        "written": list(case.signature.written),
        "workspace_bytes": case.signature.workspace_bytes,
        "sizes": sorted(case.signature.sizes.items()),
        "drawn": list(case.drawn),
        "constants": sorted(case.constants),
        "reference": compat.script(case.reference),
        "made": compat.script(placeable(case.made)),
    }
    arrays = [*inputs, *(case.constants[i] for i in sorted(case.constants))]
    fail(wrong, write_reproducer(how.folder / f"serenity-wrong-{case.kernel}", described, arrays))
