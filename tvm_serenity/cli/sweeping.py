"""What commands that sweep have in common: on Ctrl-C the finished points are kept."""

from collections.abc import Callable

import typer

from tvm_serenity.sweeps import Interrupted, PointFile, Row


def kept_on_interrupt(run: Callable[..., list[Row]], keep: PointFile, resumed: bool) -> list[Row]:
    """Return the rows of a sweep: ``run(done=..., keep=...)``.

    ``resumed``: finished points of ``keep`` are used, and kept there all the time. On Ctrl-C what
    is finished is kept there in any case; how to go on is said, and the exit status is 130.
    """
    try:
        if resumed:
            return run(done=keep.load(), keep=keep)
        return run()
    except Interrupted as interrupt:
        keep.save(interrupt.done)
        typer.echo(
            f"serenity: interrupted: {len(interrupt.done)} of {interrupt.points} points are "
            f"finished and kept; go on with the same command and --resume {keep.path}",
            err=True,
        )
        raise typer.Exit(130) from interrupt
