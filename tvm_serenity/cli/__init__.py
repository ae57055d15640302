"""The command line ``serenity``: its entry point, its exit status and its error messages.

Each command has a file of its own in this package. Exit status: 0 success; 1 a negative answer
(nothing fits, a wrong result); 2 invalid input or a missing dependency (one line on standard
error); 130 interrupted.
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
    """Return ``app``, imported at first use.

    ``main`` must install its handler of Ctrl-C before the slow imports.
    """
    if name == "app":
        from tvm_serenity.cli._app import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main(held: "list[FrameType] | None" = None) -> None:
    """Run the command line and end the process with its exit status.

    ``held`` receives the stack frames that were live when Ctrl-C arrived, so that their objects are
    not freed one by one.
    """
    signal.signal(signal.SIGINT, _interrupted)  # imports take seconds and swallow exceptions
    gc.set_threshold(200_000, 50, 1000)  # imports and large models: many objects without cycles
    import typer

    from tvm_serenity.cli._app import Commands, app
    from tvm_serenity.cli.commands import register

    Commands.held = held
    register(sys.argv[1:])
    gc.freeze()  # imports live until the end

    try:
        with without_torch():  # commands run PyTorch in a separate process
            status = app(standalone_mode=False)
    except SerenityError as error:
        _end(" ".join(str(error).split()), error.exit_status)
    except typer.Abort:
        _end("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if hasattr(error, "format_message"):  # an error of click: an invalid option or argument
            _end(error.format_message(), 2)
        raise
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C must not change the status now
    sys.exit(status if isinstance(status, int) else 0)


def run() -> None:
    """Run ``main`` and end the process without freeing its objects one by one.

    Freeing a model of a million operators takes a second. Functions registered with ``atexit`` run.
    The process ends as Python usually does if other threads are still running, or if the output
    cannot be flushed.
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
