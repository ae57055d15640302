"""Conversion of ``.tflite`` files to Relax: TVM 0.27's importer with its gaps closed.

Operators have their meaning in records (``tvm_serenity.operators``): quantised ones are computed in
integers, others in their plain form; the importer converts the rest. Gaps of the importer that
belong to no single operator are closed here, each by overriding one method:

* The importer refuses operators that only move elements (PAD, TRANSPOSE, ...) on quantised tensors,
  although they are exact: the list of quantised operators is extended.
* It reads a bias that is omitted by the index -1 as a tensor.
* It takes the channel axis of a tensor with one scale literally; the axis may exceed the rank
  (person_detect).
* It truncates the mean of quantised values in AVERAGE_POOL_2D instead of rounding it.
* It refuses integer weights of float operators (dynamic range quantisation): here activations are
  quantised at run time as in LiteRT, or the weights are dequantised.
* It identifies tensors by names, which may repeat or be missing: ours are unique.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity.errors import MissingPartError, UnsupportedError
from tvm_serenity.frontends.model_file import REMEDY
from tvm_serenity.frontends.relax._converter import Integers, ReadOperator, Wrapper
from tvm_serenity.frontends.relax._importer import placed, run_importer
from tvm_serenity.frontends.relax._quantisation import INT4, check_parameters, scale_of, unpacked
from tvm_serenity.frontends.relax._scene import converted
from tvm_serenity.frontends.relax._stateful import STARTED, begin, part_results
from tvm_serenity.frontends.relax._states import initial_values, state_tensors, unlisted
from tvm_serenity.frontends.relax._variables import variables
from tvm_serenity.frontends.tflite_file import TfliteFile
from tvm_serenity.graph import Tensor
from tvm_serenity.operators import OPERATORS as KNOWN
from tvm_serenity.operators import operator
from tvm_serenity.operators.scene import LIMITS
from tvm_serenity.quantize.choices import FLOAT
from tvm_serenity.quantize.fixed import half_away
from tvm_serenity.relax.attributes import (
    DYNAMIC_RANGE,
    INPUT_SCALES,
    OPERATORS,
    OUTPUT_SCALES,
    ROUNDING,
    STATES,
)

try:
    import tflite
    from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter, from_tflite
except ImportError as error:
    raise MissingPartError(
        f"importing .tflite files needs {error.name}; run pip install tflite flatbuffers"
    ) from None


def convert(model: TfliteFile, integers: Integers) -> tvm.IRModule:
    """Return ``model`` as a Relax module; raise with all unsupported operators by name."""
    root = _Model(model, integers)
    check_parameters(root.Subgraphs(0), [tensor.name for tensor in model.graph.tensors])
    mod = run_importer(lambda: from_tflite(root, op_converter=Converter))
    main = mod["main"].without_attr("params")  # it is a second copy of each constant
    graph = root.Subgraphs(0)
    inputs = [scale_of(graph.Tensors(graph.Inputs(i))) for i in range(graph.InputsLength())]
    outputs = [scale_of(graph.Tensors(graph.Outputs(i))) for i in range(graph.OutputsLength())]
    main = main.with_attr(INPUT_SCALES, inputs).with_attr(OUTPUT_SCALES, outputs)
    main = main.with_attr(ROUNDING, integers.rounding) if root.rounds else main
    if root.dynamic:
        how = integers.dynamic_range if integers.on_the_fly else FLOAT
        main = main.with_attr(DYNAMIC_RANGE, how)
    mod["main"] = main.with_attr(OPERATORS, root.labels)
    if root.states:
        mod["main"] = mod["main"].with_attr(STATES, root.first_values())
    if root.rounds:  # remove concatenations and padding that were merged into their readers
        mod = relax.transform.DeadCodeElimination(["main"])(mod)
    return mod


def readings(model: TfliteFile) -> list[ReadOperator]:
    """Return the quantised operators of ``model`` that have records, in file order."""
    root = _Model(model, Integers())
    root.readings = []
    run_importer(lambda: from_tflite(root, op_converter=Converter))
    return root.readings


class _Model(tflite.Model):  # type: ignore[misc]
    """The file, with the unique tensor names of our graph in its main graph."""

    def __init__(self, model: TfliteFile, integers: Integers) -> None:
        root = tflite.Model.GetRootAsModel(model.data, 0)
        self.Init(root._tab.Bytes, root._tab.Pos)
        self.names = [tensor.name.encode() for tensor in model.graph.tensors]
        kinds = [op.kind for op in model.graph.ops]
        self.variables = variables(model)
        self.names = [self.names[self.variables.names.get(i, i)] for i in range(len(self.names))]
        self.own = [self._held(i, tensor) for i, tensor in enumerate(model.graph.tensors)]
        self.states = state_tensors(super().Subgraphs(0), kinds, model.kept)
        self.states += [variable.handle for variable in self.variables.states]
        self.started = len(self.own)
        if self.variables.selected:
            self.own.append(Tensor(STARTED, 1, (1,), "int8"))
            self.names.append(STARTED.encode())
            self.states.append(self.started)
        self.labels: dict[str, str] = {}
        self.dynamic = False
        self.data, self.graph = model.data, model.graph
        self.integers = integers
        self.rounds = False
        self.readings: list[ReadOperator] | None = None
        self.opaque = model.opaque
        graph = super().Subgraphs(0)
        self.lent = {graph.Operators(i)._tab.Pos: lent for i, lent in enumerate(model.lent)}
        self.kept = {graph.Operators(i)._tab.Pos: own for i, own in enumerate(model.kept)}
        self.kinds = {graph.Operators(i).OpcodeIndex(): kind for i, kind in enumerate(kinds)}

    def _held(self, index: int, tensor: Tensor) -> Tensor:
        """Return the tensor of an index; for a handle, the tensor that its variable holds."""
        variable = self.variables.found.get(self.variables.names.get(index, -1))
        return tensor if variable is None else variable.tensor

    def first_values(self) -> list[int]:
        """Return the initial value of each state."""
        return initial_values(self.Subgraphs(0), self.states, self.variables)

    def Subgraphs(self, j: int) -> Any:  # noqa: N802
        plain = super().Subgraphs(j)
        if j != 0:
            return plain
        named = _SubGraph()
        named.Init(plain._tab.Bytes, plain._tab.Pos)
        named.names, named.states = self.names, self.states
        named.listed, named.own = plain.TensorsLength(), self.own
        named.handles = frozenset(self.variables.names)
        return named


class _SubGraph(tflite.SubGraph):  # type: ignore[misc]
    """The main graph with operator states as further inputs and outputs."""

    names: list[bytes]
    states: list[int]
    listed: int
    own: Sequence[Tensor]
    handles: frozenset[int]

    def TensorsLength(self) -> int:  # noqa: N802
        return len(self.own)

    def InputsLength(self) -> int:  # noqa: N802
        return int(super().InputsLength()) + len(self.states)

    def Inputs(self, j: int) -> int:  # noqa: N802
        return int(self.InputsAsNumpy()[j])

    def InputsAsNumpy(self) -> Any:  # noqa: N802
        return np.array([*super().InputsAsNumpy(), *self.states], np.int32)

    def OutputsAsNumpy(self) -> Any:  # noqa: N802
        return np.array([*super().OutputsAsNumpy(), *self.states], np.int32)

    def Tensors(self, j: int) -> Any:  # noqa: N802
        listed = j < self.listed and j not in self.handles
        plain = super().Tensors(j) if listed else unlisted(self.own[j])
        named = _Tensor()
        named.Init(plain._tab.Bytes, plain._tab.Pos)
        named.name = self.names[j]
        return named


class _Tensor(tflite.Tensor):  # type: ignore[misc]
    name: bytes

    def Name(self) -> bytes:  # noqa: N802
        return self.name


class Converter(OperatorConverter):  # type: ignore[misc]
    """TVM's operator converter, with the gaps listed above closed."""

    convert_map: dict[str, Callable[..., Any]]
    _SUPPORTED_QUANTIZED_OPS = OperatorConverter._SUPPORTED_QUANTIZED_OPS | {
        kind
        for kind, known in KNOWN.items()
        if known.integers.moves or known.integers.read is not None
    }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        ours = {kind for kind, known in KNOWN.items() if known.numbers.form or known.integers.read}
        ours |= set(self.model.opaque)
        for kind in (*self.convert_map, *sorted(ours - set(self.convert_map))):
            own = self.convert_map.get(kind, partial(_missing, kind))
            self.convert_map[kind] = partial(self._named, kind, own)
        begin(self, self.model.variables)

    def convert_op_to_relax(self) -> None:
        """Convert all operators; results that would share memory get their own."""
        super().convert_op_to_relax()
        if self.model.states:
            part_results(self)

    def convert_call_once(self, op: tflite.Operator) -> None:
        """Do nothing: ``_variables`` has evaluated its assignments."""

    def convert_var_handle(self, op: tflite.Operator) -> None:
        """Do nothing: the tensor stands for the variable."""

    def _named(self, kind: str, convert: Callable[..., Any], op: tflite.Operator) -> Any:
        """Return an operator's result as a variable whose name identifies the operator."""
        label = _label(self, kind, op)
        with placed(label, partial(self._form, op)):
            made = converted(self, op, kind)
            made = convert(op=op) if made is None else made
            if made is None:
                return made
            made = self.bb.normalize(made)
            self._check_result(op, made)
        if isinstance(made, relax.Call):
            made = self.bb.emit(made)
        if isinstance(made, relax.Var) and self.bb.lookup_binding(made) is not None:
            self.model.labels.setdefault(made.name, label)
        return made

    def _form(self, op: tflite.Operator) -> str:
        """Return an operator's input types, in words."""
        given = [self.model.graph.tensors[i] for i in op.InputsAsNumpy() if i >= 0]
        return "reads " + ", ".join(f"{t.dtype}{list(t.shape or ())}" for t in given)

    def _check_result(self, op: tflite.Operator, made: relax.Expr) -> None:
        """Refuse results whose type or shape differs from the file's; rank 0 may be unknown."""
        (result, *others) = self.get_output_tensors(op) or (None,)
        kind = made.ty
        if result is None or others or not isinstance(kind, relax.TensorType):
            return
        said = [int(e) for e in np.atleast_1d(result.tensor.ShapeAsNumpy())]
        found = None if kind.shape is None else [getattr(e, "value", e) for e in kind.shape]
        dtype = self.get_tensor_type_str(result.tensor.Type())
        if str(kind.dtype.dtype) != dtype or (found != said and result.tensor.ShapeLength()):
            here = f"{kind.dtype.dtype} {found}"
            raise UnsupportedError(
                f"its result has the type and shape {here}, but the file states {dtype} {said}; "
                "convert the model again"
            )

    def get_op_code_str(self, op: tflite.Operator) -> str:
        """Return the kind of an operator; for a custom one, its name in the file."""
        kind: str = self.model.kinds.get(op.OpcodeIndex(), "")
        if kind in self.model.opaque or kind in KNOWN:
            return kind
        return str(super().get_op_code_str(op))

    def get_expr(self, input_tensor_idx: int) -> Any:
        """Return the expression of a tensor, which may be a constant of the file."""
        if self.has_expr(input_tensor_idx):
            return super().get_expr(input_tensor_idx)
        return self.get_tensor_expr(self.get_tensors([input_tensor_idx])[0])

    def get_tensor_value(self, tensor_wrapper: Wrapper, is_sparse: bool = False) -> Any:
        """Return the value of a constant; raise :class:`UnsupportedError` for other tensors."""
        if tensor_wrapper.tensor_idx >= 0 and not tensor_wrapper.buffer.DataLength():
            name = tensor_wrapper.tensor.Name().decode(errors="replace")
            raise UnsupportedError(f"tensor {name!r} must be a constant")
        if tensor_wrapper.tensor.Type() == INT4:
            return unpacked(tensor_wrapper.buffer.DataAsNumpy(), tensor_wrapper.tensor)
        return super().get_tensor_value(tensor_wrapper, is_sparse)

    def get_tensor_type_str(self, tensor_type: int) -> str:
        """Return the type of a tensor; 4-bit constants are read as 8-bit."""
        return "int8" if tensor_type == INT4 else str(super().get_tensor_type_str(tensor_type))

    def check_unsupported_ops(self) -> None:
        """Prepare float weights; ``check_operators`` refused unsupported operators before."""
        for index in range(self.subgraph.OperatorsLength()):
            op = self.subgraph.Operators(index)
            try:
                kind = self.get_op_code_str(op)
            except NotImplementedError:
                raise UnsupportedError(
                    f"operator {index}: TVM's importer does not know its kind; {REMEDY}"
                ) from None
            with placed(_label(self, kind, op), partial(self._form, op)):
                self._prepare_weights(kind, op)

    def _prepare_weights(self, kind: str, op: tflite.Operator) -> None:
        inputs, outputs = self.get_input_tensors(op), self.get_output_tensors(op)
        if kind not in self.model.opaque and self.weights_alone(inputs, outputs):
            self.model.dynamic = True
            if not self._on_the_fly(kind):
                self.dequantise_weights(inputs[1:])

    def _on_the_fly(self, kind: str) -> bool:
        """Return whether an operator quantises its activations at run time."""
        return operator(kind).integers.dynamic is not None and bool(self.model.integers.on_the_fly)

    def weights_alone(self, inputs: list[Any], outputs: list[Any]) -> bool:
        """Return whether only inputs after the first are quantised."""
        if (
            not inputs
            or not outputs
            or any(t.qnn_params is not None for t in (inputs[0], *outputs))
        ):
            return False
        return any(t.qnn_params is not None for t in inputs[1:])

    def dequantise_weights(self, weights: list[Any]) -> None:
        """Convert quantised constants to floats."""
        for weight in weights:
            if weight.tensor_idx == -1 or weight.qnn_params is None:
                continue
            stored = self.get_tensor_value(weight)
            scale = weight.qnn_params["scale"].value.numpy()
            if scale.size > 1:
                shape = [1] * stored.ndim
                shape[weight.qnn_params["axis"]] = scale.size
                scale = scale.reshape(shape)
            zero_point = int(weight.qnn_params["zero_point"].value.numpy())
            value = ((stored.astype(np.int32) - zero_point) * scale).astype(np.float32)
            self.exp_tab.set_expr(weight.tensor.Name().decode(), relax.const(value))

    def get_tensors(self, indices: Iterable[int]) -> list[Any]:
        """Return the tensors with valid channel axes, 0 for tensors with one scale."""
        found: list[Any] = super().get_tensors(indices)
        for tensor in found:
            params = tensor.qnn_params
            if params is not None:
                several = params["scale"].value.numpy().size > 1
                last = max(tensor.tensor.ShapeLength() - 1, 0)
                params["axis"] = min(params["axis"], last) if several else 0
        return found

    def convert_qnn_fused_activation_function(
        self, expr: relax.Expr, fused_activation_fn: int, scale: float, zero_point: int, dtype: str
    ) -> Any:
        """Clip stored values to the quantised limits, which are rounded half away from zero."""
        if fused_activation_fn not in LIMITS:
            return super().convert_qnn_fused_activation_function(
                expr, fused_activation_fn, scale, zero_point, dtype
            )
        info = np.iinfo(dtype)
        limits = [int(info.min), int(info.max)]
        for end, real in enumerate(LIMITS[fused_activation_fn]):
            if real is not None:
                ratio = np.float32(real) / np.float32(scale)
                stored = int(half_away(ratio)) + zero_point
                limits[end] = max(limits[0], stored) if end == 0 else min(limits[1], stored)
        return relax.op.clip(expr, *(float(limit) for limit in limits))

    def dequantize(self, expr: relax.Expr, tensor: Wrapper) -> Any:
        """Return real numbers; 64-bit constants (int16 biases) are converted to 32 bits first."""
        if self.get_tensor_type_str(tensor.tensor.Type()) == "int64":
            values = self.get_tensor_value(tensor)
            if np.abs(values).max(initial=0) >= 2**31:
                raise UnsupportedError("a bias exceeds 32 bits, which is not supported")
            expr = relax.const(values.astype(np.int32), "int32")
        return super().dequantize(expr, tensor)

    def get_input_tensors(self, op: tflite.Operator) -> list[Any]:
        """Return the inputs, without an omitted bias."""
        found: list[Any] = super().get_input_tensors(op)
        found += self.get_tensors(self.model.kept.get(op._tab.Pos, ()))
        sums = operator(self.get_op_code_str(op)).layer.sums
        if sums is not None and len(found) == sums.bias + 1 and found[-1].tensor_idx == -1:
            found.pop()
        return found

    def convert_pool2d(self, op: tflite.Operator, pool_type: str) -> Any:
        """Round the mean of quantised values to nearest instead of truncating it."""
        result = super().convert_pool2d(op, pool_type)
        if pool_type != "average" or self.get_input_tensors(op)[0].qnn_params is None:
            return result
        return _rounded(result)


def _rounded(expr: relax.Expr) -> Any:
    """Return ``expr`` with its integer ``avg_pool2d`` in float32, halves away from zero."""
    if expr.op.name == "relax.nn.avg_pool2d":
        (source,) = expr.args[0].args
        mean = relax.Call(expr.op, [relax.op.astype(source, "float32")], expr.attrs)
        nearest = relax.op.floor(relax.op.abs(mean) + relax.const(0.5))
        return relax.op.sign(mean) * nearest
    return relax.Call(expr.op, [_rounded(expr.args[0]), *expr.args[1:]], expr.attrs)


def _missing(kind: str, op: tflite.Operator) -> Any:
    raise UnsupportedError(f"TVM's importer does not support {kind}")


def _label(converter: Converter, kind: str, op: tflite.Operator) -> str:
    return f"operator {kind}{_making(converter, op)}"


def _making(converter: Converter, op: tflite.Operator) -> str:
    outputs = [converter.subgraph.Tensors(i).Name() for i in op.OutputsAsNumpy()]
    made = outputs[0].decode(errors="replace") if outputs and outputs[0] else "nothing"
    return f" that makes {made!r}"
