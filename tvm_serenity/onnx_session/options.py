"""Session options with which onnxruntime follows a file's order and frees dead tensors."""

import json
from collections.abc import Mapping
from pathlib import Path

SESSION_OPTIONS: Mapping[str, str | bool] = {
    "graph_optimization_level": "ORT_DISABLE_ALL",
    "execution_order": "PRIORITY_BASED",
    "enable_mem_pattern": False,
}
"""Attributes of ``onnxruntime.SessionOptions``; a string is the name of an enumeration value.

Optimising again would undo the order. ``PRIORITY_BASED`` runs the first ready operator of the file;
the default proceeds backwards from the outputs. A memory pattern is off because it is another block
as large as the arena, used from the second run on. The arena stays on, because the C library's heap
takes more memory (docs/how-to/onnxruntime.md has figures).
"""

_ENUMERATIONS = {
    "graph_optimization_level": "GraphOptimizationLevel",
    "execution_order": "ExecutionOrder",
}


def options_path(model: Path) -> Path:
    """Return the path of the options of ``model``: ``y.session.json`` beside ``y.onnx``."""
    return model.with_suffix(".session.json")


def session_json() -> bytes:
    """Return the content of the options file."""
    return json.dumps(dict(SESSION_OPTIONS), indent=1).encode() + b"\n"


def snippet(model: str) -> str:
    """Return the lines of Python that open ``model`` with the options."""
    lines = ["import onnxruntime", "options = onnxruntime.SessionOptions()"]
    for name, value in SESSION_OPTIONS.items():
        kind = _ENUMERATIONS.get(name)
        lines.append(f"options.{name} = " + (f"onnxruntime.{kind}.{value}" if kind else f"{value}"))
    return "\n".join([*lines, f"session = onnxruntime.InferenceSession({model!r}, options)"])
