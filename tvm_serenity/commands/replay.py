"""``replay``: run a reproducer of a wrong kernel again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tvm_serenity.errors import InputError
from tvm_serenity.firmware.check import reproducer as c
from tvm_serenity.validation import replay as tir
from tvm_serenity.validation.inputs import Array
from tvm_serenity.validation.report import read_reproducer

REPLAYS: dict[str, Callable[[dict[str, Any], list[Array]], str]] = {
    tir.KIND: tir.replay,
    c.KIND: c.replay,
}
"""What runs a case, by its kind."""


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
