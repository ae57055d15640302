"""Reference runtimes: other runtimes that compute a model, each in a process of its own.

    with ReferenceRuntime() as reference:
        reference.open("litert", Path("model.tflite"), keep=True)
        answer = reference.run(reference.inputs(0))
        answer.outputs, answer.tensors

A reference runtime may abort, hang or corrupt its memory on a model. It runs in a child process
with a time limit; if the process dies, :class:`ReferenceRuntimeError` says how it ended. The next
``open`` starts a new process: a fork of a server that has imported the runtime's library, and that
runs no model. :func:`consulted` asks TFLM if LiteRT dies. A runtime is one file
here (a class with ``signature``, ``run`` and ``step``) and one line in ``worker.RUNTIMES``.
"""

from tvm_serenity.validation.references.choice import runtime_for
from tvm_serenity.validation.references.process import (
    Answer,
    ReferenceRuntime,
    ReferenceRuntimeDied,
    ReferenceRuntimeError,
    ReferenceTensor,
    borrowed,
    consulted,
)
from tvm_serenity.validation.references.values import Fill, filled

__all__ = [
    "Answer",
    "Fill",
    "ReferenceRuntime",
    "ReferenceRuntimeDied",
    "ReferenceRuntimeError",
    "ReferenceTensor",
    "borrowed",
    "consulted",
    "filled",
    "runtime_for",
]
