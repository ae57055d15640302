"""Folding of transposed, reshaped and widened constants, and of static shapes.

TVM's ``FoldConstant`` builds and runs a kernel for each of them, which dominates the compile time
of a network with many linear layers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
from tvm import relax

from tvm_serenity.operators import RELAX, MemoryUse

Array = npt.NDArray[Any]

_PLAIN = ("float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "bool")


def _transposed(array: Array, call: relax.Call) -> Array:
    axes = call.attrs.axes
    return np.transpose(array, None if axes is None else [int(axis) for axis in axes])


def _reshaped(array: Array, call: relax.Call) -> Array:
    return array.reshape([int(extent) for extent in call.ty.shape.values])


_MOVES: dict[MemoryUse, Callable[[Array, Any], Array]] = {
    MemoryUse.TURNED: _transposed,
    MemoryUse.COPY: _reshaped,
}
"""The numpy function of each moving operator, given the array and the call."""


def with_moved_constants(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` with each transposed, reshaped or widened constant of ``main`` folded."""
    main = mod["main"]
    known: dict[Any, Any] = {}
    blocks = [_block(block, known) for block in main.body.blocks]
    if not known:
        return mod
    body = relax.SeqExpr(blocks, main.body.body)
    made = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    made["main"] = relax.Function(main.params, body, main.ret_ty, main.is_pure, main.attrs)
    passes = [relax.transform.CanonicalizeBindings(), relax.transform.DeadCodeElimination()]
    return tvm.transform.Sequential(passes)(made)


def _block(block: relax.DataflowBlock, known: dict[Any, Any]) -> Any:
    """Return ``block`` with known values bound; ``known`` collects them."""
    bindings = []
    for binding in block.bindings:
        moved = _moved(binding, known)
        if moved is not None:
            known[binding.var] = moved
            binding = relax.VarBinding(binding.var, moved)
        bindings.append(binding)
    return type(block)(bindings)


def _shape(shape: relax.Expr) -> Any:
    """Return a shape as a constant, None if an extent is unknown."""
    extents = getattr(shape.ty, "values", None)
    if extents is None or not all(isinstance(e, tvm.tirx.IntImm) for e in extents):
        return None
    return relax.const(np.array([int(e.value) for e in extents], np.int64), "int64")


def _widened(array: Array, call: relax.Call) -> Array | None:
    """Return floats in a wider type; None for other conversions, which kernels may round."""
    to = np.dtype(str(call.ty.dtype.dtype))
    return array.astype(to) if array.dtype.kind == "f" and np.can_cast(array.dtype, to) else None


def _move(name: str) -> Callable[[Array, Any], Array | None] | None:
    """Return the function that folds an operator; None for an operator that is not folded."""
    if name == "relax.astype":
        return _widened
    record = RELAX.get(name)
    return None if record is None else _MOVES.get(record.storage.use)


def _moved(binding: relax.VarBinding, known: dict[Any, Any]) -> Any:
    call = binding.value
    if not isinstance(call, tvm.ir.Call) or len(call.args) == 0:
        return None
    name = str(getattr(call.op, "name", ""))
    if name == "relax.shape_to_tensor":
        return _shape(call.args[0])
    move, source = _move(name), known.get(call.args[0], call.args[0])
    if move is None or not isinstance(source, tvm.ir.GenericConst):
        return None
    if not isinstance(call.ty, relax.TensorType):  # a split into one part returns a tuple
        return None
    if str(source.ty.dtype.dtype) not in _PLAIN:
        return None
    moved = move(source.value.numpy(), call)
    if moved is None:
        return None
    moved = np.ascontiguousarray(moved)
    return relax.const(moved, str(moved.dtype))  # without it 64-bit integers become 32-bit ones
