"""An LSTM layer of int8 whole: every step of every batch in one kernel."""

from functools import partial
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels import fixed16
from tvm_serenity.kernels.arithmetic import clamped, divided_by_power, i32, scaled
from tvm_serenity.kernels.build import written
from tvm_serenity.kernels.fixed16 import named
from tvm_serenity.kernels.records import Gate as Gate
from tvm_serenity.kernels.records import Lstm as Lstm

INPUT, FORGET, CELL, OUTPUT = range(4)
"""Gates in the order of their weights."""
BITS = 3
"""Integer bits of what a gate's function takes."""


def lstm(spec: Lstm) -> tirx.PrimFunc:
    """Return the kernel ``(x, weight, recurrent, bias, hidden, cell, result, hidden', cell')``.

    ``weight`` (4, units, inputs) and ``recurrent`` (4, units, units) are those of the gates, and
    ``bias`` (2, 4, units) what is added to each, zero points included.
    """
    units, batch = spec.units, spec.batch
    hidden, cell = ((batch, units), "int8"), ((batch, units), "int16")
    return written(
        {
            "x": (spec.source_shape, "int8"),
            "weight": ((4, units, spec.inputs), "int8"),
            "recurrent": ((4, units, units), "int8"),
            "bias": ((2, 4, units), "int32"),
            "hidden": hidden,
            "cell": cell,
            "result": (spec.output_shape, "int8"),
            "last": hidden,
            "kept": cell,
        },
        partial(_layer, spec),
    )


def _layer(spec: Lstm, *buffers: tirx.Var) -> None:
    """Emit the steps of every batch."""
    x, weight, recurrent, bias, hidden, cell, result, last, kept = buffers
    gates = T.alloc_buffer((4, spec.units), "int16")
    with T.serial(spec.batch) as b:
        with T.serial(spec.units) as u:
            T.buffer_store(last, hidden[b, u], [b, u])
            T.buffer_store(kept, cell[b, u], [b, u])
        with T.serial(spec.steps) as t:
            place = (t, b) if spec.time_major else (b, t)
            _gates(spec, (x, weight, recurrent, bias, last, gates), b, place)
            _states(spec, (gates, last, kept, result), b, place)


def _gates(spec: Lstm, buffers: tuple[Any, ...], b: tirx.Var, place: tuple[Any, Any]) -> None:
    """Emit all gates of a step, from its input and the state before."""
    x, weight, recurrent, bias, last, gates = buffers
    for number, gate in enumerate(spec.gates):
        with T.serial(spec.units) as u:
            total = T.alloc_buffer((1,), "int32")
            T.buffer_store(total, bias[0, number, u], [0])
            with T.serial(spec.inputs) as k:
                term = x[(*place, k)].astype("int32") * weight[number, u, k].astype("int32")
                T.buffer_store(total, total[0] + term, [0])
            given = named(_narrow(scaled(named(total[0]), gate.inputs)))
            T.buffer_store(total, bias[1, number, u], [0])
            with T.serial(spec.units) as k:
                term = last[b, k].astype("int32") * recurrent[number, u, k].astype("int32")
                T.buffer_store(total, total[0] + term, [0])
            both = named(_narrow(scaled(named(total[0]), gate.state) + given))
            of = fixed16.tanh if number == CELL else fixed16.logistic
            T.buffer_store(gates, of(both, BITS).astype("int16"), [number, u])


def _states(spec: Lstm, buffers: tuple[Any, ...], b: tirx.Var, place: tuple[Any, Any]) -> None:
    """Emit what gates make of the cells, and of these the state and the result."""
    gates, last, kept, result = buffers
    with T.serial(spec.units) as u:
        into, forget, new, out = (gates[number, u].astype("int32") for number in range(4))
        old = named(divided_by_power(named(forget * kept[b, u].astype("int32")), 15))
        more = named(divided_by_power(named(into * new), 15 + spec.cell_bits))
        total = named(_narrow(_wrapped(old) + _wrapped(more)))
        if spec.clip:
            total = named(tirx.max(tirx.min(total, i32(spec.clip)), i32(-spec.clip)))
        T.buffer_store(kept, total.astype("int16"), [b, u])
        made = scaled(named(out * fixed16.tanh(total, spec.cell_bits)), spec.hidden)
        state = named(clamped(made + i32(spec.zero), -128, 127, "int32"))
        T.buffer_store(result, state.astype("int8"), [*place, u])
        T.buffer_store(last, state.astype("int8"), [b, u])


def _narrow(x: tirx.Expr) -> Any:
    """32-bit ``x``, saturated to 16 bits."""
    return tirx.max(tirx.min(x, i32(32767)), i32(-32768))


def _wrapped(x: tirx.Expr) -> Any:
    return x.astype("int16").astype("int32")
