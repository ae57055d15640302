"""ONNX models run here and by onnxruntime."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import tvm

from tests.conformance.verdict import TARGET, Array
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.runtime.pipeline import serenity_pipeline
from tvm_serenity.runtime.vm import run


def both(path: Path, inputs: Sequence[Array]) -> list[tuple[Array, Array]]:
    """What a model makes of inputs: each output from our code and from onnxruntime's.

    onnxruntime computes node by node, as the file says.
    """
    pipeline = serenity_pipeline(rounding="float", validate=False)
    library = tvm.compile(to_relax(path), tvm.target.Target(TARGET), relax_pipeline=pipeline)
    ours = run(library, list(inputs)).outputs
    return list(zip(ours, onnxruntime(path, inputs), strict=True))


def onnxruntime(path: Path, inputs: Sequence[Array]) -> list[Array]:
    """What onnxruntime, without its optimisations, makes of inputs."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]
    found: Any = session.run(None, dict(zip(names, inputs, strict=True)))
    return [np.asarray(value) for value in found]


def check_equal(path: Path, inputs: Sequence[Array], tolerance: float = 1e-5) -> None:
    """Fail where shapes, types or values of an output are not onnxruntime's."""
    for ours, theirs in both(path, inputs):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
