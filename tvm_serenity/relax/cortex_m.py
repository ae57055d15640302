"""The int8 kernels as patterns for TVM's partitioning: ``cortex_m.conv2d`` and so on.

A pattern is a float operator between ``dequantize`` and ``quantize``, with bias and activation.
``partition`` moves each region that has an integer kernel to a function marked ``Composite``, as
``FuseOpsByPattern`` does; ``with_kernels`` replaces the functions by integer kernels.
"""

from collections.abc import Iterator
from typing import Any

import tvm
from tvm import relax
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix, register_patterns
from tvm.relax.dpl import is_const, is_op, is_tuple, wildcard
from tvm.relax.expr_functor import PyExprMutator, mutator

from tvm_serenity import compat
from tvm_serenity.errors import SerenityError
from tvm_serenity.quantize.choices import AUTO
from tvm_serenity.relax.quantize import is_quantised, kept_float, quantized_module, rounding_of

PREFIX = "cortex_m"
MOST_JOINED = 6
"""The most operands of a concatenation that has a pattern."""
_PAIRS = ("add", "subtract", "multiply", "maximum", "minimum")
_SINGLE = ("nn.softmax", "nn.avg_pool2d", "mean", "sigmoid", "tanh", "nn.leakyrelu", "exp")


def partition(mod: tvm.IRModule) -> Any:
    """Return ``mod`` with a function for each region that has an integer kernel."""
    if not is_quantised(mod):
        return mod
    _register()
    apart = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    apart["main"] = _OwnDequantize(apart).visit_expr(mod["main"])
    fuse = relax.transform.FuseOpsByPattern(
        get_patterns_with_prefix(f"{PREFIX}."), bind_constants=True, entry_functions=["main"]
    )
    return relax.transform.DeadCodeElimination(["main"])(fuse(apart))


def with_kernels(mod: tvm.IRModule, rounding: str = AUTO) -> Any:
    """Return ``mod`` with calls of integer kernels in place of the functions of ``partition``.

    Functions of other backends stay. ``rounding`` is that of ``quantized_module``.
    """
    if rounding == AUTO:
        rounding = rounding_of(mod) or AUTO
    builder = relax.BlockBuilder(mod)
    inlined = {}
    for name, function in mod.functions.items():
        if not str((function.attrs or {}).get("Composite", "")).startswith(f"{PREFIX}."):
            continue
        made = _integer(function, rounding)
        named = {
            old: builder.add_func(inner, old.name_hint)
            for old, inner in made.functions.items()
            if old.name_hint != "main"
        }
        inlined[name] = _Renamed(named).visit_expr(made["main"].without_attr("global_symbol"))
    done = builder.get()
    done["main"] = done["main"].inline_functions(inlined)
    for name in inlined:
        del done[name]
    return relax.transform.Normalize()(done)


def _integer(function: relax.Function, rounding: str) -> Any:
    bare = relax.Function(
        function.params, function.body, function.ret_ty, function.is_pure
    ).with_attr("global_symbol", "main")
    return quantized_module(tvm.IRModule({"main": bare}), rounding)


def _register() -> None:
    if not get_patterns_with_prefix(f"{PREFIX}."):
        register_patterns([(f"{PREFIX}.{n}", p, {}, _has_kernel) for n, p in _patterns()])


def _patterns() -> Iterator[tuple[str, Any]]:
    """Return names and patterns; if two match, FuseOpsByPattern takes the first."""
    for name, weighted in (("conv2d", "nn.conv2d"), ("conv2d_transpose", "nn.conv2d_transpose")):
        yield from _weighted(name, weighted)
    yield from _weighted("dense", "matmul")
    for pair in _PAIRS:
        yield from _stored(pair, lambda pair=pair: is_op(f"relax.{pair}")(_real(), _real()))
    for single in _SINGLE:
        base = single.rpartition(".")[2]
        yield from _stored(base, lambda single=single: is_op(f"relax.{single}")(_real()))
    for count in range(2, MOST_JOINED + 1):
        parts = [_real() for _ in range(count)]
        yield "concatenate", _quantised(is_op("relax.concat")(is_tuple(parts)))


def _weighted(name: str, kind: str) -> Iterator[tuple[str, Any]]:
    fixed = is_op("relax.dequantize")(is_const(), is_const(), is_const())
    turned = is_op("relax.permute_dims")(fixed)
    for weight in (fixed, turned):
        bare = lambda weight=weight: is_op(f"relax.{kind}")(_real(), weight)  # noqa: E731
        bias = is_const() | fixed | is_op("relax.reshape")(fixed, wildcard())
        yield from _stored(name, lambda bare=bare, bias=bias: is_op("relax.add")(bare(), bias))
        yield from _stored(name, bare)


def _stored(name: str, made: Any) -> Iterator[tuple[str, Any]]:
    """Return the pattern of a stored sum or function, with or without an activation."""
    yield name, _quantised(is_op("relax.nn.relu")(made()))
    yield name, _quantised(is_op("relax.clip")(made(), wildcard(), wildcard()))
    yield name, _quantised(made())


def _real() -> Any:
    return is_op("relax.dequantize")(wildcard(), is_const(), is_const())


def _quantised(real: Any) -> Any:
    return is_op("relax.quantize")(real, is_const(), is_const())


def _has_kernel(context: Any) -> bool:
    """Return whether a matched region can be converted completely to integers."""
    try:
        made = _integer(_function_of(context), AUTO)
    except SerenityError:
        return False
    return not kept_float(made)


def _function_of(context: Any) -> relax.Function:
    """Return the matched bindings as a function of their inputs."""
    matched = dict(context.matched_bindings.items())
    params: dict[Any, None] = {}
    order: dict[Any, None] = {}

    def visit(var: Any) -> None:
        if var in order or var in params:
            return
        if var not in matched:
            params[var] = None
            return
        for used in relax.analysis.free_vars(matched[var]):
            visit(used)
        order[var] = None

    for var in matched:
        visit(var)
    last = next(reversed(order))
    bindings = [relax.VarBinding(var, matched[var]) for var in order]
    out = relax.Var("out", last.ty)
    body = relax.SeqExpr([relax.DataflowBlock([*bindings, relax.VarBinding(out, last)])], out)
    return relax.Function(list(params), body, out.ty)


@mutator
class _OwnDequantize(PyExprMutator):  # type: ignore[misc]
    """Gives each reader of a ``dequantize`` a copy of it, because regions may share inputs."""

    def visit_call_(self, call: relax.Call) -> Any:
        """Visit a call."""
        arguments = [self._own(argument) for argument in call.args]
        return super().visit_call_(compat.call_like(call, arguments))

    def visit_tuple_(self, made: relax.Tuple) -> Any:
        """Visit a tuple."""
        return super().visit_tuple_(relax.Tuple([self._own(part) for part in made.fields]))

    def _own(self, argument: Any) -> Any:
        if not isinstance(argument, relax.Var):
            return argument
        value = self.lookup_binding(argument)
        is_stored = compat.is_call(value) and compat.op_name(value) == "relax.dequantize"
        return self.builder_.emit(value) if is_stored else argument


@mutator
class _Renamed(PyExprMutator):  # type: ignore[misc]
    """Renames called kernels to their names in another module."""

    def __init__(self, named: dict[Any, Any]) -> None:
        super().__init__()
        self.named = named

    def visit_global_var_(self, name: Any) -> Any:
        """Visit the name of a kernel."""
        return self.named.get(name, name)
