"""The parent process of a reference runtime: starts it, sends requests, reports how it ended."""

import atexit
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeVar, cast

from tvm_serenity.errors import MissingPartError, SerenityError
from tvm_serenity.validation.references.values import Array, Fill, filled
from tvm_serenity.validation.references.worker import REPLY, send

T = TypeVar("T")
LIMIT_S = 60.0
"""Default time limit of one request in seconds."""
_PACKAGES = {
    "litert": ("LiteRT", "pip install 'tvm-serenity[run]'"),
    "fast": ("LiteRT", "pip install 'tvm-serenity[run]'"),
    "tflm": ("TensorFlow Lite for Microcontrollers", "pip install tflite-micro"),
    "onnxruntime": ("onnxruntime", "pip install 'tvm-serenity[run]'"),
    "qlinear": ("onnxruntime", "pip install 'tvm-serenity[run]'"),
    "exact": ("onnx's reference evaluator", "pip install onnx"),
    "torch": ("PyTorch", "pip install 'tvm-serenity[torch]'"),
    "double": ("PyTorch in float64", "pip install 'tvm-serenity[torch]'"),
}


_OF_BYTES = ("litert", "fast", "tflm")
"""Runtimes that receive a file's bytes; others receive its path, for external data."""


class ReferenceRuntimeError(SerenityError):
    """The reference runtime died, ran out of time, or refused the model; the message says which."""


class ReferenceRuntimeDied(ReferenceRuntimeError):
    """The process of a reference runtime ended during a request."""


STANDS_IN = {"litert": "tflm"}
"""The runtime that replaces another one that dies on a model."""


@dataclass(frozen=True)
class ReferenceTensor:
    """An input or output of the reference runtime; an extent of -1 is not fixed by the model."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    zero_point: int


@dataclass(frozen=True)
class Answer:
    """The results of a reference runtime; ``tensors``: those it kept, by index in the file."""

    outputs: tuple[Array, ...]
    tensors: Mapping[int, Array]


@dataclass(frozen=True)
class _Child:
    """A process that answers requests on ``requests``, a socket."""

    server: "_Server"
    number: int
    requests: socket.socket

    def kill(self) -> None:
        """End the process."""
        with suppress(ProcessLookupError):
            os.kill(self.number, signal.SIGKILL)

    def wait(self) -> int:
        """Return the exit status of the process, or minus the number of the signal it died of."""
        return self.server.asked(str(self.number), (), None)


class _Server:
    """The process whose forks are the children: ``worker.main``. It starts with the first child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def child(self, runtime: str, printed: BinaryIO, limit_s: float) -> _Child:
        """Start a child for ``runtime`` that prints to ``printed``, in the current folder."""
        ours, theirs = socket.socketpair()
        folder = os.open(".", os.O_RDONLY)
        try:
            files = (theirs.fileno(), folder, printed.fileno())
            return _Child(self, self.asked(runtime, files, limit_s), ours)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(folder)

    def asked(self, request: str, files: Sequence[int], limit_s: float | None) -> int:
        """Return the reply to a request; raise EOFError or TimeoutError, and end, without one."""
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self.end()
            control = self._control or self._start()
            control.settimeout(limit_s)
            try:
                socket.send_fds(control, [request.encode()], files)
                reply = control.recv(REPLY.size, socket.MSG_WAITALL)
                if len(reply) < REPLY.size:
                    raise EOFError
            except ConnectionError:
                self.end()
                raise EOFError from None
            except BaseException:  # Ctrl-C: a late reply must not answer the next request
                self.end()
                raise
            number: int = REPLY.unpack(reply)[0]
            return number

    def end(self) -> None:
        """End the process; children end when their sockets are closed."""
        process, self._process = self._process, None
        control, self._control = self._control, None
        if process is not None and control is not None:
            process.kill()
            process.wait()
            control.close()

    def _start(self) -> socket.socket:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "tvm_serenity.validation.references.worker"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONHASHSEED": "0"},
            )
        return self._control


_SERVERS: dict[int, _Server] = {}
"""By process: a fork of this process starts a server of its own."""


def _server() -> _Server:
    return _SERVERS.setdefault(os.getpid(), _Server())


@atexit.register
def _end_server() -> None:
    _server().end()


class ReferenceRuntime:
    """A child process that runs one model after another; a context manager.

    ``limit_s``: the time limit of each request in seconds.
    """

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self.limit_s = limit_s
        self.runtime = ""
        self.entries: tuple[ReferenceTensor, ...] = ()
        self.results: tuple[ReferenceTensor, ...] = ()
        self._process: _Child | None = None
        self._printed: BinaryIO | None = None

    def __enter__(self) -> "ReferenceRuntime":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self, runtime: str, model: bytes | Path, *, keep: bool = False) -> None:
        """Load ``model`` with ``runtime``, a name of ``worker.RUNTIMES``.

        "fast" is LiteRT with its kernels for this processor, "qlinear" onnxruntime with its
        optimisations, "exact" onnx's reference evaluator in
        float64, "double" PyTorch in float64.

        ``keep``: keep all tensors, if the runtime can, so that ``run`` returns them. Raises
        :class:`ReferenceRuntimeError`; :class:`MissingPartError` if the runtime is not installed.
        """
        self.runtime = runtime
        if isinstance(model, Path) and runtime in _OF_BYTES:
            model = model.read_bytes()
        given = str(model) if isinstance(model, Path) else model
        inputs, outputs = self._ask(("open", runtime, given, keep))
        self.entries = tuple(ReferenceTensor(*entry) for entry in inputs)
        self.results = tuple(ReferenceTensor(*entry) for entry in outputs)

    def inputs(self, fill: Fill) -> list[Array]:
        """Return one array per input, drawn by ``fill``."""
        return [filled(e.shape, e.dtype, e.zero_point, fill, i) for i, e in enumerate(self.entries)]

    def run(self, inputs: Sequence[Array]) -> Answer:
        """Return the model's results, with its states reset."""
        outputs, tensors = self._ask(("run", list(inputs)))
        return Answer(tuple(outputs), tensors)

    def step(self, inputs: Sequence[Array]) -> Answer:
        """Return the model's results, from the states that the previous run left."""
        outputs, tensors = self._ask(("step", list(inputs)))
        return Answer(tuple(outputs), tensors)

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(EOFError):  # the server has ended
                process.wait()
            process.requests.close()
        if self._printed is not None:
            self._printed.close()

    def _ask(self, request: tuple[Any, ...]) -> Any:
        try:
            process = self._process or self._start()
            with process.requests.makefile("wb") as stream:
                send(cast(BinaryIO, stream), request)
            status, value = self._reply(process.requests.fileno())
        except (ConnectionError, EOFError):
            raise ReferenceRuntimeDied(f"{self._name}: {self._death()}") from None
        except TimeoutError:
            self.close()
            raise ReferenceRuntimeError(
                f"{self._name}: no answer after {self.limit_s:g} s"
            ) from None
        except BaseException:  # Ctrl-C: a late reply must not answer the next request
            self.close()
            raise
        if status == "missing":
            name, advice = _PACKAGES[self.runtime]
            raise MissingPartError(f"{name} needs {value}: {advice}")
        if status == "refused":
            raise ReferenceRuntimeError(f"{self._name} refuses it: {value[:300]}")
        return value

    @property
    def _name(self) -> str:
        return _PACKAGES[self.runtime][0]

    def _start(self) -> _Child:
        self._printed = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115  (closed with the process)
        self._process = _server().child(self.runtime, self._printed, self.limit_s)
        return self._process

    def _reply(self, file: int) -> Any:
        until = time.monotonic() + self.limit_s

        def read(size: int) -> bytes:
            parts = bytearray()
            while len(parts) < size:
                left = until - time.monotonic()
                if left <= 0 or not select.select([file], [], [], left)[0]:
                    raise TimeoutError
                part = os.read(file, min(size - len(parts), 1 << 20))
                if not part:
                    raise EOFError
                parts += part
            return bytes(parts)

        (size,) = struct.unpack("<Q", read(8))
        return pickle.loads(read(size))

    def _death(self) -> str:
        try:
            status = None if self._process is None else self._process.wait()
        except EOFError:
            status = None
        said = ""
        if self._printed is not None:
            self._printed.seek(0)
            lines = self._printed.read().decode(errors="replace").split("\n")
            said = next(
                (f" ({' '.join(x.split())[:200]})" for x in reversed(lines) if x.strip()), ""
            )
        self.close()
        if status is None:
            return f"its server ended{said}"
        if status < 0:
            try:
                name = signal.Signals(-status).name
            except ValueError:
                name = f"signal {-status}"
            return f"died of {name} on this model{said}"
        return f"ended with status {status}{said}"


def borrowed(
    process: ReferenceRuntime | None, limit_s: float = LIMIT_S
) -> AbstractContextManager[ReferenceRuntime]:
    """Return a context of ``process``, which stays open, or of a new one that is closed."""
    return ReferenceRuntime(limit_s) if process is None else nullcontext(process)


def consulted(
    runtime: str,
    model: bytes | Path,
    ask: Callable[[ReferenceRuntime], T],
    *,
    keep: bool = False,
    limit_s: float = LIMIT_S,
    process: ReferenceRuntime | None = None,
) -> tuple[str, T]:
    """Return the name of the runtime that answered, and the result of ``ask``.

    ``process``: the one to ask, which stays open; by default a new one, within ``limit_s``.
    A runtime that dies on the model is replaced by its entry in ``STANDS_IN``. Raises what
    :meth:`ReferenceRuntime.open` and ``ask`` raise; if both runtimes fail, the message has both
    reasons.
    """

    def asked(runtime: str) -> T:
        with borrowed(process, limit_s) as reference:
            reference.open(runtime, model, keep=keep and runtime == "litert")
            return ask(reference)

    try:
        return runtime, asked(runtime)
    except ReferenceRuntimeDied as death:
        other = STANDS_IN.get(runtime)
        if other is None:
            raise
        try:
            return other, asked(other)
        except (ReferenceRuntimeError, MissingPartError) as reason:
            raise ReferenceRuntimeError(f"{death}; {reason}") from None
