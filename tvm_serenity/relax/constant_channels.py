"""Removal of constant and unread channels of integer layers.

A Relax function is read as layers (``channel_layers``, ``channel_moves``).
``rewrite.constant_channels`` finds the channels that no result depends on, and has the proof. The
function is then written without them. Inputs, results and unknown operators keep all channels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.spec_read import spec_of
from tvm_serenity.relax.attributes import OPERATORS
from tvm_serenity.relax.bindings import dataflow_main
from tvm_serenity.relax.calls import Writer, shape_of
from tvm_serenity.relax.channel_layers import ChannelLayer, LayerCall, Stay, known
from tvm_serenity.relax.channel_moves import Moved, known_move, operands
from tvm_serenity.rewrite.constant_channels import (
    ChannelNet,
    Interval,
    Mixing,
    PerChannel,
    Superfluous,
    joined,
    spared,
    superfluous,
)

TYPES = ("int8", "uint8", "int16")


@dataclass(frozen=True)
class FoldedChannels:
    """Counts of the channels of integer layers and of removed channels, in total and by tensor."""

    channels: int = 0
    gone: int = 0
    tensors: tuple[tuple[str, int, int], ...] = ()
    """Name, channels and removed channels of each tensor that lost channels."""

    def json(self) -> dict[str, Any]:
        """Return the counts as a JSON object."""
        lost = [{"tensor": name, "of": of, "left_out": gone} for name, of, gone in self.tensors]
        return {"of": self.channels, "left_out": self.gone, "tensors": lost}


def fold_constant_channels(mod: tvm.IRModule) -> tuple[Any, FoldedChannels]:
    """Return ``mod``, after quantising, without superfluous channels, and their counts.

    Return ``mod`` itself if there are none.
    """
    function = dataflow_main(mod)
    if function is None:
        return mod, FoldedChannels()
    reading = _Reading(mod)
    for binding in function.body.blocks[0].bindings:
        reading.bind(binding.var, binding.value)
    reading.stays(function.body.body)
    net = reading.net(function.params)
    found = superfluous(net)
    made = [layer.result for layer in net.layers]
    total = sum(found.gone[t].size for t in made)
    if not found.count:
        return mod, FoldedChannels(total)
    names = {t: str(var.name) for var, t in reading.numbers.items()}
    lost = tuple(
        (names[t], found.gone[t].size, int(found.gone[t].sum()))
        for t in made
        if found.gone[t].any()
    )
    return _written(mod, function, reading, found), FoldedChannels(total, found.count, lost)


@dataclass
class _Reading:
    """The layers of a function; ``numbers``: integer tensors by variable."""

    mod: tvm.IRModule
    numbers: dict[Any, int] = field(default_factory=dict)
    known: dict[Any, ChannelLayer] = field(default_factory=dict)
    whole: set[int] = field(default_factory=set)

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Read one binding."""
        found = self.layer(var, value) if _holds_integers(var) and compat.is_call(value) else None
        if found is None:
            self.stays(value)
            self.stays(var)
        else:
            self.known[var] = found

    def layer(self, var: relax.Var, call: relax.Call) -> ChannelLayer | None:
        """Return the layer of a call; None if it is unknown."""
        kernel = compat.called_kernel(call)
        read = operands(call) if kernel is None else compat.kernel_arguments(call)
        tensors = [argument for argument in read if not compat.is_constant(argument)]
        if not tensors or not all(_holds_integers(tensor) for tensor in tensors):
            return None
        numbers = tuple(self.number(tensor) for tensor in tensors)
        if kernel is None:
            return (
                known_move(Moved(call, numbers, self.number(var)))
                if len(tensors) == len(read)
                else None
            )
        arrays = [compat.constant_array(a) if compat.is_constant(a) else None for a in read]
        spec = spec_of(self.mod[kernel], arrays)
        name = str(kernel.name_hint)
        return known(LayerCall(call, name, spec, arrays, numbers, self.number(var)))

    def number(self, var: relax.Var) -> int:
        """Return the number of a tensor."""
        return self.numbers.setdefault(var, len(self.numbers))

    def stays(self, expr: relax.Expr) -> None:
        """Keep all channels of the tensors that an expression reads."""
        relax.analysis.post_order_visit(expr, self._stays)

    def _stays(self, expr: relax.Expr) -> None:
        if isinstance(expr, relax.Var) and _holds_integers(expr):
            self.whole.add(self.number(expr))

    def net(self, params: Sequence[relax.Var]) -> ChannelNet:
        """Return the layers in order, with the ranges of all tensors."""
        for param in params:
            self.stays(param)
        ranges = []
        for var in self.numbers:
            limits, count = np.iinfo(compat.dtype_name(var.ty)), shape_of(var)[-1]
            ranges.append(
                Interval(np.full(count, int(limits.min)), np.full(count, int(limits.max)))
            )
        layers = tuple(found.layer for found in self.known.values())
        return ChannelNet(ranges=tuple(ranges), layers=layers, whole=frozenset(self.whole))


def _holds_integers(expr: relax.Expr) -> bool:
    return (
        isinstance(expr, relax.Var)
        and compat.is_tensor(expr.ty)
        and compat.dtype_name(expr.ty) in TYPES
        and len(expr.ty.shape) > 0
    )


def _written(
    mod: tvm.IRModule, function: relax.Function, reading: _Reading, found: Superfluous
) -> Any:
    others = {name: f for name, f in mod.functions.items() if name.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(others))
    params = [relax.Var(p.name, p.ty) for p in function.params]
    new = dict(zip(function.params, params, strict=True))
    variables = {t: var for var, t in reading.numbers.items()}
    with builder.function("main", params):
        with builder.dataflow():
            for binding in function.body.blocks[0].bindings:
                layer = reading.known.get(binding.var)
                if layer is None or not _touched(layer, found):
                    made = builder.emit(_again(binding.value, new), binding.var.name)
                else:
                    sources = [new[variables[t]] for t in layer.layer.sources]
                    made = _fewer(layer, found, Writer(builder), sources)
                new[binding.var] = made
            result = builder.emit_output(_again(function.body.body, new))
        builder.emit_func_output(result)
    made = builder.finalize()
    made["main"] = made["main"].with_attrs(_attributes(function, new))
    made = relax.transform.DeadCodeElimination(["main"])(made)
    return tvm.IRModule(dict(made.functions.items()), attrs=mod.attrs)


def _attributes(function: relax.Function, new: dict[Any, Any]) -> dict[str, Any]:
    """Return the attributes of a function, with operator names under the new variables."""
    attrs = dict(function.attrs or {})
    if OPERATORS in attrs:
        names = {str(old.name): str(made.name) for old, made in new.items()}
        attrs[OPERATORS] = {names.get(str(k), str(k)): v for k, v in attrs[OPERATORS].items()}
    return attrs


def _again(expr: relax.Expr, new: dict[Any, Any]) -> Any:
    """Return an expression with its variables replaced."""
    if isinstance(expr, relax.Var):
        return new[expr]
    if isinstance(expr, relax.Tuple):
        return relax.Tuple([_again(part, new) for part in expr.fields])
    if isinstance(expr, relax.TupleGetItem):
        return relax.TupleGetItem(_again(expr.tuple_value, new), expr.index)
    if compat.is_call(expr):
        return compat.call_like(expr, [_again(argument, new) for argument in expr.args])
    return expr


def _touched(known: ChannelLayer, found: Superfluous) -> bool:
    """Return whether a layer reads or returns a tensor that lost channels."""
    layer = known.layer
    return any(found.gone[t].any() for t in (*layer.sources, layer.result))


def _fewer(known: ChannelLayer, found: Superfluous, writer: Writer, sources: Sequence[Any]) -> Any:
    """Return a layer written for the remaining channels."""
    layer = known.layer
    kept = [np.flatnonzero(~found.gone[t]) for t in (*layer.sources, layer.result)]
    bias = None if isinstance(layer, PerChannel) else _bias(layer, found)
    return known.write(writer, sources, Stay(tuple(kept[:-1]), kept[-1], bias))


def _bias(layer: Mixing, found: Superfluous) -> Any:
    """Return the bias plus the contributions of removed constant channels."""
    gone = np.concatenate([found.gone[t] for t in layer.sources]) & spared(layer, found.intervals)
    values = joined(layer, found.intervals).low[gone]
    return layer.bias + values @ layer.weights[:, gone].sum(axis=0)
