"""Compiles a network that updates its states in place as a step, such as one token of a decoder.

The states stay in the arena between two steps, where nothing else lies: they are inputs and results
of the graph that is ordered and placed. The network runs unsplit.
"""

from dataclasses import replace

import tvm

from tvm_serenity.errors import InputError
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.incremental import Moving, State
from tvm_serenity.firmware.program import Bands, Fed, Program
from tvm_serenity.graph.row_axes import row_axes, upright
from tvm_serenity.kernels.rows import has_rows
from tvm_serenity.relax.attributes import first_values
from tvm_serenity.relax.read import BoundGraph, read_function


def updates_in_place(lowered: tvm.IRModule) -> bool:
    """Return whether a state of a lowered module is updated in its own memory."""
    region = read_function(lowered, workspace=False)
    count = len(first_values(lowered["main"]))
    graph, results = region.graph, region.results[len(region.results) - count :]
    pairs = zip(graph.inputs[len(graph.inputs) - count :], results, strict=True)
    return any(graph.storage[made] == state for state, made in pairs)


def as_step(maker: NetworkCompiler) -> Compiled:
    """Return the network as a step that reads the complete input; states stay in the arena.

    Raises :class:`InputError` unless the network has one input beside its states, of
    ``settings.sliding`` rows.
    """
    made = maker.unsplit(maker.settings)
    program, initial = made.program, first_values(maker.module["main"])
    count = len(initial)
    given, states = program.inputs[:-count], program.inputs[-count:]
    if len(given) != 1:
        names = ", ".join(program.tensors[t].name for t in given)
        raise InputError(
            f"{maker.name}: it has {len(given)} inputs ({names}), but --sliding needs a "
            "network with one input"
        )
    rows = _rows(made.region)
    if maker.settings.sliding != rows:
        raise InputError(
            f"--sliding {maker.settings.sliding}: {maker.name} keeps {count} states itself, so "
            f"each run needs {rows} new rows; use --sliding {rows}"
        )
    moving = _moving(program, rows, initial, states, maker.settings.windows)
    return replace(made, program=moving)


def _rows(region: BoundGraph) -> int:
    """Return the number of rows of the first input."""
    graph = region.graph
    shape = upright(graph.tensors[graph.inputs[0]].shape or (), row_axes(graph)[graph.inputs[0]])
    return shape[1] if has_rows(shape) else 1


def _moving(
    program: Program,
    rows: int,
    initial: list[int],
    states: tuple[int, ...],
    compared: int | None,
) -> Program:
    """Return a program whose input of ``rows`` rows arrives, and which keeps its states."""
    fed, outputs = program.inputs[0], program.outputs[: len(program.outputs) - len(states)]
    following = program.outputs[len(outputs) :]
    bands = list(program.bands)
    bands[fed] = Bands(bands[fed].places, rows, rows)
    kept = map(State, states, following, initial)
    return replace(
        program,
        bands=tuple(bands),
        inputs=(),
        outputs=outputs,
        fed=Fed(fed, rows, program.tensors[fed].size_bytes // rows),
        moving=Moving(rows, 1, (), tuple(kept), compared),
    )
