"""onnxruntime as a reference runtime of 8-bit arithmetic, with the same sums on every processor."""

from pathlib import Path
from typing import Any

import pytest

ort = pytest.importorskip("onnxruntime")


def session(model: bytes | Path, widened: bool = True) -> Any:
    """Return a session in one thread.

    ``widened``: where a processor has no dot products of bytes, sums of two products of uint8 with
    int8 saturate at 16 bits otherwise. Not for int8 activations: it has no such kernel for them.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if widened:
        options.add_session_config_entry("session.x64quantprecision", "1")
    given = model if isinstance(model, bytes) else str(model)
    return ort.InferenceSession(given, options, providers=["CPUExecutionProvider"])
