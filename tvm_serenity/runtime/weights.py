"""How many bytes the constants of a module take."""

from typing import Any

from tvm_serenity.passes import _compat


def weight_bytes(mod: Any, name: str = "main") -> int:
    """Return the bytes of all distinct constants of a function, as stored in a library."""
    sizes: dict[Any, int] = {}
    for block in mod[name].body.blocks:
        for binding in block.bindings:
            _collect(binding.value, sizes)
    return sum(sizes.values())


def _collect(expr: Any, sizes: dict[Any, int]) -> None:
    if _compat.is_constant(expr):
        sizes[expr] = int(_compat.constant_array(expr).nbytes)
        return
    for part in (*getattr(expr, "args", ()), *getattr(expr, "fields", ())):
        _collect(part, sizes)
