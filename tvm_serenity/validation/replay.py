"""Reproducers run again: both kernels of a case compiled from their scripts, on its inputs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tvm

from tvm_serenity import compat
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.replay import replay as replay_c
from tvm_serenity.validation.execute import POISONS, Signature, plainly, poisoned
from tvm_serenity.validation.inputs import Array
from tvm_serenity.validation.isolated import isolated
from tvm_serenity.validation.report import concluded, first_difference, read_reproducer

LIMIT_S = 600.0
"""Seconds a case may take."""


def replay(path: Path) -> str:
    """Run the reproducer at ``path``; return one line where the kernel is right.

    Raises :class:`WrongResultError` where it is wrong.
    """
    case, arrays = read_reproducer(path)
    found = REPLAYS.get(str(case.get("kind")))
    if found is None:
        raise InputError(
            f"{path}: a case of kind {case.get('kind')!r}; there are {', '.join(REPLAYS)}"
        )
    try:
        return found(case, arrays)
    except KeyError as error:
        raise InputError(f"{path}: no reproducer (without {error})") from None


def _tir(case: dict[str, Any], arrays: list[Array]) -> str:
    """Compile and compare the two forms of a kernel."""
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


REPLAYS: dict[str, Callable[[dict[str, Any], list[Array]], str]] = {"tir": _tir, "c": replay_c}
"""What runs a case, by its kind."""
