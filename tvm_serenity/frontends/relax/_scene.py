"""Conversion of ``.tflite`` operators to records, and their emission as Relax.

The operator's file in ``tvm_serenity.operators`` defines meaning and computation; here the
importer's tensors become a :class:`Scene`, and kernels and plain forms become calls.
"""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.frontends._flatbuffer import FileBytes, empty_table, table_at
from tvm_serenity.frontends._flexbuffer import custom_options, flexible
from tvm_serenity.frontends._tflite_schema import OperatorField
from tvm_serenity.frontends.relax._converter import Converter, ReadOperator, Wrapper
from tvm_serenity.frontends.relax._opaque import opaque_call
from tvm_serenity.graph import Graph
from tvm_serenity.operators import Operator, operator
from tvm_serenity.operators.pieces import Reader, read_in_pieces
from tvm_serenity.operators.scene import Array, Expr, Scene, SceneTensor, Shape
from tvm_serenity.quantize.choices import OFF
from tvm_serenity.quantize.params import Affine
from tvm_serenity.relax.calls import Writer

if TYPE_CHECKING:
    import tflite


def converted(converter: Converter, op: "tflite.Operator", kind: str) -> Any:
    """Return the expression of an operator; None if TVM's importer converts it correctly.

    Quantised operators are computed in integers if there is a kernel, otherwise by the plain form
    if that accepts stored values.
    """
    if kind in converter.model.opaque:
        return opaque_call(converter, op, kind, FileWriter(converter, op))
    known = operator(kind)
    quantised = known.integers.exact or _is_quantised(converter, op, known)
    made = (_in_integers if quantised else _on_the_fly)(converter, op, kind, known)
    if isinstance(made, list):
        return relax.Tuple(made)
    if (
        made is not None
        or known.numbers.form is None
        or (quantised and not (known.integers.moves or known.numbers.stored))
    ):
        return made
    writer = FileWriter(converter, op)
    made = known.numbers.form(scene_of(converter, op, kind), _values(converter, op), writer)
    if isinstance(made, list):
        return relax.Tuple(made)
    return compat.constant(made) if isinstance(made, np.ndarray) else made


def _is_quantised(converter: Converter, op: "tflite.Operator", known: Operator) -> bool:
    """Return whether an operator has quantised tensors, besides weights of floats."""
    given, made = converter.get_input_tensors(op), converter.get_output_tensors(op)
    if known.integers.dynamic is not None and converter.weights_alone(given, made):
        return False
    if known.layer.sums is not None:
        given = given[known.layer.sums.source : known.layer.sums.source + 1]
    return any(tensor.qnn_params is not None for tensor in (*given, *made))


def _values(converter: Converter, op: "tflite.Operator") -> list[Any]:
    """Return the expressions of the inputs, None for omitted ones."""
    given = converter.get_input_tensors(op)
    found = [None if w.tensor_idx == -1 else converter.get_tensor_expr(w) for w in given]
    return [None if v is None else converter.bb.normalize(v) for v in found]


def _in_integers(converter: Converter, op: "tflite.Operator", kind: str, known: Operator) -> Any:
    """Return the integer form of an operator; None if it has none or float is requested."""
    if known.integers.read is None or known.integers.compute is None:
        return None
    if known.integers.in_float and converter.model.integers.rounding == OFF:
        return None
    record = known.integers.read(scene_of(converter, op, kind))
    if record is None:
        return None
    converter.model.rounds |= known.integers.in_float
    if converter.model.readings is not None:
        converter.model.readings.append(_reading(converter, op, kind, record))
    return known.integers.compute(record, _values(converter, op), FileWriter(converter, op))


def _on_the_fly(converter: Converter, op: "tflite.Operator", kind: str, known: Operator) -> Any:
    """Return LiteRT's form of a float operator with 8-bit weights; None for others."""
    given, made = converter.get_input_tensors(op), converter.get_output_tensors(op)
    dynamic, integers = known.integers.dynamic, converter.model.integers
    if dynamic is None or not integers.on_the_fly or not converter.weights_alone(given, made):
        return None
    record = dynamic.read(scene_of(converter, op, kind))
    if record is None:  # LiteRT has no kernel for these types
        converter.dequantise_weights(given[1:])
        return None
    if converter.model.readings is not None:
        converter.model.readings.append(_reading(converter, op, kind, record))
    return dynamic.compute(record, _values(converter, op), FileWriter(converter, op))


def _reading(converter: Converter, op: "tflite.Operator", kind: str, record: Any) -> ReadOperator:
    known = operator(kind)
    reference = known.integers.reference
    if known.integers.dynamic is not None and not _is_quantised(converter, op, known):
        reference = known.integers.dynamic.reference
    wrappers = [w for w in converter.get_input_tensors(op) if w.tensor_idx != -1]
    constants = {
        w.tensor_idx: np.asarray(converter.get_tensor_value(w))
        for w in wrappers
        if not converter.has_expr(w.tensor_idx)
    }
    given = converter.get_input_tensors(op)
    known, own = operator(kind), converter.model.kept.get(op._tab.Pos, ())
    places = (*known.state.inputs, *range(len(given) - len(own), len(given)))
    states = {given[i].tensor_idx: _at_first(converter, given[i]) for i in places}
    inputs = tuple(w.tensor_idx for w in converter.get_input_tensors(op))
    return ReadOperator(kind, record, inputs, constants, states, reference)


def _at_first(converter: Converter, wrapper: Wrapper) -> Array:
    """Return the initial value of a state: the stored form of zero."""
    held = _tensor(converter, wrapper, False)
    return np.full(held.shape, held.params.zero_point if held.params else 0, held.dtype)


def scene_of(converter: Converter, op: "tflite.Operator", kind: str) -> Scene:
    """Return the view of an operator that records are read from."""
    table = table_at(FileBytes(converter.model.data), op._tab.Pos)
    options = table.table(OperatorField.BUILTIN_OPTIONS)
    return Scene(
        kind,
        [_operand(converter, wrapper, True) for wrapper in converter.get_input_tensors(op)],
        [_tensor(converter, wrapper, False) for wrapper in converter.get_output_tensors(op)],
        empty_table() if options is None else options,
        options is not None,
        converter.model.integers.rounding,
        [_tensor(converter, wrapper, False) for wrapper in _intermediates(converter, op)],
        flexible(custom_options(table)),
    )


def _intermediates(converter: Converter, op: "tflite.Operator") -> Any:
    """Return the internal tensors of an operator that its file describes."""
    held = op.IntermediatesAsNumpy() if op.IntermediatesLength() else []
    return converter.get_tensors(held)


def _operand(converter: Converter, wrapper: Wrapper, given: bool) -> SceneTensor | None:
    return None if wrapper.tensor_idx == -1 else _tensor(converter, wrapper, given)


def _tensor(converter: Converter, wrapper: Wrapper, given: bool) -> SceneTensor:
    dtype = converter.get_tensor_type_str(wrapper.tensor.Type())
    shape = tuple(int(extent) for extent in np.atleast_1d(wrapper.tensor.ShapeAsNumpy()))
    if not wrapper.tensor.ShapeLength():  # a scalar, or an omitted shape
        shape = ()
        if given:
            expr = converter.bb.normalize(converter.get_tensor_expr(wrapper))
            shape = tuple(int(extent) for extent in expr.ty.shape)
    values = None
    if given and not converter.has_expr(wrapper.tensor_idx) and wrapper.buffer.DataLength():
        values = np.asarray(converter.get_tensor_value(wrapper))
    return SceneTensor(shape, dtype, _params(wrapper.qnn_params, dtype), values)


def _params(found: Mapping[str, Any] | None, dtype: str) -> Affine | None:
    if found is None:
        return None
    scales = np.asarray(found["scale"].value.numpy(), np.float32).reshape(-1)
    zero = int(found["zero_point"].value.numpy())
    return Affine(tuple(float(s) for s in scales), (zero,), dtype, int(found["axis"]))


def readers(graph: Graph, tensor: int) -> list[Reader[int]] | None:
    """Return the convolutions that read a tensor; None if other operators read it."""
    shape = graph.tensors[tensor].shape
    if tensor in graph.returned or shape is None or len(shape) != 4:
        return None
    found = []
    for index in graph.consumers[tensor]:
        op, weights = graph.ops[index], operator(graph.ops[index].kind).layer.weights
        if weights is None or op.inputs[0] != tensor or op.inputs.count(tensor) != 1:
            return None
        held = graph.tensors[op.inputs[weights.operand]].shape or ()
        whole = weights.inputs is not None and held[weights.inputs] == shape[weights.channels]
        apart = weights.inputs is None or held[weights.inputs] == 1
        whole = whole or shape[weights.channels] == 1
        found.append(Reader(whole, op.outputs[0] if apart else None))
    return found


class FileWriter(Writer):
    """Writes calls for an operator of a file, and knows the readers of each tensor."""

    def __init__(self, converter: Converter, op: "tflite.Operator") -> None:
        super().__init__(converter.bb)
        self.converter, self.op = converter, op

    def real(self, operand: int, value: Expr) -> Expr:
        """Return the real numbers of a stored input; ``value`` itself if it is not quantised."""
        wrapper = self.converter.get_input_tensors(self.op)[operand]
        if wrapper.qnn_params is None or compat.dtype_name(value.ty).startswith("float"):
            return value
        return self.builder.emit(self.converter.dequantize(value, wrapper))

    def stored(self, value: Expr, operand: int | None = None) -> Expr:
        """Quantise real numbers as an input (None: the result), if that is quantised."""
        wrapper = self.converter.get_output_tensors(self.op)[0]
        if operand is not None:
            wrapper = self.converter.get_input_tensors(self.op)[operand]
        if wrapper.qnn_params is None:
            return value
        return self.builder.emit(self.converter.quantize(value, wrapper))

    def pieces(self, operand: int, axis: int) -> list[tuple[Expr, Shape]] | None:
        """Return the operands of a concatenation that only convolutions read, otherwise None."""
        wrapper = self.converter.get_input_tensors(self.op)[operand]
        graph, folds = self.converter.model.graph, self.converter.model.integers.fold_concat
        if not folds or not read_in_pieces(wrapper.tensor_idx, partial(readers, graph)):
            return None
        return self.joined(self.converter.get_tensor_expr(wrapper), axis)

    def leave(self, operand: int, value: Expr) -> Expr:
        """Record ``value`` as the new value of a state; return it."""
        state = self.converter.get_input_tensors(self.op)[operand]
        held = self.builder.emit(value)
        self.converter.exp_tab.set_expr(state.tensor.Name().decode(), held, force_override=True)
        return held
