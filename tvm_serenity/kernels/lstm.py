"""An int8 or int16 LSTM layer in one kernel: all steps of all batches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels import fixed16
from tvm_serenity.kernels.arithmetic import clamped, divided_by_power, i32, scaled
from tvm_serenity.kernels.build import written_for_any
from tvm_serenity.kernels.fixed16 import named
from tvm_serenity.kernels.records import Gate as Gate
from tvm_serenity.kernels.records import Lstm as Lstm
from tvm_serenity.kernels.sixteen import logistic_of, tanh_of
from tvm_serenity.quantize.fixed import multiplier

Function = Callable[[Any], Any]

INPUT, FORGET, CELL, OUTPUT = range(4)
"""Gates in the order of their weights."""
BITS = 3
"""Integer bits of a gate function's argument."""


def lstm(spec: Lstm) -> tirx.PrimFunc:
    """Return the kernel ``(x, weight, recurrent, bias, hidden, cell, result, hidden', cell')``.

    ``weight`` (4, units, inputs) and ``recurrent`` (4, units, units) are those of the gates;
    ``bias`` (2, 4, units) is added to each and includes zero points. For int16, the samples of the
    logistic function (``quantize.lookups``) follow the bias.
    """
    units, batch = spec.units, spec.batch
    hidden, cell = ((batch, units), spec.dtype), ((batch, units), "int16")
    samples = {"samples": ((256,), "int32")} if spec.dtype == "int16" else {}
    return written_for_any(
        {
            "x": (spec.source_shape, spec.dtype),
            "weight": ((4, units, spec.inputs), "int8"),
            "recurrent": ((4, units, units), "int8"),
            "bias": ((2, 4, units), "int32"),
            **samples,
            "hidden": hidden,
            "cell": cell,
            "result": (spec.output_shape, spec.dtype),
            "last": hidden,
            "kept": cell,
        },
        partial(_layer, spec),
    )


def _layer(spec: Lstm, *buffers: tirx.Var) -> None:
    """Emit the steps of all batches."""
    x, weight, recurrent, bias, *samples, hidden, cell, result, last, kept = buffers
    functions = functions_of(spec, samples)
    gates = T.alloc_buffer((4, spec.units), "int16")
    with T.serial(spec.batch) as b:
        with T.serial(spec.units) as u:
            T.buffer_store(last, hidden[b, u], [b, u])
            T.buffer_store(kept, cell[b, u], [b, u])
        with T.serial(spec.steps) as t:
            place = (t, b) if spec.time_major else (b, t)
            _gates(spec, (x, weight, recurrent, bias, last, gates), functions, b, place)
            _states(spec, (gates, last, kept, result), functions, b, place)


@dataclass(frozen=True)
class Functions:
    """The logistic function and tanh of three integer bits, and tanh of a cell."""

    logistic: Function
    tanh: Function
    of_cell: Function


def functions_of(spec: Lstm, samples: Sequence[Any]) -> Functions:
    """Return gemmlowp's functions, or TFLM's between ``samples``."""
    if spec.dtype != "int16":
        return Functions(
            lambda x: fixed16.logistic(x, BITS),
            lambda x: fixed16.tanh(x, BITS),
            lambda x: fixed16.tanh(x, spec.cell_bits),
        )
    factor, shift = spec.cell_steps
    return Functions(
        lambda x: logistic_of(x, samples[0], BITS, 0),
        lambda x: tanh_of(x, samples[0], BITS, 0),
        lambda x: tanh_of(x, samples[0], factor, shift),
    )


def _gates(
    spec: Lstm,
    buffers: tuple[Any, ...],
    functions: Functions,
    b: tirx.Var,
    place: tuple[Any, Any],
) -> None:
    """Emit all gates of a step, from its input and the previous state."""
    x, weight, recurrent, bias, last, gates = buffers
    wide, how = ("int64", "wide") if spec.dtype == "int16" else ("int32", "tflite")
    for number, gate in enumerate(spec.gates):
        with T.serial(spec.units) as u:
            total = T.alloc_buffer((1,), wide)
            T.buffer_store(total, bias[0, number, u].astype(wide), [0])
            with T.serial(spec.inputs) as k:
                term = x[(*place, k)].astype("int32") * weight[number, u, k].astype("int32")
                T.buffer_store(total, total[0] + term.astype(wide), [0])
            given = named(_narrow(scaled(named(total[0], wide), gate.inputs, how)))
            T.buffer_store(total, bias[1, number, u].astype(wide), [0])
            with T.serial(spec.units) as k:
                term = last[b, k].astype("int32") * recurrent[number, u, k].astype("int32")
                T.buffer_store(total, total[0] + term.astype(wide), [0])
            kept = scaled(named(total[0], wide), gate.state, how)
            kept = named(_narrow(kept)) if spec.dtype == "int16" else kept
            both = named(_narrow(kept + given))
            of = functions.tanh if number == CELL else functions.logistic
            T.buffer_store(gates, of(both).astype("int16"), [number, u])


def _states(
    spec: Lstm,
    buffers: tuple[Any, ...],
    functions: Functions,
    b: tirx.Var,
    place: tuple[Any, Any],
) -> None:
    """Emit the new cells, the new state and the result."""
    gates, last, kept, result = buffers
    with T.serial(spec.units) as u:
        into, forget, new, out = (gates[number, u].astype("int32") for number in range(4))
        old = named(_product(spec, named(forget * kept[b, u].astype("int32")), 15))
        more = named(_product(spec, named(into * new), 15 + spec.cell_bits))
        total = named(_narrow(old + more))
        if spec.clip:
            total = named(tirx.max(tirx.min(total, i32(spec.clip)), i32(-spec.clip)))
        T.buffer_store(kept, total.astype("int16"), [b, u])
        made = scaled(named(out * functions.of_cell(total)), spec.hidden)
        limits = np.iinfo(spec.dtype)
        state = clamped(made + i32(spec.zero), int(limits.min), int(limits.max), "int32")
        state = named(state)
        T.buffer_store(result, state.astype(spec.dtype), [*place, u])
        T.buffer_store(last, state.astype(spec.dtype), [b, u])


def _product(spec: Lstm, x: tirx.Expr, power: int) -> Any:
    """Return 32-bit ``x`` divided by a power of two.

    TFLM multiplies, rounds twice and saturates.
    """
    if spec.dtype == "int16":
        return _narrow(scaled(x, multiplier(2.0**-power)))
    return _wrapped(named(divided_by_power(x, power)))


def _narrow(x: tirx.Expr) -> Any:
    """Return 32-bit ``x`` saturated to 16 bits."""
    return tirx.max(tirx.min(x, i32(32767)), i32(-32768))


def _wrapped(x: tirx.Expr) -> Any:
    return x.astype("int16").astype("int32")
