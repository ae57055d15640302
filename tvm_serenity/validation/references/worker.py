"""The child process of a reference runtime: it opens a model and answers requests.

A server imports the libraries of the runtimes and forks for each child, which takes a tenth of the
time of a new interpreter. The server computes nothing, so a model cannot damage it.

Requests and replies of a child are pickles preceded by their length, on a socket of its own;
anything a runtime prints is redirected. A reply is ``("ok", value)``, ``("refused", reason)`` if
the runtime refuses the model, or ``("missing", package)``.
"""

import os
import pickle
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, BinaryIO, cast


def _litert(model: bytes, keep: bool) -> Any:
    from tvm_serenity.validation.references.litert import LiteRT

    return LiteRT(model, keep)


def _fast(model: bytes, keep: bool) -> Any:
    from tvm_serenity.validation.references.litert import LiteRT

    return LiteRT(model, keep, fast=True)


def _tflm(model: bytes, keep: bool) -> Any:
    from tvm_serenity.validation.references.micro import Micro

    return Micro(model, keep)


def _onnxruntime(model: bytes | str, keep: bool) -> Any:
    from tvm_serenity.validation.references.onnx_runtime import OnnxRuntime

    return OnnxRuntime(model, keep)


def _qlinear(model: bytes | str, keep: bool) -> Any:
    from tvm_serenity.validation.references.onnx_runtime import OnnxRuntime

    return OnnxRuntime(model, keep, optimised=True)


def _exact(model: bytes | str, keep: bool) -> Any:
    from tvm_serenity.validation.references.onnx_exact import OnnxExact

    return OnnxExact(model, keep)


def _double(model: bytes | str, keep: bool) -> Any:
    from tvm_serenity.validation.references.torch_program import TorchProgram

    return TorchProgram(model, keep, double=True)


def _torch(model: bytes | str, keep: bool) -> Any:
    from tvm_serenity.validation.references.torch_program import TorchProgram

    return TorchProgram(model, keep)


RUNTIMES: dict[str, Callable[[Any, bool], Any]] = {
    "litert": _litert,
    "fast": _fast,
    "tflm": _tflm,
    "onnxruntime": _onnxruntime,
    "qlinear": _qlinear,
    "exact": _exact,
    "torch": _torch,
    "double": _double,
}
"""By runtime name: opens a model, given its bytes (or path) and ``keep``."""
LIBRARIES = {
    "litert": "ai_edge_litert.interpreter",
    "fast": "ai_edge_litert.interpreter",
    "tflm": "tflite_micro.python.tflite_micro.runtime",
    "onnxruntime": "onnxruntime",
    "qlinear": "onnxruntime",
    "exact": "onnx.reference",
    "torch": "torch",
    "double": "torch",
}
"""By runtime name: the library that the server imports before it forks."""
REPLY = struct.Struct("<q")
"""A reply of the server: the process of a child, or how it ended."""


def send(stream: BinaryIO, value: Any) -> None:
    """Write one message."""
    data = pickle.dumps(value, protocol=5)
    stream.write(struct.pack("<Q", len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: BinaryIO) -> Any:
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    return pickle.loads(stream.read(struct.unpack("<Q", head)[0]))


def _answer(machine: Any, request: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the open model after one request, and the reply."""
    verb, *arguments = request
    try:
        if verb == "open":
            runtime, model, keep = arguments
            machine = RUNTIMES[runtime](model, keep)
            return machine, ("ok", machine.signature())
        return machine, ("ok", getattr(machine, verb)(*arguments))
    except ImportError as error:
        return machine, ("missing", str(error.name or error))
    except Exception as error:  # runtimes raise any type
        reason = " ".join(str(error).split()) or type(error).__name__
        return machine, ("refused", reason)


def _answer_all(connection: socket.socket) -> None:
    """Answer requests until the parent closes the connection."""
    requests, replies = connection.makefile("rb"), connection.makefile("wb")
    machine: Any = None
    while True:
        try:
            request = _receive(requests)
        except (EOFError, ConnectionError):
            return
        machine, reply = _answer(machine, request)
        send(cast(BinaryIO, replies), reply)


def _child(control: socket.socket, files: list[int]) -> None:
    """Fork, and have the child answer on a socket, in a folder, printing to a file."""
    connection, folder, printed = files
    child = os.fork()
    if child:
        control.sendall(REPLY.pack(child))
        return
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        control.close()
        os.fchdir(folder)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        _answer_all(socket.socket(fileno=connection))
        status = 0
    finally:
        os._exit(status)


def _ended(child: int) -> int:
    """Wait for a child, and return its status, or minus the signal that ended it."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except ChildProcessError:  # the child of an earlier server
        return 0


def main() -> None:
    """Serve until the parent ends: start a child for a runtime, or wait for the end of one.

    The first request is a runtime's name with three files, the second the number of a process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=os.dup(0)) as control, open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # a child that holds the socket would hide the server's end
        while True:
            request, files, _, _ = socket.recv_fds(control, 64, 3)
            if not request:
                return
            if files:
                with suppress(Exception):  # the child reports what is missing
                    import_module(LIBRARIES[request.decode()])
                _child(control, files)
                for file in files:
                    os.close(file)
            else:
                control.sendall(REPLY.pack(_ended(int(request))))


if __name__ == "__main__":
    main()
