"""The command ``serenity``: one file a command, here how it begins and how errors end.

Exit status: 0 done, 1 the answer is no (nothing fits, a wrong result), 2 bad input or a missing
part (one line on standard error), 130 interrupted.
"""

import atexit
import gc
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from tvm_serenity.errors import SerenityError
from tvm_serenity.frontends.model_file import printable
from tvm_serenity.without_torch import without_torch

if TYPE_CHECKING:
    from types import FrameType

    from tvm_serenity.cli._app import app as app

INTERRUPTED = 130
"""Exit status after Ctrl-C."""


def __getattr__(name: str) -> Any:
    """Import the application on first use: ``main`` must run before anything takes long."""
    if name == "app":
        from tvm_serenity.cli._app import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main(held: "list[FrameType] | None" = None) -> None:
    """Run the command line and end the process with its exit status.

    ``held`` keeps what a command had in its hands when Ctrl-C came.
    """
    signal.signal(signal.SIGINT, _interrupted)  # imports take seconds and swallow exceptions
    import typer

    from tvm_serenity.cli._app import Commands, app
    from tvm_serenity.cli.commands import register

    Commands.held = held
    register(sys.argv[1:])
    gc.freeze()  # what is imported stays; large models are many objects without cycles
    gc.set_threshold(200_000, 50, 1000)

    try:
        with without_torch():  # what commands run in PyTorch has a process of its own
            status = app(standalone_mode=False)
    except SerenityError as error:
        _end(" ".join(str(error).split()), error.exit_status)
    except typer.Abort:
        _end("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if hasattr(error, "format_message"):  # click's own: a wrong option or argument
            _end(error.format_message(), 2)
        raise
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the work is done: its status is the answer
    sys.exit(status if isinstance(status, int) else 0)


def run() -> None:
    """Do the same, and end the process without taking apart, object by object, what it holds.

    Of a million operators that takes a second. What was registered to run at the end runs; with
    threads that are still at work, or where output cannot be written, it ends as Python does.
    """
    held: list[FrameType] = []
    try:
        main(held)
    except SystemExit as end:
        if not isinstance(end.code, int) or threading.active_count() > 1:
            raise
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            raise end from None
        os._exit(end.code)


def _interrupted(_signal: int, _frame: "FrameType | None") -> None:
    os.write(2, b"serenity: interrupted\n")
    os._exit(INTERRUPTED)


def _end(message: str, status: int) -> None:
    print(f"serenity: {printable(message)}", file=sys.stderr)
    sys.exit(status)
