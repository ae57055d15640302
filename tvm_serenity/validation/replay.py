"""Reproducers of wrong TIR run again: both kernels compiled from their scripts, on its inputs."""

from collections.abc import Iterator
from typing import Any

import tvm

from tvm_serenity import compat
from tvm_serenity.system.isolated import isolated
from tvm_serenity.validation.execute import POISONS, Signature, plainly, poisoned
from tvm_serenity.validation.inputs import Array
from tvm_serenity.validation.report import concluded, first_difference

KIND = "tir"
"""``kind`` of these cases in a reproducer."""
LIMIT_S = 600.0
"""Seconds a case may take."""


def replay(case: dict[str, Any], arrays: list[Array]) -> str:
    """Compile both forms of a kernel and compare them; return one line where they are equal.

    Raises :class:`WrongResultError` where they are not.
    """
    kernels = {name: compat.from_script(case[name]) for name in ("reference", "made")}
    library = tvm.compile(
        tvm.IRModule({n: k.with_attr("global_symbol", n) for n, k in kernels.items()}), "llvm"
    )
    params = kernels["reference"].params
    tensors = tuple((compat.buffer_shape(p), compat.buffer_dtype(p)) for p in params)
    signature = Signature(tensors, tuple(case["written"]), case["workspace_bytes"])
    given = dict(zip((*case["drawn"], *case["constants"]), arrays, strict=True))
    functions = library["reference"], library["made"]

    def work() -> Iterator[Any]:
        expected = plainly(functions[0], signature, given, 0).outputs
        for poison in POISONS:
            found = poisoned(functions[1], signature, given, poison)
            yield found.damage or first_difference(expected, found.outputs)

    return concluded(case, isolated(work, LIMIT_S))
