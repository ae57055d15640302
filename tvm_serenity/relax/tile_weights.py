"""Constant weights reordered to the tiles in which kernels read them."""

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.spec_read import kind_of
from tvm_serenity.kernels.tile import tiling_for
from tvm_serenity.kernels.tile_weights import NEAR_BYTES, InTiles, in_tiles
from tvm_serenity.relax.lower import functions_of


def tile_weights(mod: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Return ``mod``, of kernels, with weights stored in the order of its kernels' tiles.

    Only constants that all calls read in the same tiles are reordered; kernels created from records
    stay. A constant of several calls stays one constant.
    """
    calls = [call for _, function in functions_of(mod) for call in _calls(function)]
    far = [call for call in calls if _reads_far_constant(call)]
    names = dict.fromkeys(compat.called_kernel(call).name_hint for call in far)
    forms = {name: form for name in names if (form := _form(mod[name], target)) is not None}
    while True:
        read = _widths(calls, forms)
        mixed = {
            compat.called_kernel(call).name_hint
            for call in calls
            if (form := _form_of(call, forms)) and len(read[_weights(call, form)]) > 1
        }
        if not mixed:
            return _Stored(mod, forms).module() if forms else mod
        forms = {name: form for name, form in forms.items() if name not in mixed}


def _widths(calls: Sequence[Any], forms: Mapping[str, InTiles]) -> dict[int, set[int]]:
    """Return the tile widths in which constants are read, by address; 0 for no tiles.

    Operands that are no constants, or are overwritten, have the address 0.
    """
    found: dict[int, set[int]] = {0: {0, 1}}
    for call in calls:
        form = _form_of(call, forms)
        for index, value in enumerate(compat.kernel_arguments(call)):
            if compat.is_constant(value):
                width = form.width if form and form.index == index else 0
                found.setdefault(compat.constant_address(value), set()).add(width)
    return found


def _reads_far_constant(call: relax.Call) -> bool:
    """Return whether a constant of a call is large enough to be reordered."""
    constants = [a for a in compat.kernel_arguments(call) if compat.is_constant(a)]
    return any(compat.constant_array(a).nbytes > NEAR_BYTES for a in constants)


def _weights(call: relax.Call, form: InTiles) -> int:
    """Return the address of a call's weights, 0 if they are not constant."""
    arguments = compat.kernel_arguments(call)
    if compat.overwritten(call) is not None or form.index >= len(arguments):
        return 0
    value = arguments[form.index]
    return compat.constant_address(value) if compat.is_constant(value) else 0


def _form_of(call: relax.Call, forms: Mapping[str, InTiles]) -> InTiles | None:
    kernel = compat.called_kernel(call)
    return None if kernel is None else forms.get(kernel.name_hint)


def _form(kernel: Any, target: tvm.target.Target) -> InTiles | None:
    if not compat.is_prim_func(kernel) or kind_of(kernel) is not None:
        return None
    return in_tiles(kernel, tiling_for(target))


def _calls(function: relax.Function) -> list[Any]:
    values = [b.value for block in function.body.blocks for b in block.bindings]
    return [v for v in values if compat.is_call(v) and compat.called_kernel(v) is not None]


class _Stored:
    """A writer of a module with other forms of some kernels, and reordered constants."""

    def __init__(self, mod: tvm.IRModule, forms: Mapping[str, InTiles]) -> None:
        self.mod, self.forms = mod, forms
        self.builder = relax.BlockBuilder(mod)
        self.held: dict[tuple[int, int], Any] = {}

    def module(self) -> Any:
        """Return the module."""
        changed = {name: self._changed(function) for name, function in functions_of(self.mod)}
        functions = dict(self.builder.get().functions.items()) | changed
        made = tvm.IRModule(functions, attrs=self.mod.attrs)
        return relax.transform.DeadCodeElimination([name.name_hint for name in changed])(made)

    def _changed(self, function: relax.Function) -> Any:
        blocks = []
        for block in function.body.blocks:
            bindings = [
                relax.VarBinding(b.var, self._called(b.value))
                if compat.is_call(b.value) and _form_of(b.value, self.forms)
                else b
                for b in block.bindings
            ]
            blocks.append(type(block)(bindings))
        return compat.with_body(function, relax.SeqExpr(blocks, function.body.body))

    def _called(self, call: relax.Call) -> Any:
        form, arguments = _form_of(call, self.forms), compat.kernel_arguments(call)
        assert form is not None
        arguments[form.index] = self._constant(arguments[form.index], form)
        name = f"{compat.called_kernel(call).name_hint}_in_tiles"
        variable = self.builder.add_func(form.kernel, name)
        return self.builder.normalize(relax.call_tir(variable, relax.Tuple(arguments), call.ty))

    def _constant(self, value: Any, form: InTiles) -> Any:
        key = compat.constant_address(value), form.width
        if key not in self.held:
            self.held[key] = compat.constant(form.stored(compat.constant_array(value)))
        return self.held[key]
