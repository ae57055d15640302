"""An ``.onnx`` file that onnxruntime runs in our order, and what a run of it takes.

onnxruntime orders operators itself and optimises the graph when it loads it, so the order of a file
does nothing by default. What works: optimise once and save that (``optimise``), order what was
saved, and load it with the options of ``SESSION_OPTIONS``.
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
