"""The Typer application with which every command registers."""

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
    """A group of commands, listed by name; Ctrl-C raises ``KeyboardInterrupt`` in a running one.

    A command that does not catch it aborts. Typer handles Ctrl-C differently in each of its
    versions, and newer versions end without a message. ``held`` receives the stack frames in which
    Ctrl-C arrived and so keeps their objects alive: freeing a million objects delays the end.
    """

    held: ClassVar[list[FrameType] | None] = None

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, sorted."""
        return sorted(super().list_commands(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run the command that ``ctx`` names; return its result."""
        try:
            with _interrupts_raise(self.held):
                return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            raise typer.Abort from interrupt


@contextmanager
def _interrupts_raise(held: list[FrameType] | None) -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` at Ctrl-C within the block, in the main thread.

    Python allows only the main thread to install a signal handler; other threads are left alone.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, frame: FrameType | None) -> None:
        while held is not None and frame is not None:  # a frame may not hold its caller
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
    context_settings={"help_option_names": ["-h", "--help"]},
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
    """Find the operator order of least memory, place all tensors in one arena, run it on TVM.

    MODEL is a .tflite, .onnx, .pt2 or .pte file, a graph in text form (.txt, .graph), or zoo:NAME.
    """
