"""A function in a process of its own, one task after another: a crash or hang ends only the task.

with Child(check) as child:
    child.ask(task)     # what check(task) returns, or a Death
"""

import multiprocessing
import pickle
import signal
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from tvm_serenity.without_torch import without_torch

LIMIT_S = 300.0
"""Seconds one task may take."""


@dataclass(frozen=True)
class Death:
    """How the process ended instead of answering."""

    reason: str


class Child:
    """Runs ``work`` (a module's function) in a child process, restarted when it has died.

    ``torch``: the module of the function needs PyTorch; else TVM is imported without it.
    """

    def __init__(
        self, work: Callable[[Any], Any], limit_s: float = LIMIT_S, *, torch: bool = False
    ) -> None:
        self.work = work
        self.torch = torch
        self.limit_s = limit_s
        self._process: Any = None
        self._pipe: Any = None

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def ask(self, task: Any) -> Any:
        """Return ``work(task)``, or a :class:`Death` that says how the process ended."""
        if self._process is None:
            self._start()
        try:
            self._pipe.send(task)
            if not self._pipe.poll(self.limit_s):
                self.close()
                return Death(f"no answer after {self.limit_s:g} s")
            return self._pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join(5)
            code = self._process.exitcode
            self.close()
            named = signal.Signals(-code).name if code and code < 0 else f"status {code}"
            return Death(f"died of {named}")

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join()
            process.close()
            self._pipe.close()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        given = (theirs, pickle.dumps(self.work), self.torch)
        self._process = context.Process(target=_serve, args=given, daemon=True)
        self._process.start()
        theirs.close()


def _serve(pipe: Any, named: bytes, torch: bool) -> None:
    with nullcontext() if torch else without_torch():
        work = pickle.loads(named)
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        pipe.send(work(task))
