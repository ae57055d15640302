"""``replay``: run the reproducer of a wrong kernel again."""

from pathlib import Path

from tvm_serenity.errors import InputError
from tvm_serenity.validation.report import read_reproducer


def replay(path: Path) -> str:
    """Return one line about the reproducer at ``path`` if its kernel is correct now.

    Raises :class:`WrongResultError` if the kernel is still wrong.
    """
    case, arrays = read_reproducer(path)
    from tvm_serenity.firmware.check import reproducer as c
    from tvm_serenity.validation import replay as tir  # TVM takes a second to import

    replays = {tir.KIND: tir.replay, c.KIND: c.replay}
    found = replays.get(str(case.get("kind")))
    if found is None:
        raise InputError(
            f"{path}: a case of kind {case.get('kind')!r}; there are {', '.join(replays)}"
        )
    try:
        return found(case, arrays)
    except KeyError as error:
        raise InputError(f"{path}: not a reproducer: the key {error} is missing") from None
