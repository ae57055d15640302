"""Run the command line in this process: a process of its own takes seconds to start."""

import gc
import json
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pytest

NO_TORCH = "import sys\nsys.modules['torch'] = None\n"
"""Begins the code of a child process in which TVM is not to import PyTorch: it takes 2 CPU s."""
COLUMNS = 100
"""Width of the terminal that commands format for."""


@dataclass(frozen=True)
class Finished:
    """What a finished command leaves: its exit status and both streams."""

    returncode: int
    stdout: str
    stderr: str


def serenity(*arguments: object, cwd: Path | None = None, columns: int = COLUMNS) -> Finished:
    """Return what ``serenity ARGUMENTS`` leaves, run in this process."""
    from tvm_serenity.cli import main
    from tvm_serenity.cli.show import console

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console, "_width", columns)  # it has read the environment once
        return in_process(main, ["serenity", *map(str, arguments)], cwd=cwd, columns=columns)


def in_process(
    work: Callable[[], None],
    words: Sequence[str],
    *,
    cwd: Path | None = None,
    columns: int = COLUMNS,
) -> Finished:
    """Return what ``work`` leaves as the main program of a process with the arguments ``words``.

    Signal handlers, garbage collection, the working folder and the environment are as before
    afterwards. An exception that ``work`` lets through is a traceback and status 1, as Python
    reports it.
    """
    with (
        _streams() as (out, err),
        pytest.MonkeyPatch.context() as patch,
        process_state(),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()  # they are printed, neither raised nor collected
        patch.setattr(warnings, "showwarning", _print_warning)
        for unseen in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", unseen)
        patch.setattr(sys, "argv", list(words))
        patch.setenv("COLUMNS", str(columns))
        if cwd is not None:
            patch.chdir(cwd)
        status: object = 0
        try:
            work()
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        sys.stderr.flush()
        texts = [Path(stream.name).read_text() for stream in (out, err)]
    return Finished(status if isinstance(status, int) else int(status is not None), *texts)


def answer(*arguments: object, cwd: Path | None = None) -> Any:
    """Return the JSON that ``serenity ARGUMENTS --json`` prints; it must succeed."""
    finished = serenity(*arguments, "--json", cwd=cwd)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@contextmanager
def _streams() -> Iterator[tuple[TextIO, TextIO]]:
    """Send both streams to files, also what compiled code and child processes write."""
    sys.stdout.flush()
    sys.stderr.flush()
    before = sys.stdout, sys.stderr
    copies = os.dup(1), os.dup(2)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        out, err = (
            stack.enter_context(Path(folder, name).open("w", buffering=1))
            for name in ("out", "err")
        )
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout, sys.stderr = out, err
        try:
            yield out, err
        finally:
            sys.stdout, sys.stderr = before
            for number, copy in enumerate(copies, 1):
                os.dup2(copy, number)
                os.close(copy)


def _print_warning(*given: Any) -> None:
    message, category, file, line = given[:4]
    sys.stderr.write(warnings.formatwarning(message, category, file, line))


@contextmanager
def process_state() -> Iterator[None]:
    """Restore what the command line sets once for its process: a handler, variables, limits."""
    interrupt, threshold = signal.getsignal(signal.SIGINT), gc.get_threshold()
    variables = dict(os.environ)
    try:
        yield
    finally:
        if dict(os.environ) != variables:
            os.environ.clear()
            os.environ.update(variables)
        signal.signal(signal.SIGINT, interrupt)
        gc.set_threshold(*threshold)
        gc.unfreeze()
