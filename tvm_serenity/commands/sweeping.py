"""Sweeps of commands: Ctrl-C keeps the finished points in a file."""

from collections.abc import Callable

from tvm_serenity.errors import SerenityError
from tvm_serenity.search.sweeps import Interrupted, PointFile, Row


class SweepInterrupted(SerenityError):
    """Ctrl-C ended a sweep; the message names the kept points and the option to resume."""

    exit_status = 130


def kept_on_interrupt(run: Callable[..., list[Row]], keep: PointFile, resumed: bool) -> list[Row]:
    """Return the rows of a sweep: ``run(done=..., keep=...)``.

    ``resumed``: load the finished points of ``keep`` and save each new point there. On Ctrl-C, all
    finished points are saved to ``keep``, and :class:`SweepInterrupted` names the option to resume.
    """
    try:
        if resumed:
            return run(done=keep.load(), keep=keep)
        return run()
    except Interrupted as interrupt:
        keep.save(interrupt.done)
        raise SweepInterrupted(
            f"interrupted: {len(interrupt.done)} of {interrupt.points} points are finished and "
            f"kept; resume with the same command and --resume {keep.path}"
        ) from interrupt
