"""No kernel of a compiled module allocates: neither through the VM nor from TVM's backend."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tvm = pytest.importorskip("tvm")

from tvm_serenity.frontends.relax import to_relax  # noqa: E402
from tvm_serenity.passes import serenity_pipeline  # noqa: E402
from tvm_serenity.runtime.vm import run  # noqa: E402
from tvm_serenity.validation.drawn import random_inputs  # noqa: E402

BACKEND = "TVMBackendAllocWorkspace"
STACK_BYTES = 1024
"""What a kernel may keep on the stack: register tiles that are spilled."""


def machine_code(executable: Any) -> str:
    """The LLVM code of all kernels."""
    modules = [executable.mod]
    for module in modules:
        modules += list(module.imports)
    return "\n".join(m.inspect_source("ll") for m in modules if m.kind == "llvm")


def stack_bytes(code: str) -> int:
    """The largest array any kernel puts on its stack."""
    found = re.findall(r"alloca \[(\d+) x i8\]|alloca \[(\d+) x [if]32\]", code)
    return max((int(a or 0) + 4 * int(b or 0) for a, b in found), default=0)


@pytest.mark.parametrize(
    "name",
    [
        "mlperf_tiny/kws_dscnn_int8.tflite",
        "mlperf_tiny/ic_resnet8_int8.tflite",
        "tflm/keyword_scrambled.tflite",
        "mlperf_tiny/kws_dscnn_fp32.tflite",
        "mlperf_tiny/ic_resnet8_fp32.onnx",
    ],
)
def test_a_compiled_model_allocates_its_arena_and_its_results_alone(
    name: str, shared: Path
) -> None:
    module = to_relax(shared / "models" / name)
    executable = tvm.compile(module, "llvm", relax_pipeline=serenity_pipeline())
    code = machine_code(executable)
    assert "define" in code
    assert BACKEND not in code
    assert stack_bytes(code) <= STACK_BYTES
    found = run(executable, random_inputs(module))
    results = [array.nbytes for array in found.outputs]
    assert len(found.storages) == 1 + len(results)
    assert Counter(results) <= Counter(found.storages)


def test_the_count_sees_allocations_of_stock_kernels(shared: Path) -> None:
    module = to_relax(shared / "models/mlperf_tiny/kws_dscnn_fp32.tflite")
    executable = tvm.compile(module, "llvm")
    assert BACKEND in machine_code(executable)
    found = run(executable, random_inputs(module))
    assert len(found.storages) > 2
    assert np.isfinite(found.outputs[0]).all()
