"""The Typer application that every command registers with."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

from tvm_serenity import __version__


class Commands(TyperGroup):
    """The commands: while one runs, Ctrl-C raises in it, and what it leaves raised is an abort.

    Typer's own answer differs between its versions, and newer ones end without a word. ``held``
    gets the frames in which Ctrl-C came, and with them all that the command has in its hands: to
    take a million objects apart takes longer than anybody waits then.
    """

    held: ClassVar[list[FrameType] | None] = None

    def invoke(self, ctx: Any) -> Any:
        """Run the command that ``ctx`` names."""
        try:
            with _interrupts_raise(self.held):
                return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise typer.Abort from interrupt


@contextmanager
def _interrupts_raise(held: list[FrameType] | None) -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` at Ctrl-C (only a main thread may say so), then as before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, frame: FrameType | None) -> None:
        while held is not None and frame is not None:  # a generator's does not keep its caller's
            held.append(frame)
            frame = frame.f_back
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


app = typer.Typer(
    name="serenity",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"tvm-serenity {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Order a neural network's operators for the least memory, plan one arena, run it on TVM.

    MODEL is a .tflite, .onnx, .pt2 or .pte file, a graph in text form (.txt, .graph), or zoo:NAME.
    """
