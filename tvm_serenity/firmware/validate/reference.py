"""The expected tensors of a program, computed by stock TVM, and outputs also by LiteRT."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.check.reference_runtime import (
    ALLOWED,
    NOTE,
    SAID,
    STEPS,
    Recorded,
    as_reference,
    confirmed_steps,
    recorded,
    recorded_runs,
)
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.program import Array, Program
from tvm_serenity.firmware.trace import expected, expected_windows, written
from tvm_serenity.relax.read import BoundGraph
from tvm_serenity.validation.network_inputs import allowed_inputs, inputs_of_seeds, random_inputs
from tvm_serenity.validation.references import ReferenceRuntime

SEED = 0
"""Draws the inputs that a project's reference holds."""


def reference(
    made: Compiled,
    seed: int = SEED,
    model: str | None = None,
    process: ReferenceRuntime | None = None,
) -> dict[str, Array]:
    """Return seeded inputs, the traced tensors ``step<i>`` in the order of writing, and outputs.

    The kernels are TVM's, without our schedules, compiled by LLVM and called by the Relax VM in its
    own memory; each result is copied right after its call. Rows are taken from the complete
    tensors. States have their first values. The results of the runtime of a ``model`` file are
    included: its outputs as ``litert<i>``, and the steps whose tensors it confirms as
    ``litert_steps`` (``firmware.check.reference_runtime``).
    ``process`` is asked for them, by default a new one.
    """
    program = made.program
    if program.moving is not None:
        return _on_windows(made, seed, model, process)
    inputs = first_inputs(made.lowered, program, seed)
    found, outputs = tensors_of(made, inputs)
    _check_sizes(program, found)
    answers = recorded(model, inputs, process)
    shown = [tensor for tensor, _ in written(program)]
    distinct = list(dict.fromkeys(shown))
    confirmed = {distinct[i] for i in confirmed_steps(answers, [found[t] for t in distinct])}
    steps = np.array([i for i, tensor in enumerate(shown) if tensor in confirmed], np.int64)
    return {
        **{f"input{i}": array for i, array in enumerate(inputs)},
        **expected(program, found),
        **{f"output{i}": array for i, array in enumerate(outputs)},
        **as_reference(answers, outputs, process),
        STEPS: steps,
    }


def more_references(
    made: Compiled, model: str | None, count: int, process: ReferenceRuntime | None = None
) -> list[tuple[list[Array], Recorded | dict[str, Array]]]:
    """Return further inputs, ``count`` in total, with the outputs of the model's runtime.

    Inputs the runtime has no answer to have TVM's outputs, as ``reference`` has them; so have all
    without a ``model``. ``process``: as of ``reference``.
    """
    drawn = [first_inputs(made.lowered, made.program, seed) for seed in range(1, count)]
    if model is None:
        return [(inputs, _own_outputs(made, inputs)) for inputs in drawn]
    answers = recorded_runs(model, drawn, keep=False, process=process)
    pairs = zip(drawn, answers, strict=True)
    return [
        (inputs, answer if not answer.note else _own_outputs(made, inputs))
        for inputs, answer in pairs
    ]


def _own_outputs(made: Compiled, inputs: Sequence[Array]) -> dict[str, Array]:
    """Return the outputs of TVM's kernels, by their keys in a reference."""
    _, outputs = tensors_of(made, inputs)
    return {f"output{i}": array for i, array in enumerate(outputs)}


def drawn_from(made: Compiled) -> dict[str, Any]:
    """Return the ranges of random inputs for ``metadata.json`` (``check.drawn_inputs``)."""
    tensors = [made.program.tensors[t] for t in made.program.given]
    allowed = allowed_inputs(made.lowered)
    return {
        "allowed": {str(at): [held.low, held.high] for at, held in allowed.items()},
        "states": {str(i): t.initial for i, t in enumerate(tensors) if t.initial is not None},
    }


def _on_windows(
    made: Compiled, seed: int, model: str | None, process: ReferenceRuntime | None
) -> dict[str, Array]:
    """The same of incremental inference along a stream, one after the other; outputs are stacked.

    ``input0`` is the stream, row by row. The traced tensors of a window are the rows that its step
    computes.
    """
    program, shown = made.program, [tensor for tensor, _ in written(made.program)]
    distinct = list(dict.fromkeys(shown))
    stream, windows = stream_of(made, seed)
    runs = _runs(made, windows)
    assert program.moving is not None
    follow = bool(program.moving.states)
    answers = recorded_runs(model, [[window] for window in windows], follow, process=process)
    steps: list[int] = []
    found: dict[str, list[Array]] = {}
    for number, ((arrays, outputs), answer) in enumerate(zip(runs, answers, strict=True)):
        _check_sizes(program, arrays)
        confirmed = {distinct[i] for i in confirmed_steps(answer, [arrays[t] for t in distinct])}
        begun = number * len(shown)
        steps += [begun + i for i, tensor in enumerate(shown) if tensor in confirmed]
        named = {f"output{i}": array for i, array in enumerate(outputs)}
        for key, array in {**named, **as_reference(answer, outputs, process)}.items():
            found.setdefault(key, []).append(array)
    once = {key: arrays[0] for key, arrays in found.items() if key in (NOTE, SAID)}
    if ALLOWED in found:
        once[ALLOWED] = np.max(found[ALLOWED], axis=0)
    return {
        "input0": stream,
        **expected_windows(program, [arrays for arrays, _ in runs]),
        **{key: np.stack(arrays) for key, arrays in found.items() if key not in once},
        **once,
        STEPS: np.array(steps, np.int64),
    }


def stream_of(made: Compiled, seed: int) -> tuple[Array, list[Array]]:
    """Return a seeded stream of rows, and its windows in the shape of the network's input."""
    program = made.program
    assert program.moving is not None
    assert program.fed is not None
    height, step = program.fed.rows, program.moving.step
    parts, inputs = list[Array](), inputs_of_seeds(made.lowered)
    while len(parts) * height < program.rows_fed:
        drawn, *_ = inputs(seed + len(parts))
        parts.append(drawn.reshape(height, -1))
    stream = np.concatenate(parts)[: program.rows_fed]
    first = program.moving.steps_to_fill * step - height
    starts = range(first, program.rows_fed - height + 1, step)
    return stream, [stream[at : at + height].reshape(drawn.shape) for at in starts]


def _runs(made: Compiled, windows: Sequence[Array]) -> list[tuple[dict[int, Array], list[Array]]]:
    """Return the tensors and outputs of each window; states are those after the previous window."""
    program, found = made.program, []
    assert program.moving is not None
    known = [(program.tensors[s.tensor], s.initial) for s in program.moving.states]
    states = [np.full(t.shape, initial, t.dtype) for t, initial in known]
    for window in windows:
        arrays, results = tensors_of(made, [window, *states])
        states = results[len(results) - len(states) :]
        found.append((arrays, results[: len(program.outputs)]))
    return found


def tensors_of(made: Compiled, inputs: Sequence[Array]) -> tuple[dict[int, Array], list[Array]]:
    """Return the array of each input and computed tensor of a program, and the outputs."""
    arrays, outputs = made_by_tvm(made.library, made.lowered, made.region, inputs)
    states = () if made.program.moving is None else made.program.moving.states
    given = (*made.program.given, *(state.tensor for state in states))
    passed = dict(zip(given, inputs, strict=True))
    held = {made.tensors[i]: array for i, array in passed.items()} | arrays
    found = {i: held[t] for i, t in enumerate(made.tensors) if t is not None and t in held}
    return {**passed, **found}, outputs


def made_by_tvm(
    library: tvm.runtime.Module,
    lowered: tvm.IRModule,
    region: BoundGraph,
    inputs: Sequence[Array],
) -> tuple[dict[int, Array], list[Array]]:
    """Return the array of each computed tensor of ``region``, and the outputs."""
    graph = region.graph
    by_op, outputs = watched(library, lowered, region, inputs)
    found: dict[int, Array] = {}
    for op, results in by_op.items():
        stored = (t for t in graph.ops[op].outputs if graph.tensors[t].size_bytes)
        found.update(zip(stored, map(np.asarray, results), strict=True))
    return found, outputs


def first_inputs(lowered: tvm.IRModule, program: Program, seed: int) -> list[Array]:
    """Return seeded inputs of ``program``; states have their initial values."""
    tensors = [program.tensors[t] for t in program.given]
    return [
        array if t.initial is None else np.full_like(array, t.initial)
        for array, t in zip(random_inputs(lowered, seed), tensors, strict=True)
    ]


def _check_sizes(program: Program, arrays: Mapping[int, Array]) -> None:
    for tensor, _ in written(program):
        size = program.tensors[tensor].size_bytes
        if tensor not in arrays or arrays[tensor].nbytes != size:
            raise CheckError(
                f"{program.name}: the kernels that the VM called differ from those of the program"
            )


def watched(
    library: tvm.runtime.Module,
    lowered: tvm.IRModule,
    region: BoundGraph,
    inputs: Sequence[Array],
) -> tuple[dict[int, list[Array]], list[Array]]:
    """Return the results of every op of ``region``, and the outputs.

    ``region``: the graph of ``lowered``; ``library``: ``lowered`` compiled for this machine.
    """
    machine = relax.VirtualMachine(library, tvm.cpu())
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
    """Return the kernel call of an operator, None for a view."""
    value = region.bindings[region.run[op]].value
    return value if compat.called_kernel(value) is not None else None


def _results(region: BoundGraph, op: int, count: int) -> Sequence[int]:
    """Return the arguments that a call writes: the last ones, or the overwritten one."""
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
