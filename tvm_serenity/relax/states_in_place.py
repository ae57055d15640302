"""States that a network updates in place: a step writes a row of a cache and copies nothing.

A state is a parameter of ``main`` whose next value is a result (``STATES``). It is updated in place
if its next value is the state with parts replaced (``UpdateSlice``), and if no value of the state
before a replacement is read after it. Then the kernel of each replacement writes the part alone,
and the next value is the memory of the state.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.records import UpdateSlice
from tvm_serenity.kernels.spec_read import kind_of, spec_of
from tvm_serenity.kernels.update_slice import part_written
from tvm_serenity.relax.attributes import first_values
from tvm_serenity.relax.bindings import bindings, emitted, renewed, rewritten
from tvm_serenity.relax.copied_results import results_of

STATE = 0
"""The argument of a replacement that is the state; the others are the part and its index."""

END = "the end"
"""Stands for the function's end, which reads the results."""


def states_in_place(mod: tvm.IRModule) -> Any:
    """Return ``mod``, lowered, with each state updated in place where its values allow it."""
    function = mod["main"]
    count = len(first_values(function))
    if not count:
        return mod
    bound = dict(bindings(function))
    results = results_of(function.body.body, bound)
    pairs = zip(function.params[-count:], results[-count:], strict=True)
    flow = _Flow(mod, function)
    updates = {var for state, made in pairs for var in flow.updates(state, made)}
    if not updates:
        return mod
    return rewritten(
        mod, function, lambda builder, given: _Writer(builder, given, flow.specs, updates)
    )


class _Flow:
    """Which bindings of ``main`` read each value."""

    def __init__(self, mod: tvm.IRModule, function: relax.Function) -> None:
        self.value = dict(bindings(function))
        self.number = {var: number for number, var in enumerate(self.value)}
        self.readers: dict[Any, list[Any]] = {}
        self.specs: dict[Any, UpdateSlice] = {}
        for var, value in self.value.items():
            self._reads(value, var)
            kernel = compat.called_kernel(value) if compat.is_call(value) else None
            if kernel is not None and kind_of(mod[kernel]) == UpdateSlice.__name__:
                self.specs[var] = spec_of(mod[kernel])
        self.number[END] = len(self.value)
        self._reads(function.body.body, END)

    def _reads(self, value: relax.Expr, reader: Any) -> None:
        for read in dict.fromkeys(_read(value)):
            self.readers.setdefault(read, []).append(reader)

    def updates(self, state: relax.Var, made: relax.Expr) -> list[Any]:
        """Return the replacements that lead from a state to its next value ``made``.

        The list is empty if the state cannot be updated in place.
        """
        found: list[Any] = []
        steps = list(self._back(made, state))
        if not steps[-1].same_as(state):
            return []
        shown = [state]  # all names of the value that lies in the state's memory
        for var in reversed(steps[:-1]):
            if var in self.specs:
                if any(self._reads_late(name, var) for name in shown):
                    return []
                found.append(var)
                shown = []
            shown.append(var)
        return found

    def _back(self, made: relax.Expr, state: relax.Var) -> Iterator[Any]:
        """Yield the values from ``made`` back to what its memory was given as."""
        while made in self.value and not made.same_as(state):
            yield made
            value = self.value[made]
            if made in self.specs:
                made = compat.kernel_arguments(value)[STATE]
            elif isinstance(value, relax.Var):
                made = value
            elif _is_view(value):
                made = value.args[0]
            else:
                return
        yield made

    def _reads_late(self, name: relax.Var, update: relax.Var) -> bool:
        """Return whether a value, or another name of it, is read after it is updated.

        The update itself may read it as the state alone.
        """
        for reader in self.readers.get(name, ()):
            if reader is not END and reader.same_as(update):
                _, *others = compat.kernel_arguments(self.value[update])
                late = any(name.same_as(other) for other in others)
            elif self.number[reader] > self.number[update]:
                late = True
            else:
                late = self._names(reader) and self._reads_late(reader, update)
            if late:
                return True
        return False

    def _names(self, var: relax.Var) -> bool:
        """Return whether a binding gives its value another name, as views and tuples do."""
        return _is_view(self.value[var]) or not compat.is_call(self.value[var])


class _Writer:
    """Writes replacements as calls that overwrite their first argument."""

    def __init__(
        self,
        builder: relax.BlockBuilder,
        given: dict[Any, Any],
        specs: Mapping[Any, UpdateSlice],
        updates: set[Any],
    ) -> None:
        self.builder = builder
        self.now = given
        self.specs = specs
        self.updates = updates

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Write one binding."""
        if var not in self.updates:
            self.now[var] = emitted(self.builder, renewed(value, self.given), var.name)
            return
        arguments = [self.given(a) for a in compat.kernel_arguments(value)]
        kernel = self.builder.add_func(part_written(self.specs[var]), "write_part")
        call = relax.op.call_tir_inplace(kernel, relax.Tuple(arguments), [STATE], var.ty)
        self.now[var] = self.builder.emit(call, var.name)

    def given(self, value: relax.Expr) -> Any:
        """Return the replacement of an expression."""
        if isinstance(value, relax.Var):
            return self.now[value]
        return renewed(value, self.given)


def _is_view(value: relax.Expr) -> bool:
    return compat.is_call(value) and compat.op_name(value) == "relax.reshape"


def _read(value: relax.Expr) -> Sequence[Any]:
    """Return the variables in an expression."""
    found: list[Any] = []
    relax.analysis.post_order_visit(
        value, lambda part: found.append(part) if isinstance(part, relax.Var) else None
    )
    return found
