"""The child process of a reference runtime: it opens a model and answers requests.

Requests and replies are pickles preceded by their length, on the standard streams of the parent;
anything a runtime prints is redirected. A reply is ``("ok", value)``, ``("refused", reason)`` if
the runtime refuses the model, or ``("missing", package)``.
"""

import os
import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO


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


def main() -> None:
    """Answer requests until the parent closes the stream."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # redirect prints of runtimes on standard output
    machine: Any = None
    while True:
        try:
            request = _receive(sys.stdin.buffer)
        except EOFError:
            return
        machine, reply = _answer(machine, request)
        send(replies, reply)


if __name__ == "__main__":
    main()
