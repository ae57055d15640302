"""SVDF operators: a filter over time whose memory is a state of the model.

TVM's importer knows no quantised SVDF, and its float one neither updates the state before it is
weighted nor returns it. Here the state comes in as an extra parameter of ``main`` (after the
inputs of the file) and goes out as an extra result (after its outputs), so that the module stays
a pure function; whoever runs the model feeds the one back into the other. ``main`` has the
attribute ``STATES``: the value that fills each state at first, the stored form of zero.

    state[b, f] <- state[b, f, 1:], sum_i x[b, i] * feature[f, i]
    y[b, u]      = activation(bias[u] + sum over f of unit u, m of state[b, f, m] * time[f, m])
"""

from collections.abc import Sequence
from typing import Any

import tflite
from tvm import relax

from tvm_serenity.operators import operator


def state_tensors(graph: Any, kinds: Sequence[str]) -> list[int]:
    """Return the tensors that are states of operators of a graph, in order."""
    found = [
        int(graph.Operators(i).Inputs(index))
        for i, kind in enumerate(kinds)
        for index in operator(kind).states
    ]
    return list(dict.fromkeys(found))


def initial_values(graph: Any, states: Sequence[int]) -> list[int]:
    """Return the stored value of zero for each state: its zero point."""
    found = (graph.Tensors(state).Quantization() for state in states)
    return [int(q.ZeroPoint(0)) if q is not None and q.ZeroPointLength() else 0 for q in found]


def convert_svdf(converter: Any, op: Any) -> Any:
    """Return the result of an SVDF operator; the new state replaces the old one."""
    source, feature, time, bias, state = converter.get_input_tensors(op)
    (result,) = converter.get_output_tensors(op)
    options = tflite.SVDFOptions()
    options.Init(op.BuiltinOptions().Bytes, op.BuiltinOptions().Pos)
    rank, activation = options.Rank(), options.FusedActivationFunction()
    batch = int(source.tensor.Shape(0))
    filters, memory = (int(extent) for extent in time.tensor.ShapeAsNumpy())

    columns = int(feature.tensor.Shape(1))
    read = relax.op.reshape(_real(converter, source), (batch, 1, columns))
    made = _weighted(read, _real(converter, feature), (1, filters, columns))
    if state.qnn_params is not None:
        made = converter.quantize(made, state)
    old = relax.op.reshape(converter.get_tensor_expr(state), (batch, filters, memory))
    newest = relax.op.reshape(made, (batch, filters, 1))
    kept = relax.op.strided_slice(old, axes=[2], begin=[1], end=[memory])
    new = newest if memory == 1 else relax.op.concat([kept, newest], axis=2)
    flat = converter.bb.emit(relax.op.reshape(new, (batch, filters * memory)))
    converter.exp_tab.set_expr(state.tensor.Name().decode(), flat, force_override=True)

    held = flat if state.qnn_params is None else converter.dequantize(flat, state)
    held = relax.op.reshape(held, (batch, filters // rank, rank * memory))
    total = _weighted(held, _real(converter, time), (1, filters // rank, rank * memory))
    if bias.tensor_idx != -1:
        total = relax.op.add(total, _real(converter, bias))
    if result.qnn_params is None:
        return converter.convert_fused_activation_function(total, activation)
    params = result.qnn_params
    return converter.convert_qnn_fused_activation_function(
        expr=converter.quantize(total, result),
        fused_activation_fn=activation,
        scale=params["scale"].value.numpy().item(),
        zero_point=params["zero_point"].value.numpy().item(),
        dtype=converter.get_tensor_type_str(result.tensor.Type()),
    )


def _real(converter: Any, tensor: Any) -> Any:
    expr = converter.get_tensor_expr(tensor)
    return expr if tensor.qnn_params is None else converter.dequantize(expr, tensor)


def _weighted(value: relax.Expr, weights: relax.Call, shape: tuple[int, int, int]) -> Any:
    return relax.op.sum(relax.op.multiply(value, relax.op.reshape(weights, shape)), axis=[-1])
