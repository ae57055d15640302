"""What a program must compute: every tensor as stock TVM computes it, outputs also by LiteRT."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.program import Array, Program
from tvm_serenity.firmware.referee import STEPS, Recorded, as_reference, confirmed_steps, recorded
from tvm_serenity.firmware.rows.program import RowProgram
from tvm_serenity.firmware.rows.trace import reference_rows
from tvm_serenity.firmware.tir.program import Compiled
from tvm_serenity.relax.read import BoundGraph
from tvm_serenity.relax.rows_read import RowModule
from tvm_serenity.validation.drawn import random_inputs


def reference(made: Compiled, seed: int = 0, model: str | None = None) -> dict[str, Array]:
    """Return seeded inputs, ``step<i>`` for every tensor in the order written, and outputs.

    The kernels are TVM's (before our schedules), compiled by LLVM and called by the Relax VM on
    memory of its own; each result is copied right after the call that made it. States have their
    first values. What the runtime of a ``model`` file computes is there, too: its outputs as
    ``litert<i>``, the steps whose tensors it has as ``litert_steps`` (``firmware.referee``).
    """
    inputs = first_inputs(made.lowered, made.program, seed)
    made_by, outputs = watched(made.executable, made.lowered, made.region, inputs)
    flat = [array for op in made.order for array in made_by.get(op, [])]
    _check_sizes(made.program, flat)
    steps = {f"step{i}": array for i, array in enumerate(flat)}
    judged = recorded(model, inputs)
    return {**_found(inputs, steps, outputs, judged), STEPS: confirmed_steps(judged, flat)}


def row_reference(
    rows: RowModule, program: RowProgram, seed: int = 0, model: str | None = None
) -> dict[str, Array]:
    """Return the same of a row program: its ``step<i>`` are rows, in the order written.

    Rows are cut out of the whole tensors that TVM's kernels make.
    """
    inputs = first_inputs(rows.lowered, program.program, seed)
    arrays, outputs = whole_tensors(rows, inputs)
    steps = reference_rows(program, arrays, inputs)
    return _found(inputs, steps, outputs, recorded(model, inputs))


def _found(
    inputs: Sequence[Array],
    steps: Mapping[str, Array],
    outputs: Sequence[Array],
    judged: Recorded,
) -> dict[str, Array]:
    found = {f"input{i}": array for i, array in enumerate(inputs)}
    found |= steps
    found |= {f"output{i}": array for i, array in enumerate(outputs)}
    return {**found, **as_reference(judged, outputs)}


def whole_tensors(rows: RowModule, inputs: list[Array]) -> tuple[dict[int, Array], list[Array]]:
    """Return the array of each feature that a kernel makes, and the outputs."""
    made_by, outputs = watched(rows.executable, rows.lowered, rows.region, inputs)
    by_tensor = {
        t: np.asarray(array)
        for op, arrays in made_by.items()
        for t, array in zip(rows.region.graph.ops[op].outputs, arrays, strict=True)
    }
    pairs = enumerate(rows.tensor_of)
    return {f: by_tensor[t] for f, t in pairs if t in by_tensor}, outputs


def first_inputs(lowered: tvm.IRModule, program: Program, seed: int) -> list[Array]:
    """Return seeded inputs of ``program``; states have their first values."""
    tensors = [program.tensors[t] for t in program.given]
    return [
        array if t.initial is None else np.full_like(array, t.initial)
        for array, t in zip(random_inputs(lowered, seed), tensors, strict=True)
    ]


def _check_sizes(program: Program, arrays: Sequence[Array]) -> None:
    expected = [program.tensors[t].size_bytes for s in program.steps for t in s.writes]
    if expected != [a.nbytes for a in arrays]:
        raise CheckError(f"{program.name}: the VM called other kernels than the program has")


def watched(
    executable: relax.VMExecutable,
    lowered: tvm.IRModule,
    region: BoundGraph,
    inputs: Sequence[Array],
) -> tuple[dict[int, list[Array]], list[Array]]:
    """Results of every op of ``region``, which was read off ``lowered``, and the outputs.

    ``executable`` is ``lowered`` compiled for this machine.
    """
    machine = relax.VirtualMachine(executable, tvm.cpu())
    names = {f.name_hint for f in lowered.get_global_vars()}
    ops = [i for i in range(len(region.graph.ops)) if _call(region, i) is not None]
    calls: list[list[Array]] = []

    def watch(_function: Any, name: str, before: bool, _result: Any, *arguments: Any) -> None:
        if not before and name in names and name != "main":
            written = _results(region, ops[len(calls)], len(arguments))
            calls.append([arguments[i].numpy().copy() for i in written])

    machine.set_instrument(watch)
    found = machine["main"](*(tvm.runtime.tensor(array) for array in inputs))
    return dict(zip(ops, calls, strict=True)), _arrays(found)


def _call(region: BoundGraph, op: int) -> Any:
    """The call of a kernel that an operator is, None for a view."""
    value = region.bindings[region.run[op]].value
    return value if compat.called_kernel(value) is not None else None


def _results(region: BoundGraph, op: int, count: int) -> Sequence[int]:
    """Which of a call's arguments it writes: the last ones, or the one it overwrites."""
    call = _call(region, op)
    taken = compat.overwritten(call)
    if taken is not None:
        arguments = compat.kernel_arguments(call)
        return [next(i for i, a in enumerate(arguments) if a.same_as(taken))]
    sizes = [region.graph.tensors[t].size_bytes for t in region.graph.ops[op].outputs]
    return range(count - sum(size > 0 for size in sizes), count)


def _arrays(found: tvm.runtime.Tensor | Iterable[Any]) -> list[Array]:
    if isinstance(found, tvm.runtime.Tensor):
        return [found.numpy()]
    return [array for part in found for array in _arrays(part)]
