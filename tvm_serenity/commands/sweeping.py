"""What commands that sweep have in common: on Ctrl-C the finished points are kept."""

from collections.abc import Callable

from tvm_serenity.errors import SerenityError
from tvm_serenity.search.sweeps import Interrupted, PointFile, Row


class SweepInterrupted(SerenityError):
    """Ctrl-C ended a sweep; the message says what is kept, and how to go on."""

    exit_status = 130


def kept_on_interrupt(run: Callable[..., list[Row]], keep: PointFile, resumed: bool) -> list[Row]:
    """Return the rows of a sweep: ``run(done=..., keep=...)``.

    ``resumed``: finished points of ``keep`` are used, and kept there all the time. On Ctrl-C what
    is finished is kept there in any case, and :class:`SweepInterrupted` says how to go on.
    """
    try:
        if resumed:
            return run(done=keep.load(), keep=keep)
        return run()
    except Interrupted as interrupt:
        keep.save(interrupt.done)
        raise SweepInterrupted(
            f"interrupted: {len(interrupt.done)} of {interrupt.points} points are "
            f"finished and kept; go on with the same command and --resume {keep.path}"
        ) from interrupt
