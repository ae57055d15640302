"""``replay``: run the reproducer of a wrong kernel again."""

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
"""The functions that run a reproducer, by its kind."""


def replay(path: Path) -> str:
    """Return one line about the reproducer at ``path`` if its kernel is correct now.

    Raises :class:`WrongResultError` if the kernel is still wrong.
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
        raise InputError(f"{path}: not a reproducer: the key {error} is missing") from None
