"""Conversion of one region: the matching rule's integer kernel, or the reason for none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm import relax

from tvm_serenity import compat
from tvm_serenity.operators.scene import Stored
from tvm_serenity.quantize.params import Affine
from tvm_serenity.relax.bindings import emitted, renewed
from tvm_serenity.relax.quantize_read import Leaf, RefusedError, Scope, label, variables


@dataclass(frozen=True)
class ClampedResult:
    """The result of ``quantize(activation(expr))``: ``expr`` clamped to ``low``..``high``."""

    name: str
    expr: relax.Expr
    result: Affine
    low: int
    high: int

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest stored value."""
        return self.low, self.high

    @property
    def is_unclamped(self) -> bool:
        """Whether the activation passes all values."""
        return self.limits == self.result.limits

    def stored(self, shape: Sequence[int]) -> Stored:
        """Return the result, of a given shape, as operator records see it."""
        return Stored(tuple(shape), self.result)


@dataclass
class Rewriter:
    """A writer that converts a function region by region; ``new``: old variables to expressions."""

    scope: Scope
    builder: relax.BlockBuilder
    rounding: str
    fold_concat: bool
    rules: "Rules"
    new: dict[relax.Var, relax.Expr] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    users: dict[relax.Var, list[relax.Var | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for var, value in self.scope.values.items():
            for used in variables(value):
                self.users.setdefault(used, []).append(var)
        for used in variables(self.scope.function.body.body):
            self.users.setdefault(used, []).append(None)

    def binding(self, binding: relax.VarBinding) -> None:
        """Write one binding of the old function."""
        var, value = binding.var, binding.value
        if isinstance(value, relax.Var):  # a renaming: its value is written already
            self.new[var] = self.rewritten(value)
            return
        if self._is_half_of_a_clip(var):
            return
        try:
            region = self.region(var, value)
            if region is not None:
                self.new[var] = self.convert(region)
                return
        except RefusedError as reason:
            self.new[var] = self._kept(var, value, reason)
            return
        self.new[var] = emitted(self.builder, self.rewritten(value), var.name)

    def _kept(self, var: relax.Var, value: relax.Expr, reason: RefusedError) -> Any:
        """Return the variable of a region that stays float; record the reason."""
        made = self.builder.emit(self.rewritten(value), var.name)
        self.reasons[made.name] = str(reason)
        return made

    def region(self, var: relax.Var, value: relax.Expr) -> ClampedResult | None:
        """Return the region whose result is ``value``, None for any other expression."""
        root = self.scope.look(value)
        limits = None
        clip = self.scope.call(root, "relax.clip")
        if clip is not None and self.scope.call(clip.args[0], "relax.quantize") is not None:
            limits = _clip_limits(clip)
            root = self.scope.look(clip.args[0])
        if self.scope.call(root, "relax.quantize") is None:
            return None
        result = self.scope.params(root, root.ty, label(var))
        if not result.is_per_tensor:
            raise RefusedError("its result has a scale per channel")
        low, high = result.limits
        if limits is not None:
            low, high = max(low, int(limits[0])), min(high, int(limits[1]))
        expr = root.args[0]
        while True:
            relu = self.scope.call(expr, "relax.nn.relu", "relax.nn.relu6", "relax.clip")
            if relu is None:
                return ClampedResult(label(var), expr, result, low, high)
            least, most = _real_limits(relu)
            low = max(low, result.stored(least)) if least is not None else low
            high = min(high, result.stored(most)) if most is not None else high
            expr = relu.args[0]

    def convert(self, region: ClampedResult) -> Any:
        """Return the new expression of ``region``; raise :class:`RefusedError` with a reason."""
        call = self.scope.look(region.expr)
        name = compat.op_name(call) if compat.is_call(call) else ""
        return self.rules.by_operator.get(name, self.rules.other)(self, region)

    def stored(self, leaf: Leaf) -> Any:
        """Return the new expression of a stored tensor."""
        return emitted(self.builder, self.rewritten(leaf.expr), label(leaf.expr))

    def rewritten(self, expr: relax.Expr) -> Any:
        """Return ``expr`` with old variables replaced."""
        if isinstance(expr, relax.Var):
            if expr not in self.new:  # the first half of a clip that another operator reads
                self.new[expr] = self.convert_alone(expr)
            return self.new[expr]
        made = renewed(expr, self.rewritten)
        return self._normal(made) if compat.is_call(expr) else made

    def convert_alone(self, var: relax.Var) -> Any:
        """Return the new expression of a ``quantize`` that was skipped for its clip."""
        value = self.scope.values[var]
        try:
            region = self.region(var, value)
            assert region is not None
            return self.convert(region)
        except RefusedError as reason:
            return self._kept(var, value, reason)

    def _normal(self, call: relax.Call) -> Any:
        """Return a call whose arguments are variables, as the builder requires of nested calls."""
        arguments = [emitted(self.builder, a, "inner") if _is_operator(a) else a for a in call.args]
        return compat.call_like(call, arguments)

    def _is_half_of_a_clip(self, var: relax.Var) -> bool:
        """Return whether ``var`` is a ``quantize`` that only one integer clip reads."""
        users = self.users.get(var, [])
        return (
            self.scope.call(self.scope.values[var], "relax.quantize") is not None
            and len(users) == 1
            and users[0] is not None
            and self.scope.call(self.scope.values[users[0]], "relax.clip") is not None
        )


Rule = Callable[[Rewriter, ClampedResult], Any]
"""Returns the new expression of a region, or raises :class:`RefusedError` with a reason."""


@dataclass(frozen=True)
class Rules:
    """The conversion rules for regions.

    ``by_operator``: by the name of the operator that computes the region's result; ``other``: the
    rule for all other operators.
    """

    by_operator: Mapping[str, Rule]
    other: Rule


def _is_operator(expr: relax.Expr) -> bool:
    return bool(compat.is_call(expr))


def _clip_limits(clip: relax.Call) -> tuple[float, float]:
    low, high = (compat.scalar(argument) for argument in clip.args[1:3])
    if low is None or high is None:
        raise RefusedError("the limits of a clip are not numbers")
    return low, high


def _real_limits(call: relax.Call) -> tuple[float | None, float | None]:
    name = compat.op_name(call)
    if name == "relax.nn.relu":
        return 0.0, None
    if name == "relax.nn.relu6":
        return 0.0, 6.0
    return _clip_limits(call)
