"""Run an ``.onnx`` file in onnxruntime in a given order, and measure the memory of a run.

onnxruntime orders operators itself, and optimises the graph when it loads a file, so the order of a
file has no effect by default. Therefore the model is optimised once and saved (``optimise``), the
saved file is ordered, and it is loaded with the options of ``SESSION_OPTIONS``.
"""

from tvm_serenity.onnx_session.options import SESSION_OPTIONS, options_path, session_json, snippet
from tvm_serenity.onnx_session.process import LEVELS, Sessions, can_measure, measure, optimise
from tvm_serenity.onnx_session.storage import as_allocated

__all__ = [
    "LEVELS",
    "SESSION_OPTIONS",
    "Sessions",
    "as_allocated",
    "can_measure",
    "measure",
    "optimise",
    "options_path",
    "session_json",
    "snippet",
]
