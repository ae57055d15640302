"""Operators that LiteRT applies to stored values, whatever their scales."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene


@dataclass(frozen=True)
class OnStored:
    """An operator of the intermediate representation, applied to stored values."""

    name: str
    kind: str


def on_stored(
    facts: Operator,
    names: dict[str, str],
    functions: dict[str, Callable[..., Array]],
    dtypes: Sequence[str],
) -> Operator:
    """Return the operator of ``facts``; ``names`` (of Relax) and ``functions`` are by kind."""

    def read(scene: Scene) -> OnStored:
        scene.only(dtypes, *scene.inputs(), scene.result())
        return OnStored(names[scene.kind], scene.kind)

    def compute(op: OnStored, values: Sequence[Expr], calls: Calls) -> Expr:
        return calls.apply(op.name, *values)

    def reference(op: OnStored, *arrays: Array) -> Array:
        return functions[op.kind](*arrays)

    return replace(facts, integers=IntegerMeaning(read=read, compute=compute, reference=reference))
