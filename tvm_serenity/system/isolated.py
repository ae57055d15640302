"""Run work in a child process, so that a crash cannot end the parent.

The child is a fork: it shares all compiled and loaded code, and sends back results. If the system
cannot fork, the work runs in this process.
"""

import faulthandler
import os
import pickle
import select
import signal
import struct
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from typing import Any

Work = Callable[[], Iterator[Any]]


class Death(Exception):
    """The child ended before its work was done; the message says how it ended."""


def isolated(work: Work, limit_s: float) -> Generator[Any]:
    """Yield the values of ``work()``, computed in a child process.

    Raises :class:`Death` if the child ends early, raises an exception, or yields nothing for
    ``limit_s`` seconds.
    """
    if not hasattr(os, "fork"):
        yield from work()
        return
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # the warning is about the parent's threads, which the child does not need
        child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, writing)
    os.close(writing)
    try:
        yield from _received(reading, child, limit_s)
    finally:
        os.close(reading)
        _end(child)


def _work(work: Work, writing: int) -> None:
    """Run the child's side; this never returns.

    The work runs in a thread of its own: libraries such as TVM keep a thread pool per thread, and
    the threads of the parent's pool do not exist in the child.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    faulthandler.disable()  # the parent reports how the child died
    working = threading.Thread(target=_answered, args=(work, writing))
    working.start()
    working.join()
    os._exit(1)


def _answered(work: Work, writing: int) -> None:
    status = 1
    try:
        for value in work():
            _send(writing, ("value", value))
        _send(writing, ("done", None))
        status = 0
    except BaseException as error:
        text = " ".join(str(error).split())[:400]
        _send(writing, ("failed", f"{type(error).__name__}: {text}"))
    finally:
        os._exit(status)


def _send(file: int, message: tuple[str, Any]) -> None:
    data = pickle.dumps(message, protocol=5)
    data = struct.pack("<Q", len(data)) + data
    while data:
        data = data[os.write(file, data) :]


def _received(file: int, child: int, limit_s: float) -> Iterator[Any]:
    while True:
        head = _read(file, 8, limit_s)
        if len(head) < 8:
            raise Death(_cause_of_death(child))
        kind, value = pickle.loads(_read(file, struct.unpack("<Q", head)[0], limit_s))
        if kind == "done":
            return
        if kind == "failed":
            raise Death(f"failed: {value}")
        yield value


def _read(file: int, size: int, limit_s: float) -> bytes:
    until, parts = time.monotonic() + limit_s, bytearray()
    while len(parts) < size:
        left = until - time.monotonic()
        if left <= 0 or not select.select([file], [], [], left)[0]:
            raise Death(f"returned no result for {limit_s:g} s")
        part = os.read(file, min(size - len(parts), 1 << 20))
        if not part:
            break
        parts += part
    return bytes(parts)


def _cause_of_death(child: int) -> str:
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"died of {signal.Signals(os.WTERMSIG(status)).name}"
    return f"ended with status {os.waitstatus_to_exitcode(status)}"


def _end(child: int) -> None:
    try:
        if os.waitpid(child, os.WNOHANG)[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    except ChildProcessError:  # the child was already waited for
        return
