"""Integer layers with weights packed for dot product instructions.

A call of a convolution or dense layer with a record and constant weights becomes a call of its
packed form (``kernels.packed``) with packed constants. Each layer gets the best unit of its target:
on x86 the widest vectors that its channels fill by more than half, otherwise the narrowest; on Arm
the unit with the fewest cycles. Grouped and depthwise layers, and layers with fewer input channels
than a group, are not packed.
"""

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import relax, tirx

from tvm_serenity import compat
from tvm_serenity.kernels.dot_tiles import cycles
from tvm_serenity.kernels.dot_units import Unit, units_of
from tvm_serenity.kernels.dynamic_records import DynamicConvolution, DynamicDense
from tvm_serenity.kernels.lean import may_change
from tvm_serenity.kernels.packed import (
    Layer,
    can_be_joined,
    can_be_packed,
    packed,
    packed_constants,
    packed_floats,
    packed_spec,
)
from tvm_serenity.kernels.records import Convolution, Dense, WindowSums
from tvm_serenity.kernels.spec_read import spec_of
from tvm_serenity.relax.lower import functions_of


def pack_weights(mod: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Return ``mod`` with packed layers; ``mod`` itself if ``target`` has no unit for any."""
    units = units_of(target)
    if not units:
        return mod
    builder = relax.BlockBuilder(mod)
    changed = {name: _packed(mod, function, units, builder) for name, function in functions_of(mod)}
    if all(function is None for function in changed.values()):
        return mod
    functions = dict(builder.get().functions.items())
    functions |= {name: function for name, function in changed.items() if function is not None}
    made = tvm.IRModule(functions, attrs=mod.attrs)
    return relax.transform.DeadCodeElimination([name.name_hint for name in changed])(made)


def unit_for(spec: Layer, units: Sequence[Unit]) -> Unit | None:
    """Return the unit that computes a layer; None if the layer is better left as it is."""
    if isinstance(spec, Dense | DynamicDense):
        inputs, channels = [spec.inputs], spec.units
    else:
        taps = _taps(spec)
        inputs, channels = [taps.sizes(piece)[3] for piece in taps.pieces], taps.channels
    alike = [u for u in units if u.kind in (units[0].kind, units[0].beside)]
    best = [u for u in alike if _fills(spec, min(inputs), u)]
    if best and units[0].beside:
        return min(reversed(best), key=lambda u: cycles(packed_spec(spec, u)))
    fits = [u for u in best if 2 * channels > u.lanes]
    return fits[0] if fits else (best[-1] if best else None)


def _taps(spec: Convolution | DynamicConvolution) -> WindowSums:
    return spec.taps if isinstance(spec, DynamicConvolution) else spec


def _fills(spec: Layer, inputs: int, unit: Unit) -> bool:
    """Return whether the input has a full group, in a pixel or in joined pixels."""
    if isinstance(spec, Convolution | DynamicConvolution):
        taps = _taps(spec)
        if can_be_joined(taps, unit.group):
            inputs *= taps.weight_shape[1]
    return inputs >= unit.group


def _matches_record(kernel: tirx.PrimFunc, spec: Layer) -> bool:
    """Return whether a kernel computes all of its record, not part of a larger tensor."""
    if isinstance(spec, Dense | DynamicDense):
        shape: tuple[int, ...] = (spec.rows, spec.units)
    else:
        shape = _taps(spec).output_shape
    return tuple(compat.buffer_shape(kernel.params[-1])) == tuple(shape)


def _packed(
    mod: tvm.IRModule, function: relax.Function, units: Sequence[Unit], builder: relax.BlockBuilder
) -> Any:
    """Return the function with packed layers, None if it has none."""
    blocks, count = [], 0
    for block in function.body.blocks:
        bindings = []
        for binding in block.bindings:
            made = _call(mod, binding.value, units, builder)
            count += made is not None
            bindings.append(binding if made is None else relax.VarBinding(binding.var, made))
        blocks.append(type(block)(bindings))
    if not count:
        return None
    return compat.with_body(function, relax.SeqExpr(blocks, function.body.body))


def _call(
    mod: tvm.IRModule, call: relax.Expr, units: Sequence[Unit], builder: relax.BlockBuilder
) -> Any:
    """Return the call of the packed kernel, None if the call cannot be packed."""
    name = compat.called_kernel(call) if compat.is_call(call) else None
    if name is None or compat.overwritten(call) is not None or not may_change(mod[name]):
        return None
    arguments = compat.kernel_arguments(call)
    arrays = [compat.constant_array(a) if compat.is_constant(a) else None for a in arguments]
    spec = spec_of(mod[name], arrays)
    if not can_be_packed(spec) or not _matches_record(mod[name], spec):
        return None
    unit, on_the_fly = unit_for(spec, units), isinstance(spec, DynamicConvolution | DynamicDense)
    inputs = 2 if on_the_fly else 1 if isinstance(spec, Dense) else len(spec.pieces)
    constant = [array for array in arrays[inputs:] if array is not None]
    if unit is None or len(constant) < len(arrays) - inputs:
        return None
    weight, *others = constant
    made = packed_spec(spec, unit)
    if on_the_fly:
        scales, *bias = others[1:] if isinstance(spec, DynamicDense) and spec.asymmetric else others
        constants = packed_floats(made, weight, scales, bias[0] if bias else None)
    else:
        constants = packed_constants(made, spec.requantise, weight, others[0])
    held = [*arguments[:inputs], *(compat.constant(a) for a in constants)]
    return builder.normalize(
        compat.call_kernel(builder, packed(made), f"{name.name_hint}_packed", held)
    )
