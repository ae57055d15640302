"""Work in a child process: code that may be wrong cannot take the parent with it.

The child is a fork: it has everything that was compiled and loaded, and sends back results. Where
the system cannot fork, the work runs here.
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
    """The child ended before its work was done; the message says how."""


def isolated(work: Work, limit_s: float) -> Generator[Any]:
    """Yield what ``work()`` yields, as computed in a child process.

    Raises :class:`Death` where the child ends early, or yields nothing for ``limit_s`` seconds.
    An exception in the child ends it with the exception's text.
    """
    if not hasattr(os, "fork"):
        yield from work()
        return
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads that the child does not have: it needs none
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
    """The child's side: never returns.

    The work has a thread of its own: libraries keep a pool of threads for each (TVM), and those of
    the parent's are not here.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    faulthandler.disable()  # the parent names how the child died
    working = threading.Thread(target=_answered, args=(work, writing))
    working.start()
    working.join()
    os._exit(1)


def _answered(work: Work, writing: int) -> None:
    status = 1
    try:
        for found in work():
            _send(writing, ("value", found))
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
            raise Death(_how(child))
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
            raise Death(f"gave no result for {limit_s:g} s")
        part = os.read(file, min(size - len(parts), 1 << 20))
        if not part:
            break
        parts += part
    return bytes(parts)


def _how(child: int) -> str:
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"died of {signal.Signals(os.WTERMSIG(status)).name}"
    return f"ended with status {os.waitstatus_to_exitcode(status)}"


def _end(child: int) -> None:
    try:
        if os.waitpid(child, os.WNOHANG)[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    except ChildProcessError:  # waited for already
        return
