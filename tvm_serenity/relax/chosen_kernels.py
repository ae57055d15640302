"""Workspace upgrade: faster kernels that need scratch, if the arena does not grow.

Memory comes before time: a kernel form that was measured as clearly faster (``kernels.measured``;
TVM's own schedule, or a tile) replaces the default form only if its scratch fits beside the live
tensors. Arenas are planned with and without it, for the given order and for the order with the
least peak; neither may grow by a byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tvm

from tvm_serenity import compat
from tvm_serenity.kernels.measured import CLEAR, Form, KnownForms
from tvm_serenity.kernels.tile import Tiling
from tvm_serenity.kernels.workspace import workspace_of
from tvm_serenity.relax.plan_memory import plan_graph
from tvm_serenity.relax.read import read_function
from tvm_serenity.schedule import Options, schedule


@dataclass(frozen=True)
class ChosenForm:
    """A kernel with a measured form, and whether that form was chosen within the arena."""

    kernel: str
    form: Form
    usual_seconds: float
    taken: bool = True


@dataclass(frozen=True)
class _Wish:
    """A faster form of a kernel, and the seconds it saves over all calls."""

    variable: Any
    made: Any = field(repr=False)
    said: ChosenForm
    saved: float


def with_faster(
    mod: tvm.IRModule, plain: tvm.IRModule, known: KnownForms, tiling: Tiling
) -> tuple[Any, tuple[ChosenForm, ...]]:
    """Return ``mod``, of kernels of ``known.leanest``, with the faster forms that fit.

    ``plain``: the same module with TVM's kernels. The report covers all kernels with a faster form.
    """
    wishes, said = _wishes(mod, plain, known, tiling)
    mod, tried = _within_arenas(mod, wishes)
    return mod, tuple(sorted([*said, *tried], key=lambda one: one.kernel))


def _wishes(
    mod: tvm.IRModule, plain: tvm.IRModule, known: KnownForms, tiling: Tiling
) -> tuple[list[_Wish], list[ChosenForm]]:
    """Return the faster forms that are not in use yet, and those that are."""
    found = {
        variable.name_hint: (function, measured)
        for variable, function in plain.functions.items()
        if compat.is_prim_func(function) and (measured := known.of(function)) is not None
        if measured.better()
    }
    leanest = known.leanest(tiling)
    wishes: list[_Wish] = []
    said: list[ChosenForm] = []
    for variable, times in _calls(mod).items() if found else ():
        if variable.name_hint not in found:
            continue
        kernel, measured = found[variable.name_hint]
        there, seconds = compat.structural_key(leanest(kernel)), measured.seconds
        forms = {compat.structural_key(f.applied(kernel)): f for f in measured.better()}
        if there in forms:
            said.append(ChosenForm(variable.name_hint, forms[there], seconds))
            seconds = forms[there].seconds
        for form in measured.better():
            if form.seconds <= CLEAR * seconds:
                one = ChosenForm(variable.name_hint, form, measured.seconds)
                saved = times * (seconds - form.seconds)
                wishes.append(_Wish(variable, form.applied(kernel), one, saved))
    return wishes, said


def _calls(mod: tvm.IRModule) -> dict[Any, int]:
    """Return the number of calls of each kernel in ``main``; views are not called."""
    region = read_function(mod, workspace=False)
    found: dict[Any, int] = {}
    for index in region.run:
        name = compat.called_kernel(region.bindings[index].value)
        if name is not None:
            found[name] = found.get(name, 0) + 1
    return found


def _within_arenas(mod: tvm.IRModule, wishes: Sequence[_Wish]) -> tuple[Any, list[ChosenForm]]:
    """Return the module with forms that grow no arena, the most profitable first, and a report."""
    tried: list[ChosenForm] = []
    done: set[Any] = set()
    limits = _arenas(mod) if any(workspace_of(w.made) for w in wishes) else ()
    for wish in sorted(wishes, key=lambda w: (-w.saved, w.said.kernel)):
        if wish.variable in done:
            continue
        functions = {**dict(mod.functions.items()), wish.variable: wish.made}
        made = tvm.IRModule(functions, attrs=mod.attrs)
        fits = not workspace_of(wish.made) or _all_within(_arenas(made), limits)
        tried.append(replace(wish.said, taken=fits))
        if fits:
            mod = made
            done.add(wish.variable)
    return mod, tried


def _all_within(sizes: Sequence[int], limits: Sequence[int]) -> bool:
    return all(size <= limit for size, limit in zip(sizes, limits, strict=True))


def _arenas(mod: tvm.IRModule) -> tuple[int, ...]:
    """Return the arena bytes of the given order and of the order with the least peak."""
    graph = read_function(mod).graph
    orders = None, schedule(graph, "auto", Options()).order
    return tuple(plan_graph(graph, order=order)[1].arena_bytes for order in orders)
